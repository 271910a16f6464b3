"""The same game under the best weights: precision is a public good, and owners wait for each other to provide it.

    payoff_l = - b_l kappa / Q - c_l (e^eps_l - 1),        Q = sum_j (n_j eps_j)^2

The second derivative by the own epsilon is 2 b kappa n^2 / Q^2 (1 - 4 (n eps)^2 / Q) - c e^eps. Its first part is above 0
wherever an owner provides less than a quarter of the precision: the payoff is not concave near 0. There its slope is - c, so
that staying away is a local best answer to anybody who provides, and there may be several equilibria, in most of which some
ride free.
Hence prices (`hedgerow.market.best_price`), under which what an owner earns does not depend on the others.

Source: derived for `hedgerow.market`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid


@dataclass(frozen=True)
class PublicGoodsGame:
    """The game above.

    Parameters
    ----------
    benefits, costs, records : tuple of float
        b, c and n of each owner, above 0.
    kappa : float
    lowest, cap : float
        Ends of every owner's epsilon; the lowest is above 0, since without any precision all payoffs are infinitely low.
    """

    benefits: tuple[float, ...]
    costs: tuple[float, ...]
    records: tuple[float, ...]
    kappa: float
    lowest: float = 1e-3
    cap: float = 20.0

    def __post_init__(self) -> None:
        lists = (self.benefits, self.costs, self.records)
        if len(set(map(len, lists))) > 1 or not self.benefits or not min(*map(min, lists), self.kappa, self.lowest) > 0:
            raise SettingsInvalid(
                f"benefits {self.benefits!r}, costs {self.costs!r}, records {self.records!r}, kappa {self.kappa:g}.",
                remedy="Give one benefit, cost and number of records of every owner; all numbers are above 0.",
            )

    @property
    def players(self) -> int:
        """How many owners."""
        return len(self.benefits)

    def payoffs(self, profile: Array) -> Array:
        """Of each owner; profile of shape (..., players)."""
        e = np.asarray(profile, float)
        found: Array = -np.array(self.benefits) * self.kappa / self._precision(e)[0] - np.array(self.costs) * np.expm1(e)
        return found

    def own_slopes(self, profile: Array) -> Array:
        """Derivative of each payoff by its owner's epsilon."""
        e = np.asarray(profile, float)
        total, slopes = self._precision(e)
        found: Array = np.array(self.benefits) * self.kappa * slopes / total**2 - np.array(self.costs) * np.exp(e)
        return found

    def slopes_of_slopes(self, profile: Array) -> Array:
        """Derivative of each own slope by each epsilon; shape (..., players, players)."""
        e = np.asarray(profile, float)
        total, slopes = self._precision(e)
        worth = np.array(self.benefits) * self.kappa
        found: Array = -2 * (worth * slopes / total**3)[..., None] * slopes[..., None, :]
        own = 2 * worth * np.square(self.records) / total**2 - np.array(self.costs) * np.exp(e)
        found += own[..., None] * np.eye(self.players)
        return found

    def _precision(self, e: Array) -> tuple[Array, Array]:
        """Q, of shape (..., 1), and its derivatives, of shape (..., players)."""
        squares = np.square(np.array(self.records))
        return (squares * np.square(e)).sum(-1, keepdims=True), 2 * squares * e
