"""A game that is well posed: each owner gains by the result's forecast, with equal weights, and bears its own cost.

    payoff_l = - b_l kappa / N^2 sum_j 1 / eps_j^2 - c_l (e^eps_l - 1)

    b_l     what one unit of excess is worth to owner l          kappa   excess times N^2, for owners' noise at eps 1
    N       records of all

An owner's own epsilon stands in terms of its own, so the best answer depends on nobody else's: a dominant strategy, unique
since each term is strictly concave, and an equilibrium of a potential game. With eps^3 e^eps = 2 kappa b_l / (c_l N^2) it is

    eps_l = 3 W( (2 kappa b_l / (c_l N^2))^(1/3) / 3 )           W: Lambert's function

The optimum of all together has B = sum b in place of b_l, since an owner does not count what its noise costs the others. Paying

    pi_l(eps_l) = (B - b_l) kappa / N^2 (1 / eq_l^2 - 1 / eps_l^2)

makes the optimum its dominant strategy, and pays nothing at the equilibrium without payments, eq_l. Owners that collude move
their b to the sum of theirs, and nothing else.

Source: derived for `hedgerow.market`; utility as Wu 2019, section 4.2, describes it in words (the predicted relative fitness).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid


@dataclass(frozen=True)
class SeparableGame:
    """The game above.

    Parameters
    ----------
    benefits : tuple of float
        b, above 0.
    costs : tuple of float
        c, above 0.
    kappa : float
    records : float
        N.
    transfers : bool
        Whether owners are paid pi.
    lowest, cap : float
        Ends of every owner's epsilon, within which best responses are searched; the closed forms know none.
    """

    benefits: tuple[float, ...]
    costs: tuple[float, ...]
    kappa: float
    records: float
    transfers: bool = False
    lowest: float = 1e-3
    cap: float = 20.0

    def __post_init__(self) -> None:
        numbers = (*self.benefits, *self.costs, self.kappa, self.records)
        if len(self.benefits) != len(self.costs) or not self.benefits or not min(numbers) > 0:
            raise SettingsInvalid(
                f"benefits {self.benefits!r}, costs {self.costs!r}, kappa {self.kappa:g}, {self.records:g} records.",
                remedy="Give one benefit and one cost of every owner; all numbers are above 0.",
            )

    @property
    def players(self) -> int:
        """How many owners."""
        return len(self.benefits)

    def equilibrium(self) -> Array:
        """What each owner does, whatever the others do: shape (players,)."""
        return self.optimum() if self.transfers else self._solved(np.array(self.benefits))

    def optimum(self) -> Array:
        """Where the sum of all payoffs, payments aside, is largest."""
        return self._solved(np.full(self.players, sum(self.benefits)))

    def colluding(self, owners: Sequence[int]) -> SeparableGame:
        """The game in which these owners count each other's gain as their own."""
        together = sum(self.benefits[k] for k in owners)
        return replace(self, benefits=tuple(together if k in owners else b for k, b in enumerate(self.benefits)))

    def payments(self, profile: Array) -> Array:
        """pi of each owner; profile of shape (..., players)."""
        b, start = np.array(self.benefits), self._solved(np.array(self.benefits))
        found: Array = (b.sum() - b) * self._unit * (1 / np.square(start) - 1 / np.square(profile))
        return found

    def payoffs(self, profile: Array) -> Array:
        """Of each owner; profile of shape (..., players)."""
        e = np.asarray(profile, float)
        noise = self._unit * (1 / np.square(e)).sum(-1, keepdims=True)
        own: Array = -np.array(self.benefits) * noise - np.array(self.costs) * np.expm1(e)
        return own + self.payments(e) if self.transfers else own

    def own_slopes(self, profile: Array) -> Array:
        """Derivative of each payoff by its owner's epsilon."""
        e = np.asarray(profile, float)
        found: Array = 2 * self._counted * self._unit / e**3 - np.array(self.costs) * np.exp(e)
        return found

    def slopes_of_slopes(self, profile: Array) -> Array:
        """A diagonal: no owner's slope depends on another's epsilon."""
        e = np.asarray(profile, float)
        own: Array = -6 * self._counted * self._unit / e**4 - np.array(self.costs) * np.exp(e)
        return own[..., None] * np.eye(self.players)

    def social_cost(self, profile: Array) -> float:
        """What noise and openness cost all owners together; payments between them aside."""
        return -float(replace(self, transfers=False).payoffs(profile).sum())

    @property
    def anarchy(self) -> float:
        """The price of anarchy: social cost at the equilibrium over the least."""
        return self.social_cost(self.equilibrium()) / self.social_cost(self.optimum())

    @property
    def _unit(self) -> float:
        return self.kappa / self.records**2

    @property
    def _counted(self) -> Array:
        """How much of the benefits each owner takes into account."""
        b = np.array(self.benefits)
        return np.full(self.players, b.sum()) if self.transfers else b

    def _solved(self, benefits: Array) -> Array:
        found: Array = 3 * scipy.special.lambertw(np.cbrt(2 * self._unit * benefits / np.array(self.costs)) / 3).real
        return found
