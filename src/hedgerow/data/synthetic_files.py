"""What a file of made-up records says of itself: its columns' declarations, and what made it.

people.parquet                 under the key `hedgerow` of the file's own metadata
people.csv                     under the key `hedgerow` of people.csv-metadata.json, a name of CSV on the Web (W3C 2015)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hedgerow.errors import SchemaInvalid

from .schema import Schema

KEY = "hedgerow"
ENDING = "-metadata.json"


def metadata_path(path: Path) -> Path:
    """Where the metadata of a file of comma-separated values are."""
    return path.with_name(path.name + ENDING)


def told_of(path: Path) -> dict[str, Any] | None:
    """What a file says of itself; None where it says nothing.

    Raises
    ------
    SchemaInvalid (HR-409)
        What it says cannot be read.
    """
    try:
        if path.suffix == ".parquet" and path.is_file():
            from pyarrow import parquet

            held = (parquet.read_schema(path).metadata or {}).get(KEY.encode())
            found = json.loads(held) if held else None
        else:  # metadata of CSV on the Web may be another's, which say nothing here
            file = metadata_path(path)
            found = json.loads(file.read_text(encoding="utf-8")).get(KEY) if file.is_file() else None
        if found is not None and not isinstance(found, dict):
            raise ValueError(f"{KEY} is a {type(found).__name__}, and no object")
    except ImportError:  # who reads the records says what to install
        return None
    except (ValueError, AttributeError, OSError, RecursionError) as cause:
        raise SchemaInvalid(
            f"what {path.name} says of itself cannot be read: {cause}.",
            remedy=f"Remove {metadata_path(path).name}, or draw the records again.",
        ) from cause
    return found


def declared_by(path: Path) -> Schema | None:
    """The columns that a file of made-up records declares; None where it declares none.

    They are those of the study that made it, so that levels and ranges need not be declared a second time.
    """
    found = told_of(path)
    if found is None or not found.get("synthetic") or not isinstance(found.get("schema"), dict):
        return None
    return Schema.from_json(found["schema"])
