"""Changes to a study before it is checked, by dotted keys."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import fields
from typing import Any

from hedgerow.data import PARTITIONERS
from hedgerow.errors import StudyInvalid

from .catalogue import PROGRAMS, VERTICAL, listing
from .keys import keys_of

Change = tuple[str, Any]
"""A dotted key and its value, which may be a whole section."""


def change(text: str) -> Change:
    """Read `a.b=c` from the command line; c is a TOML value, or else a string."""
    dotted, equals, value = text.partition("=")
    if not equals or not dotted:
        raise StudyInvalid(f"--set {text!r} is not of the form key=value.", remedy="For example --set program.rounds=20")
    try:
        return dotted.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return dotted.strip(), value


def changed(found: Mapping[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """Return a study's mapping with changes applied in their order; the original stays as it is.

    A change that names another program or partitioner leaves behind those of the former keys that only the former one
    knows. Keys that the changes themselves give are never left behind: they are right, or refused.
    """
    made, changes = deepcopy(dict(found)), list(changes)
    for dotted, value in changes:
        _put(made, dotted, deepcopy(value))
    given = {dotted for dotted, _ in changes}
    given |= {f"{dotted}.{key}" for dotted, value in changes if isinstance(value, Mapping) for key in value}
    for section, name, known in (("program", "name", _program_keys), ("partition", "by", _partition_keys)):
        before, now = found.get(section), made.get(section)
        if not isinstance(before, Mapping) or not isinstance(now, Mapping) or before.get(name) == now.get(name):
            continue
        if known(now.get(name)):
            former = known(before.get(name)) - known(now.get(name))
            made[section] = {key: value for key, value in now.items() if key not in former or f"{section}.{key}" in given}
    return made


def _put(found: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, key = dotted.split(".")
    for parent in parents:
        found = found.setdefault(parent, {})
        if not isinstance(found, dict):
            raise StudyInvalid(f"--set {dotted}: {parent!r} is a value, not a section.")
    found[key] = value


def _program_keys(name: Any) -> set[str]:
    return set(keys_of(listing(name)).model_fields) if name in PROGRAMS or name in VERTICAL else set()


def _partition_keys(name: Any) -> set[str]:
    return {field.name for field in fields(PARTITIONERS[name])} if name in PARTITIONERS else set()
