"""Dictionaries that studies and stations name: found beside the file that names one, and read once.

    dictionary = "dictionary.toml"         a file, from the folder of the file that names it
    dictionary = "heart-failure@1.2.0"     name and version, among the TOML files of that folder

What was read takes the name's place, as the tables `dictionary`, `columns` and `derived`. So a study in a run folder, or on its
way to stations, holds all that it declares, and whoever reads it computes the digest anew.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, MissingData, suggestion

if TYPE_CHECKING:
    from hedgerow.data.dictionary.dictionary import Dictionary

LARGEST = 1 << 20
"""Bytes of a file that is looked into for a dictionary's name."""


def dictionary_from(values: Mapping[str, Any]) -> Dictionary:
    """Return the dictionary of tables that were read before; raises SchemaInvalid, FormulaInvalid (HR-409, 310)."""
    return _made(json.dumps(values))


@lru_cache(maxsize=16)
def _made(text: str) -> Dictionary:
    from hedgerow.data.dictionary.dictionary import Dictionary

    return Dictionary.from_values(json.loads(text)).completed()


def read_named(named: str, folder: Path) -> Dictionary:
    """Return the dictionary of a name, finished: nothing in it is still to be decided.

    Parameters
    ----------
    named : str
        A path from the folder, or name@version.

    Raises
    ------
    MissingData (HR-402)
        There is none of that name beside the file that names it.
    SchemaInvalid, FormulaInvalid (HR-409, 310)
        All that is wrong in it, or what a person must still decide.
    """
    from hedgerow.data.dictionary.dictionary import Dictionary

    path = folder / named
    if path.is_file():
        return Dictionary.read(path, complete=True)
    labels = labels_in(folder)
    if named in labels:
        return Dictionary.read(labels[named], complete=True)
    known = [*labels, *(path.name for path in labels.values())]
    raise MissingData(
        f"the dictionary {named!r} is not in {folder}.",
        remedy=suggestion(named, known) if known else "Put it there, or name its path. hedgerow dictionary draft writes one.",
    )


def labels_in(folder: Path) -> dict[str, Path]:
    """The dictionaries of a folder, by name@version."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            if path.stat().st_size <= LARGEST:
                top = tomllib.loads(path.read_text(encoding="utf-8")).get("dictionary")
                if isinstance(top, dict) and "name" in top and "version" in top:
                    found.setdefault(f"{top['name']}@{top['version']}", path)
        except (OSError, ValueError, RecursionError):
            continue
    return found


def with_dictionary(data: Any, folder: Path) -> None:
    """Read the dictionary that a `[data]` section names, into its place; whatever is no name is left to the section's checks.

    Raises
    ------
    MissingData, SchemaInvalid, FormulaInvalid (HR-402, 409, 310)
    """
    if isinstance(data, dict) and isinstance(data.get("dictionary"), str):
        data["dictionary"] = read_named(data["dictionary"], folder).to_values()


def problem_of(values: Mapping[str, Any]) -> str:
    """What is wrong with the tables of a dictionary, in a sentence; "" for nothing."""
    try:
        dictionary_from(values)
    except HedgerowError as error:
        return f"dictionary: {error.reason} {error.remedy}".strip().rstrip(".")
    return ""


UNREAD = 'a name, which is read where it stands in a file: by hedgerow.study.load("STUDY.toml"), or when a station starts'
"""What is said of a dictionary that was not read."""
