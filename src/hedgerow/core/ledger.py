"""The ledger: one entry for every question, written before any party is asked.

Entries are data; accountants interpret them. A ledger with a limit is a filter: it refuses the next question while nothing
has been asked yet. On disk it is one JSON line per entry, chained by hashes, and each line is on the disk before the
question leaves, so a crash can leave a debit without a release but never a release without a debit.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hedgerow.errors import BudgetExhausted, CannotWrite, CheckpointMismatch, LedgerDamaged, MixedUnits

from .events import Charge, Event, Sampling, Unit


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
    """

    round: int
    cohort: int
    verb: str
    query: str
    parties: float
    numbers: int | None
    contribution: str
    bound: str
    clip: str
    mechanism: str
    aggregation: str
    unit: Unit | None
    event: Event
    sampling: Sampling
    randomness: str

    @property
    def protection(self) -> tuple[str, str]:
        """The bound that held, and the noise."""
        return (self.bound if self.clip == "none" else self.clip), self.mechanism

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"event": self.event.to_json(), "sampling": self.sampling.to_json()}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Entry:
        return cls(**found | {"event": Event(**found["event"]), "sampling": Sampling(**found["sampling"])})


class Limit(Protocol):
    """A budget: says whether everything charged so far, and the next question, may be spent."""

    @property
    def unit(self) -> Unit: ...

    def admits(self, charges: Iterable[Charge]) -> bool: ...


class Ledger:
    """An append-only list of entries, optionally limited, optionally on disk.

    Parameters
    ----------
    limit : Limit, optional
        Refuses the next question when it would exceed the budget.
    path : Path, optional
        See `attach`.
    """

    def __init__(self, limit: Limit | None = None, path: Path | None = None) -> None:
        self.limit, self.path, self._last_hash = limit, path, ""
        self.entries: list[Entry] = []
        self._expected: list[Entry] = []
        if path is not None:
            self.attach(path)

    def attach(self, path: Path) -> None:
        """Keep this ledger, still empty, in a file from now on; an existing file is read, checked and continued."""
        self.path = path
        if path.exists():
            self.entries, self._last_hash = read(path)

    def __len__(self) -> int:
        return len(self.entries)

    def debit(self, entry: Entry) -> None:
        """Write an entry, or refuse it while nothing has been asked.

        Raises
        ------
        BudgetExhausted (HR-213)
            The entry would exceed the limit. Nothing was written and nobody was asked.
        """
        if self._expected:
            return self._repeat(entry)
        self._admit(entry)
        self._write(entry)
        self.entries.append(entry)
        return None

    def charges(self, unit: Unit, also: Entry | None = None) -> list[Charge]:
        """Group events by cohort, for an accountant; refuse to mix units.

        An event at a party is never amplified by sampling: the server sees who answered.
        """
        cohorts: dict[tuple[int, Sampling], list[Event]] = {}
        for entry in [*self.entries, *([also] if also else [])]:
            if entry.event.kind == "none":
                continue
            if entry.event.kind != "nonprivate" and entry.unit != unit:
                raise MixedUnits(
                    f"round {entry.round} ({entry.query}) is bounded per {entry.unit}; the guarantee was asked per {unit}.",
                    remedy="Ask for the unit that the queries are bounded by, and keep to one unit in one ledger.",
                )
            key = (entry.cohort or -entry.round, entry.sampling)
            cohorts.setdefault(key, []).append(entry.event)
        return [(sampling, tuple(events)) for (_, sampling), events in cohorts.items()]

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
        if self.limit is None or entry.event.kind == "none":
            return
        if not self.limit.admits(self.charges(self.limit.unit, also=entry)):
            raise BudgetExhausted(
                f"round {entry.round} ({entry.query}, {entry.event}) would exceed the budget of {self.limit}.",
                remedy="What was released stands. For more, raise the noise or the budget, or lower the sampling rate.",
            )

    def _write(self, entry: Entry) -> None:
        if self.path is None:
            return
        line = json.dumps({"previous": self._last_hash, **entry.to_json()})
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):
                os.truncate(self.path, size)
            remedy = "Make room or choose another folder, then resume."
            raise CannotWrite(f"{self.path}: {error.strerror}; nothing was asked.", remedy=remedy, asked=False) from error
        self._last_hash = _hash(line)


def read(path: Path) -> tuple[list[Entry], str]:
    """Read a ledger file, check its chain, and drop a last line that a crash cut short (its question was never asked)."""
    text = path.read_text(encoding="utf-8")
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        path.write_text(complete, encoding="utf-8")
    entries: list[Entry] = []
    previous = ""
    for number, line in enumerate(complete.splitlines(), 1):
        try:
            found = json.loads(line)
            if found.pop("previous") != previous:
                raise ValueError(f"it does not continue line {number - 1}; a line was changed, lost or added")
            entries.append(Entry.from_json(found))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            remedy = "Restore the file from a copy; a ledger is never edited."
            raise LedgerDamaged(f"line {number} of {path}: {error}.", remedy=remedy) from error
        previous = _hash(line)
    return entries, previous


def _hash(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:32]


@dataclass
class Clock:
    """Counts questions and cohorts, so that random streams and cohorts have numbers, and answers that never came."""

    queries: int = 0
    cohorts: int = 0
    missing: int = 0
    counted: dict[str, int] = field(default_factory=dict)
