"""What a ledger counts of its entries, entry by entry, so that a question costs the same after ten thousand others.

The lists of entries stay the truth. A `Follower` notices when a list was replaced or cut, and its ledger then counts anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hedgerow.errors import BudgetExhausted

from .disclosure import ExactNumbers

if TYPE_CHECKING:
    from .events import Debit
    from .ledger import Entry
    from .limits import Limit, Spending


class Follower:
    """How far a growing list was read."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries, self.n = entries, 0
        self._last: Entry | None = None

    def fits(self, entries: list[Entry]) -> bool:
        """Whether this is the list that was read, and what was read is still in it."""
        if entries is not self.entries or len(entries) < self.n:
            return False
        return self.n == 0 or entries[self.n - 1] is self._last

    def unread(self) -> Iterator[Entry]:
        """Give what was not read; an entry counts as read when the next one is asked for, so not one that raised an error."""
        while self.n < len(self.entries):
            entry = self.entries[self.n]
            yield entry
            self.n, self._last = self.n + 1, entry


class Tally:
    """Counts of a run's own entries.

    Attributes
    ----------
    numbers : dict from branch to (int, int)
        Largest numbers of a question, and of a cohort or partition.
    uses, recent : Counter of str
        Questions by key: all, and those from entry `start` on.
    payments : dict from key to Entry
        The last question of each key that was charged itself.
    exact : ExactNumbers
        Numbers without noise.
    """

    def __init__(self, entries: list[Entry], start: int) -> None:
        self._followed, self._start = Follower(entries), start
        self.numbers: dict[str, tuple[int, int]] = {}
        self.uses, self.recent = Counter[str](), Counter[str]()
        self.payments: dict[str, Entry] = {}
        self.exact = ExactNumbers()

    def fits(self, entries: list[Entry], start: int) -> bool:
        return start == self._start and self._followed.fits(entries)

    def caught_up(self) -> Tally:
        """This tally, with all entries counted."""
        for entry in self._followed.unread():
            self.exact = self.exact.plus(ExactNumbers.of(entry))
            cohort = entry.cohort if entry.part is None else max(entry.cohort, entry.part.partition)
            self._count(entry.branch, entry.round, 0)
            self._count(entry.drawn, 0, cohort)
            if not entry.key:
                continue
            self.uses[entry.key] += 1
            if self._followed.n >= self._start:
                self.recent[entry.key] += 1
            if not entry.free:
                self.payments[entry.key] = entry
        return self

    def _count(self, branch: str, question: int, cohort: int) -> None:
        questions, cohorts = self.numbers.get(branch, (0, 0))
        self.numbers[branch] = max(questions, question), max(cohorts, cohort)


class Priced:
    """What the entries of all runs cost under a limit."""

    def __init__(self, limit: Limit, *lists: list[Entry]) -> None:
        self._limit, self._cost = limit, limit.running()
        self._followed = [Follower(entries) for entries in lists]

    def fits(self, limit: Limit, *lists: list[Entry]) -> bool:
        return limit is self._limit and all(map(Follower.fits, self._followed, lists))

    def caught_up(self) -> Spending:
        """The cost, with all entries charged."""
        for followed in self._followed:
            for entry in followed.unread():
                if (debit := entry.debit(self._limit.unit)) is not None:
                    self._cost.add(debit)
        return self._cost


class PartyCosts:
    """What the entries of all runs cost each party that has a limit, by its own noise.

    A party is charged for every question of the run, also where a drawn cohort left it out, or where it had stopped by a count
    of its own: neither is in a ledger. Only those whom an entry names as left out pay nothing.
    """

    def __init__(self, limits: Mapping[str, Limit], *lists: list[Entry]) -> None:
        self._limits, self.costs = limits, {name: limit.running() for name, limit in limits.items()}
        self._followed = [Follower(entries) for entries in lists]

    def fits(self, limits: Mapping[str, Limit], *lists: list[Entry]) -> bool:
        return limits is self._limits and all(map(Follower.fits, self._followed, lists))

    def caught_up(self) -> PartyCosts:
        """These costs, with all entries charged."""
        for followed in self._followed:
            for entry in followed.unread():
                for name, debit in [*self._debits(entry)]:
                    self.costs[name].add(debit)
        return self

    def refuse(self, entry: Entry) -> None:
        """Refuse a question for which a party has no room.

        Raises
        ------
        BudgetExhausted (HR-213)
        MixedUnits (HR-215)
        """
        own = dict(entry.by_party)
        for name, debit in self._debits(entry):
            if not self.costs[name].would(debit):
                raise BudgetExhausted(
                    f"round {entry.round} ({entry.query}, {own.get(name, entry.event)} at {name}) would exceed the budget of "
                    f"{name}, {self._limits[name]}.",
                    remedy=f"What was released stands. For more, {name} adds more noise, or agrees on a larger budget.",
                )

    def _debits(self, entry: Entry) -> Iterator[tuple[str, Debit]]:
        """What an entry is charged to each party that it costs something."""
        own = dict(entry.by_party)
        for name, limit in self._limits.items():
            if (debit := entry.debit(limit.unit, own.get(name))) is not None:
                yield name, debit
