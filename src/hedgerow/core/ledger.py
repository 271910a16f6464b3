"""The ledger: one entry for every question, written before any party is asked.

Entries are data; accountants interpret them. A ledger with a limit is a filter: it refuses the next question while nothing
has been asked yet. A durable record (`hedgerow.store.LedgerFile`) has each entry before the question leaves; one that
several runs share (`hedgerow.store.LedgerBase`) is read and charged in one transaction: they cannot spend a budget twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from hedgerow.errors import BudgetExhausted, BudgetInvalid, CheckpointMismatch, LedgerDamaged, MixedUnits

from .events import FREE, Charge, Event, Sampling, Unit


@dataclass(frozen=True)
class Entry:
    """One question: what was asked of whom, how large the answer is, and what its release costs.

    Attributes
    ----------
    round : int
        Number of the query.
    cohort : int
        Queries of one cohort compose inside one sampling event; 0 is everybody.
    parties : float
        How many were asked; for a Poisson cohort how many were expected, since who came is a secret.
    numbers : int or None
        Numbers in each contribution, where the schema tells before anybody is asked; `contribution` names their keys.
    bytes_up, bytes_down : float
        What a party sends and receives, with 32 bits to a number that is not compressed.
    run : str
        Which run of a shared record asked, since numbers of questions and cohorts are a run's own; "" is this one.
    """

    round: int
    cohort: int
    verb: str
    query: str
    parties: float
    numbers: int | None
    contribution: str
    bytes_up: float | None
    bytes_down: float
    bound: str
    clip: str
    compression: str
    mechanism: str
    aggregation: str
    unit: Unit | None
    event: Event
    sampling: Sampling
    randomness: str
    run: str = ""

    @property
    def protection(self) -> tuple[str, str]:
        """The bound that held, and the noise."""
        return (self.bound if self.clip == "none" else self.clip), self.mechanism

    def to_json(self) -> dict[str, Any]:
        told = vars(self) | {"event": self.event.to_json(), "sampling": self.sampling.to_json()}
        return {name: value for name, value in told.items() if name != "run" or value}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Entry:
        return cls(**found | {"event": Event(**found["event"]), "sampling": Sampling(**found["sampling"])})


class Limit(Protocol):
    """A budget: says whether everything charged so far, and the next question, may be spent."""

    @property
    def unit(self) -> Unit: ...

    def admits(self, charges: Iterable[Charge]) -> bool: ...


class Record(Protocol):
    """A durable copy of a ledger, such as `hedgerow.store.LedgerFile`."""

    @property
    def head(self) -> str:
        """Hash of the last entry, by which a copy can be compared."""

    def read(self) -> list[Entry]:
        """Return this run's entries so far, checked."""

    def transaction(self) -> AbstractContextManager[list[Entry]]:
        """Keep other writers out meanwhile; gives what other runs wrote and no transaction gave before."""

    def write(self, entry: Entry) -> None:
        """Append an entry, within a transaction; return when it cannot be lost."""


class Ledger:
    """An append-only list of entries, optionally limited, optionally with a durable record.

    Parameters
    ----------
    limit : Limit, optional
        Refuses the next question when it would exceed the budget.
    record : Record, optional
        See `attach`.

    Attributes
    ----------
    entries : list of Entry
        What was asked by this run.
    others : list of Entry
        What other runs wrote to a shared record: charged like this run's own.
    """

    def __init__(self, limit: Limit | None = None, record: Record | None = None) -> None:
        self.limit, self.record = limit, record
        self.entries: list[Entry] = []
        self.others: list[Entry] = []
        self._read = 0
        self._numbers = (0, 0, 0)
        self._expected: list[Entry] = []
        if record is not None:
            self.attach(record)

    def attach(self, record: Record) -> None:
        """Keep this ledger, still empty, in a durable record from now on; what the record holds is continued."""
        if self.entries:
            remedy = "Attach it before the first question."
            raise BudgetInvalid(f"a record comes too late: the ledger holds {len(self.entries)} questions.", remedy=remedy)
        self.record, self.entries = record, record.read()
        self._read = len(self.entries)
        self.catch_up()

    def catch_up(self) -> None:
        """Take in what other runs wrote to a shared record; `debit` does so by itself."""
        if self.record is not None:
            with self.record.transaction() as newer:
                self.others += newer

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def numbers(self) -> tuple[int, int]:
        """Largest numbers of a question and of a cohort so far, zero at first."""
        n, *largest = self._numbers if self._numbers[0] <= len(self.entries) else (0, 0, 0)
        for entry in self.entries[n:]:
            largest = [max(largest[0], entry.round), max(largest[1], entry.cohort)]
        self._numbers = (len(self.entries), largest[0], largest[1])
        return largest[0], largest[1]

    def payment(self, mechanism: str) -> Entry | None:
        """The question with which the one that is prepaid now was paid for."""
        return next((e for e in reversed(self.entries) if e.mechanism == mechanism and e.event.kind not in FREE), None)

    def uses(self, mechanism: str, *, since_start: bool) -> int:
        """How many questions a mechanism has answered; in this process only, where its noise dies with it."""
        return sum(entry.mechanism == mechanism for entry in self.entries[self._read if since_start else 0 :])

    def debit(self, entry: Entry) -> None:
        """Write an entry, or refuse it while nothing has been asked.

        Raises
        ------
        BudgetExhausted (HR-213)
            The entry would exceed the limit. Nothing was written and nobody was asked.
        """
        if self._expected:
            return self._repeat(entry)
        if self.record is None:
            self._admit(entry)
        else:
            with self.record.transaction() as newer:  # nobody else writes between what was read and what is written
                self.others += newer
                self._admit(entry)
                self.record.write(entry)
        self.entries.append(entry)
        return None

    def charges(self, unit: Unit, also: Entry | None = None) -> list[Charge]:
        """Group the events of all runs by run and cohort, for an accountant; refuse to mix units.

        An event at a party is never amplified by sampling: the server sees who answered.
        """
        cohorts: dict[tuple[str, bool, int, Sampling], list[Event]] = {}
        released = [*self.others, *self.entries, *self._expected]  # what a resumed run expects was released before
        for entry in [*released, *([also] if also else [])]:
            if entry.event.kind in FREE:
                continue
            if entry.event.kind != "nonprivate" and entry.unit != unit:
                raise MixedUnits(
                    f"round {entry.round} ({entry.query}) is bounded per {entry.unit}; the guarantee was asked per {unit}.",
                    remedy="Ask for the unit that the queries are bounded by, and keep to one unit in one ledger.",
                )
            alone = unit == "record" and entry.sampling.kind in ("fixed", "given")  # a record pushes no party out of a cohort
            sampling = Sampling() if alone else entry.sampling
            key = (entry.run, entry.cohort != 0, entry.cohort or entry.round, sampling)
            cohorts.setdefault(key, []).append(entry.event)
        return [(sampling, tuple(events)) for (*_, sampling), events in cohorts.items()]

    def rewind(self, length: int, *, replay: bool) -> None:
        """Return to an earlier length, for a resumed run.

        Parameters
        ----------
        replay : bool
            With seeded randomness the questions after that point will be asked again in the same way and release the
            same values: they are expected, not written twice. Otherwise they stay, since asking again releases anew.
        """
        if length > len(self.entries):
            raise LedgerDamaged(f"the ledger has {len(self.entries)} entries, the checkpoint knows {length}: some were lost.")
        if replay:
            self._expected = self.entries[length:]
            del self.entries[length:]

    def _repeat(self, entry: Entry) -> None:
        expected = self._expected.pop(0)
        if entry != expected:
            self._expected.insert(0, expected)
            raise CheckpointMismatch(
                f"the resumed run asks {entry.query} in round {entry.round}, not what the ledger has next: {expected.query}.",
                remedy="Resume with the same study, data and version.",
            )
        self.entries.append(entry)

    def _admit(self, entry: Entry) -> None:
        if self.limit is None or entry.event.kind in FREE:
            return
        if not self.limit.admits(self.charges(self.limit.unit, also=entry)):
            raise BudgetExhausted(
                f"round {entry.round} ({entry.query}, {entry.event}) would exceed the budget of {self.limit}.",
                remedy="What was released stands. For more, raise the noise or the budget, or lower the sampling rate.",
            )


@dataclass
class Clock:
    """Counts questions and cohorts, so that random streams and cohorts have numbers, and answers that never came.

    `aside` counts the cohorts drawn aside since the ledger had so many entries.
    """

    queries: int = 0
    cohorts: int = 0
    missing: int = 0
    aside: tuple[int, int] = (0, 0)
    counted: dict[str, int] = field(default_factory=dict)
