"""The columns that a study uses, and whether all stations declare them alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hedgerow.data import Schema
from hedgerow.errors import MissingColumn, StudyInvalid, suggestion
from hedgerow.study import Study
from hedgerow.study.remote import same_columns
from hedgerow.study.several import programs_in


def agreed_schema(study: Study, schemas: Mapping[str, Schema]) -> Schema:
    """The columns that a study uses, as every station declares them.

    Descriptions may differ. The order is that of the first station.

    Raises
    ------
    MissingColumn (HR-403)
        A station does not have a column; says which.
    StudyInvalid (HR-101)
        Two stations declare a column differently; says both declarations.
    """
    known = list(dict.fromkeys(name for schema in schemas.values() for name in schema.names))
    derived = study.data.derivations()
    named, used = _named(study, known), used_columns(study, known)
    for name in [*(named or ()), *used]:
        for station, schema in schemas.items():
            if name not in schema:
                why = "" if named is not None else ", and the study names no columns, so that it would use all"
                hint = "" if named is not None else "Name the columns in data.features. "
                if name in derived:
                    hint = f"Stations compute it themselves: [data.derived.{name}] of station.toml, as in the study. "
                raise MissingColumn(f"{station} has no column {name!r}{why}.", remedy=hint + suggestion(name, schema.names))
    if not used:
        raise StudyInvalid("the study uses no column of the stations.", remedy=suggestion(str(study.data.target), known))
    silent = {
        station: Schema(tuple(replace(column, description="") for column in schema.select(used)))
        for station, schema in schemas.items()
    }
    return same_columns(silent, tuple(used))


def used_columns(study: Study, known: list[str]) -> list[str]:
    """The columns that a study uses, of those that are known at some station: all where it leaves that open."""
    named = _named(study, known)
    return known if named is None else [name for name in known if name in named]


def _named(study: Study, known: list[str]) -> set[str] | None:
    """The columns that a study names; None where it leaves open which features it uses."""
    own, *parts = (given for _, given in programs_in(study))
    found = [_by_program(study, given, known) for given in parts or [own]]
    return None if any(one is None for one in found) else {name for one in found if one is not None for name in one}


def _by_program(study: Study, settings: Mapping[str, Any], known: list[str]) -> set[str] | None:
    """The same of one program, by its settings."""
    data = study.data
    sides = [side for value in settings.values() if isinstance(value, str) and "~" in value for side in value.split("~")]
    everything = any(re.search(r"(?<![\w.])\.(?![\w.])", side) for side in sides)
    if data.features is None and (everything or not sides):
        return None
    named = {name for name in (data.target, data.weight, *(data.features or ())) if name} | set(data.ranges)
    words = set(_words(settings)) | set(_words(study.evaluation.model_dump()))
    named |= words & set(data.derivations())
    return named | {
        name for name in known if name in words or (not name.isidentifier() and any(name in side for side in sides))
    }


def _words(value: Any) -> Iterator[str]:
    """Every word in a setting, however deep."""
    if isinstance(value, str):
        yield value
        yield from re.findall(r"\w+", value)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _words(key)
            yield from _words(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _words(part)
