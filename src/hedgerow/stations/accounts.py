"""What each party of a station has lost: charges by history, so that thousands of parties that were asked the same share one.

A history is a node of a tree: what was charged, in order. Parties begin at the root, and a question moves those that answer
it to a child. Whether a history has room for one more charge is decided once, also for histories that are different lists of
the same charges; so a question to thousands of parties with few different histories costs a few decisions.

The rules are those of `hedgerow.privacy.Guard`: noise counts as far as the party trusts, an answer without noise that counts
is declined under a finite budget, and what is said to be paid for is paid for by whoever has not paid. Nothing here is
durable: the station's journal has every charge, and accounts are made from it again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedgerow.core.events import Charge
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.errors import BudgetExhausted, HedgerowError, MixedUnits, ProtectionRequired
from hedgerow.privacy import Budget
from hedgerow.privacy.guard import Asked, Trust, payment

Array = np.ndarray


@dataclass
class _Node:
    """One history."""

    entries: tuple[Entry, ...] = ()
    paid: frozenset[Any] = frozenset()
    children: dict[tuple[Entry, Any], int] = field(default_factory=dict)


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
    trust : {"nobody", "parties", "server"}
        Whose noise counts.
    """

    def __init__(self, budgets: Sequence[Budget | None], policies: Array, trust: Trust) -> None:
        self.budgets, self.policies, self.trust = tuple(budgets), np.asarray(policies), trust
        self._nodes = [_Node()]
        self._at = np.zeros(len(self.policies), np.int64)
        self._rooms: dict[tuple[int, Any], bool] = {}

    @property
    def unlimited(self) -> bool:
        """Whether no party has a budget here; then nothing is charged, and a budget counts from the day on which it is set."""
        return all(budget is None for budget in self.budgets)

    @property
    def n_histories(self) -> int:
        """How many different histories parties have."""
        return len(np.unique(self._at))

    def decide(self, which: Array, asked: Asked) -> Decision:
        """Say who of the parties at positions `which` may answer, and what it costs them."""
        admitted, codes = np.ones(len(which), bool), dict[int, HedgerowError]()
        entries: dict[tuple[Entry, Any], list[Array]] = {}
        pairs = self._at[which] * len(self.budgets) + self.policies[which]
        for pair in np.unique(pairs):
            positions = np.flatnonzero(pairs == pair)
            node, policy = divmod(int(pair), len(self.budgets))
            try:
                taken = self._take(self._nodes[node], policy, asked)
                entries.setdefault(taken, []).append(positions)
            except HedgerowError as error:
                admitted[positions] = False
                codes |= dict.fromkeys(positions.tolist(), error)
        return Decision(admitted, codes, [(*key, np.concatenate(parts)) for key, parts in entries.items()])

    def add(self, which: Array, entry: Entry, payment: Any) -> None:
        """Charge an entry to the parties at positions `which`."""
        if entry.free:
            return
        for at in np.unique(self._at[which]):
            node = self._nodes[at]
            key = entry, payment
            if key not in node.children:
                paid = node.paid if payment is None else node.paid | {payment}
                node.children[key] = len(self._nodes)
                self._nodes.append(_Node((*node.entries, entry), paid))
            self._at[which[self._at[which] == at]] = node.children[key]

    def copy_of_richest(self) -> Account:
        """An account of one party, with the history of the one here that has spent least; to try charges on."""
        left = []
        for pair in np.unique(self._at * len(self.budgets) + self.policies).tolist():
            node, policy = divmod(pair, len(self.budgets))
            budget = self.budgets[policy]
            if budget is None:
                return Account((None,), np.zeros(1, np.int64), self.trust)
            left.append((budget.epsilon - budget.spent(self._charges(self._nodes[node], budget.unit)), node, policy))
        _, node, policy = max(left)
        alone = Account((self.budgets[policy],), np.zeros(1, np.int64), self.trust)
        alone._nodes = [_Node(self._nodes[node].entries, self._nodes[node].paid)]
        return alone

    def spent(self) -> list[tuple[Budget, float, int]]:
        """Budget, epsilon spent, and number of parties, for each history under each budget; most spent first."""
        pairs, times = np.unique(self._at * len(self.budgets) + self.policies, return_counts=True)
        found = []
        for pair, n in zip(pairs.tolist(), times.tolist(), strict=True):
            node, policy = divmod(pair, len(self.budgets))
            budget = self.budgets[policy]
            if budget is not None:
                found.append((budget, budget.spent(self._charges(self._nodes[node], budget.unit)), n))
        return sorted(found, key=lambda one: -one[1])

    def worst(self, which: Array) -> float | None:
        """The largest epsilon among some parties' histories; None where no budget names its delta."""
        pairs = np.unique(self._at[which] * len(self.budgets) + self.policies[which])
        found = []
        for pair in pairs[:16].tolist():  # for a journal's line: of very many histories the first speak for all
            node, policy = divmod(pair, len(self.budgets))
            budget = self.budgets[policy]
            if budget is not None:
                found.append(budget.spent(self._charges(self._nodes[node], budget.unit)))
        return max(found, default=None)

    def _take(self, node: _Node, policy: int, asked: Asked) -> tuple[Entry, Any]:
        """What a question would be charged to a history under a policy, or the reason for which it is declined."""
        entry, budget = asked.entry, self.budgets[policy]
        limited = budget is not None and math.isfinite(budget.epsilon)
        if entry.event.kind == "nonprivate" and limited:
            raise ProtectionRequired(
                f"{entry.query} would leave without noise that counts for a party that trusts {self.trust}, under a budget.",
                remedy="Add noise that the guard counts, or set guard.budget.trust.",
            )
        if entry.cites and not self._covers(node, asked):
            entry = replace(entry, cites=0)
        paid_for = None if entry.free else payment(asked.life, entry)
        if budget is not None and not entry.free and not self._room(node, policy, budget, entry):
            raise BudgetExhausted(
                f"{entry.query} ({entry.event}) would exceed the budget of {budget}.",
                remedy="What was released stands. Only the owner of the data can allow more.",
                asked=True,
            )
        return entry, paid_for

    def _covers(self, node: _Node, asked: Asked) -> bool:
        return any(payment(life, asked.entry) in node.paid for life in (asked.life, asked.entry.run))

    def _room(self, node: _Node, policy: int, budget: Budget, entry: Entry) -> bool:
        if entry.unit != budget.unit:
            raise MixedUnits(
                f"{entry.query} is bounded per {entry.unit}, and the budget is per {budget.unit}.",
                remedy=f"Ask with bounds per {budget.unit}.",
            )
        charges = self._charges(node, budget.unit, entry)
        key = policy, _counted(charges)
        if key not in self._rooms:
            self._rooms[key] = budget.admits(charges)
        return self._rooms[key]

    def _charges(self, node: _Node, unit: Any, also: Entry | None = None) -> list[Charge]:
        ledger = Ledger()
        ledger.entries = list(node.entries)
        return ledger.charges(unit, also)


def _counted(charges: Iterable[Charge]) -> frozenset[tuple[Charge, int]]:
    """Charges without their order."""
    return frozenset(Counter(charges).items())
