"""What a plan knows of a loss before the first question, along each eigenvector of its curvature.

    a run's excess = |m + e|^2,  e ~ N(0, v diag(A_i) + share S),  m_i = left_i sqrt(h_i / 2)

v is the variance of each coordinate of the mean gradient, and share = sum_l w_l^2 n_l / (sum_l w_l n_l)^2. The three are what
steps leave, what noise adds, and what follows from so many records being a sample: as in `forecast`, here without its owners,
so that a plan can ask for many of them, and also from bounds or sums alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries.steps import Steps

from .pilot_estimate import PilotEstimate
from .propagation import Propagation, propagate


@dataclass(frozen=True)
class KnownLoss:
    """What steps, noise and sample make of a result.

    Attributes
    ----------
    propagation : Propagation
    scatter : array of shape (d, d)
        S, whose trace is s: covariance, times n, of sqrt(H / 2) (theta*_n - theta*) for the best theta of n records, along the
        eigenvectors.
    least : float
        f(theta*), above zero: relative fitness is excess over it.
    begin : float or None
        Excess of theta = 0, above which a forecast says that noise moves theta to the walls of its box; None if unknown.
    source : str
        How all this is known, in words.
    limits : tuple of str
        What of it is approximate, in sentences.
    """

    propagation: Propagation
    scatter: Array
    least: float
    begin: float | None
    source: str
    limits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.least < np.inf:
            raise SettingsInvalid(
                f"a least loss of {self.least!r}, by which excess is divided.", remedy="Give a finite number above zero."
            )

    @property
    def sampling(self) -> float:
        """s: expected excess, times n, of the best theta of n records."""
        return float(np.trace(self.scatter))

    @property
    def amplification(self) -> float:
        """A: expected excess for noise of variance 1 in each coordinate of the mean gradient."""
        return self.propagation.amplification

    @property
    def bias(self) -> float:
        """Excess that is left without noise."""
        return self.propagation.bias

    def squares(self, variance: float, share: float) -> tuple[Array, Array]:
        """Means and deviations of the variables whose squares add up to the excess of a run: arrays of shape (d,).

        Parameters
        ----------
        variance : float
            Of each coordinate of the mean gradient.
        share : float
            sum_l w_l^2 n_l / (sum_l w_l n_l)^2: one over the records, where weights are equal.
        """
        means = np.sqrt(np.maximum(self.propagation.eigenvalues, 0) / 2) * self.propagation.left
        squares, turned = np.linalg.eigh(variance * np.diag(self.propagation.amplifications) + share * self.scatter)
        return turned.T @ means, np.sqrt(np.maximum(squares, 0))

    @classmethod
    def of(cls, estimate: PilotEstimate, steps: Steps, rounds: int, *, quadratic: bool = True) -> KnownLoss:
        """From an estimate of curvature, best theta and scatter; `quadratic` says whether the loss is squared."""
        h, vectors = np.linalg.eigh(estimate.curvature)
        curved = h > 1e-12 * max(h.max(), 0.0)
        roots = np.where(curved, 1 / np.sqrt(2 * np.where(curved, h, 1.0)), 0.0)
        scatter = roots[:, None] * (vectors.T @ estimate.scatter @ vectors) * roots
        begin = float(estimate.best @ estimate.curvature @ estimate.best) / 2
        limits = () if quadratic else (PARABOLA,)
        return cls(propagate(estimate, steps, rounds), scatter, estimate.least, begin, estimate.source, limits)

    @classmethod
    def of_numbers(
        cls, size: int, *, amplification: float, bias: float, sampling: float, least: float, source: str = "declared numbers"
    ) -> KnownLoss:
        """From sums over the eigenvectors, which are taken to share them alike."""
        each = np.ones(size) / size
        propagation = Propagation(np.ones(size), np.sqrt(2 * bias * each), amplification * each)
        return cls(propagation, sampling * np.diag(each), least, None, source, (ALIKE,))

    @classmethod
    def of_bounds(
        cls,
        size: int,
        steps: Steps,
        rounds: int,
        *,
        curvature: tuple[float, float],
        least: float,
        sampling: float | None = None,
        source: str = "declared bounds",
    ) -> KnownLoss:
        """From the ends of the curvature: each eigenvector has the curvature in between that noise, or the start, suffers most.

        theta* is anywhere in the box. `sampling` is d times `least` if not given, which holds for squared residuals that do not
        depend on the features.
        """
        grid = np.geomspace(*curvature, N_CURVATURES)
        worst = propagate(
            PilotEstimate(np.diag(grid), np.full(len(grid), steps.box), least, np.zeros((1, 1)), source), steps, rounds
        )
        h = grid[np.argmax(grid * np.square(worst.left))]
        noise = np.full(size, worst.amplifications.max())
        left = np.full(size, np.sqrt((grid * np.square(worst.left)).max() / h))
        scatter = np.eye(size) * (least if sampling is None else sampling / size)
        begin = size * curvature[1] * steps.box**2 / 2
        return cls(Propagation(np.full(size, h), left, noise), scatter, least, begin, source, (WORST,))


PARABOLA = "The loss is taken to be the parabola that it is near its best theta."
ALIKE = "Only sums over all coordinates are known; the interval takes the coordinates to share them alike."
WORST = "The forecast is what the worst loss within the declared bounds would give, so the result should be better."

N_CURVATURES = 200
"""Curvatures between declared ends that are tried."""
