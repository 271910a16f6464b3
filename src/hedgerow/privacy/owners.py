"""Epsilon by owner and by individual, for owners of records that keep ledgers of their own.

An owner's ledger says what its records lose. What a person loses depends on where records about that person are:

    disjoint    each person has a record at one owner only: the worst owner's epsilon
    linked      owners know which records belong together: for each set of owners, everything that they released about
                one record, composed; and how many people have records at exactly those
    unknown     nothing is known: everybody may have a record at every owner, so everything is composed

Which of them was assumed is part of the statement. Composition adds epsilons up, or less than that, where accountants know
better. It needs noise of its own for each owner: of one noisy total, two records move twice as much as one, which is a
matter of distance and not of composition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hedgerow.core.events import Charge
from hedgerow.core.ledger import Ledger
from hedgerow.errors import BudgetInvalid

from .budget import Budget

Overlap = Literal["disjoint", "linked", "unknown"]


@dataclass(frozen=True)
class OwnerGroup:
    """Individuals with a record at exactly these owners, and what each of them lost."""

    owners: tuple[str, ...]
    individuals: int | None
    epsilon: float


@dataclass(frozen=True)
class Individuals:
    """What individuals lost.

    Attributes
    ----------
    epsilon : float
        Of the worst group.
    overlap : {"disjoint", "linked", "unknown"}
    groups : tuple of OwnerGroup
        The worst first.
    sentence : str
        With the assumption about common records.
    """

    epsilon: float
    overlap: Overlap
    groups: tuple[OwnerGroup, ...]
    sentence: str


def per_owner(ledgers: Mapping[str, Ledger], budget: Budget) -> dict[str, float]:
    """Return the epsilon of each owner's ledger, at the budget's delta and per its unit."""
    return {owner: _priced(budget, ledger.charges(budget.unit)) for owner, ledger in ledgers.items()}


def disjoint(ledgers: Mapping[str, Ledger], budget: Budget) -> Individuals:
    """Individuals whose records lie with one owner each, which nobody has checked."""
    groups = [OwnerGroup((owner,), None, epsilon) for owner, epsilon in per_owner(ledgers, budget).items()]
    return _together("disjoint", groups, "owners' records are assumed disjoint")


def unknown(ledgers: Mapping[str, Ledger], budget: Budget) -> Individuals:
    """Individuals who may have a record at every owner."""
    groups = [_composed(tuple(ledgers), ledgers, budget, None)]
    return _together("unknown", groups, f"any individual may have a record at each of {len(ledgers)} owners")


def linked(ledgers: Mapping[str, Ledger], budget: Budget, held: Mapping[str, Any], *, by: str) -> Individuals:
    """Individuals whose records are linked.

    Parameters
    ----------
    held : mapping from owner to array of shape (n_records,)
        Whose records an owner holds, by a name or number; one record of each individual at most.
    by : str
        The column, or the protocol, by which records are linked.
    """
    if held.keys() != ledgers.keys():
        raise BudgetInvalid(
            f"records are linked at {', '.join(held)}, ledgers are kept by {', '.join(ledgers)}.",
            remedy="Give both of each owner.",
        )
    names = {owner: np.asarray(values) for owner, values in held.items()}
    for owner, values in names.items():
        if len(np.unique(values)) != len(values):
            raise BudgetInvalid(
                f"{owner} holds several records of one individual, by {by!r}: what protects a record protects each alone.",
                remedy="Bound what an individual contributes, for example by one record each, or by their weights.",
            )
    owners = tuple(names)
    everyone, who = np.unique(np.concatenate([names[owner] for owner in owners]), return_inverse=True)
    has = np.zeros((len(everyone), len(owners)), bool)
    has[who, np.repeat(np.arange(len(owners)), [len(names[owner]) for owner in owners])] = True
    patterns, counts = np.unique(has, axis=0, return_counts=True)
    groups = [
        _composed(tuple(owner for owner, here in zip(owners, row, strict=True) if here), ledgers, budget, int(count))
        for row, count in zip(patterns, counts, strict=True)
    ]
    n_common = int(counts[patterns.sum(1) > 1].sum())
    said = f"records are linked by {by!r}: {n_common} of {len(everyone)} individuals have records at several owners"
    return _together("linked", groups, said)


def _composed(owners: tuple[str, ...], ledgers: Mapping[str, Ledger], budget: Budget, count: int | None) -> OwnerGroup:
    """Everything that some owners released, each with noise of its own."""
    charges: list[Charge] = []
    for owner in owners:
        ledger = ledgers[owner]
        if len(owners) > 1:
            _own_noise(owner, ledger)
        charges += ledger.charges(budget.unit)
    return OwnerGroup(owners, count, _priced(budget, charges))


def _priced(budget: Budget, charges: list[Charge]) -> float:
    if budget.filter is not None:
        raise BudgetInvalid(
            f"what individuals lost is priced as a plan that was fixed beforehand, not by the filter {budget.filter!r}",
            remedy="Price with a budget without one. Under a filter an owner's guarantee is the limit of its own budget.",
        )
    return budget.spent(charges)


def _own_noise(owner: str, ledger: Ledger) -> None:
    for entry in [*ledger.others, *ledger.entries]:
        if entry.event.kind not in ("none", "nonprivate", "rows") and not entry.mechanism.endswith("at the party"):
            raise BudgetInvalid(
                f"{owner}'s ledger has {entry.query} with {entry.mechanism}: one noise covers several owners, so that records "
                "at two of them move the release twice as far, and epsilons of the owners do not compose.",
                remedy="Add the noise at the party, or have owners make their records disjoint.",
            )


def _together(overlap: Overlap, groups: Sequence[OwnerGroup], assumption: str) -> Individuals:
    worst = sorted(groups, key=lambda group: (-group.epsilon, group.owners))
    epsilon = worst[0].epsilon if worst else 0.0
    at = f" ({', '.join(worst[0].owners[:4])}{', ...' * (len(worst[0].owners) > 4)})" if worst and epsilon else ""
    return Individuals(epsilon, overlap, tuple(worst), f"epsilon {epsilon:.4g} for an individual{at}, where {assumption}")
