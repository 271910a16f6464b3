"""Budgets of single parties: set on a run, compared with the whole plan before the first question, and told in a table.

    party l is charged    the sum over questions of the event of its own noise, which `Plan.event_of` names; where noise is the
                          channel's, at the parties or at the server, the event of the channel
    before question 1     the study is rehearsed on made-up records: a plan that exceeds the budget of a party is refused
    before each question  the ledger refuses it where it is too much for a party (`core.tally.PartyCosts`)

Everything is counted from the ledger, which has the events of parties whose noise differs, so that a resumed run counts what
it spent before. A party is charged for every question of its run, also for one that a drawn cohort leaves out and for those
after it stopped by a count of its own (`stop_at`), which no ledger sees; but not for questions that leave it out by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hedgerow.core.events import Charge
from hedgerow.core.ledger import Entry, Ledger, grouped
from hedgerow.errors import BudgetExhausted
from hedgerow.privacy import Budget

from .agreed import budgets_of
from .build import Built
from .planned import rounds_alike
from .quiet import quiet
from .rehearse import rehearse_built

Costs = dict[str, tuple[Budget, list[Charge]]]
"""Budget and charges, by party."""


def refuse_unaffordable(built: Built) -> Costs:
    """Refuse a study whose plan exceeds the budget of a party, by a rehearsal, so that nothing of it is asked; or price it.

    Raises
    ------
    BudgetExhausted (HR-213)
        The first party whose budget does not allow the whole plan, with what it would cost.
    MixedUnits (HR-215)
        Questions are bounded per party, and these budgets are per record.
    """
    found = planned_costs(built)
    for name, (budget, costs) in found.items():
        if not budget.admits(costs):
            remedy = f"Ask fewer questions, have {name} add more noise, or agree on a larger party_budgets.{name}."
            if built.settings.get("stop_at") is not None:
                remedy = (
                    f"A party is counted for all rounds, also for those after stop_at has it stop: leave party_budgets.{name} "
                    "out, since stop_at is its limit; or ask for fewer rounds."
                )
            before = charges_at(name, built.unspent.others)
            told = f", with the {budget.spent(before):.6g} that earlier runs under the same ledger spent" if before else ""
            raise BudgetExhausted(
                f"rehearsed on made-up records, the study costs {name} epsilon {budget.spent(costs):.6g}{told}, "
                f"and its budget is {budget}.",
                remedy=remedy,
            )
    return found


def planned_costs(built: Built) -> Costs:
    """What everything that a study would ask costs each party that has a budget, beside what other runs under it have spent."""
    limits = budgets_of(built.study.party_budgets)
    phases, others = planned(built) if limits else [], built.unspent.others
    found = {}
    for name, budget in limits.items():
        costs = charges_at(name, others)
        for times, first, both in phases:
            begun = len(charges_at(name, first))
            costs += charges_at(name, both)[begun:] * times
        found[name] = (budget, costs)
    return found


def planned(built: Built) -> list[tuple[int, list[Entry], list[Entry]]]:
    """What a study would ask: parts of a rehearsal, each as how often it comes, the questions before it, and those to its end.

    A program that asks alike in each of a known number of rounds is rehearsed for two of them.
    """
    rounds = rounds_alike(built.study)
    with quiet():
        found = rehearse_built(built, rounds=2 if rounds else None, ledger=Ledger())
    if rounds is None or len(found.after) < 2:
        return [(1, [], found.entries)]
    first = found.entries[: found.after[0]]
    return [(1, [], first), (rounds - 1, first, found.entries)]


def charges_at(party: str, entries: Iterable[Entry]) -> list[Charge]:
    """What questions cost one party, per record, by its own noise."""
    own = (replace(entry, event=event) if (event := dict(entry.by_party).get(party)) else entry for entry in entries)
    return grouped(own, "record")
