"""A station over made-up extracts of an OMOP common data model: files and a database give one table, by hand."""

import logging
import sqlite3

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from hedgerow.errors import ConfigInvalid, SourceUnreadable
from hedgerow.network.station.data_section import open_table, parse_data, schema_of

PERSON = """person_id,gender_concept_id,year_of_birth,month_of_birth,day_of_birth,race_concept_id
7,8532,1960,3,1,0
3,8507,1955,12,31,0
9,0,1980,,,0
4,8532,1990,1,2,0
"""
MEASUREMENT = """\
measurement_id,person_id,measurement_concept_id,measurement_date,value_as_number,unit_concept_id,value_as_concept_id
1,7,3016723,2025-03-01,88.42,8749,
2,7,3016723,2025-01-05,2.5,8840,0
3,7,3016723,2025-03-01,1.5,8840,
4,3,3016723,2024-12-31,0.9,8840,
5,3,3016723,,,8840,
6,1,3016723,2025-03-01,4,8840,
7,4,3004249,2025-03-01,120,8876,
8,4,3040573,2025-02-01,,0,45878583
9,4,3040573,2025-04-01,,0,45883458
10,9,3016723,2025-06-01,3.0,9999,
"""
CONDITION = """condition_occurrence_id,person_id,condition_concept_id,condition_start_date
1,7,201826,2020-01-01
2,7,201826,2021-01-01
3,3,4193704,2025-05-01
4,3,316866,2020-01-01
"""
DRUG = """drug_exposure_id,person_id,drug_concept_id,drug_exposure_start_date
1,4,1503297,2025-01-01
2,4,1503297,2025-02-01
3,7,1503297,2023-02-01
"""
TABLES = {"person": PERSON, "measurement": MEASUREMENT, "condition_occurrence": CONDITION, "drug_exposure": DRUG}
CREATININE = {"from": "measurement", "concept": 3016723, "range": [0, 20], "missing": "drop", "unit": "mg/dL"}
UNITS = {"8840": 1, "8749": 1 / 88.42, "9999": 1}
COLUMNS = {
    "age": {"from": "person.birth", "as": "age", "at": "2026-01-01", "range": [0, 120], "missing": "drop"},
    "born": {"from": "person.birth", "as": "year", "range": [1900, 2026]},
    "sex": {"from": "person.gender", "codes": {8532: "f", 8507: "m"}, "levels": ["f", "m"], "missing": "drop"},
    "last": CREATININE | {"value": "last", "convert": UNITS},
    "first": CREATININE | {"value": "first", "convert": UNITS},
    "mean": CREATININE | {"value": "mean", "convert": UNITS},
    "least": CREATININE | {"value": "min", "convert": UNITS, "since": "2025-01-01", "until": "2025-03-01"},
    "most": CREATININE | {"value": "max", "convert": UNITS},
    "times": {"from": "measurement", "concept": 3016723, "value": "count", "range": [0, 99]},
    "smokes": {
        "from": "measurement",
        "concept": 3040573,
        "value": "last",
        "codes": {45878583: "no", 45883458: "yes"},
        "levels": ["no", "yes"],
        "missing": "drop",
    },
    "diabetes": {"from": "condition_occurrence", "concept": [201826, 4193704]},
    "lately": {"from": "condition_occurrence", "concept": [201826, 4193704], "since": "2025-01-01"},
    "metformin": {"from": "drug_exposure", "concept": 1503297, "value": "count", "since": "2024-01-01", "range": [0, 99]},
}
NAN = np.nan
EXPECTED = {
    "age": [65, 70, NAN, 35],
    "born": [1960, 1955, 1980, 1990],
    "sex": [0, 1, -1, 0],
    "last": [1.5, 0.9, 3.0, NAN],
    "first": [2.5, 0.9, 3.0, NAN],
    "mean": [5 / 3, 0.9, 3.0, NAN],
    "least": [2.5, NAN, NAN, NAN],
    "most": [2.5, 0.9, 3.0, NAN],
    "times": [3, 2, 1, 0],
    "smokes": [-1, -1, -1, 1],
    "diabetes": [1, 1, 0, 0],
    "lately": [0, 1, 0, 0],
    "metformin": [0, 0, 0, 2],
}


@pytest.fixture
def extract(tmp_path):
    (tmp_path / "cdm").mkdir()
    with sqlite3.connect(tmp_path / "cdm.db") as base:
        for name, text in TABLES.items():
            (tmp_path / "cdm" / f"{name}.csv").write_text(text)
            pd.read_csv(tmp_path / "cdm" / f"{name}.csv").to_sql(name, base, index=False)
    return tmp_path


def section(columns=COLUMNS, **more):
    where = more if "url" in more else {"path": "cdm"} | more
    return parse_data({"name": "wards", "source": "omop", "columns": columns, **where})


@pytest.mark.parametrize("where", [{}, {"url": "sqlite:///cdm.db", "schema": "main"}], ids=["files", "database"])
def test_tables_become_one_row_for_each_person(extract, where, caplog):
    with caplog.at_level(logging.WARNING, "hedgerow"):
        table = open_table(section(**where), extract)
    for name, expected in EXPECTED.items():
        assert_array_equal(table[name].round(12), np.round(expected, 12), err_msg=name)
    assert "1 rows of measurement are of nobody in person" in caplog.text
    kinds = {column.name: column.kind for column in schema_of(section())}
    assert (kinds["age"], kinds["sex"], kinds["last"], kinds["diabetes"]) == ("integer", "category", "number", "binary")


def test_a_unit_that_nobody_declared_stops_the_station(extract):
    columns = {"last": CREATININE | {"value": "last", "convert": {"8840": 1}}}
    with pytest.raises(SourceUnreadable, match="the units 8749, 9999"):
        open_table(section(columns), extract)


WRONG = {
    "is nothing that is read": {"from": "visit_occurrence", "concept": 1},
    "may have many measurements": {"from": "measurement", "concept": 1},
    "no concept": {"from": "drug_exposure"},
    "does not understand convert": {"from": "drug_exposure", "concept": 1, "convert": {"1": 2}},
    "convert = {}": {"from": "measurement", "concept": 1, "value": "mean"},
    "identifies people": {"from": "person.birth"},
    "codes give": {"from": "person.gender", "levels": ["f", "m"], "codes": {8532: "f"}},
    "is no day": {"from": "drug_exposure", "concept": 1, "since": "May"},
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_not_understood_is_refused_before_a_row_is_read(said):
    with pytest.raises(ConfigInvalid, match="problem") as refused:
        section({"x": WRONG[said]})
    assert said in refused.value.remedy


def test_a_dictionary_says_kinds_levels_and_concepts(extract):
    dictionary = {
        "dictionary": {"name": "kidneys", "version": "1.0.0"},
        "columns": {
            "sex": {"levels": {"f": "0", "m": "1"}},
            "creatinine": {"kind": "number", "range": [0, 20], "unit": "mg/dL", "concept": "OMOP:3016723"},
            "diabetes": {"kind": "binary", "levels": {"no": "0", "yes": "1"}},
            "height": {"kind": "number", "range": [0, 3]},
        },
    }
    columns = {
        "sex": {"from": "person.gender", "codes": {8532: "f", 8507: "m"}},
        "creatinine": {"from": "measurement", "value": "last", "convert": UNITS},
        "diabetes": {"from": "condition_occurrence", "concept": [201826, 4193704]},
        "height": False,
    }
    held = section(columns, dictionary=dictionary)
    table = open_table(held, extract)
    assert table.schema == schema_of(held)
    assert held.absent == {"height"}
    assert_array_equal(table["sex"], EXPECTED["sex"])
    assert_array_equal(table["creatinine"].round(12), EXPECTED["last"])
    assert_array_equal(table["diabetes"], EXPECTED["diabetes"])
