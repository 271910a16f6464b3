"""Databases: the rows of one SELECT, read and never written, and errors without passwords."""

import sqlite3

import numpy as np
import pytest
import wards

from hedgerow.errors import ConfigInvalid, MissingColumn, MissingExtra, SourceUnreadable
from hedgerow.network.station.data_section import open_table, parse_data
from hedgerow.network.station.sources.secrets import hushed
from hedgerow.network.station.sources.sql import one_select

duckdb = pytest.importorskip("duckdb")
QUERY = "SELECT age, sex, sbp, smokes, diabetes FROM patients ORDER BY rowid"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same patients in SQLite, in DuckDB and in a CSV file."""
    path, frame = tmp_path_factory.mktemp("station"), wards.patients(60).drop(columns="born")
    with sqlite3.connect(path / "wards.db") as database:
        frame.to_sql("patients", database, index=False)
    database.close()
    with duckdb.connect(str(path / "wards.duckdb")) as other:
        other.register("frame", frame)
        other.execute("CREATE TABLE patients AS SELECT * FROM frame")
        other.execute("CREATE SEQUENCE numbers")
    frame.to_csv(path / "wards.csv", index=False)
    return path


def opened(folder, url, query=QUERY, **more):
    return open_table(parse_data(wards.section("sql", url=url, query=query, **more)), folder)


@pytest.mark.parametrize(
    ("url", "query"),
    [
        ("sqlite:///wards.db", QUERY + " ;  "),
        ("sqlite:///wards.db", "-- all; of them\nWITH p AS (SELECT * FROM patients) SELECT *, 'drop;' AS x FROM p"),
        ("duckdb:///wards.duckdb", QUERY),
        ("duckdb://", "SELECT * FROM 'wards.csv'"),
    ],
)
def test_rows_equal_those_of_the_csv(url, query, folder):
    found, expected = opened(folder, url, query), open_table(parse_data(wards.section("csv", path="wards.csv")), folder)
    assert found.schema == expected.schema
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected.columns)


def test_nulls_are_missing_and_decimals_are_numbers(folder):
    columns = {"x": {"kind": "number", "missing": "drop"}, "y": {"levels": ["a"], "missing": "drop"}}
    query = "SELECT * FROM (VALUES (1.50::DECIMAL(4,2), 'a'), (NULL, 'a'), (2.25, NULL), (3.75, 'a')) v(x, y)"
    section = {"name": "v", "source": "sql", "url": "duckdb://", "query": query, "columns": columns}
    np.testing.assert_array_equal(open_table(parse_data(section), folder)["x"], [1.5, np.nan, 2.25, 3.75])


def test_the_address_may_come_from_the_environment(folder, monkeypatch):
    section = parse_data(wards.section("sql", url_env="WARDS_URL", query=QUERY))
    with pytest.raises(SourceUnreadable, match=r"HR-614[\s\S]*'WARDS_URL'"):
        open_table(section, folder)
    monkeypatch.setenv("WARDS_URL", "sqlite:///wards.db")
    assert len(open_table(section, folder)) == 60


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM patients",
        "SELECT 1; DROP TABLE patients",
        "WITH x AS (DELETE FROM patients RETURNING *) SELECT * FROM x",
        "SELECT * INTO copy FROM patients",
        "PRAGMA writable_schema = 1",
        "/* only a comment */",
        "SELECT ';' ; /* ; */ SELECT 2",
    ],
)
def test_only_one_select_is_a_query(query):
    with pytest.raises(ConfigInvalid, match=r"HR-601[\s\S]*data.query"):
        one_select(query)


def test_sqlite_is_opened_for_reading_only(folder, monkeypatch):
    monkeypatch.setattr(
        "hedgerow.network.station.sources.sql.one_select", str
    )  # what the words let through, the connection stops
    with pytest.raises(SourceUnreadable, match="readonly"):
        opened(folder, "sqlite:///wards.db", "DELETE FROM patients")
    monkeypatch.undo()
    assert len(opened(folder, "sqlite:///wards.db")) == 60


def test_duckdb_answers_one_select_only(folder, monkeypatch):
    monkeypatch.setattr("hedgerow.network.station.sources.sql.one_select", str)
    with pytest.raises(ConfigInvalid, match="not one SELECT"):
        opened(folder, "duckdb://", "CREATE TABLE x AS SELECT 1")


def test_duckdb_files_are_opened_for_reading_only(folder):
    with pytest.raises(SourceUnreadable, match="read-only"):
        opened(folder, "duckdb:///wards.duckdb", "SELECT nextval('numbers') AS age, sex, sbp, smokes, diabetes FROM patients")


@pytest.mark.parametrize("url", ["sqlite:///none.db", "duckdb:///none.duckdb"])
def test_a_database_file_is_not_made(url, folder):
    with pytest.raises(SourceUnreadable, match="not there"):
        opened(folder, url)
    assert not list(folder.glob("none*"))


@pytest.mark.parametrize("url", ["sqlite:///wards.db", "duckdb:///wards.duckdb"])
def test_a_query_that_fails_is_said_in_words(url, folder):
    with pytest.raises(SourceUnreadable, match=r"HR-614[\s\S]*nowhere"):
        opened(folder, url, "SELECT * FROM nowhere")
    with pytest.raises(SourceUnreadable, match="twice"):
        opened(folder, url, "SELECT age, age FROM patients")
    with pytest.raises(MissingColumn, match="'sex'"):
        opened(folder, url, "SELECT age FROM patients")


@pytest.mark.parametrize("url", ["no url at all", "nothing://host/db", "sqlite://"])
def test_an_address_that_is_none_is_refused(url, folder):
    with pytest.raises(ConfigInvalid, match="HR-601"):
        opened(folder, url)


def test_a_missing_driver_is_named_without_the_password(folder, monkeypatch):
    monkeypatch.setenv("WARDS_URL", "postgresql+psycopg2://me:s3cret@host/db")
    pytest.importorskip("sqlalchemy")
    with pytest.raises((MissingExtra, SourceUnreadable)) as caught:
        open_table(parse_data(wards.section("sql", url_env="WARDS_URL", query=QUERY)), folder)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_error_hides_secrets_in_every_spelling():
    said = hushed("cannot open postgresql://me:p%40ss@host/db (password p@ss)\nmore", ["p%40ss"])
    assert "p@ss" not in said
    assert "p%40ss" not in said
    assert "host/db" in said
    assert "more" not in said
