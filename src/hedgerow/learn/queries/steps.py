"""Steps, projection and averaging of gradient queries.

    rule               step in round k           average                                   source
    algorithm-2        size / sqrt(k)            (3.6): eta = 1 / sqrt(T), nearly uniform    Wu, Algorithm 2
    algorithm-1        size / (T^2 k)            none: the last iterate                     Wu, Algorithm 1, as printed
    strongly-convex    size / (1 + L size k / 2) weights in proportion to k                 Algorithm 1, corrected

Why Algorithm 1 is corrected. Its steps add up to at most size (1 + ln T) / T^2, so that with any fixed size the iterate
stays where it began, and the more so the longer it runs: Theorem 2 cannot hold. Steps that fall like 2 / (L k), never
above `size`, and an average that weighs round k by k reach the rate that the theorem wants (Lacoste-Julien, Schmidt, Bach
2012). Its horizon-free box is a second fault: without a box the squared loss has no bound on slopes, so no noise protects
it; all rules project.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid, suggestion

Rule = Literal["algorithm-1", "algorithm-2", "strongly-convex"]


@dataclass(frozen=True)
class Steps:
    """How the server moves.

    Parameters
    ----------
    rule : {"algorithm-2", "algorithm-1", "strongly-convex"}
    size : float
        The c1, rho, or first step of the rule; about one over the largest curvature is right.
    box : float
        Largest absolute value of a coefficient.
    convexity : float
        Of the loss, for `strongly-convex`: its least curvature, or the ridge.
    """

    rule: Rule = "algorithm-2"
    size: float = 1.0
    box: float = 1.0
    convexity: float = 0.0

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise SettingsInvalid(f"no rule of steps is called {self.rule!r}.", remedy=suggestion(self.rule, get_args(Rule)))
        for name, value in (("step", self.size), ("box", self.box)):
            if not 0 < value < math.inf:
                raise SettingsInvalid(f"a {name} of {value!r}.", remedy="Give a finite number above zero.")
        if self.rule == "strongly-convex" and not 0 < self.convexity < math.inf:
            raise SettingsInvalid(
                f"the rule 'strongly-convex' with a convexity of {self.convexity!r}.",
                remedy="Give the least curvature of the loss, for example its ridge; or use 'algorithm-2'.",
            )

    def length(self, k: int, horizon: int) -> float:
        """The step of round k, counted from 1."""
        if self.rule == "algorithm-2":
            return self.size / math.sqrt(k)
        if self.rule == "algorithm-1":
            return self.size / (horizon**2 * k)
        return self.size / (1 + self.convexity * self.size * k / 2)

    def move(self, theta: Array, gradient: Array, k: int, horizon: int) -> Array:
        """theta[k + 1]: a step against the gradient, projected on the box."""
        moved: Array = np.clip(theta - self.length(k, horizon) * gradient, -self.box, self.box)
        return moved

    def average(self, average: Array, theta: Array, moved: Array, k: int, horizon: int) -> Array:
        """The result after round k, from the result so far, theta[k] and theta[k + 1]."""
        if self.rule == "algorithm-1":
            return moved
        if self.rule == "strongly-convex":
            found: Array = average + (theta - average) * 2 / (k + 1)
            return found
        eta = 1 / math.sqrt(horizon)
        mixed: Array = (k - 1) / (eta + k) * average + (eta + 1) / (eta + k) * theta
        return mixed
