"""Stations that name a dictionary: what they call its columns, what is wrong with that, and whose dictionary is another."""

import logging
import threading

import gate_house
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import station_house
from hedgerow.data.dictionary.dictionary import Dictionary
from hedgerow.errors import ConfigInvalid, DataError, MissingData, StudyInvalid
from hedgerow.network.station.admitted import admit_dictionary
from hedgerow.network.station.closed import greeting, rounded_up
from hedgerow.network.station.config import parse_config, read_config
from hedgerow.network.station.data_section import open_table, parse_data, schema_of
from hedgerow.network.station_service import open_gate
from hedgerow.study import load, parse
from hedgerow.study.build import build

TEXT = """
[dictionary]
name = "heart"
version = "1.0.0"
na_values = ["", "-9"]
[columns.age]
kind = "integer"
range = [18, 110]
[columns.sex]
levels = { female = "0", male = "1" }
[columns.creatinine]
kind = "number"
range = [0.2, 20]
outside = "missing"
[columns.smoking]
kind = "binary"
levels = { no = "0", yes = "1" }
[columns.patient]
role = "id"
[derived.elderly]
as = "age >= 75"
[derived.smoked]
as = "age * smoking"
"""
STATION = 'name = "alpha"\n[coordinator]\nname = "hub"\nrail = "socket"\npath = "rail.sock"\n[data]\nname = "heart"\n'
STUDY = 'name = "one"\n[data]\nname = "heart"\ndictionary = "heart@1.0.0"\n[program]\nname = "moments"\ncolumns = ["age"]\n'


def values():
    return Dictionary.from_toml(TEXT).to_values()


def section(columns=None, **more):
    about = {"name": "heart", "dictionary": values(), "source": "csv", "path": "local.csv"}
    return parse_data(about | ({} if columns is None else {"columns": columns}) | more)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "heart.toml").write_text(TEXT)
    (tmp_path / "station.toml").write_text(STATION + 'dictionary = "heart@1.0.0"\nsource = "csv"\npath = "local.csv"\n')
    (tmp_path / "local.csv").write_text("patient,age,sex,creatinine,smoking\na1, 61 ,0,1.1,1\na2,-9,1,99,0\na3,80, 1,0.9,\n")
    return tmp_path


def test_a_file_in_the_words_of_the_dictionary_needs_no_columns(folder):
    config, where = read_config(folder)
    table = open_table(config.data, where)
    assert table.schema == config.declared
    assert_array_equal(table["age"], [61, np.nan, 80])
    assert_array_equal(table["sex"], [0, 1, 1])
    assert_array_equal(table["creatinine"], [1.1, np.nan, 0.9])  # 99 is outside, and so missing
    assert_array_equal(table["elderly"], [0, np.nan, 1])
    again = parse_config(config.model_dump(mode="json", by_alias=True, exclude_unset=True))  # as a child reads it
    assert again.declared == config.declared


def test_own_names_codes_and_units(tmp_path):
    text = "ALTER;GESCHL;KREA;RAUCHER\n61;w;97,262;ja\n47;m;;nein\n80;W;-9;\n"
    (tmp_path / "local.csv").write_text(text)
    columns = {
        "age": "ALTER",
        "sex": {"from": "GESCHL", "codes": {"w": "female", "W": "female", "m": "male"}},
        "creatinine": {"from": "KREA", "convert": "x / 88.42"},
        "smoking": {"from": "RAUCHER", "codes": {"ja": "yes", "nein": "no"}},
    }
    held = section(columns, separator=";", decimal=",")
    table = open_table(held, tmp_path)
    assert_array_equal(table["sex"], [0, 1, 0])
    assert_array_equal(table["creatinine"], [97.262 / 88.42, np.nan, np.nan])
    assert_array_equal(table["smoking"], [1, 0, np.nan])
    (tmp_path / "local.csv").write_text(text.replace(";w;", ";x;").replace("47;", "4,7;"))
    with pytest.raises(DataError) as refused:
        open_table(held, tmp_path)
    said = f"{refused.value.reason} {refused.value.remedy}"
    assert "column 'age' has 1 of 3 values not whole, first in line 3" in said
    assert "column 'sex' has 1 of 3 values not among its 3 levels, first in line 2" in said
    assert "'x'" not in said


def test_what_a_station_does_not_have_is_no_column_of_it():
    held = section({"smoking": False})
    assert schema_of(held).names == ("age", "sex", "creatinine", "elderly")
    assert held.absent == {"smoking", "smoked"}


WRONG = {
    "has no such column": ({"weight": "GEW"}, {}),
    "range: heart@1.0.0 says that": ({"age": {"from": "A", "range": [0, 1]}}, {}),
    "'woman' is no level": ({"sex": {"codes": {"w": "woman"}}}, {}),
    "reads x, y": ({"age": {"convert": "x + y"}}, {}),
    "convert is for numbers": ({"sex": {"convert": "x / 2"}}, {}),
    "derived: the dictionary says that": ({}, {"derived": {"old": {"as": "age > 70"}}}),
    "a name, which is read": ({}, {"dictionary": "heart@1.0.0"}),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_does_not_fit_the_dictionary_is_refused_before_a_file_is_opened(said):
    columns, more = WRONG[said]
    with pytest.raises(ConfigInvalid) as refused:
        section(columns or {"age": "A"}, **more)
    assert said in refused.value.remedy


def test_a_dictionary_is_found_beside_the_file_that_names_it(folder):
    text = (folder / "station.toml").read_text()
    (folder / "station.toml").write_text(text.replace("heart@1.0.0", "heart@1.1.0"))
    with pytest.raises(ConfigInvalid, match=r"heart@1\.1\.0.*is not in") as refused:
        read_config(folder)
    assert "heart@1.0.0" in refused.value.remedy
    (folder / "heart.toml").write_text(TEXT.replace("[columns.age]", '[columns.age]\ntodo = "really 110?"'))
    (folder / "station.toml").write_text(text)
    with pytest.raises(ConfigInvalid, match="not finished"):
        read_config(folder)


def test_a_study_has_its_columns_from_the_dictionary(folder):
    (folder / "one.toml").write_text(STUDY.replace('name = "heart"\n', 'path = "local.csv"\n', 1))
    study = load(folder / "one.toml")
    held = Dictionary.from_toml(TEXT)
    assert study.data.dictionary_named == ("heart@1.0.0", held.digest)
    assert parse(study.model_dump(mode="json")).digest == study.digest  # as a run folder keeps it
    built = build(study.model_copy(update={"partition": study.partition.model_copy(update={"parties": 1})}), threads=1)
    assert built.table.schema == held.schema()  # ids included, as numbers without a meaning
    assert_array_equal(built.table["elderly"], [0, np.nan, 1])
    text = (folder / "one.toml").read_text().replace('columns = ["age"]', 'formula = "creatinine ~ elderly"')
    (folder / "two.toml").write_text(
        text.replace('"moments"', '"linear_regression"') + "[partition]\nby = 'iid'\nparties = 1\n"
    )
    named = build(load(folder / "two.toml"))  # and what the file has besides is not read
    assert named.table.schema.names == ("age", "creatinine", "elderly")
    with pytest.raises(StudyInvalid) as refused:
        parse(study.model_dump(mode="json") | {"data": study.data.model_dump() | {"na_values": ["?"]}})
    assert "na_values: the dictionary says that" in refused.value.remedy
    with pytest.raises(StudyInvalid) as unread:
        parse({"data": {"name": "heart", "dictionary": "heart.toml"}, "program": {"name": "moments"}})
    assert "hedgerow.study.load" in unread.value.remedy
    (folder / "heart.toml").unlink()
    with pytest.raises(MissingData, match=r"heart@1\.0\.0"):
        load(folder / "one.toml")


def test_a_station_refuses_a_study_by_another_dictionary_and_says_what_differs(folder):
    config, _ = read_config(folder)
    (folder / "one.toml").write_text(STUDY)
    study = load(folder / "one.toml")
    admit_dictionary(config, study, config.declared)
    (folder / "heart.toml").write_text(TEXT.replace("[18, 110]", "[0, 110]"))
    with pytest.raises(StudyInvalid, match=r"the study names the dictionary heart@1\.0\.0, digest") as refused:
        admit_dictionary(config, load(folder / "one.toml"), config.declared)
    assert "data.columns.age: low is 0" in refused.value.remedy
    (folder / "heart.toml").write_text(TEXT.replace('"-9"', '"-8"'))
    with pytest.raises(StudyInvalid) as alike:
        admit_dictionary(config, load(folder / "one.toml"), config.declared)
    assert "missing codes" in alike.value.remedy
    plain = station_house.config_of("alpha")
    with pytest.raises(StudyInvalid, match="declares its columns by none"):
        admit_dictionary(plain, study, plain.declared)


def test_counts_that_leave_are_rounded_up(folder):
    assert [rounded_up(n) for n in (0, 1, 5, 6, 12)] == [0, 5, 5, 10, 15]
    config, _ = read_config(folder)
    held = type("Held", (), {"schema": config.declared, "ids": ("alpha",), "sizes": np.zeros(1)})()
    said = greeting(config, held, 3)
    assert (said["closed"], said["records"]) == (5, None)
    assert said["dictionary"][0] == "heart@1.0.0"


@pytest.mark.slow
def test_a_gate_opens_closed_where_values_do_not_fit(tmp_path, caplog):
    folder = gate_house.made(tmp_path)
    path = folder / "heart.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "x" + lines[3], *lines[4:]]) + "\n")
    with caplog.at_level(logging.ERROR, "hedgerow"):
        opened = open_gate(folder, threading.Event())
    station = opened.station()
    try:
        assert "the table stays closed, 1 values refused" in caplog.text
        assert "first in line 4" in caplog.text
        assert (opened.state, station.closed, greeting(opened.config, opened.held, station.closed)["closed"]) == (
            "closed",
            1,
            5,
        )
        assert station.held.ids == ("alpha",)
    finally:
        station.close()
        opened.base.close()
