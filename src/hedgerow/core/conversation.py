"""Conversations: protocols of several steps, as generators that take messages and give messages and never open a socket.

    server         yields a `Step`, is sent the answers that came in time, and returns its result at the end
    correspondent  a party's side: one call for each step, bytes in and bytes out

A missing answer is a dropout; the server does not wait for it. An engine carries steps as it carries questions
(`Engine.exchange`), and a test can drive both sides from a dict and drop whom it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

from .arrays import Array, Layout
from .desk import Desk
from .party import Local, Party
from .randomness import Stream

Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """What the server says to parties in one step of a conversation.

    Attributes
    ----------
    name : str
        Of the step, the same for all parties.
    letters : mapping from party to bytes
        What each party is sent.
    contributes : bool
        Whether the answer carries the party's contribution to the question at hand.
    """

    name: str
    letters: Mapping[str, bytes]
    contributes: bool = False


@dataclass(frozen=True)
class Contribution:
    """What a party's local function returned, after clip and noise, for its correspondent to hide.

    Attributes
    ----------
    layout : Layout
        Keys and shapes.
    row : array of shape (layout.size,)
        Numbers, or whole steps of a mechanism's grid.
    encoding : Any
        How numbers become integers of a ring (`hedgerow.crypto.fixedpoint.RingEncoding`), by what the party itself was sent.
    context : bytes
        Digest of model, question and settings as the party received them; masks cancel only among parties that agree.
    least : int
        The smallest total of which it may become part: of fewer, shares of noise are not whole. Parties see to it themselves,
        for whoever takes the masks off has seen the total.
    steady : bool
        Whether noise of the parties covers no difference of such totals, and everybody is asked: then they are all over the
        same parties, which between organisations see to it themselves (`hedgerow.crypto.standing`).
    noise : bytes
        What aggregators add to the total, as the party was told; empty where they add nothing.
    """

    layout: Layout
    row: Array
    encoding: Any
    context: bytes = b""
    least: int = 0
    steady: bool = False
    noise: bytes = b""


@dataclass(frozen=True)
class AtParty:
    """What a party's side of a protocol between parties has at hand. It stays at the party.

    Attributes
    ----------
    party : Party
        Columns in the order of the question's view, and what the party keeps, which is committed with the question.
    desk : Desk
        What it keeps of such protocols.
    question : Question
    names : tuple of str
        The parties that take part, in order.
    stream : callable
        The party's own randomness for this question, by purpose.
    received : callable
        Makes `context`, the digest of the question as the party received it and of the session; not every protocol uses it.
    release : Release
        Bound and noise of what leaves all parties together.
    watch : callable, optional
        Looks at what the local function made, and may refuse it; a party's own rule (`Parties.watch`).
    """

    party: Party
    desk: Desk
    question: Any
    names: tuple[str, ...]
    stream: Callable[[str], Stream]
    received: Callable[[], bytes]
    release: Any
    watch: Callable[[Any], None] | None = None

    @cached_property
    def context(self) -> bytes:
        """Digest of the question as the party received it, 32 bytes."""
        return self.received()

    def made(self) -> Any:
        """What the question's local function makes of the party."""
        return self.seen(self.question.local(self.question.broadcast, self.party, self.stream("local")))

    def seen(self, made: Any) -> Any:
        """What a local function made, after the party's own rule has looked at it."""
        if self.watch is not None:
            self.watch(made)
        return made

    def then(self, local: Local) -> None:
        """Let a further local function see what came, and keep what it likes."""
        local(self.question.broadcast, self.party, self.stream("then"))


Conversation = Generator[Step, Mapping[str, bytes], Result]


class Correspondent(Protocol):
    """A party's side of a conversation; it keeps what it must remember between steps."""

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        """Answer one step, or refuse it by raising a HedgerowError, of which only the code leaves the party."""


class Correspondence(Protocol):
    """A protocol as an engine sees it: who answers for each party, and how a contribution is handed to it."""

    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, Correspondent]:
        """Make every party's side, in one process; between organisations each makes its own."""

    def contribution(self, outbox: Any, layout: Layout) -> Any:
        """Return the function that makes a row a `Contribution`."""


@dataclass
class Sessions:
    """What the server keeps of its conversations from question to question, by protocol."""

    open: dict[Any, Any] = field(default_factory=dict)
