"""Engines carry questions to parties and answers back, one round of messages at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hedgerow.errors import ContributionInvalid, HedgerowError, PartyDeclined

from .arrays import Array, Layout
from .conversation import Correspondence, Step
from .question import Question
from .randomness import Stream, Streams
from .records import one_by_one
from .release import Release, public_stream


@dataclass(frozen=True)
class Outbox:
    """A question on its way: to whom, under which protection, and what parties need to answer it.

    Attributes
    ----------
    ids : sequence of str
        The parties that are asked.
    question : Question
    release : Release
        What contributions go through before they leave.
    streams : Streams
        All randomness.
    counted : mapping from party to int
        Number of the last question whose answer was counted, after which the party's state is committed.
    keep_rows : bool
        Whether the server wants every row, and not their sum alone.
    layout : Layout, optional
        Of the contributions, where it is known beforehand.
    asked : int
        Parties that the whole conversation is about; all that are asked by default.
    step, protocol : Step, Correspondence, optional
        One step of a conversation about the question, and the sides of parties in it.
    rows : bool
        Whether shapes of contributions follow the records, as where each record has a row. It is not sent: a host that guards
        records finds it by itself.
    unforeseen : bool
        Whether nothing is known of shapes; it is not sent either.
    distinct : int, optional
        Numbers of a contribution that are no copies of others, where they are fewer; it is not sent.
    worn : bool
        Whether noise that hides a party in one total hides it no longer, since there are too many of them; it is not sent.
    """

    ids: Sequence[str]
    question: Question
    release: Release = field(default_factory=Release)
    streams: Streams = field(default_factory=Streams)
    counted: Mapping[str, int] = field(default_factory=dict)
    keep_rows: bool = False
    layout: Layout | None = None
    asked: int = 0
    step: Step | None = None
    protocol: Correspondence | None = None
    rows: bool = False
    unforeseen: bool = False
    distinct: int | None = None
    worn: bool = False

    def __post_init__(self) -> None:
        if not self.asked:
            object.__setattr__(self, "asked", len(self.ids))

    @property
    def keeps_state(self) -> bool:
        """Whether a party that answers keeps something anew."""
        question, compression = self.question, self.release.compression
        return question.init is not None or question.verb == "each" or (compression is not None and compression.remembers)

    @property
    def by_itself(self) -> bool:
        """Whether each party is to be computed by itself (`Release.by_itself`).

        What `each` leaves at a party may go into a private sum later, so it is computed in the same way, and so is what a
        party is asked about one record at a time. A plan whose function is `elementwise` has the same bits in a stack.
        """
        exact = self.release.plan is not None and bool(getattr(self.question.function, "elementwise", False))
        alone = self.release.by_itself and not exact
        return alone or self.question.verb == "each" or one_by_one(self.question, self.release, self.layout)

    @property
    def stateless(self) -> bool:
        """Whether an answer neither depends on what a party keeps nor changes it."""
        return self.question.additive and not self.keeps_state

    def stream(self, party: str, purpose: str) -> Stream:
        """A party's, the engine's or the server's own randomness for this question."""
        return self.streams.stream(self.question.place, party, purpose)

    @property
    def public(self) -> Stream:
        """Randomness that all parties of this question share."""
        return public_stream(self.release.public_seed, self.question.place)


@dataclass
class Inbox:
    """What came back from one exchange; a party that is missing dropped out.

    Attributes
    ----------
    answered : tuple of str
        Parties whose answer came in time, in the order in which they were asked.
    layout : Layout, optional
        Keys and shapes of the contributions.
    total : array of shape (size,), optional
        Their sum.
    rows : array of shape (n_answered, size), optional
        The contributions themselves where the outbox keeps rows, or what the server saw of them where they were `masked`.
    letters, codes : mappings from party
        Of a step of a conversation: the parties' answers, and the codes with which some refused.
    sent : sequence of (party, step, letter)
        The letters of all steps, where views are recorded.
    withheld : bool
        Whether the broadcast was in none of them.
    result : Any
        What the server learned of a protocol between parties besides a total.
    overlong : tuple of str
        Parties whose row was longer than its bound, and counted as zeros.
    refused : int
        Rows that came and are not in the total, since they are not proved to be within their bound.
    proved : str
        What each row was proved to be, in words; empty where nothing was.
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
    result: Any = None
    overlong: tuple[str, ...] = ()
    refused: int = 0
    proved: str = ""


class Engine(Protocol):
    """Anything that carries one round of messages."""

    @property
    def parties(self) -> Sequence[str]:
        """Names of the parties that this engine reaches."""

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask every party in the outbox, and return what came back in time."""


def collect(outbox: Outbox, answers: Iterable[tuple[Layout, Array] | None], answered: tuple[str, ...]) -> Inbox:
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
            raise ContributionInvalid(f"{outbox.question.name}: parties contributed different keys or shapes.", remedy=remedy)
        total += one[1][0] if len(one[1]) == 1 else one[1].sum(0, dtype=total.dtype)
        rows += [one[1]] if outbox.keep_rows else []
    return Inbox(answered) if layout is None else Inbox(answered, layout, total, np.concatenate(rows) if rows else None)


def declined(party: str, error: Exception) -> PartyDeclined:
    """Turn a party's failure into what may cross the boundary: its name and a code."""
    code = error.code if isinstance(error, HedgerowError) else PartyDeclined.code
    remedy = "The reason is in that party's log; in a simulation it is the cause of this error."
    return PartyDeclined(f"{party} declined: {code}.", codes={party: code}, remedy=remedy)
