"""Who adds up the shares of a study: aggregators of their own organisations, asked before stations are.

hello    who is there, with which key for shares, and of how few parties it gives a total
board    the study as stations are told it; every aggregator approves it, or it does not run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hedgerow.crypto.schemes import aggregators_needed
from hedgerow.errors import MessageRefused
from hedgerow.study import Study
from hedgerow.wire.envelope import Letter
from hedgerow.wire.refusal import code_in

from .hellos import mapping_in
from .journal import refusal
from .states import Kept

Known = Mapping[str, tuple[bytes, int]]
"""Key for shares and least set of each aggregator, in the order of a study."""


class Greets(Protocol):
    """What carries letters to aggregators and brings back those that came."""

    def alive(self) -> frozenset[str]: ...

    def ask(self, kind: str, parts: Mapping[str, Sequence[bytes]]) -> dict[str, Letter]: ...


@dataclass(frozen=True)
class MetAggregators:
    """What became of greeting the aggregators of a study: who is known, who is away, and why it cannot be."""

    known: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    away: tuple[str, ...] = ()
    wrong: str = ""


def needed_by(study: Study) -> int:
    """Among how many aggregators a study splits rows; 0 where it needs none."""
    return aggregators_needed(study.protection.slots()["aggregation"])


def too_few(study: Study, named: Sequence[str]) -> str:
    """Why a coordinator has no aggregators for a study, as a sentence; "" where it has."""
    if (n := needed_by(study)) <= len(named):
        return ""
    have = f"{len(named)} are named here: {', '.join(named)}" if named else "none is named here"
    return f"the study splits rows among {n} aggregators, and {have}"


def meet_aggregators(study: Study, named: Sequence[str], enrolled: Mapping[str, object], asks: Greets) -> MetAggregators:
    """Greet the aggregators of a study.

    Parameters
    ----------
    named : sequence of str
        All that the coordinator's configuration names.
    enrolled : mapping
        By name, whom the coordinator trusts.
    """
    if problem := too_few(study, named):
        return MetAggregators(wrong=f"{problem}; see aggregators of coordinator.toml")
    chosen = tuple(named[: needed_by(study)])
    if strange := [name for name in chosen if name not in enrolled]:
        return MetAggregators(wrong=f"{', '.join(strange)}, named to add up, not on the roster; hedgerow keys enrol")
    alive = asks.alive()
    letters = asks.ask("hello", {name: [] for name in chosen if name in alive}) if chosen else {}
    found: dict[str, tuple[bytes, int]] = {}
    for name in (name for name in chosen if name in letters):
        try:
            if letters[name].kind == "refused":
                return MetAggregators(wrong=refusal(name, code_in(letters[name])))
            found[name] = read_aggregator(letters[name])
        except MessageRefused:
            return MetAggregators(wrong=f"{name}, named to add up, is no aggregator")
    return MetAggregators(found, tuple(name for name in chosen if name not in found))


def read_aggregator(letter: Letter) -> tuple[bytes, int]:
    """What an aggregator says of itself: its key for shares and its least set; MessageRefused (HR-242) otherwise."""
    said = mapping_in(letter, "hello")
    key, least = said.get("adds up by"), said.get("least")
    if not isinstance(key, bytes) or len(key) != 32 or type(least) is not int or not 0 < least < 1 << 22:
        raise MessageRefused(f"{letter.sender} answered a hello as no aggregator does.")
    return key, least


def adding_up(kept: Kept) -> tuple[str, ...]:
    """The aggregators that approved a study: whoever approved it and brings no party."""
    return tuple(one.station for one in kept.boarded if one.status == "approved" and not one.parties)
