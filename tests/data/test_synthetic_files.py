"""Files of made-up records: what they promise comes back with them, whole or not at all."""

import json

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema
from hedgerow.data.synthetic_table import Provenance, SyntheticTable
from hedgerow.errors import CannotWrite, SchemaInvalid

SCHEMA = Schema(
    (
        Column("age", "integer", low=0, high=9, optional=True),
        Column("job", "category", levels=("", "NA", "nan", "farm"), optional=True),
    )
)
MADE = SyntheticTable(
    {"age": np.array([1.0, np.nan, 3, 4, 5, 6]), "job": np.array([-1, 0, 1, 2, 3, -1], np.int16)},
    SCHEMA,
    provenance=Provenance("tan", 1.0, 1e-5, privacy="Epsilon 1."),
)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_records_and_their_promise_come_back(tmp_path, ending):
    back = hr.data.read(MADE.write(tmp_path / f"m.{ending}"))
    assert isinstance(back, SyntheticTable)
    assert back.schema == SCHEMA
    assert back.provenance == MADE.provenance
    assert "Epsilon 1." in back.source
    for name in SCHEMA.names:  # a missing value is no empty word
        np.testing.assert_array_equal(back[name], MADE[name])
    for part in (back.take(slice(0, 2)), back.select(["age"]), back.split(0.5, 0)[1], back.declare(age=(0, 12))):
        assert part.provenance.epsilon == 1.0


def test_numbers_of_numpy_are_written_as_numbers(tmp_path):
    about = Provenance(seed=np.int64(3), where={"age": (np.int64(4), np.float64(9)), "job": np.array(["farm"])})
    SyntheticTable(MADE.columns, SCHEMA, provenance=about).write(tmp_path / "m.csv")
    told = hr.data.read(tmp_path / "m.csv").provenance
    assert (told.seed, told.where) == (3, {"age": [4, 9.0], "job": ["farm"]})


@pytest.mark.parametrize("fails", ["pandas.DataFrame.to_csv", "pathlib.Path.write_text", "pyarrow.parquet.write_table"])
def test_a_file_that_fails_leaves_nothing_behind(tmp_path, monkeypatch, fails):
    path = tmp_path / ("m.parquet" if "parquet" in fails else "m.csv")

    def full(*given, **named):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(fails, full)
    with pytest.raises(CannotWrite, match="disk full"):
        MADE.write(path)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "said",
    [
        {"hedgerow": {"synthetic": True, "schema": {"columns": 3}}},
        {"hedgerow": {"synthetic": True, "schema": {"columns": None}}},
        {"hedgerow": {"synthetic": True, "schema": {"columns": [3]}}},
        {"hedgerow": {"synthetic": True, "schema": SCHEMA.to_json(), "epsilon": "1"}},
        {"hedgerow": {"synthetic": True, "schema": SCHEMA.to_json(), "epsilon": -1}},
        {"hedgerow": "x"},
        [1],
        "[" * 100_000,
    ],
)
def test_metadata_that_cannot_be_read_are_refused(tmp_path, said):
    path = MADE.write(tmp_path / "m.csv")
    (tmp_path / "m.csv-metadata.json").write_text(said if isinstance(said, str) else json.dumps(said))
    with pytest.raises(SchemaInvalid) as refused:
        hr.data.read(path)
    assert refused.value.remedy


def test_metadata_of_others_promise_nothing(tmp_path):
    (tmp_path / "m.csv").write_text("age\n1.5\n2.5\n")
    (tmp_path / "m.csv-metadata.json").write_text(json.dumps({"@context": "http://www.w3.org/ns/csvw", "url": "m.csv"}))
    assert type(hr.data.read(tmp_path / "m.csv")) is hr.data.Table
