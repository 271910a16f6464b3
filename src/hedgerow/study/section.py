"""Sections of a TOML file that a person writes: every key is known, and all problems of a file are told at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from hedgerow.errors import suggestion


class Section(BaseModel):
    """A part of a file; every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def problems(
    kind: type[BaseModel], error: ValidationError, what: str, *, silent: bool = False, hidden: Collection[str] = ()
) -> list[str]:
    """Every problem of a file, in a sentence each: unknown keys with the nearest known one, others with what was given.

    Parameters
    ----------
    kind : type
        The outermost section.
    what : str
        What to call the file where a problem is in no key of it.
    silent : bool
        Leave out what was given, which may be secret; a word among few, or a number out of bounds, is not.
    hidden : collection of str
        Fields that are no keys of the file.
    """
    found = error.errors(include_url=False)
    return [_sentence(kind, problem, what, hidden, silent and problem["type"] not in HARMLESS) for problem in found]


HARMLESS = frozenset({"literal_error", "greater_than", "greater_than_equal", "less_than", "less_than_equal"})
"""Problems whose value is no secret: a key takes one of a few words, or a number."""


def _sentence(kind: type[BaseModel], problem: Any, what: str, hidden: Collection[str], silent: bool) -> str:
    *parents, key = problem["loc"] or ("",)
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        known = [name for name in _keys(_section(kind, parents)) if name not in hidden]
        return f"unknown key {where!r}. {suggestion(str(key), known)}"
    untold = silent or problem["type"] == "missing" or isinstance(problem["input"], dict | BaseModel)
    given = "" if untold else f" (given: {problem['input']!r})"
    words = (
        problem["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list").replace("valid dictionary", "section")
    )
    return f"{where or what}: {words}{given}"


def _section(kind: type[BaseModel], parents: list[Any]) -> type[BaseModel]:
    """The section at a place of the file."""
    for parent in (parent for parent in parents if isinstance(parent, str)):
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        if parent in fields:
            kind = next(iter(_sections(fields[parent].annotation)), kind)
    return kind


def _keys(kind: type[BaseModel]) -> list[str]:
    """A section's keys, as the file spells them."""
    return [field.alias or name for name, field in kind.model_fields.items()]


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """The sections in a type, however deep."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _sections(part)]
