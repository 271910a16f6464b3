"""A station's file that does not fit its declaration: counts, lines and remedies in its own log, and no value."""

import numpy as np
import pytest

from hedgerow.errors import ConfigInvalid, HedgerowError, NotFinite, OutOfRange, SchemaInvalid, SourceUnreadable
from hedgerow.network.station.config import parse_config
from hedgerow.network.station.data_section import open_table, parse_data, schema_of

COLUMNS = {
    "age": {"kind": "integer", "range": [18, 110]},
    "bmi": {"kind": "number", "na_values": ["999"], "missing": "drop"},
    "sex": {"levels": {"female": 0, "male": 1}},
    "smokes": {"kind": "binary"},
}
CSV = {"name": "visits", "source": "csv", "path": "visits.csv", "columns": COLUMNS}
GOOD = "age,bmi,sex,smokes\n61,24.5,0,true\n47,27.25,1,false\n50,999,1,true\n"


def opened(folder, text, **about):
    (folder / "visits.csv").write_text(text)
    return open_table(parse_data(CSV | about), folder)


def test_codes_and_missing_codes_are_read(tmp_path):
    table = opened(tmp_path, GOOD)
    assert table.schema["sex"].levels == ("female", "male")
    np.testing.assert_array_equal(table["sex"], [0, 1, 1])
    np.testing.assert_array_equal(table["bmi"], [24.5, 27.25, np.nan])
    with pytest.raises(NotFinite, match="column 'bmi' has 1 of 3 values missing or infinite, first in line 4"):
        opened(tmp_path, GOOD, columns=COLUMNS | {"bmi": {"na_values": [999]}})


@pytest.mark.parametrize(
    ("old", "new", "error", "told"),
    [
        (
            "47,",
            "4I,",
            SchemaInvalid,
            "'age' has 1 of 3 values that are not numbers, and it is declared integer, first in line 3",
        ),
        ("47,", "470,", OutOfRange, "column 'age' has 1 of 3 values outside its declared range [18, 110], first in line 3"),
        ("27.25", '"27,5"', SchemaInvalid, "column 'bmi' has 1 of 3 values that are not numbers"),
        ("27.25", "?", SchemaInvalid, "name what stands for a missing value in `na_values`"),
        (",1,false", ",unknown,false", OutOfRange, "column 'sex' has 1 of 3 values not among its 2 levels, first in line 3"),
        ("false", "fasle", SchemaInvalid, "column 'smokes' has 1 of 3 values neither 0 nor 1, first in line 3"),
        ("47,", ",", NotFinite, "column 'age' has 1 of 3 values missing or infinite, first in line 3"),
    ],
)
def test_a_typo_closes_the_table_and_its_value_is_not_in_the_log(tmp_path, old, new, error, told):
    with pytest.raises(error) as caught:
        opened(tmp_path, GOOD.replace(old, new, 1))
    said = str(caught.value)
    assert told in said
    assert "station.toml" in said
    assert new.strip(',"') not in said or new == ","


def test_all_typos_are_told_at_once(tmp_path):
    with pytest.raises(HedgerowError) as caught:
        opened(tmp_path, "age,bmi,sex,smokes\nx,y,z,w\n61,24.5,0,true\n")
    assert str(caught.value).count("has 1 of 2 values") == 4
    assert str(caught.value).count("first in line 2") == 4


def test_other_separators_and_decimals(tmp_path):
    text = GOOD.replace(",", ";").replace(".", ",")
    with pytest.raises(SourceUnreadable, match=r'separated by semicolons[\s\S]*separator = ";"'):
        opened(tmp_path, text)
    np.testing.assert_array_equal(opened(tmp_path, text, separator=";", decimal=",")["bmi"], [24.5, 27.25, np.nan])
    with pytest.raises(SchemaInvalid, match="'bmi' has 1 of 3 values that are not numbers"):
        opened(tmp_path, text.replace("27,25", "27.25"), separator=";", decimal=",")


def test_marks_of_missing_values_of_the_whole_file(tmp_path):
    text = GOOD.replace("24.5", "?").replace("61", "?")
    found = opened(tmp_path, text, na_values=["?"], missing="drop", columns=COLUMNS | {"sex": {"levels": ["0", "1", "?"]}})
    np.testing.assert_array_equal(found["age"], [np.nan, 47, 50])
    np.testing.assert_array_equal(found["bmi"], [np.nan, 27.25, np.nan])
    assert found["sex"].tolist() == [0, 1, 1]


def test_a_station_derives_columns_and_declares_how(tmp_path):
    derived = {"log_bmi": {"as": "log(bmi)"}, "old": {"as": "age >= 60"}, "half": {"as": "age / 2", "unit": "a"}}
    section = CSV | {"derived": derived}
    found = opened(tmp_path, GOOD, derived=derived)
    np.testing.assert_array_equal(found["log_bmi"], np.log(found["bmi"]))
    np.testing.assert_array_equal(found["old"], [1, 0, 0])
    assert (found.schema["half"].low, found.schema["half"].high, found.schema["half"].formula) == (9, 55, "age / 2")
    assert schema_of(parse_data(section)) == found.schema
    config = parse_config({"name": "a", "coordinator": {"name": "hub", "rail": "socket", "path": "x"}, "data": section})
    assert "log_bmi" in config.declared


@pytest.mark.parametrize(
    ("derived", "told"),
    [
        ({"x": {"as": "log(agee)"}}, "Did you mean 'age'"),
        ({"x": {"as": "log(sex)"}}, "no number"),
        ({"x": {"as": "open('keys')"}}, "is not a function"),
        ({"age": {"as": "bmi"}}, "is a column already"),
        ({"x": {"is": "bmi"}}, "unknown key"),
    ],
)
def test_what_cannot_be_derived_is_told_before_data_are_opened(derived, told):
    with pytest.raises(ConfigInvalid) as caught:
        parse_data(CSV | {"derived": derived})
    assert told in str(caught.value)


def test_an_undefined_value_is_counted_and_not_shown(tmp_path):
    with pytest.raises(NotFinite, match="column 'x' has 1 of 3 values undefined"):
        opened(tmp_path, GOOD, derived={"x": {"as": "log(age - 47)"}})
