"""Sources of a station's records: files, databases, FHIR and OMOP. Each is told what to read, and returns raw columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.data import Schema

from .fhir.source import read_fhir
from .files import read_csv, read_parquet
from .omop.source import read_omop
from .raw_columns import RawColumns
from .sql import read_sql

if TYPE_CHECKING:
    from ..data_section import DataSection

SOURCES = {"csv": read_csv, "parquet": read_parquet, "sql": read_sql, "fhir": read_fhir, "omop": read_omop}


def read_source(section: DataSection, schema: Schema, folder: Path) -> RawColumns:
    """Read what `[data]` names.

    Raises
    ------
    SourceUnreadable (HR-614), MissingColumn (HR-403), MissingExtra (HR-105)
        It is not there, cannot be read, lacks a column, or needs a package that is not installed.
    """
    return SOURCES[section.source](section, schema, folder)


__all__ = ["SOURCES", "RawColumns", "read_source"]
