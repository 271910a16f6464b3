"""Events: what a release cost, as data. Accountants interpret them; the vocabulary follows `dp_accounting`.

An event never changes its meaning, and an accountant refuses an event that it does not know.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from hedgerow.errors import BudgetInvalid

Unit = Literal["record", "party"]
Kind = Literal["none", "gaussian", "laplace", "skellam", "pure", "exponential", "approximate", "nonprivate", "rows"]


@dataclass(frozen=True)
class Event:
    """The privacy cost of one release, before the sampling of its cohort.

    Parameters
    ----------
    kind : str
        `none` releases nothing; `nonprivate` has no finite epsilon, and neither have `rows`, whose very shape follows the
        records, as where each of them has a row; `pure` is epsilon-private, `exponential` has an epsilon-bounded range,
        `approximate` is (epsilon, delta)-private; the others are laws of noise.
    noise_multiplier : float
        Gaussian, Skellam: standard deviation over the l2 distance of neighbours. Laplace: scale over their l1 distance.
    epsilon, delta : float
        Of `pure`, `exponential` and `approximate`.
    steps : float
        Skellam: standard deviation in steps of the integer grid.
    rate : float
        Inside the release each unit took part by itself with this probability, in each use of the mechanism.
    count : int
        Uses of the mechanism inside one release, such as the local steps of a party that trains with noise.
    """

    kind: Kind
    noise_multiplier: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    steps: float = 0.0
    rate: float = 1.0
    count: int = 1

    @property
    def open(self) -> bool:
        """Whether it protects nothing, whatever the unit."""
        return self.kind in ("nonprivate", "rows")

    def to_json(self) -> dict[str, Any]:
        """The kind, and whatever differs from its default."""
        return {"kind": self.kind} | {f.name: v for f in fields(self)[1:] if (v := getattr(self, f.name)) != f.default}

    def __str__(self) -> str:
        told = [f"{value:.4g}" for value in (self.noise_multiplier, self.epsilon, self.delta) if value]
        inside = f" at rate {self.rate:g}" * (self.rate < 1) + f" x {self.count}" * (self.count > 1)
        return self.kind + (f"({', '.join(told)})" if told else "") + inside


@dataclass(frozen=True)
class Sampling:
    """How a cohort was drawn, which decides what its releases cost.

    Parameters
    ----------
    kind : {"all", "poisson", "records", "fixed", "given", "part", "dealt"}
        Everybody; each party by itself with probability `rate`; each record of every party by itself with probability
        `rate`; exactly `size` parties without replacement; `size` parties by a public schedule, at which neighbours differ
        in what one party contributes; a group of a partition, to which a party belongs by its name alone; one of groups of
        equal size, to which parties are dealt by their names together, neighbours as of a public schedule.
        What of it a charge may count on depends on the unit: `as_charged`.
    rate : float
        Probability that a given party, or record, is in the cohort.
    size : int
        Parties in the cohort (`fixed`, `given`, `part` and `dealt` only).
    """

    kind: Literal["all", "poisson", "records", "fixed", "given", "part", "dealt"] = "all"
    rate: float = 1.0
    size: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "rate": self.rate} | ({"size": self.size} if self.size else {})

    def __str__(self) -> str:
        return {
            "all": "all parties",
            "poisson": f"Poisson rate {self.rate:g}",
            "records": f"Poisson rate {self.rate:g} of records",
            "fixed": f"{self.size} parties",
            "given": f"{self.size} by schedule",
            "part": f"{self.size} of a partition",
            "dealt": f"{self.size} of a partition, dealt",
        }[self.kind]

    def as_charged(self, unit: Unit) -> Sampling:
        """Return the law by which a release costs what it costs, for neighbours of this unit.

        Which parties there are is public, and the same in both of two neighbouring worlds.

        record  One party has one record more. That changes neither which parties there are, since one without records stays
                and answers, nor who is drawn. So a drawn cohort is the same in both worlds, and its total moves by one bound.
                A sample of parties amplifies nothing: of the party that has the record, the other records show whether it
                was drawn, and no bound per record hides them. A sample of records does, as each record joins by itself.
        party   All data of one party are there or not. A party that joins by itself, by `rate`, is then as good as not
                drawn, which amplifies. In a cohort of fixed size another one may stand in its place.
        """
        return self if unit == "party" or self.kind in ("all", "records", "part") else Sampling()


@dataclass(frozen=True)
class Part:
    """One part of a partition of the parties, made by their names and by nothing that they keep.

    Parameters
    ----------
    partition : int
        Number of the partition, as a run's cohorts are numbered: no number comes twice, also in a resumed run.
    index, n_parts : int
        Which part, from 0, of how many.

    Raises
    ------
    BudgetInvalid (HR-214)
        There is no such part.
    """

    partition: int
    index: int
    n_parts: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.n_parts:
            raise BudgetInvalid(
                f"a partition into {self.n_parts} parts has no part {self.index}.", remedy="Parts are numbered from 0."
            )

    def to_json(self) -> list[int]:
        return [self.partition, self.index, self.n_parts]


@dataclass(frozen=True)
class Parts:
    """What was released of parts of one partition: a unit is in one of them at most, so the dearest part counts.

    Attributes
    ----------
    events : tuple of tuple of Event
        For each part that was asked.
    """

    events: tuple[tuple[Event, ...], ...]

    def __str__(self) -> str:
        told = dict.fromkeys(", ".join(map(str, events)) for events in self.events)
        return f"one of {len(self.events)} parts ({' or '.join(told)})"


Charge = tuple[Sampling, tuple[Event | Parts, ...]]
"""One cohort and everything that was released from it: composes inside one sampling event."""


class Debit(NamedTuple):
    """One event of a ledger and the cohort that it was released from. Debits of a cohort compose inside one sampling event.

    `part` names a partition and which part of it was asked, where it was not the whole cohort.
    """

    cohort: Hashable
    sampling: Sampling
    event: Event
    part: tuple[Hashable, int] | None = None


def charges_of(debits: Iterable[Debit]) -> list[Charge]:
    """Group debits by cohort, and those of parts by partition, each in the order in which they came."""
    samplings: dict[Hashable, Sampling] = {}
    whole: dict[Hashable, list[Event]] = {}
    parts: dict[Hashable, dict[Hashable, dict[int, list[Event]]]] = {}
    for debit in debits:
        samplings.setdefault(debit.cohort, debit.sampling)
        events = whole.setdefault(debit.cohort, [])
        if debit.part is not None:
            partition, index = debit.part
            events = parts.setdefault(debit.cohort, {}).setdefault(partition, {}).setdefault(index, [])
        events.append(debit.event)
    return [
        (sampling, (*whole[cohort], *(Parts(tuple(map(tuple, of.values()))) for of in parts.get(cohort, {}).values())))
        for cohort, sampling in samplings.items()
    ]
