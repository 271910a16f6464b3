"""Settings that have a number for each party, such as passes over records: where rows are hidden, they single no party out.

A total in which all others were divided by 1e15, or took no step, is one party's row. So the numbers of one setting are at
most `MOST_APART` times apart, and the person who approves a study reads them beside the question. That alone is not enough:
with seven passes against one, a learning rate that is too large makes one party's update a million times as long as the
others'. So numbers differ only where a clip, noise of a bound per party, or the clipped gradients of a function with noise of
its own limit what any party adds. And budgets are the same for all: of those that end at different rounds, the one that is
left is the total.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.errors import ProtectionRequired

if TYPE_CHECKING:
    from hedgerow.core.engine import Outbox

    from .config import RequireSection

MOST_APART = 100.0
"""Times that the largest number of a setting by party may be the smallest one."""

SHOWN = 12
"""Parties whose numbers are told one by one."""


def settings_by_party(value: Any, parties: Collection[str], name: str = "") -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Every setting that has something for a party, wherever it is in these settings, with its name."""
    if isinstance(value, Mapping):
        if any(isinstance(key, str) and key in parties for key in value):
            yield name, value
        for key, part in value.items():
            yield from settings_by_party(part, parties, str(key) if key not in parties else name)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from settings_by_party(part, parties, name)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from settings_by_party(getattr(value, field.name), parties, field.name)


def numbers_by_party(value: Any, parties: Collection[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Every setting with a number, or a budget, for parties: its name, and the numbers."""
    for name, given in settings_by_party(value, parties):
        found = {str(key): number for key, part in given.items() if (number := _number(part)) is not None}
        if found:
            yield name, found


def admit_by_party(require: RequireSection, outbox: Outbox, parties: Collection[str]) -> None:
    """Refuse settings that make one party's row most of a total, where the guard hides rows.

    Raises
    ------
    ProtectionRequired (HR-606)
    """
    if not require.hidden_rows or outbox.question.verb != "sum":
        return
    question, release, known = outbox.question, outbox.release, frozenset(parties)
    for name, given in settings_by_party(question.settings, known):
        budgets = [part for part in given.values() if hasattr(part, "epsilon")]
        if budgets and not (
            all(part == budgets[0] for part in budgets) and len(budgets) == len(given) and known <= given.keys()
        ):
            raise ProtectionRequired(
                f"{name} of {question.name} differ from party to party: those who have spent theirs add nothing, so that a "
                "total may be one station's row, and guard.require.hidden_rows is set.",
                remedy="Give all parties the same budget, as one number for stop_at; or none.",
            )
    limited = release.clip is not None or release.plan is not None or release.hides_parties
    for name, numbers in numbers_by_party(question.settings, known):
        low, high = min(numbers.values()), max(numbers.values())
        exact = not any(map(math.isnan, numbers.values()))
        if exact and (low == high or (0 < high <= MOST_APART * low and limited)):
            continue
        why = f"{name} of {question.name} is {low:g} for one party and {high:g} for another"
        if exact and 0 < high <= MOST_APART * low:
            raise ProtectionRequired(
                f"{why}, and nothing limits what a party adds: one station's row may be nearly all of a total, and "
                "guard.require.hidden_rows is set.",
                remedy="Clip updates: [protection] clip = { norm = 'l2', radius = ... }; or give all parties the same number.",
            )
        raise ProtectionRequired(
            f"{why}: a total may be little else than one station's row, and guard.require.hidden_rows is set.",
            remedy=f"Give parties numbers that are at most {MOST_APART:g} times apart.",
        )


def told_by_party(outbox: Outbox, parties: Collection[str]) -> str:
    """Settings by party in words; "" where there are none."""
    known, said = frozenset(parties), []
    for name, numbers in numbers_by_party(outbox.question.settings, known):
        if len(set(numbers.values())) == 1:
            continue
        few = len(numbers) <= SHOWN
        each = [f"{id} {number:g}" for id, number in numbers.items()]
        ends = f"{min(numbers.values()):g} to {max(numbers.values()):g}"
        said.append(f"{name}: {', '.join(each) if few else ends}")
    return "; ".join(said)


def _number(value: Any) -> float | None:
    """A number by itself, or of a budget its epsilon."""
    value = getattr(value, "epsilon", value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
