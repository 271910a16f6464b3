"""Files and frames by a dictionary: read as words, mapped and converted, with two reports of what does not fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from dictionaries import FAULTS, LOCAL, TEXT, local_file, records
from hedgerow.data import Dictionary, LocalColumns, Table, read
from hedgerow.data.dictionary.validation import check_file
from hedgerow.errors import MissingColumn, NotFinite, OutOfRange, SchemaInvalid

KNOWN = Dictionary.from_toml(TEXT)
SPELT = LocalColumns.of(LOCAL)


def written(path, **columns):
    known = {name: values.astype(str) for name, values in records(20).items()} | columns
    pd.DataFrame(known).to_csv(path, index=False)
    return path


def test_a_file_of_other_names_codes_units_and_signs_is_the_table_of_the_dictionary(tmp_path):
    table = read(local_file(tmp_path / "local.csv"), dictionary=KNOWN, local=SPELT, target="death")
    known = records()
    for name in ("age", "ejection_fraction", "smoking", "death"):
        assert_array_equal(table[name], known[name])
    assert_array_equal(table["sex"], known["sex"])
    assert_allclose(table["serum_creatinine"], known["serum_creatinine"], atol=1e-6)
    assert_array_equal(table["elderly"], known["age"] >= 75)
    assert_array_equal(table["patient"], np.arange(299) // 2)  # who is whom, and no word
    assert table.schema == KNOWN.schema().with_roles(target="death")


def test_values_outside_become_missing_or_are_clipped(tmp_path):
    path = written(tmp_path / "a.csv", ejection_fraction=["4", "91", "999", *["50"] * 17], age=["17", *["60"] * 19])
    clipping = Dictionary.from_toml(TEXT.replace("range = [18, 110]", 'range = [18, 110]\noutside = "clip"'))
    table = read(path, dictionary=clipping)
    assert_array_equal(np.isnan(table["ejection_fraction"]), [True] * 3 + [False] * 17)
    assert table["age"][0] == 18
    assert "Outside the declared range, and so missing: ejection_fraction (2)." in table.source
    found = check_file(clipping, path)
    assert [(one.column, one.what, one.count) for one in found.findings if not one.closes] == [
        ("age", "outside [18, 110]: clip", 1),
        ("ejection_fraction", "outside [5, 90]: missing", 2),
        ("ejection_fraction", "missing", 3),
    ]


def test_a_comparison_with_a_missing_value_is_missing(tmp_path):
    table = read(written(tmp_path / "a.csv", age=["-9", "NA", *["80"] * 18]), dictionary=KNOWN)
    assert_array_equal(np.isnan(table["elderly"]), [True, True] + [False] * 18)


@pytest.mark.parametrize(
    ("column", "word", "error", "said"),
    [
        ("age", "6O", SchemaInvalid, "first in line 4: '6O'"),
        ("age", "nan", SchemaInvalid, "not numbers"),  # only what the dictionary names is missing
        ("age", "inf", SchemaInvalid, "not numbers"),
        ("age", "n/a", SchemaInvalid, "not numbers"),
        ("age", "43.5", OutOfRange, "not whole"),
        ("serum_creatinine", "1,5", SchemaInvalid, "not numbers"),  # one decimal sign
        ("sex", "d", OutOfRange, "not among its 2 levels"),
        ("sex", "female", OutOfRange, "not among its 2 levels"),  # the file spells codes
        ("smoking", "true", OutOfRange, "not among its 2 levels"),
        ("death", "", NotFinite, "missing"),
    ],
)
def test_what_is_neither_missing_nor_a_value_is_an_error(tmp_path, column, word, error, said):
    values = records(20)[column].astype(str).astype(object)
    values[2] = word
    with pytest.raises(error, match=said):
        read(written(tmp_path / "a.csv", **{column: values}), dictionary=KNOWN)


def test_a_column_that_is_not_there_is_told_with_its_name_here(tmp_path):
    with pytest.raises(MissingColumn, match="column 'ALTR', which is to be 'age', is not there"):
        read(
            local_file(tmp_path / "a.csv"),
            dictionary=KNOWN,
            local=LocalColumns.of(LOCAL | {"columns": LOCAL["columns"] | {"age": "ALTR"}}),
        )
    without = LocalColumns.of(LOCAL | {"columns": LOCAL["columns"] | {"age": False}})
    table = read(local_file(tmp_path / "a.csv"), dictionary=KNOWN, local=without)
    assert "age" not in table.schema
    assert "elderly" not in table.schema
    assert "log_creatinine" in table.schema
    assert check_file(KNOWN, tmp_path / "a.csv", without).none == ("age", "elderly")


def test_only_named_columns_are_read_and_what_they_are_computed_from(tmp_path):
    path = written(tmp_path / "a.csv", age=["?"] * 20)
    assert read(path, dictionary=KNOWN, columns=["log_creatinine", "death"]).schema.names == (
        "serum_creatinine",
        "death",
        "log_creatinine",
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dictionary": "heart-failure@1.1.0"}, "they are of heart-failure@1.1.0"),
        ({"columns": {"agee": "ALTER"}}, "Did you mean 'age'"),
        ({"columns": {"elderly": "ALT"}}, "is derived"),
        ({"columns": {"sex": {"from": "GESCHL", "codes": {"w": "femal"}}}}, "Did you mean 'female'"),
        ({"columns": {"sex": {"convert": "x * 2"}}}, "convert is for numbers"),
        ({"columns": {"age": {"convert": "x * y"}}}, "reads x, y; it reads x alone"),
        ({"columns": {"age": {"convert": "__import__('os').getpid()"}}}, "is not a function"),
        ({"columns": {"age": {"form": "ALTER"}}}, "Did you mean 'from'"),
        ({"columns": {"age": True}}, "give its name here"),
    ],
)
def test_local_columns_that_do_not_fit_are_refused_before_data(change, said):
    with pytest.raises(SchemaInvalid) as caught:
        LocalColumns.of(LOCAL | change).fitting(KNOWN)
    assert said in str(caught.value)


def test_a_stations_own_file_says_them_in_its_section_of_data(tmp_path):
    path = tmp_path / "station.toml"
    path.write_text(
        '[station]\nname = "north"\n[data]\nname = "heart"\nsource = "csv"\ndictionary = "heart.toml"\npath = "a.csv"\n'
        'separator = ";"\n[data.columns]\nage = "ALTER"\nsmoking = false\n'
    )
    found = LocalColumns.read(path).fitting(KNOWN)
    assert (found.origin("age"), found.of_column("smoking"), found.separator, found.path) == ("ALTER", None, ";", "a.csv")


def test_a_conversion_that_is_undefined_is_a_fault(tmp_path):
    path = written(tmp_path / "a.csv", serum_creatinine=["0", *["2"] * 19])
    with pytest.raises(NotFinite, match="undefined: 100 / x has no finite value there, first in line 2"):
        read(path, dictionary=KNOWN, local=LocalColumns.of({"columns": {"serum_creatinine": {"convert": "100 / x"}}}))


def test_a_frame_is_held_against_a_dictionary_as_a_file_is(tmp_path):
    frame = pd.DataFrame(records(20))
    table = Table.from_frame(frame, dictionary=KNOWN, target="death")
    of_file = read(written(tmp_path / "a.csv"), dictionary=KNOWN, target="death")
    assert table.schema == of_file.schema
    for name in table.schema.names:
        assert_array_equal(table[name], of_file[name])
    with pytest.raises(SchemaInvalid, match="a dictionary and other declarations"):
        Table.from_frame(frame, dictionary=KNOWN, na_values=["?"])


def test_the_owners_report_names_column_fault_count_and_first_line(tmp_path):
    found = check_file(KNOWN, local_file(tmp_path / "local.csv", FAULTS), SPELT)
    assert [(one.column, one.what, one.count, one.line) for one in found.findings] == [
        ("age", "not a number", 1, 8),
        ("age", "outside [18, 110] a: refuse", 1, 10),
        ("sex", "unknown level", 1, 7),
        ("ejection_fraction", "not a number", 1, 20),
        ("ejection_fraction", "missing", 6, None),
        ("serum_creatinine", "missing", 12, None),
        ("smoking", "unknown level", 1, 9),
    ]
    assert found.closed
    assert found.refused == 5
    assert found.verdict() == "5 values are refused: the table stays closed until they are mended."


def test_a_study_is_told_no_count_that_is_not_a_multiple_of_least(tmp_path):
    path = written(tmp_path / "a.csv")
    frame = pd.concat([pd.read_csv(path, dtype=str)] * 15).iloc[:299]
    frame.iloc[[1, 5, 100], frame.columns.get_loc("ejection_fraction")] = "999"
    frame.to_csv(path, index=False)
    found = check_file(KNOWN, path)
    assert (found.complete, found.n) == (296, 299)
    assert found.public() == [
        "Open, by heart-failure@1.2.0.",
        "ejection_fraction: missing about 5.",
        "Complete about 295 of about 300, left out about 5.",
    ]
    closed = check_file(KNOWN, local_file(tmp_path / "local.csv", FAULTS), SPELT)
    said = closed.told()
    assert said["do_not_fit"] == ["age", "sex", "ejection_fraction", "smoking"]
    assert all(count % 5 == 0 for count in (*said["missing"].values(), said["records"], said["complete"], said["left_out"]))
    assert "line" not in " ".join(closed.public())


def test_three_different_files_become_one_federation(tmp_path):
    mine = read(local_file(tmp_path / "a.csv"), dictionary=KNOWN, local=SPELT)
    other = read(written(tmp_path / "b.csv"), dictionary=KNOWN)
    table, partition = hr.data.join({"a": mine, "b": other})
    federation = hr.simulate(table, partition)
    whole = np.concatenate([records()["serum_creatinine"], records(20)["serum_creatinine"]])
    assert_allclose(hr.stats.means(federation, ["log_creatinine"])["log_creatinine"], np.log(whole).mean(), atol=1e-6)
