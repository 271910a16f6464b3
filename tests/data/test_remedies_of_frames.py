"""What is refused of a data frame says what to do with a data frame, and a file's name says how to read a file."""

import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import ColumnUndeclared, NotFinite, SchemaInvalid

FRAME = pd.DataFrame({"age": [61.0, None, 70.0], "bmi": [22.0, 27.5, 31.0]})


def test_a_missing_value_of_a_frame_is_dropped_by_from_frame():
    with pytest.raises(NotFinite) as refusal:
        hr.data.Table.from_frame(FRAME)
    assert 'Table.from_frame(frame, missing="drop")' in str(refusal.value)
    assert "read(..." not in str(refusal.value)
    with pytest.raises(NotFinite) as refusal:
        hr.simulate(FRAME, hr.data.iid(parties=1))
    assert "Table.from_frame(frame, declared={NAME: {...}})" in str(refusal.value)


def test_a_column_of_a_frame_that_has_to_be_declared_is_declared_by_from_frame():
    with pytest.raises(ColumnUndeclared) as refusal:
        hr.data.Table.from_frame(FRAME.dropna().assign(bmi=["22.0", "27,5"]))
    assert "Table.from_frame(frame, declared={NAME: {...}})" in str(refusal.value)
    assert "read(..." not in str(refusal.value)


def test_a_file_still_says_read(tmp_path):
    FRAME.to_csv(tmp_path / "clean.csv", index=False)
    with pytest.raises(NotFinite, match=r'read\(\.\.\., missing="drop"\)'):
        hr.data.read(tmp_path / "clean.csv")


def test_a_files_name_is_no_table_and_says_how_to_read_it():
    with pytest.raises(SchemaInvalid, match=r"hr\.data\.read\('clean\.csv'"):
        hr.simulate("clean.csv", hr.data.iid(parties=3))
