"""Files into tables, and files that are refused."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from hedgerow.data import Column, Schema, read, read_idx
from hedgerow.data.cases import whole_cases
from hedgerow.errors import MissingColumn, MissingData, MissingExtra, NotFinite, SchemaInvalid

FRAME = pd.DataFrame({"age": [20, 50, 80], "sex": ["f", "m", "m"]})


def idx(values, kind=8):
    header = bytes([0, 0, kind, values.ndim]) + np.array(values.shape, ">i4").tobytes()
    return header + values.astype(values.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize(("name", "sep"), [("a.csv", ","), ("a.csv.gz", ","), ("a.tsv", "\t"), ("a.tsv.gz", "\t")])
def test_text_files(tmp_path, name, sep):
    FRAME.to_csv(tmp_path / name, sep=sep, index=False)
    table = read(tmp_path / name, target="sex")
    assert_array_equal(table["age"], [20, 50, 80])
    assert (table.name, table.schema.target, table.schema["sex"].levels) == ("a", "sex", ("f", "m"))


def test_a_declared_schema_is_obeyed(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    schema = Schema((Column("age", "number", low=0, high=100),))
    assert list(read(tmp_path / "a.csv", schema=schema).columns) == ["age"]
    with pytest.raises(MissingColumn, match="Did you mean 'age'"):
        read(tmp_path / "a.csv", schema=Schema((Column("agee", "number"),)))


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.to_parquet(tmp_path / "a.parquet")
    assert_array_equal(read(tmp_path / "a.parquet")["sex"], [0, 1, 1])


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"hedgerow\[data\]"):
        read(tmp_path / "a.parquet")


def test_npz_keeps_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", image=np.ones((3, 2, 2), np.uint8), y=np.array([0, 1, 1]))
    table = read(tmp_path / "a.npz", target="y")
    assert table["image"].dtype == np.uint8
    assert (table.schema["image"].shape, table.schema["y"].kind) == ((2, 2), "binary")


def test_npz_with_objects_is_never_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{}, None], object))
    with pytest.raises(SchemaInvalid, match="no Python objects"):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx(tmp_path, pack):
    values = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    (tmp_path / "x").write_bytes(pack(idx(values)))
    assert_array_equal(read_idx(tmp_path / "x"), values)


def test_idx_of_floats_has_native_order(tmp_path):
    (tmp_path / "x").write_bytes(idx(np.array([1.5, 2.5], np.float32), kind=0x0D))
    assert read_idx(tmp_path / "x").dtype == np.float32


def test_idx_pair_is_one_table(tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(np.ones((3, 2, 2), np.uint8))))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.array([4, 5, 6], np.uint8))))
    table = read(tmp_path / "train-images-idx3-ubyte.gz", target="label")
    assert_array_equal(table["label"], [4, 5, 6])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("a.csv", b"a,b\n1,2\n1,2,3\n"),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.csv.gz", b"not gzip"),
        ("a.npz", b"not a zip"),
        ("a.npz", b""),
        ("images-idx3", b"\1\2\3\4"),
        ("images-idx3", b"\0\0\x08\3\0\0"),
        ("images-idx3", gzip.compress(b"\0\0\x08\1\0\0\0\5abc", mtime=0)[:-9]),
        ("images-idx3", b""),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SchemaInvalid, match=f"{name} cannot be read"):
        read(tmp_path / name)


def test_a_missing_file_suggests_its_neighbours(tmp_path):
    (tmp_path / "patients.csv").touch()
    with pytest.raises(MissingData, match=r"Did you mean 'patients\.csv'"):
        read(tmp_path / "patient.csv")
    with pytest.raises(MissingData, match="nor does its folder"):
        read(tmp_path / "nowhere" / "patients.csv")


def test_an_unknown_suffix_suggests_known_ones(tmp_path):
    (tmp_path / "a.cvs").touch()
    with pytest.raises(MissingData, match=r"Did you mean '\.csv'"):
        read(tmp_path / "a.cvs")


def test_missing_values_are_refused_or_kept_and_counted(tmp_path):
    (tmp_path / "a.csv").write_text("x,word\n1,a\n,b\n3,\ninf,a\n5,b\n")
    with pytest.raises(NotFinite, match="2 of 5 values missing or infinite"):
        read(tmp_path / "a.csv")
    table = read(tmp_path / "a.csv", missing="drop")
    assert_array_equal(table["x"], [1, np.nan, 3, np.nan, 5])
    assert_array_equal(table["word"], [0, 1, -1, 0, 1])
    assert "3 of 5 records lack a value;" in table.source
    assert len(whole_cases(table, ["word"])) == 4
    assert_array_equal(whole_cases(table, ["x", "word"])["x"], [1, 5])


def test_records_that_lack_a_part_of_an_array_lack_a_value(tmp_path):
    vectors = np.array([[1.0, 2.0], [np.nan, 1.0], [3.0, 4.0]])
    np.savez(tmp_path / "a.npz", v=vectors, image=np.zeros((3, 2), np.uint8))
    table = read(tmp_path / "a.npz", missing="drop")
    assert_array_equal(whole_cases(table, ["v"])["v"], vectors[[0, 2]])
    assert len(whole_cases(table, ["image"])) == 3


def test_arrays_of_different_lengths_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", v=np.zeros((3, 2)), w=np.zeros((2, 2)))
    with pytest.raises(SchemaInvalid, match="differ in length"):
        read(tmp_path / "a.npz", missing="drop")
