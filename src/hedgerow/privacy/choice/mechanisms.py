"""Choosing one of some candidates by a score that is a sum over the parties: which drug, which split, which bin.

    law                 cost at epsilon               of candidates with equal sensitivity and epsilon
    exponential         epsilon-bounded range         composes as epsilon^2 / 8 of zCDP: the choice for many choices
    permute and flip    epsilon                       never a larger expected error than exponential
    noisy max           epsilon                       discrete Laplace noise, argmax

A unit may move every score by the radius, up or down: weights are exp(epsilon u / (2 radius)), and noise has the scale
2 radius / epsilon. The factor 2 falls away where a unit that joins never lowers any score (`monotonic`), as with counts.
Neighbours differ in whether a unit is there; where one is replaced, count two.

Why each holds. Exponential: the ratio of any weight between neighbours lies within a factor e^(epsilon/2) of one, or on
one side of it within e^epsilon, so that all ratios of probabilities lie in an interval of length epsilon (Durfee & Rogers
2019, Cesar & Rogers 2021). Permute and flip: McKenna & Sheldon 2020. Noisy max: with the noise of all
others fixed, a candidate wins if its own noise reaches a whole number, which moves by at most 2 radii, and the tail of the
discrete Laplace falls by at most e^(-1/scale) a step (as in Dwork & Roth 2014, Claim 3.9; ties go to the first candidate,
whatever the data).

Timing may depend on the scores: how many differ decides how many weights are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array, Arrays, Layout
from hedgerow.core.bound import Bounds
from hedgerow.core.events import Event
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.party import Local
from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid, suggestion

from ..grid import Block
from ..within import within
from .grid import rounded, score_block
from .laws import by_coins, by_noise, by_weight

Law = Literal["exponential", "noisy max", "permute and flip"]
DRAW = {"exponential": by_weight, "noisy max": by_noise, "permute and flip": by_coins}


@dataclass(frozen=True)
class Choice(Mechanism):
    """The mechanism: contributions are scores, the release is one at the chosen candidate and zero elsewhere.

    Parameters
    ----------
    law : {"exponential", "noisy max", "permute and flip"}
    epsilon : float
    monotonic : bool
        A unit that joins raises scores or leaves them. Enforced for a bound per party, whose negative scores become zero;
        for a bound per record it holds by construction of the local function and is proved by a neighbour test.
    """

    law: Law
    epsilon: float
    monotonic: bool = False
    at: Literal["server"] = "server"

    def __post_init__(self) -> None:
        if self.law not in get_args(Law):
            raise BudgetInvalid(f"no law of choice is called {self.law!r}.", remedy=suggestion(str(self.law), get_args(Law)))
        positive(self.epsilon)
        if self.at != "server":
            raise BudgetInvalid(f"a choice at {self.at!r}.", remedy="Candidates are compared by their totals, at the server.")

    def event(self, bounds: Bounds) -> Event:
        """Return the cost of one choice."""
        return Event("exponential" if self.law == "exponential" else "pure", epsilon=self.epsilon)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse scores that are more than one array, or have more than one bound."""
        self._block(bounds, layout)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round scores of shape (parties, candidates) to the grid."""
        return rounded(rows, self._block(bounds, layout), monotonic=self.monotonic)

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which scores are within a party-level bound."""
        return within(rows, [self._block(bounds, layout)], parties)

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Choose by total scores of shape (candidates,)."""
        released = np.zeros(layout.size)
        released[self.draw(total, self._block(bounds, layout), 1, entropy)] = 1.0
        return released

    def draw(self, total: Array, block: Block, size: int, entropy: Entropy) -> Array:
        """Draw `size` independent choices from the same scores, in grid steps."""
        rate = Fraction(self.epsilon) / (int(block.scale) * self._factor)
        return DRAW[self.law](total, rate, size, entropy)

    @property
    def _factor(self) -> int:
        return 1 if self.monotonic else 2

    def _block(self, bounds: Bounds, layout: Layout) -> Block:
        return score_block(bounds, layout, self._factor / self.epsilon if self.law == "noisy max" else 1.0)

    def __str__(self) -> str:
        name = "".join(word.capitalize() for word in self.law.split())
        return f"{name}({self.epsilon:g}{', monotonic' * self.monotonic}) at the server"


def choose(
    federation: Federation,
    scores: Local,
    broadcast: Arrays = None,
    *,
    bound: Bounds,
    epsilon: float,
    law: Law = "exponential",
    monotonic: bool = False,
) -> int:
    """Choose a candidate with a high total score.

    Parameters
    ----------
    scores : local function
        Returns an array with a score for each candidate.
    bound : Bound
        `linf(radius, unit=...)`: how far one unit moves a score.
    law, monotonic
        See `Choice`.

    Returns
    -------
    int
        The index of the candidate. With m candidates and weights exp(epsilon u / (2 radius)) its total score is within
        2 radius / epsilon (ln m + t) of the best but with probability e^-t (McSherry & Talwar 2007).

    Releases
    --------
    The choice; once.
    """
    released: Any = federation.protect(mechanism=Choice(law, epsilon, monotonic)).sum(scores, broadcast, bound=bound)
    values = next(iter(released.values())) if isinstance(released, dict) else released
    return int(np.argmax(values))


def positive(epsilon: float) -> None:
    """Refuse an epsilon that is not a finite number above zero."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BudgetInvalid(f"an epsilon of {epsilon!r} is not a finite number above zero.", remedy="Give e.g. epsilon=0.5.")


def Exponential(epsilon: float, monotonic: bool = False) -> Choice:
    """The exponential mechanism."""
    return Choice("exponential", epsilon, monotonic)


def NoisyMax(epsilon: float, monotonic: bool = False) -> Choice:
    """Report-noisy-max with discrete Laplace noise."""
    return Choice("noisy max", epsilon, monotonic)


def PermuteAndFlip(epsilon: float, monotonic: bool = False) -> Choice:
    """Permute and flip."""
    return Choice("permute and flip", epsilon, monotonic)
