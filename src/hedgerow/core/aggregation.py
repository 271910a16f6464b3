"""Aggregations: how the total of a cohort's rows is formed. `Plain` adds up what it sees; `hedgerow.crypto` hides rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conversation import Sessions
    from .engine import Engine, Inbox, Outbox
    from .events import Event


class Aggregation(ABC):
    """How the total of the cohort's rows is formed.

    Attributes
    ----------
    name : str
    hides_rows : bool
        Whether the server learns nothing but the total.
    hides_model : bool
        Whether parties compute without seeing the broadcast.
    shows : str
        What the server sees, in words.
    of_peers : bool
        Whether it is a protocol between parties, by which questions of all verbs go.
    aggregators : int
        How many add up shares of rows, none of whom sees a row or the total; each may add noise of its own. 0 without them.
    verified : bool
        Whether every row is proved to be within its bound, and left out where it is not.
    charge : Event, optional
        What a question costs for each record, where that follows from what parties do and from no channel.
    least : int
        The smallest cohort of which a total is formed; empty ones do not reach it.
    largest : float, optional
        Range of every number of a contribution that declares no bound, for aggregations that need one.
    records : float, optional
        Largest sum of record weights at one party, for aggregations that need one.
    """

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def shows(self) -> str: ...

    @property
    def hides_rows(self) -> bool:
        return False

    @property
    def hides_model(self) -> bool:
        return False

    @property
    def of_peers(self) -> bool:
        return False

    @property
    def aggregators(self) -> int:
        return 0

    @property
    def verified(self) -> bool:
        return False

    def admit(self, noise_at: str | None) -> None:
        """Refuse noise, by who adds it, with which the aggregation cannot do what it is for."""
        return

    @property
    def charge(self) -> Event | None:
        return None

    @property
    def least(self) -> int:
        return 0

    @property
    def largest(self) -> float | None:
        return None

    @property
    def records(self) -> float | None:
        return None

    def together(self, parties: int) -> int:
        """How many of so many parties are in the smallest total that the server sees."""
        return parties

    def carrying(self, outbox: Outbox) -> Aggregation:
        """The aggregation by which a question goes: this one, or a part of it that is enough."""
        return self

    def foreseen(self, outbox: Outbox) -> Outbox:
        """What is known of answers beforehand, where the aggregation decides their shapes."""
        return outbox

    @abstractmethod
    def fit(self, outbox: Outbox) -> None:
        """Refuse, before anybody is asked, so few parties that a total shows their rows, or a total that does not fit."""

    @abstractmethod
    def ask(self, engine: Engine, outbox: Outbox, sessions: Sessions) -> Inbox:
        """Put a sum to the parties of an outbox through an engine, and return its inbox; `sessions` is the server's memory."""

    @abstractmethod
    def bytes(self, numbers: float, parties: int) -> float:
        """What each party sends for one question beside, or in place of, four bytes to a number."""

    @abstractmethod
    def bytes_down(self, numbers: float) -> float:
        """What each party is sent of a broadcast of so many numbers."""

    def rehearsed(self) -> Aggregation:
        """The same without its protocol, for made-up records."""
        return self


@dataclass(frozen=True)
class Plain(Aggregation):
    """The server receives every row and adds them up."""

    name: str = "plain"
    shows: str = "the server sees every contribution"

    def fit(self, outbox: Outbox) -> None:
        """Rows are seen, however few."""

    def ask(self, engine: Engine, outbox: Outbox, sessions: Any = None) -> Inbox:
        """One exchange."""
        return engine.exchange(outbox)

    def bytes(self, numbers: float, parties: int) -> float:
        """Nothing beside the contribution."""
        return 0.0

    def bytes_down(self, numbers: float) -> float:
        """The broadcast as it is."""
        return 4.0 * numbers
