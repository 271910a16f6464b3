"""Who answers in a simulation, and when: dropouts, latency, deadlines, and races for the first places.

Everything is drawn from the round's streams, so that every run and every engine repeats it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.engine import Outbox
from hedgerow.core.party import Parties
from hedgerow.errors import BudgetInvalid

from .correspondence import Leaving


def latency(outbox: Outbox, n: int, median: float = 1.0, spread: float = 0.5) -> np.ndarray:
    """Simulated seconds until each of n parties answers: lognormal with this median and log-standard-deviation."""
    normal = outbox.stream("engine", "latency").standard_normal(n)
    return np.asarray(median * np.exp(spread * normal))


def counted(outbox: Outbox, ids: Sequence[str], keep: np.ndarray) -> Sequence[str]:
    """The parties whose answers count: of those that answer, the first to come where the question wants only so many."""
    first = outbox.question.cohort.first
    if first is not None:
        seconds = np.where(keep, latency(outbox, len(ids)), np.inf)
        keep = keep & (seconds.argsort(kind="stable").argsort() < first)
    return ids if keep.all() else tuple(name for name, kept in zip(ids, keep, strict=True) if kept)


@dataclass
class Arrivals:
    """Whose answers arrive in time, as a simulation's settings say; see `InProcess` for what they mean."""

    dropout_rate: float = 0.0
    dropped: Collection[str] = ()
    returns: bool = True
    deadline: float | None = None
    latency: tuple[float, float] = (1.0, 0.5)
    leaving: Leaving = field(init=False)

    def __post_init__(self) -> None:
        self.leaving = Leaving(self.dropout_rate, self.returns, set(self.dropped))
        if not 0 <= self.dropout_rate < 1:
            raise BudgetInvalid(f"a dropout rate of {self.dropout_rate!r} is outside [0, 1).", remedy="For example 0.1.")
        if self.deadline is not None and self.deadline <= 0:
            raise BudgetInvalid(f"a deadline of {self.deadline!r} seconds leaves no time to answer.")

    def of_step(self, outbox: Outbox, held: Parties) -> Sequence[str]:
        """The parties that answer a step of a conversation; contributions alone take long enough to be late."""
        ids = self.leaving.present(outbox, held)
        if self.deadline is None or outbox.step is None or not outbox.step.contributes:
            return ids
        in_time = latency(outbox, len(held), *self.latency) <= self.deadline
        return [name for name in ids if in_time[held.position[name]]]

    def of_question(self, outbox: Outbox, ids: Sequence[str], held: Parties) -> Sequence[str]:
        """The parties whose answer arrives, drawn from the round's stream so that every run repeats."""
        keep = np.ones(len(ids), bool)
        if self.dropped:
            keep &= np.array([name not in self.dropped for name in ids])
        if self.dropout_rate and not self.returns:
            keep &= self.leaving.stays(outbox, ids, held)
        elif self.dropout_rate:
            keep &= outbox.streams.uniform(len(ids), outbox.question.place, "engine", "dropout") >= self.dropout_rate
        if self.deadline is not None:
            keep &= latency(outbox, len(ids), *self.latency) <= self.deadline
        return counted(outbox, ids, keep)
