"""SuLQ: statistics from a limited number of noisy sums, each over a function that says one number about every record.

The server asks for sum_i f(record i) with f in [0, 1], or how many records satisfy a predicate, and sees the answer plus
noise. With so few questions that their noise stays below the sampling error, which is of order sqrt(n), statistics lose
nothing that matters: sub-linearly many queries. k-means, principal components, perceptrons and decision trees can all be
asked for in this way.

What a function says about a record is cut to [0, 1] at the party, so that the bound holds whatever it says; but it must
say it about one record at a time, without looking at the others. The questions are counted in the federation's ledger,
whoever asks them, and the one beyond the number agreed is refused.

Releases : one noisy sum for each question.
Unit     : record.
Source   : Blum, Dwork, McSherry, Nissim 2005 (PODS). Differs: noise is calibrated to all questions together, exactly,
           as one Gaussian release (`Sulq.within`), where Theorem 4 takes a variance of 32 log(2 / delta) T / epsilon^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import l2
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, name_of, travels
from hedgerow.errors import BudgetExhausted, BudgetInvalid, ContributionInvalid

from .accounting.gaussian import gaussian_noise
from .mechanisms import Gaussian

Row = Callable[..., Array]
"""`(columns, **settings) -> numbers`, one for each record; a top-level function that works record by record."""

Ask = TypeVar("Ask", bound=Callable[..., Any])


@local(additive=True, stackable=True)  # type: ignore[untyped-decorator]
def total(broadcast: Any, party: Party, rng: Any, *, of: Row, settings: tuple[tuple[str, Any], ...] = ()) -> Array:
    """Add up what a function says about each record, cut to [0, 1]; what is not a number counts as zero."""
    said = np.asarray(of(party.columns, **dict(settings)), float)
    if said.shape != party.w.shape:
        raise ContributionInvalid(
            f"{name_of(of)} returned shape {said.shape} for records of shape {party.w.shape}.",
            remedy="Return one number for each record: columns of shape (..., n_records) in, (..., n_records) out.",
        )
    share = np.clip(np.where(np.isfinite(said), said, 0.0), 0.0, 1.0) * np.clip(party.w, 0.0, 1.0)
    found: Array = share.sum(-1)
    return found


@dataclass(frozen=True)
class Sulq:
    """A federation that answers so many noisy sums.

    Parameters
    ----------
    federation : Federation
        Through a channel with a mechanism, or an open one that `mechanism` fills.
    queries : int
        Questions that may be asked in all, by this handle or any other of the same federation.
    mechanism : Mechanism, optional
        Noise of each answer, in multiples of the bound, 1 per record.
    """

    federation: Federation
    queries: int
    mechanism: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.queries, bool) or not isinstance(self.queries, int) or self.queries < 1:
            raise BudgetInvalid(f"SuLQ with {self.queries!r} queries.", remedy="Give a whole number of at least 1.")
        if self.mechanism is not None:
            object.__setattr__(self, "federation", self.federation.protect(mechanism=self.mechanism))
        if not self.federation.protection.noisy:
            raise BudgetInvalid(
                "SuLQ answers with noise, and this federation's channel adds none.",
                remedy="Sulq(federation, 20, Gaussian(5.0)), or Sulq.within(federation, epsilon=1.0, delta=1e-6, queries=20).",
            )
        if self.federation.protection.clip is not None:
            raise BudgetInvalid(
                f"SuLQ protects records, and this channel clips parties ({self.federation.protection.clip}).",
                remedy="Leave the clip out: what is said about a record is cut to [0, 1] anyway.",
            )

    @classmethod
    def within(cls, federation: Federation, *, epsilon: float, delta: float, queries: int) -> Sulq:
        """Return a SuLQ whose Gaussian noise makes all queries together (epsilon, delta)-private per record."""
        return cls(federation, queries, Gaussian(noise_for(epsilon, delta, queries)))

    @property
    def asked(self) -> int:
        """Questions that were asked so far."""
        name = name_of(total)
        return sum(entry.query == name for entry in self.federation.ledger.entries)

    @property
    def left(self) -> int:
        """Questions that may still be asked."""
        return max(self.queries - self.asked, 0)

    def sum(self, of: Row, **settings: Any) -> float:
        """Return a noisy sum over all records of what a function says about each, cut to [0, 1].

        Parameters
        ----------
        of : callable
            Top-level function `(columns, **settings) -> numbers`, one for each record, record by record.
        **settings : Any
            Hashable; sent to the parties with the function's name.

        Raises
        ------
        BudgetExhausted (HR-213)
            All questions were asked. Nobody was asked this one.
        """
        name_of(of)
        if self.left == 0:
            raise BudgetExhausted(
                f"all {self.queries} queries were asked; {name_of(of)} would be one more.",
                remedy="Noise was chosen for so many: ask for more of them, with more noise, from the start.",
            )
        ask = partial(total, of=of, settings=tuple(sorted(settings.items())))
        return float(self.federation.sum(ask, bound=l2(1.0, "record")))

    def count(self, predicate: Row, **settings: Any) -> float:
        """Return a noisy count of the records that satisfy a predicate, a function that says 0 or 1."""
        return self.sum(predicate, **settings)


@travels
def everybody(columns: Mapping[str, Array]) -> Array:
    """The predicate that every record satisfies."""
    return np.ones(min((np.shape(column) for column in columns.values()), key=len))


def noise_for(epsilon: float, delta: float, queries: int) -> float:
    """Return the least noise multiplier with which so many Gaussian answers are (epsilon, delta)-private together.

    Together they are one Gaussian release whose distance grows by sqrt(queries).
    """
    if not (0 < epsilon < math.inf and 0 < delta < 1 and queries >= 1):
        raise BudgetInvalid(
            f"noise for epsilon {epsilon!r}, delta {delta!r} and {queries!r} queries.",
            remedy="Epsilon is above zero, delta between zero and one, and there is at least one query.",
        )
    return gaussian_noise(epsilon, delta) * math.sqrt(queries)


def noise_of_theorem_4(epsilon: float, delta: float, queries: int) -> float:
    """The noise multiplier of the publication, for comparison: sqrt(32 log(2 / delta) queries) / epsilon."""
    return math.sqrt(32 * math.log(2 / delta) * queries) / epsilon
