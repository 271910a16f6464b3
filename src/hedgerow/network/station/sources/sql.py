"""Databases: one SELECT statement, through SQLAlchemy (any database with a driver) or DuckDB.

`duckdb:///file.duckdb` opens a DuckDB file; `duckdb://` none at all, for a query over Parquet and CSV files, whose relative
paths are taken from the station's folder.

The query is written by the station's owner, so the checks here guard against mistakes: one statement, a SELECT, a connection
that may only read where the database has such a thing, and nothing is ever committed. Give the station's account no right but
to read. Errors are told without the password: drivers put whole addresses into theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.data import Schema
from hedgerow.errors import ConfigInvalid, MissingExtra, SourceUnreadable

from .raw_columns import RawColumns, pick
from .secrets import address, hushed

if TYPE_CHECKING:
    import pandas as pd

    from ..data_section import DataSection

CHUNK = 50_000
"""Records that are fetched at once."""
QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
WRITES = re.compile(r"\b(insert|update|delete|merge|drop|alter|create|truncate|grant|revoke|into)\b", re.IGNORECASE)


def read_sql(section: DataSection, schema: Schema, folder: Path) -> RawColumns:
    """Read the rows of `data.query`.

    Raises
    ------
    ConfigInvalid (HR-601)
        The query is not one SELECT statement, or the url is none.
    SourceUnreadable (HR-614)
        The database cannot be reached, or does not answer the query.
    MissingExtra (HR-105)
        SQLAlchemy, DuckDB or the database's driver is not installed.
    """
    frame = answer(address(section), section.query or "", folder)
    names = [str(name) for name in frame.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SourceUnreadable(f"the query gives the columns {twice} twice.", remedy="Name each column once: SELECT x AS y.")
    return RawColumns(pick(frame, section), "Read from a database.")


def answer(url: str, query: str, folder: Path) -> pd.DataFrame:
    """Return what a database answers to a query; raises as `read_sql`."""
    query = one_select(query)
    return _duckdb(url, query, folder) if url.startswith("duckdb:") else _sqlalchemy(url, query, folder)


def one_select(query: str) -> str:
    """Return a query without a final semicolon, if it is one statement that only reads.

    Raises
    ------
    ConfigInvalid (HR-601)
        It is several statements, or one that writes.
    """
    bare = QUOTED.sub(" ", query).strip().rstrip(";").rstrip()
    first = bare.split(None, 1)[0].lower() if bare else ""
    writes = WRITES.search(bare)
    if ";" in bare or first not in ("select", "with") or writes:
        what = (
            f"holds the word {writes[0]!r}" if writes else "is several statements" if ";" in bare else f"begins with {first!r}"
        )
        raise ConfigInvalid(
            f"data.query {what}.", remedy="Give one SELECT statement. A column of such a name goes into double quotes."
        )
    return query.strip().rstrip(";").rstrip()


def _sqlalchemy(url: str, query: str, folder: Path) -> pd.DataFrame:
    try:
        import sqlalchemy
        from sqlalchemy import exc
    except ImportError:
        raise MissingExtra("a database needs SQLAlchemy.", remedy="pip install 'hedgerow[network]'") from None
    try:
        place = sqlalchemy.make_url(url)
        place = _sqlite(place, folder) if place.get_backend_name() == "sqlite" else place
        engine = sqlalchemy.create_engine(place, poolclass=sqlalchemy.pool.NullPool)
    except (exc.ArgumentError, ValueError):
        raise ConfigInvalid(
            "the url of the database is none, or names no kind of database that SQLAlchemy knows.",
            remedy="Give one such as postgresql://station@host/database in data.url, or whole in the variable of data.url_env.",
        ) from None
    except ModuleNotFoundError as cause:
        raise MissingExtra(
            f"the driver {cause.name!r} of this database is not installed.", remedy=f"pip install {cause.name}"
        ) from None
    secrets = [place.password, *(str(value) for value in place.query.values())]
    try:
        with engine.connect() as connection:
            _only_read(connection)
            try:
                result = connection.execution_options(stream_results=True).exec_driver_sql(query)
                return _frame(list(result.keys()), result.partitions(CHUNK))
            finally:
                connection.rollback()
    except (exc.SQLAlchemyError, OSError, UnicodeError) as cause:
        raise unreadable(getattr(cause, "orig", None) or cause, secrets) from None
    finally:
        engine.dispose()


def _sqlite(place: Any, folder: Path) -> Any:
    """Open an SQLite file for reading only; a path that is not absolute lies in the station's folder."""
    name = place.database or ""
    if name in ("", ":memory:") or name.startswith("file:"):
        raise ConfigInvalid(f"the url names the SQLite database {name!r}.", remedy="Name a file: sqlite:///records.db")
    path = folder / name
    if not path.is_file():
        raise SourceUnreadable(f"the file {name!r} is not there.", remedy="Check data.url in station.toml.")
    return place.set(database=path.resolve().as_uri(), query={"mode": "ro", "uri": "true"})


def _only_read(connection: Any) -> None:
    """Ask the database for a transaction that may only read, where it has one; an SQLite file is opened so."""
    kind = connection.dialect.name
    if kind == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    elif kind in ("mysql", "mariadb"):
        connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
        connection.commit()


def _duckdb(url: str, query: str, folder: Path) -> pd.DataFrame:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("a duckdb url needs DuckDB.", remedy="pip install 'hedgerow[network]'") from None
    name = url.removeprefix("duckdb:").removeprefix("//").removeprefix("/")
    if name and not (folder / name).is_file():
        raise SourceUnreadable(f"the file {name!r} is not there.", remedy="Check data.url in station.toml.")
    settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "file_search_path": str(folder.resolve())}
    try:
        with duckdb.connect(str(folder / name) if name else ":memory:", read_only=bool(name), config=settings) as connection:
            statements = connection.extract_statements(query)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise ConfigInvalid("data.query is not one SELECT statement.", remedy="Give one SELECT statement.")
            connection.execute("SET lock_configuration = true")
            answer = connection.execute(query)
            return _frame([column[0] for column in answer.description or ()], iter(lambda: answer.fetchmany(CHUNK), []))
    except duckdb.Error as cause:
        raise unreadable(cause, []) from None


def _frame(names: list[str], chunks: Iterable[Any]) -> pd.DataFrame:
    """Return rows as a data frame; decimals become numbers, all else stays what the driver made of it."""
    import pandas as pd

    rows = [tuple(row) for chunk in chunks for row in chunk]
    found = pd.DataFrame.from_records(rows, columns=range(len(names)), coerce_float=True)
    return found.set_axis(names, axis=1)


def unreadable(cause: object, secrets: list[str | None]) -> SourceUnreadable:
    """Return the error of a database that does not answer, without what must not be told."""
    return SourceUnreadable(
        f"the database does not answer the query: {type(cause).__name__}: {hushed(cause, secrets)}.",
        remedy="Try url and query by hand, with the station's account and from its machine.",
    )
