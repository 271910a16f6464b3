"""The plan of a private minimum at a party: what it costs each of its records, and how its noise is made.

    objective       b from the law whose cost is the budget less a small share; the exact minimum of losses + b't, as near as
                    the solver comes; Gaussian noise on a grid for what it leaves, which that share pays for
    output          the minimum without b; Gaussian noise on a grid for a distance of L / penalty + 2 tol / penalty

With delta zero, all noise is by its length (`hedgerow.stats.private.continuous`), and what leaves is rounded to a grid. Bounds
of `hedgerow.stats.private.objective`.

Every party answers: settings for which floating-point numbers are too coarse are refused by public numbers alone
(`PlannedMinimum.refuse_coarse`), and the solver (`hedgerow.stats.private.nearest`) declines no records. What is said of privacy
holds for parties of up to MOST_RECORDS records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import l2
from hedgerow.core.events import Event, Unit
from hedgerow.core.mechanism import Plan
from hedgerow.core.question import travels
from hedgerow.core.randomness import Entropy
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.privacy.accounting.gaussian import gaussian_noise
from hedgerow.privacy.mechanisms import Gaussian
from hedgerow.privacy.noise import grid_step

from .continuous import CLOSE, noise_by_length, normal_numbers
from .nearest import minimise, rounding
from .objective import MarginLoss, objective_noise, objective_scale, output_distance

Method = Literal["objective", "output"]
SHARE, PURE_SHARE = 1e-3, 1e-2
"""Of epsilon and delta of objective perturbation, for what a solver leaves of an exact minimum; and where delta is zero."""
TOLERANCE = 5e-6
"""Length of a gradient, rounding included, that a solver may leave; times the heaviest weight."""
MOST_RECORDS = 2**29
"""Records of one party for which the rounding of a gradient is bounded."""
LEAST_PENALTY = 1e-6
"""Times the heaviest weight: below it, a Hessian of many records is too coarse."""
MARGIN = 1e-2
"""By so much of itself epsilon is lowered for noise by its length, which floating-point numbers change by less."""


@travels
@dataclass(frozen=True)
class PlannedMinimum(Plan):
    """A private minimum of penalised losses of one party's records.

    Parameters
    ----------
    method : {"objective", "output"}
    epsilon, delta : float
        Of one answer, for each record of the party; delta 0 for pure epsilon.
    penalty : float
        Times |t|^2 / 2, beside the sum of losses.
    loss : MarginLoss
    heaviest : float
        Largest weight of a record.
    tolerance : float
        Length of a gradient that the solver may leave, times the heaviest weight.

    Raises
    ------
    SettingsInvalid (HR-511), BudgetInvalid (HR-214)
        A value is out of its range; the penalty is too small for epsilon.
    """

    method: Method
    epsilon: float
    delta: float
    penalty: float
    loss: MarginLoss = field(default_factory=MarginLoss)
    heaviest: float = 1.0
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        if self.method not in ("objective", "output"):
            raise SettingsInvalid(f"a method {self.method!r}.", remedy="Known: 'objective' and 'output'.")
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise BudgetInvalid(
                f"a budget of epsilon {self.epsilon!r} and delta {self.delta!r}.", remedy="Such as epsilon=1.0, delta=1e-5."
            )
        values = {"penalty": self.penalty, "heaviest": self.heaviest, "tolerance": self.tolerance}
        if wrong := [f"{name} is {value}" for name, value in values.items() if not 0 < value < math.inf]:
            raise SettingsInvalid("; ".join(wrong) + ".", remedy="They are finite and above zero.")
        if self.penalty < LEAST_PENALTY * self.heaviest:
            raise SettingsInvalid(
                f"a penalty of {self.penalty:g}.", remedy=f"Take {LEAST_PENALTY * self.heaviest:g} or more: by default it is."
            )
        if self.method == "objective":
            _ = self.sigma if self.delta else self.scale  # refuses a small penalty

    # ---- what it costs ----------------------------------------------------------------------------------------------
    @property
    def unit(self) -> Unit:
        return "record"

    def event(self) -> Event:
        """The cost of one answer to each record of the party."""
        if not self.delta:
            return Event("pure", epsilon=self.epsilon)
        if self.method == "output":
            return Event("gaussian", self.output_noise)
        return Event("approximate", epsilon=self.epsilon, delta=self.delta)

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of each number of b, where it is Gaussian."""
        part = 1 - SHARE
        return objective_noise(self.epsilon * part, self.delta * part, self.penalty, **self._moves)

    @cached_property
    def scale(self) -> float:
        """Scale of b by its length, where epsilon is pure."""
        return objective_scale(self.epsilon * (1 - PURE_SHARE), self.penalty, **self._moves)

    @property
    def _moves(self) -> dict[str, float]:
        return {"lipschitz": self.heaviest, "curvature": self.heaviest * self.loss.curvature}

    @property
    def distance(self) -> float:
        """By how much one record moves what the solver returns, or of objective perturbation what it leaves, in l2."""
        left = 2 * self.tolerance * self.heaviest / self.penalty
        return left if self.method == "objective" else output_distance(self.penalty, lipschitz=self.heaviest) + left

    @cached_property
    def output_noise(self) -> float:
        """Standard deviation of Gaussian noise on what the solver returns, over `distance`."""
        part = SHARE if self.method == "objective" else 1.0
        return gaussian_noise(self.epsilon * part, self.delta * part)

    def refuse_coarse(self, d: int) -> None:
        """Refuse settings under which rounding, by public numbers alone, could be too large for `d` numbers.

        Raises
        ------
        BudgetInvalid (HR-214)
            Epsilon is too small for noise by floating-point numbers.
        SettingsInvalid (HR-511)
            The penalty, or the curvature of the loss, is too large for the tolerance.
        """
        room = self.tolerance / 4
        if self.method == "objective" and (ratio := self._apart(d) / self.heaviest / room) > 1:
            raise BudgetInvalid(
                f"epsilon {self.epsilon:g} for {d} numbers: its noise is too large for floating-point numbers of 53 bits.",
                remedy=f"Take an epsilon {1.1 * ratio:.2g} times as large, or method='output'.",
            )
        part = PURE_SHARE if self.method == "objective" else 1.0
        if not self.delta and 2 * d**1.5 * CLOSE * 8192 > MARGIN * part * self.epsilon:
            raise BudgetInvalid(
                f"noise by its length on {d} numbers under epsilon {self.epsilon:g}: floating-point numbers are too coarse.",
                remedy="Give a delta, such as 1e-5.",
            )
        if rounding(MOST_RECORDS, d, self.loss, self.penalty / self.heaviest) > room:
            raise SettingsInvalid(
                f"a penalty of {self.penalty:g} on {d} numbers, under a loss of curvature {self.loss.curvature:g}: a gradient "
                f"may be further than {room:g} from a computed one.",
                remedy="Lower the penalty; by default it is far below that.",
            )

    def _apart(self, d: int) -> float:
        """How far the noise b of objective perturbation, (d,), may be from an ideal draw, its own rounding included."""
        return 2 * CLOSE * (self.sigma * math.sqrt(d) if self.delta else self.scale * d)

    # ---- what it does -----------------------------------------------------------------------------------------------
    def released(self, X: Array, y: Array, w: Array, entropy: Entropy) -> Array:
        """Return a private minimum of records, shape (d,).

        Parameters
        ----------
        X, y, w : arrays of shape (n, d), (n,), (n,)
            Rows longer than one are shortened, those that are not finite left out; weights are cut to what was declared.
        entropy : Entropy
            The party's secret bytes.

        Raises
        ------
        BudgetInvalid (HR-214), SettingsInvalid (HR-511)
            As `refuse_coarse`. Nothing is raised that follows from records.
        """
        self.refuse_coarse(X.shape[1])
        X, y, w = self.within(X, y, w)
        b, apart, one = np.zeros(X.shape[1]), 0.0, self.heaviest
        if self.method == "objective":
            b, apart = self._linear(X.shape[1], entropy), self._apart(X.shape[1]) / one
        found = minimise(X, y, w / one, b / one, loss=self.loss, penalty=self.penalty / one, tolerance=self.tolerance - apart)
        return self.noisy(found.theta, entropy)

    def within(self, X: Array, y: Array, w: Array) -> tuple[Array, Array, Array]:
        """Records as the proof has them: rows of length one at most, targets 0 or 1, weights up to the heaviest."""
        there = np.isfinite(X).all(1) & np.isfinite(y) & np.isfinite(w)
        X, y, w = np.where(there[:, None], X, 0.0), np.where(there, y, 0.0), np.where(there, w, 0.0)
        long = np.sqrt(np.square(X).sum(1)) * (1 + 1e-12)
        return X / np.maximum(long, 1.0)[:, None], (y > 0.5).astype(np.float64), np.clip(w, 0.0, self.heaviest)

    def _linear(self, d: int, entropy: Entropy) -> Array:
        """Draw b, (d,)."""
        return self.sigma * normal_numbers(d, entropy) if self.delta else noise_by_length(self.scale, d, entropy)

    def noisy(self, theta: Array, entropy: Entropy) -> Array:
        """Add noise on a grid to what the solver returned, shape (d,)."""
        if self.delta:
            mechanism, bound, layout = Gaussian(self.output_noise, at="party"), l2(self.distance, "record"), Layout.of(theta)
            steps = mechanism.at_party(theta[None], bound, layout, lambda k: entropy)
            return mechanism.at_server(steps[0], bound, layout, entropy)
        part, d = PURE_SHARE if self.method == "objective" else 1.0, len(theta)
        scale = self.distance / (part * self.epsilon * (1 - MARGIN))
        step = grid_step(scale * math.sqrt(d))
        found: Array = np.rint((theta + noise_by_length(scale, d, entropy)) / step) * step
        return found

    def __str__(self) -> str:
        spent = f"epsilon {self.epsilon:g}" + f", delta {self.delta:g}" * bool(self.delta)
        return f"{self.method} perturbation ({spent}, penalty {self.penalty:.4g})"
