"""What PATE is asked with: who is taught by what, and what is refused or warned of before anybody is asked."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.core.federation import Federation
from hedgerow.data import Schema
from hedgerow.errors import HedgerowWarning, SchemaInvalid, SettingsInvalid, UnlawfulChannel, suggestion

from .labels import sureness
from .learners import learner
from .reads import Reads
from .votes import ALL, Teaching


def teaching_of(federation: Federation, teacher: Any, shards: Any, **reads: Any) -> Teaching:
    """What every party is asked to do.

    Raises
    ------
    SchemaInvalid (HR-409), SettingsInvalid (HR-511), ModelInvalid (HR-510)
    """
    schema: Schema | None = federation.schema
    if schema is None or schema.target is None or schema[schema.target].kind not in ("category", "binary"):
        raise SchemaInvalid("PATE needs a target with classes.", remedy="Declare a category or a binary column as the target.")
    column = schema[schema.target]
    classes = len(column.levels) if column.kind == "category" else 2
    if classes < 2:
        raise SchemaInvalid(
            f"the target {column.name!r} has {classes} level, on which there is nothing to vote.",
            remedy="Declare all of its levels, two at least.",
        )
    many = isinstance(teacher, Mapping) and "name" not in teacher
    learners = {name: learner(one) for name, one in (teacher.items() if many else [(ALL, teacher)])}
    counts = dict(shards) if isinstance(shards, Mapping) else {ALL: shards}
    found: list[dict[str, Any]] = []
    for what, given in (("teacher", learners), ("shards", counts)):
        named: dict[str, Any] = {(ALL if name == "others" else name): one for name, one in given.items()}
        _check_names(what, [name for name in named if name != ALL], ALL in named, federation.names)
        found.append({ALL: next(iter(named.values()))} | named)  # a made-up party, of which shapes are asked, has no name
    for count in found[1].values():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise SettingsInvalid(f"{count!r} shards of a party.", remedy="Give whole numbers from one on.")
    return Teaching(Reads.of(schema, **reads), tuple(sorted(found[0].items())), tuple(sorted(found[1].items())), classes)


def _check_names(what: str, named: Sequence[str], others: bool, parties: Sequence[str]) -> None:
    """Refuse names of strangers, and parties that are neither named nor among others."""
    known, given = set(parties), set(named)
    strangers = [name for name in named if name not in known]
    forgotten = [] if others else [name for name in parties if name not in given]
    if strangers:
        raise SettingsInvalid(
            f"{what} names {_list(strangers)}, who is not in the federation.", remedy=suggestion(strangers[0], parties[:50])
        )
    if forgotten:
        raise SettingsInvalid(f"{what} does not name {_list(forgotten)}.", remedy='Name every party, or "others" for the rest.')


def _list(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_channel(federation: Federation) -> None:
    """Refuse a channel that clips or compresses a party's votes: they would no longer be whole, nor those of its teachers."""
    if federation.protection.clip is not None or federation.protection.compressed:
        raise UnlawfulChannel(
            "votes are bounded by the number of inputs that are asked; the channel would clip or compress a party's votes.",
            remedy="Leave clip and compression out: federation.protect(mechanism=Gaussian(1.1)), or epsilon and delta.",
        )


def check_student(graph: int, student: Any, keep: float, rounds_alone: int) -> None:
    """Refuse before anything is paid for what would fail afterwards."""
    if graph < 0 or not 0 <= keep < 1 or rounds_alone < 0:
        raise SettingsInvalid(f"{graph=}, {keep=}, {rounds_alone=}.", remedy="None is below zero, and keep is below one.")
    learner(student)


def warn_of_noise(teachers: int, sigma: float, classes: int, asked: int) -> None:
    """Warn where noise leaves little of a vote on which all teachers agree, before the question.

    It follows from public numbers. The limit is half-way between guessing, 1 / C, and certainty.
    """
    sure = sureness(teachers, sigma, classes)
    if sure < (1 + 1 / classes) / 2:
        warnings.warn(
            f"noise of {sigma:.4g} in each count hides the votes of {teachers} teachers: where all of them agree, the label of "
            f"one input is theirs with probability {sure:.2f}; a guess is right with {1 / classes:.2f}. "
            f"Take more shards, fewer inputs than asked={asked}, or a larger epsilon; or use no label as it is voted, and only "
            "what student(graph=10) spreads.",
            HedgerowWarning,
            stacklevel=5,
        )
