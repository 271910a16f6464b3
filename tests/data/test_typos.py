"""One typo in a column of each kind: the error says line, column and remedy, and nothing is guessed."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import hedgerow as hr
from hedgerow.data import Column, Schema, Table, read
from hedgerow.errors import ColumnUndeclared, HedgerowError, MissingColumn, MissingData, NotFinite, OutOfRange, SchemaInvalid

N = 200
LINE = 19
"""The line in which each file has its typo."""
GOOD = {
    "age": [str(18 + i % 70) for i in range(N)],
    "bmi": [f"{20 + i % 13}.5" for i in range(N)],
    "sex": ["mf"[i % 2] for i in range(N)],
    "died": [str(i % 2) for i in range(N)],
    "smokes": [["true", "false"][i % 2] for i in range(N)],
    "visit": [f"{i * 37 % 900}" for i in range(N)],
}
DECLARED = {
    "age": {"kind": "integer", "range": [18, 110], "unit": "a"},
    "bmi": {"kind": "number", "range": [10, 80], "na_values": ["-9"]},
    "sex": {"levels": {"female": "f", "male": "m"}},
    "died": {"kind": "binary"},
    "smokes": {"kind": "binary"},
    "visit": {"kind": "integer"},
}
TYPOS = [  # column, what stands there, refused undeclared as, refused declared as, what the remedy says
    ("age", "5O", ColumnUndeclared, SchemaInvalid, "Write 50: '5O' holds a letter"),
    ("age", "430", None, OutOfRange, "outside its declared range [18, 110] a"),
    ("age", "43.5", None, OutOfRange, "not whole"),
    ("bmi", "27,5", ColumnUndeclared, SchemaInvalid, "Write 27.5"),
    ("bmi", "1,234", ColumnUndeclared, SchemaInvalid, "Write 1234, or 1.234 if the comma is a decimal sign"),
    ("bmi", "?", ColumnUndeclared, SchemaInvalid, 'na_values = ["?"]'),
    ("bmi", "-9", None, NotFinite, 'missing = "drop"'),
    ("bmi", "999", None, OutOfRange, "name what stands for a missing value"),
    ("sex", "fm", None, OutOfRange, "add the level to `levels`"),
    ("died", "O", ColumnUndeclared, SchemaInvalid, "A binary column holds 0 and 1"),
    ("died", "2", None, OutOfRange, "A binary column holds 0 and 1"),
    ("smokes", "ture", ColumnUndeclared, SchemaInvalid, "A binary column holds 0 and 1, or true and false"),
    ("visit", "2024-03-01", ColumnUndeclared, SchemaInvalid, "Mend the file"),
    ("visit", "", NotFinite, NotFinite, 'missing = "drop"'),
]


def written(path, **typos):
    """A file that is right but for one value of each of these columns, in line 19."""
    columns = {name: [*values] for name, values in GOOD.items()}
    for name, value in typos.items():
        columns[name][LINE - 2] = value
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("column", "typo", "undeclared", "declared", "remedy"), TYPOS)
def test_a_typo_is_told_with_line_column_and_remedy(tmp_path, column, typo, undeclared, declared, remedy):
    path = written(tmp_path / "a.csv", **{column: typo})
    with pytest.raises(declared) as caught:
        read(path, declared=DECLARED)
    said = str(caught.value)
    assert f"column {column!r} has 1 of {N} values" in said
    assert f"first in line {LINE}" in said
    assert remedy in said
    assert "No party was asked." in said
    if undeclared is not None:
        with pytest.raises(undeclared, match=rf"column '{column}' has 1 of {N} values[^\n]*first in line {LINE}"):
            read(path)


def test_the_file_without_a_typo_is_read(tmp_path):
    table = read(written(tmp_path / "a.csv"), declared=DECLARED)
    assert table.schema["sex"].levels == ("female", "male")
    assert_array_equal(table["sex"][:2], [1, 0])
    assert_array_equal(table["smokes"][:2], [1, 0])
    assert (table.schema["age"].low, table.schema["age"].unit) == (18, "a")


def test_all_typos_of_a_file_are_told_at_once(tmp_path):
    typos = {"age": "5O", "bmi": "27,5", "sex": "x", "died": "yes", "smokes": "ture", "visit": "?"}
    with pytest.raises(SchemaInvalid) as caught:
        read(written(tmp_path / "a.csv", **typos), declared=DECLARED)
    for name, value in typos.items():
        assert f"column {name!r} has 1 of {N} values" in str(caught.value)
        assert repr(value) in str(caught.value)
    assert str(caught.value).count(f"first in line {LINE}") == len(typos)


def test_lines_are_those_of_an_editor(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,note\n\n1,"two\nlines"\n\n2,x\n3z,y\n4,\n')
    with pytest.raises(ColumnUndeclared, match="first in line 7: '3z'"):
        read(path)


def test_a_mark_for_missing_values_is_no_level(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,word\n1,a\n?,b\n3,?\n999,a\n")
    with pytest.raises(ColumnUndeclared, match=r"'\?'"):
        read(path)
    table = read(path, na_values=["?"], declared={"x": {"na_values": [999]}}, missing="drop")
    assert_array_equal(table["x"], [1, np.nan, 3, np.nan])
    assert table.schema["word"].levels == ("a", "b")
    kept = read(
        path, na_values=["?"], declared={"word": {"levels": ["a", "b", "?"]}, "x": {"na_values": [999]}}, missing="drop"
    )
    assert_array_equal(kept["word"], [0, 1, 2, 0])  # a level of that name is a level


@pytest.mark.parametrize("mark", ["?", "-", ".", "--", "*", " ? "])
@pytest.mark.parametrize("declared", [{}, {"race": {"kind": "category"}}], ids=["undeclared", "a category"])
def test_a_mark_among_words_is_no_level_unless_it_is_declared(tmp_path, mark, declared):
    path = tmp_path / "a.csv"
    path.write_text(f"race,y\nAsian,1\n{mark},0\nOther,1\n{mark},0\n")
    with pytest.raises(ColumnUndeclared) as caught:
        read(path, declared=declared)
    said = str(caught.value)
    assert "column 'race' has 2 of 4 values that are marks" in said
    assert f"first in line 3: {mark!r}" in said
    assert f'say na_values = ["{mark}"]' in said
    assert "or declare its levels" in said
    assert read(path, declared={"race": {"levels": ["Asian", "Other", mark]}}).schema["race"].levels[2] == mark
    assert read(path, declared={"race": {"many": True}}).schema["race"].levels == tuple(sorted(["Asian", "Other", mark]))
    assert read(path, declared=declared, na_values=[mark], missing="drop").schema["race"].levels == ("Asian", "Other")
    with pytest.raises(ColumnUndeclared, match="marks"):
        Table.from_pandas(pd.DataFrame({"race": ["Asian", mark]}, dtype="category"))
    with pytest.raises(ColumnUndeclared, match="marks"):
        hr.data.infer(pd.DataFrame({"race": ["Asian", mark]}))


@pytest.mark.parametrize("strange", [1, 97, 103])
def test_mostly_numbers_by_records_or_by_different_values(strange):
    """Of 200 values so many are `?`: few records, or one different value; both say that these are numbers."""
    words = ["?"] * strange + [str(i) for i in range(N - strange)]
    with pytest.raises(
        ColumnUndeclared, match=rf"column 'x' has {strange} of {N} values that are not numbers, and {N - strange}"
    ):
        Table.from_pandas(pd.DataFrame({"x": words}))


def test_words_among_which_some_are_numbers_are_words():
    assert Table.from_pandas(pd.DataFrame({"x": ["a", "b", "1"] * 9})).schema["x"].levels == ("1", "a", "b")


def test_levels_that_nobody_declares_are_few_and_told(tmp_path):
    path = tmp_path / "a.csv"
    pd.DataFrame({"ward": [f"w{i}" for i in range(51)], "sex": ["f", "m", "m"] * 17}).to_csv(path, index=False)
    with pytest.raises(ColumnUndeclared, match="'ward' holds 51 different words, and at most 50"):
        read(path)
    table = read(path, declared={"ward": {"many": True}})
    assert len(table.schema["ward"].levels) == 51
    assert "Levels of ward (51), sex (2) were read off the records, and are not declared." in table.source
    assert len(read(path, columns=["sex"]).columns) == 1
    apart = read(path, declared={"ward": {"role": "ignore"}})
    assert apart.schema.features == ("sex",)
    with pytest.raises(ColumnUndeclared, match="51 different words"):
        Table.from_pandas(pd.DataFrame({"ward": [f"w{i}" for i in range(51)]}, dtype="category"))


def test_dates_are_not_levels():
    with pytest.raises(ColumnUndeclared, match=r"'day' holds dates[\s\S]*days since"):
        Table.from_pandas(pd.DataFrame({"day": ["2024-03-01", "2024-03-02"]}))
    with pytest.raises(ColumnUndeclared, match="'day' holds dates"):
        Table.from_pandas(pd.DataFrame({"day": ["1.3.2024 10:15", "02.03.2024 11:00"]}))


def test_codes_of_a_category_are_declared(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("education,age\n1,30\n2,40\n1,50\n")
    levels = {"primary": 1, "secondary": 2, "tertiary": 3}
    table = read(path, declared={"education": {"levels": levels}})
    assert table.schema["education"] == Column("education", "category", levels=tuple(levels))
    assert_array_equal(table["education"], [0, 1, 0])
    with pytest.raises(OutOfRange, match=r"1 of 3 values not among its 1 levels, first in line 3: '2'"):
        read(path, declared={"education": {"levels": {"primary": 1}}})
    assert read(path, declared={"education": {"kind": "category"}}).schema["education"].levels == ("1", "2")


def test_codes_with_a_decimal_point_are_the_same_codes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("education\n1.0\n2.0\n\n10.0\n")
    assert read(path, declared={"education": {"kind": "category"}}).schema["education"].levels == ("1", "2", "10")
    assert_array_equal(read(path, declared={"education": {"levels": ["10", "2", "1"]}})["education"], [2, 1, 0])


def test_frames_are_declared_alike():
    frame = pd.DataFrame({"age": [30, 40, -9], "sex": [0, 1, 1]})
    declared = {"age": {"kind": "integer", "na_values": [-9]}, "sex": {"levels": {"female": 0, "male": 1}}}
    with pytest.raises(NotFinite, match="column 'age' has 1 of 3 values missing or infinite, first in record 3"):
        Table.from_pandas(frame, declared=declared)
    assert_array_equal(Table.from_pandas(frame[:2], declared=declared)["sex"], [0, 1])


def test_a_simulation_of_a_frame_with_a_typo_asks_nobody():
    frame = pd.DataFrame({"bmi": [*[f"{20 + i / 10}" for i in range(99)], "27,5"], "sick": [0, 1] * 50})
    with pytest.raises(ColumnUndeclared, match="first in record 100"):
        hr.simulate(frame, hr.data.iid(parties=2))
    with pytest.raises(ColumnUndeclared):
        hr.simulate({"north": frame, "south": frame})


def test_objects_that_are_numbers_are_numbers():
    schema = Table.from_pandas(pd.DataFrame({"x": np.array([1, 2, 5], object), "y": np.array([1, 2.5, 3], object)})).schema
    assert (schema["x"].kind, schema["y"].kind) == ("integer", "number")


def test_what_is_declared_is_checked(tmp_path):
    path = written(tmp_path / "a.csv")
    with pytest.raises(SchemaInvalid, match=r"'age' declares 'rnage'[\s\S]*'range'"):
        read(path, declared={"age": {"rnage": [0, 1]}})
    with pytest.raises(MissingColumn, match="Did you mean 'age'"):
        read(path, declared={"agee": {"kind": "integer"}})
    with pytest.raises(MissingColumn, match="Did you mean 'age'"):
        read(path, declared={"agee": {"kind": "integer"}}, columns=["bmi"])
    with pytest.raises(SchemaInvalid, match="share a code"):
        read(path, declared={"sex": {"levels": {"female": "f", "woman": "f"}}})
    with pytest.raises(HedgerowError, match="declares a range"):
        read(path, declared={"died": {"kind": "binary", "range": [0, 1]}})


def test_a_schema_of_all_columns_tells_lines_too(tmp_path):
    schema = Schema((Column("age", "number"), Column("sex", "category", levels=("f", "m"))))
    with pytest.raises(SchemaInvalid, match=f"first in line {LINE}"):
        read(written(tmp_path / "a.csv", age="5O"), schema=schema)


# ---- the form of a file ----------------------------------------------------------------------------------------------
def test_another_separator_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age;bmi\n30;27,5\n40;31,25\n")
    with pytest.raises(SchemaInvalid, match=r'separated by semicolons[\s\S]*separator = ";"[\s\S]*decimal = ","'):
        read(path)
    assert_array_equal(read(path, separator=";", decimal=",")["bmi"], [27.5, 31.25])
    with pytest.raises(SchemaInvalid, match="cannot be told apart"):
        read(path, decimal=",")
    path.write_text("age\tbmi\n30\t27.5\n")
    with pytest.raises(SchemaInvalid, match=r"separated by tabs"):
        read(path)


def test_names_that_come_twice_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,bmi,age\n1,2,3\n")
    with pytest.raises(SchemaInvalid, match="names twice: 'age' in columns 1 and 3"):
        read(path)
    assert list(read(path, columns=["bmi"]).columns) == ["bmi"]
    with pytest.raises(SchemaInvalid, match="twice"):
        Table.from_pandas(pd.DataFrame([[1, 2]], columns=["age", "age"]))


def test_records_that_are_longer_than_the_header_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,bmi\n1,2,3\n4,5,6\n")  # pandas takes the first value for a name of the row
    with pytest.raises(SchemaInvalid, match="first record holds 3 values, and the header 2 names"):
        read(path)
    path.write_text("age,bmi\n30,27.5\n31,27,5\n")
    with pytest.raises(SchemaInvalid, match=r"line 3 holds 3 values[^\n]*\n[^\n]*quotes"):
        read(path)


@pytest.mark.parametrize(
    ("encoding", "told"), [("latin-1", "byte 0xf6 is none of its letters, first in line 3"), ("utf-16", "UTF-16")]
)
@pytest.mark.parametrize("packed", [False, True])
def test_text_that_is_not_utf8_is_told_with_line_and_remedy(tmp_path, encoding, told, packed):
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    text = "site,age\nGraz,40\nKöln,50\n".encode(encoding)
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(SchemaInvalid) as caught:
        read(path)
    assert told in str(caught.value)
    assert "iconv -f" in str(caught.value)
    assert "Check that the file is whole" not in str(caught.value)


def test_columns_that_nothing_needs_are_left_out_where_they_would_have_to_be_guessed(tmp_path):
    path = written(tmp_path / "a.csv", visit="2024-03-01", bmi="27,5")
    with pytest.raises(ColumnUndeclared, match="bmi") as caught:
        read(path, needed=lambda name: name == "bmi")
    assert "visit" not in str(caught.value)
    table = read(path, needed=lambda name: name == "age")
    assert table.schema.names == ("age", "sex", "died", "smokes")
    assert "Left out, since nothing reads them and nobody declares them: bmi, visit." in table.source
    with pytest.raises(SchemaInvalid, match="visit"):  # what is declared must be so
        read(path, declared={"visit": {"kind": "integer"}}, needed=lambda name: name == "age")


def test_a_decimal_point_in_a_file_of_decimal_commas_is_told_how_to_write(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("bmi;age\n26,4;30\n27.5;40\n28,1;50\n")
    for declared, error in [({}, ColumnUndeclared), ({"bmi": {"kind": "number"}}, SchemaInvalid)]:
        with pytest.raises(error, match="Write 27,5"):
            read(path, separator=";", decimal=",", declared=declared)


def test_a_file_that_is_not_there_is_told_beside_files_of_data_alone(tmp_path):
    for name in ("zebra.csv", "yak.parquet", "study.toml", "mend.py", "own.npz"):
        (tmp_path / name).write_text("")
    (tmp_path / "runs").mkdir()
    with pytest.raises(MissingData) as caught:
        read(tmp_path / "q")
    assert caught.value.remedy == "Known: own.npz, yak.parquet, zebra.csv."
