"""Codes of levels as files and frames spell them: 1, 1.0 and int16 1 are the code 1, and a level is never a missing value."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import Table, read
from hedgerow.errors import ColumnsDiffer, SchemaInvalid


def _read(tmp_path, text, sex, **more):
    (tmp_path / "a.csv").write_text(text)
    table = read(tmp_path / "a.csv", declared={"sex": sex}, **more)
    return [None if code < 0 else table.schema["sex"].levels[code] for code in table["sex"]]


@pytest.mark.parametrize("missing", ["refuse", "drop"])
@pytest.mark.parametrize("spelt", ["{}", "{}.0", "{}.00"])
@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"female": "0", "male": "1"}, ["female", "male"]),
        ({"0": "1", "1": "2"}, ["0", "1"]),
        ({"1": "2", "2": "1"}, ["2", "1"]),
        ({"2": 0, "1": 2, "0": 1}, ["0", "1"]),
    ],
    ids=["words", "shifted", "swapped", "turned"],
)
def test_a_code_with_a_decimal_point_means_the_level_of_its_code(tmp_path, levels, words, spelt, missing):
    first, second = ("0", "1") if "female" in levels else ("1", "2")
    lines = [spelt.format(first), spelt.format(second), spelt.format(first), *([""] if missing == "drop" else [])]
    text = "sex,y\n" + "".join(f"{line},{i}.5\n" for i, line in enumerate(lines))
    found = _read(tmp_path, text, {"levels": levels}, missing=missing)
    assert found == [words[0], words[1], words[0], *([None] if missing == "drop" else [])]


def test_a_frame_of_floats_with_a_gap_is_recoded_as_one_of_integers():
    declared = {"sex": {"levels": {"0": "1", "1": "2"}}}
    frame = pd.DataFrame({"sex": [1.0, 2.0, np.nan, 2.0]})
    assert Table.from_pandas(frame, declared=declared, missing="drop")["sex"].tolist() == [0, 1, -1, 1]
    assert Table.from_pandas(frame.dropna().astype(int), declared=declared)["sex"].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "declared",
    [
        {"levels": [1, 2, 9], "na_values": [9]},
        {"levels": ["1", "2", "9"], "na_values": ["9.0"]},
        {"levels": {"no": 1, "yes": 2, "not asked": 9}, "na_values": 9},
    ],
    ids=["level", "as a number", "code"],
)
def test_a_value_that_is_a_level_and_missing_is_refused(declared):
    with pytest.raises(SchemaInvalid, match=r"'9' as .*a level, and '9"):
        Table.from_pandas(pd.DataFrame({"sex": [1, 2, 9]}), declared={"sex": declared})


def test_a_word_for_a_level_may_stand_for_a_missing_value_where_the_file_has_codes():
    declared = {"sex": {"levels": {"9": "1", "8": "2"}, "na_values": [9]}}
    table = Table.from_pandas(pd.DataFrame({"sex": [1, 2, 9]}), declared=declared, missing="drop")
    assert table["sex"].tolist() == [0, 1, -1]


def test_what_is_missing_in_every_column_leaves_levels_alone():
    frame = pd.DataFrame({"sex": [1, 2, 9], "age": [9, 20, 30]})
    table = Table.from_pandas(frame, declared={"sex": {"levels": [1, 2, 9]}}, na_values=["9.0"], missing="drop")
    assert table["sex"].tolist() == [0, 1, 2]
    assert np.isnan(table["age"]).tolist() == [True, False, False]


LEVELS = {"arm": {"levels": ["1", "2", "3"]}, "y": {"kind": "number", "range": [0, 9]}}


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint16])
def test_integers_of_any_size_in_a_file_are_the_words_of_levels(tmp_path, dtype):
    np.savez(tmp_path / "a.npz", arm=np.array([1, 2, 3, 1], dtype), y=np.arange(4.0))
    assert read(tmp_path / "a.npz", declared=LEVELS)["arm"].tolist() == [0, 1, 2, 0]


def test_an_integer_beyond_the_levels_is_refused_whatever_its_size(tmp_path):
    np.savez(tmp_path / "a.npz", arm=np.array([0, 1, 2], np.int16), y=np.arange(3.0))
    with pytest.raises(hr.errors.OutOfRange, match="levels"):
        read(tmp_path / "a.npz", declared=LEVELS)


@pytest.mark.parametrize("dtype", ["int16", "int64", "Int16"])
def test_predictions_do_not_depend_on_the_size_of_integers(dtype):
    frame = pd.DataFrame({"arm": np.tile([1, 2, 3], 40)})
    frame["y"] = frame["arm"] * 1.0
    federation = hr.simulate(Table.from_pandas(frame, declared=LEVELS), hr.data.iid(parties=2), seed=1)
    new = pd.DataFrame({"arm": pd.Series([1, 2], dtype=dtype)})
    np.testing.assert_allclose(hr.stats.linear_regression(federation, "y ~ arm").predict(new), [1, 2], atol=1e-9)
    np.testing.assert_allclose(hr.trees.decision_tree(federation, target="y", depth=3).predict(new), [1, 2], atol=1e-9)


def test_codes_and_marks_of_a_file_with_a_decimal_comma(tmp_path):
    sex = {"levels": {"female": "0", "male": "1"}, "na_values": [-9]}
    found = _read(tmp_path, "sex;y\n0,0;1,5\n1,0;2,5\n-9,0;3,5\n1;4,5\n", sex, separator=";", decimal=",", missing="drop")
    assert found == ["female", "male", None, "male"]


def test_the_words_of_a_cluster_are_numbers_and_tables_of_several_parties_join():
    def table(words):
        frame = pd.DataFrame({"ward": words, "y": np.arange(len(words), dtype=float)})
        return Table.from_frame(frame, declared={"ward": {"role": "cluster"}})

    federation = hr.simulate({"north": table(["a", "b", "a"]), "south": table(["c", "d", "e"])})
    assert federation.schema["ward"].kind == "integer"
    assert not federation.schema["ward"].levels
    levels = Table.from_frame(pd.DataFrame({"ward": ["a", "b"]}), declared={"ward": {"role": "cluster", "levels": ["a", "b"]}})
    assert levels.schema["ward"].levels == ("a", "b")


def test_parties_whose_levels_differ_are_told_in_which_column():
    tables = {
        name: Table.from_frame(pd.DataFrame({"ward": [*words], "y": [0.5, 1.5]}))
        for name, words in {"a": "xy", "b": "yz"}.items()
    }
    with pytest.raises(ColumnsDiffer, match="b and a differ: column 'ward' in its levels"):
        hr.simulate(tables)
