"""Engines carry questions to parties and answers back, one round of messages at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from hedgerow.errors import ContributionInvalid, HedgerowError, PartyDeclined

from .arrays import Array, Layout
from .conversation import Correspondence, Step
from .query import Query


class Outbox(Mapping[str, Query]):
    """One query for every party of a cohort, as a mapping from party to query; or one step of a conversation about it."""

    def __init__(
        self,
        ids: Sequence[str],
        query: Query,
        step: Step | None = None,
        protocol: Correspondence | None = None,
        layout: Layout | None = None,
        asked: int | None = None,
    ) -> None:
        self.ids, self.query, self.step, self.protocol = ids, query, step, protocol
        self.layout = layout  # of the contributions, where it is known beforehand
        self.asked = len(ids) if asked is None else asked  # parties that the whole conversation is about

    def __getitem__(self, id: str) -> Query:
        if id not in self.ids:
            raise KeyError(id)
        return self.query

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Inbox:
    """What came back from one exchange; a party that is missing dropped out.

    `answered` are the parties whose answer came in time, in the order in which they were asked; `layout` the keys and
    shapes of the contributions; `total`, of shape (size,), their sum; `rows`, of shape (n_answered, size), the
    contributions themselves where the query asked to keep them, or what the server saw of them where they were `masked`.
    Of a step of a conversation there are `letters`, the parties' answers, and `codes`, with which some refused; `sent` has
    (party, step, letter) of all steps, where views are recorded, and `withheld` says that the broadcast was in none of them.
    """

    answered: tuple[str, ...]
    layout: Layout | None = None
    total: Array | None = None
    rows: Array | None = None
    masked: bool = False
    letters: Mapping[str, bytes] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    sent: Sequence[tuple[str, str, bytes]] = ()
    withheld: bool = False


class Engine(Protocol):
    """Anything that carries one round of messages."""

    @property
    def parties(self) -> Sequence[str]:
        """Names of the parties that this engine reaches."""

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask every party in the outbox, and return what came back in time."""


def collect(query: Query, answers: Iterable[tuple[Layout, Array] | None], answered: tuple[str, ...]) -> Inbox:
    """Add up answers as they come, in the order given; all must agree on their layout."""
    layout: Layout | None = None
    total, rows = np.zeros(0), []
    for one in answers:
        if one is None:
            continue
        if layout is None:
            layout, total = one[0], np.zeros(one[1].shape[-1], np.int64 if one[1].dtype.kind == "i" else np.float64)
        if one[0] != layout:
            remedy = "Declare levels and shapes in the schema, so that every party returns the same keys and shapes."
            raise ContributionInvalid(f"{query.name}: one party contributed {layout}, another {one[0]}.", remedy=remedy)
        total += one[1][0] if len(one[1]) == 1 else one[1].sum(0, dtype=total.dtype)
        rows += [one[1]] if query.keep_rows else []
    return Inbox(answered) if layout is None else Inbox(answered, layout, total, np.concatenate(rows) if rows else None)


def declined(party: str, error: Exception) -> PartyDeclined:
    """Turn a party's failure into what may cross the boundary: its name and a code."""
    code = error.code if isinstance(error, HedgerowError) else PartyDeclined.code
    remedy = "The reason is in that party's log; in a simulation it is the cause of this error."
    return PartyDeclined(f"{party} declined: {code}.", codes={party: code}, remedy=remedy)
