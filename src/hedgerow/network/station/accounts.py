"""What each party of a station has lost: charges by history, so that thousands of parties that were asked the same share one.

A history is everything that was charged, as counts (`accounting.Running`), and what was paid for. Parties begin with an empty
one. A question moves those that answer it on: together where all parties of a history answer, otherwise with a copy; and
parties whose histories become the same share one again, in whatever order they were charged. Whether a history has room for
one more charge is decided once, at a cost that does not depend on its length. Memory grows with the questions only by what a
history has to remember: cohorts that may be asked again, and payments.

The rules are those of `hedgerow.privacy.Guard`: noise counts as far as the party trusts, an answer without noise that counts
is declined under a finite budget, and what is said to be paid for is paid for by whoever has not paid. Nothing here is
durable: the station's journal has every charge, and accounts are made from it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedgerow.core.events import Debit
from hedgerow.core.ledger import Entry
from hedgerow.errors import BudgetExhausted, HedgerowError, MixedUnits, ProtectionRequired
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import Running
from hedgerow.privacy.guard import GuardedQuestion, Trust, payment

Array = np.ndarray


@dataclass
class _History:
    """What was charged to some parties.

    Attributes
    ----------
    firsts : dict from unit to Entry
        The first charge for each unit, by which a budget for another unit refuses.
    n_charges : int
    mark : int
        The same for histories that are the same, whatever the order of their charges.
    """

    cost: Running = field(default_factory=Running)
    paid: set[Any] = field(default_factory=set)
    firsts: dict[Any, Entry] = field(default_factory=dict)
    n_charges: int = 0
    mark: int = 0

    def copy(self) -> _History:
        return _History(self.cost.copy(), set(self.paid), dict(self.firsts), self.n_charges, self.mark)

    def add(self, entry: Entry, paid: Any) -> None:
        """Charge an entry."""
        debit = entry.debit(entry.unit or "record")
        if debit is None:
            return
        self.cost.add(debit)
        self.n_charges += 1
        if not entry.event.open:
            self.firsts.setdefault(entry.unit, entry)
        if paid is not None and paid not in self.paid:
            self.paid.add(paid)
            self.mark += hash(paid)

    @property
    def key(self) -> tuple[int, int, int]:
        """By which a history that is the same is looked for; `same` says whether it is."""
        return self.mark, self.cost.mark, self.n_charges

    def same(self, other: _History) -> bool:
        return self.paid == other.paid and self.firsts.keys() == other.firsts.keys() and self.cost.same(other.cost)

    def spent(self, budget: Budget) -> float:
        """Epsilon at the delta of a budget.

        Raises
        ------
        MixedUnits (HR-215)
            Something was charged for another unit than the budget's.
        """
        self.refuse_other_units(budget)
        return budget.used(self.cost)

    def refuse_other_units(self, budget: Budget) -> None:
        for entry in self.firsts.values():
            entry.debit(budget.unit)


@dataclass(frozen=True)
class Decision:
    """What a question costs whom: nothing is charged yet.

    Attributes
    ----------
    admitted : array of bool, shape (k,)
    codes : dict from position among those asked to error
        Of those that decline.
    entries : list of (Entry, payment, array of positions)
        What is charged to which of them; the payment is None where nothing is paid.
    """

    admitted: Array
    codes: dict[int, HedgerowError]
    entries: list[tuple[Entry, Any, Array]]


class Account:
    """Budgets of a station's parties over one span: everything ever, or one study.

    Parameters
    ----------
    budgets : sequence of Budget or None
        One for each policy; None sets no limit.
    policies : array of int, shape (n_parties,)
        Which of the budgets is a party's.
    trust : {"nobody", "parties", "aggregators", "server"}
        Whose noise counts.
    """

    def __init__(self, budgets: Sequence[Budget | None], policies: Array, trust: Trust) -> None:
        self.budgets, self.policies, self.trust = tuple(budgets), np.asarray(policies), trust
        self._at = np.zeros(len(self.policies), np.int64)
        self._histories = {0: _History()}
        self._alike: dict[tuple[int, int, int], list[int]] = {self._histories[0].key: [0]}
        self._n_made = 1
        self._rooms: dict[tuple[Budget, Debit, int], list[tuple[Running, bool]]] = {}  # decided of the question at hand

    @property
    def unlimited(self) -> bool:
        """Whether no party has a budget here; then nothing is charged, and a budget counts from the day on which it is set."""
        return all(budget is None for budget in self.budgets)

    @property
    def n_histories(self) -> int:
        """How many different histories parties have, apart from the order of charges."""
        return len(np.unique(self._at))

    def decide(self, which: Array, asked: GuardedQuestion, names: Sequence[str] = ()) -> Decision:
        """Say who of the parties at positions `which`, of these names, may answer, and what their own noise costs them.

        Without names it costs each of them what it costs where it costs most.
        """
        admitted, codes = np.ones(len(which), bool), dict[int, HedgerowError]()
        entries: dict[tuple[Entry, Any], list[Array]] = {}
        self._rooms.clear()
        pairs = self._at[which] * len(self.budgets) + self.policies[which]
        alike = asked.apart(names) if asked.own and names else [(asked, slice(None))]
        everyone = np.arange(len(which))
        for own, (here, pair) in ((own, group) for own, part in alike for group in _by_value(everyone[part], pairs[part])):
            node, policy = divmod(pair, len(self.budgets))
            try:
                taken = self._take(self._histories[node], policy, own)
                entries.setdefault(taken, []).append(here)
            except HedgerowError as error:
                admitted[here] = False
                codes |= dict.fromkeys(here.tolist(), error)
        return Decision(admitted, codes, [(*key, np.concatenate(parts)) for key, parts in entries.items()])

    def add(self, which: Array, entry: Entry, payment: Any) -> None:
        """Charge an entry to the parties at positions `which`."""
        if entry.free:
            return
        at = self._at[which]
        places, sizes = np.unique(self._at, return_counts=True)
        n_here = dict(zip(places.tolist(), sizes.tolist(), strict=True))
        moved = [(int(place), which[at == place]) for place in np.unique(at)]
        histories = [self._taken(place, all_of_it=len(whom) == n_here[place]) for place, whom in moved]
        for history, (_, whom) in zip(histories, moved, strict=True):  # all are taken out before one is put back
            history.add(entry, payment)
            self._at[whom] = self._place_of(history)

    def copy_of_richest(self) -> Account:
        """An account of one party, with the history of the one here that has spent least; to try charges on."""
        left = []
        for history, budget, _ in self._pairs(np.arange(len(self._at))):
            if budget is None:
                return Account((None,), np.zeros(1, np.int64), self.trust)
            left.append((budget.epsilon - history.spent(budget), history, budget))
        _, history, budget = max(left, key=lambda one: one[0])
        alone = Account((budget,), np.zeros(1, np.int64), self.trust)
        alone._histories = {0: history.copy()}
        alone._alike = {history.key: [0]}
        return alone

    def spent(self) -> list[tuple[Budget, float, int]]:
        """Budget, epsilon spent, and number of parties, for each history under each budget; most spent first."""
        pairs = self._pairs(np.arange(len(self._at)))
        found = [(budget, history.spent(budget), n) for history, budget, n in pairs if budget is not None]
        return sorted(found, key=lambda one: -one[1])

    def worst(self, which: Array) -> float | None:
        """The largest epsilon among some parties' histories; None where no budget names its delta."""
        pairs = self._pairs(which)[:16]  # for a journal's line: of very many histories the first speak for all
        return max((history.spent(budget) for history, budget, _ in pairs if budget is not None), default=None)

    def _pairs(self, which: Array) -> list[tuple[_History, Budget | None, int]]:
        """The histories of some parties under their budgets, each with the number of its parties."""
        pairs, times = np.unique(self._at[which] * len(self.budgets) + self.policies[which], return_counts=True)
        found = [(*divmod(pair, len(self.budgets)), n) for pair, n in zip(pairs.tolist(), times.tolist(), strict=True)]
        return [(self._histories[place], self.budgets[policy], n) for place, policy, n in found]

    def _taken(self, place: int, *, all_of_it: bool) -> _History:
        """A history that may be changed: itself, taken out, where all of its parties leave, else a copy."""
        history = self._histories[place]
        if not all_of_it:
            return history.copy()
        del self._histories[place]
        places = self._alike[history.key]
        places.remove(place)
        if not places:
            del self._alike[history.key]
        return history

    def _place_of(self, history: _History) -> int:
        """Where a history is, or is put now."""
        places = self._alike.setdefault(history.key, [])
        for place in places:
            if history.same(self._histories[place]):
                return place
        place, self._n_made = self._n_made, self._n_made + 1
        places.append(place)
        self._histories[place] = history
        return place

    def _take(self, history: _History, policy: int, asked: GuardedQuestion) -> tuple[Entry, Any]:
        """What a question would be charged to a history under a policy, or the reason for which it is declined."""
        entry, budget = asked.entry, self.budgets[policy]
        limited = budget is not None and math.isfinite(budget.epsilon)
        if entry.event.open and limited:
            raise ProtectionRequired(
                f"{entry.query} would leave without noise that counts for a party that trusts {self.trust}, under a budget.",
                remedy="Add noise that the guard counts, or set guard.budget.trust.",
            )
        if entry.cites and not self._covers(history, asked):
            entry = replace(entry, cites=0)
        if entry.free:
            return entry, None
        if not self._room(history, budget, entry):
            raise BudgetExhausted(
                f"{entry.query} ({entry.event}) would exceed the budget of {budget}.",
                remedy="What was released stands. Only the owner of the data can allow more.",
                asked=True,
            )
        return entry, payment(asked.life, entry)

    def _covers(self, history: _History, asked: GuardedQuestion) -> bool:
        return any(payment(life, asked.entry) in history.paid for life in (asked.life, asked.entry.run))

    def _room(self, history: _History, budget: Budget | None, entry: Entry) -> bool:
        if budget is None:  # what no accountant could price is declined also here, and not when it is added
            debit = entry.debit(entry.unit or "record")
            return debit is None or history.cost.would(debit, math.inf, 0.5)
        if entry.unit != budget.unit:
            raise MixedUnits(
                f"{entry.query} is bounded per {entry.unit}, and the budget is per {budget.unit}.",
                remedy=f"Ask with bounds per {budget.unit}.",
            )
        history.refuse_other_units(budget)
        debit = entry.debit(budget.unit)
        if debit is None:
            return True
        decided = self._rooms.setdefault((budget, debit, history.cost.mark), [])
        for cost, room in decided:  # histories may differ in payments alone
            if cost.same(history.cost):
                return room
        decided.append((history.cost, budget.allows(history.cost, debit)))
        return decided[-1][1]


def _by_value(positions: Array, values: Array) -> Iterator[tuple[Array, int]]:
    """The positions at which each value stands."""
    for value in np.unique(values):
        yield positions[values == value], int(value)
