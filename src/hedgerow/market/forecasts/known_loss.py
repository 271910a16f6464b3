"""What a plan knows of a loss before the first question, along each eigenvector of its curvature.

    a run's excess = |m + e|^2,  e ~ N(0, v diag(A_i) + sample S),  m_i = left_i sqrt(h_i / 2)

v is the variance of each coordinate of the mean gradient, and sample = sum_l w_l^2 n_l / (sum_l w_l n_l)^2. The three are what
steps leave, what noise adds, and what follows from so many records being a sample: as in `forecast`, here without its owners,
so that a plan can ask for many of them, and also from bounds or sums alone. The interval of a run is wider by the doubt: what
another estimate would change, where that is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries.steps import Steps

from .forecast import doubt_of, of_zero, widened
from .interval import interval
from .pilot_estimate import PilotEstimate
from .propagation import TOO_LONG, Propagation, at_walls, longest_step, propagate, walled


@dataclass(frozen=True)
class KnownLoss:
    """What steps, noise and sample make of a result.

    Attributes
    ----------
    propagation : Propagation
    scatter : array of shape (d, d)
        S: covariance, times n, of sqrt(H / 2) times what n records of their own move the result by, along the eigenvectors.
    sampling : float
        s: the trace of S, expected excess, times n, which is that of the best theta of n records where the steps have ended.
    least : float
        f(theta*), above zero: relative fitness is excess over it.
    begin : float or None
        Excess of theta = 0, or the most that it can be, above which a forecast says that noise moves theta to the walls of its
        box; None if unknown.
    source : str
        How all this is known, in words.
    limits : tuple of str
        What of it is approximate, in sentences.
    followed : (PilotEstimate, Steps, int), optional
        The estimate that all this follows from, with the steps and their number; its replicas tell the doubt.
    """

    propagation: Propagation
    scatter: Array
    sampling: float
    least: float
    begin: float | None
    source: str
    limits: tuple[str, ...] = ()
    followed: tuple[PilotEstimate, Steps, int] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.least < np.inf:
            raise SettingsInvalid(
                f"a least loss of {self.least!r}, by which excess is divided.", remedy="Give a finite number above zero."
            )

    @property
    def amplification(self) -> float:
        """A: expected excess for noise of variance 1 in each coordinate of the mean gradient."""
        return self.propagation.amplification

    @property
    def bias(self) -> float:
        """Excess that is left without noise."""
        return max(self.propagation.bias, 0.0)

    def run_ends(self, share: float, variance: float, sample: float) -> tuple[float, float]:
        """The excess below and above which as many runs end, with so large a share of all runs between them.

        Wider by the doubt, in squares: so many of runs and estimates together end in between.

        Parameters
        ----------
        share : float
            Of runs, e.g. 0.9.
        variance : float
            Of each coordinate of the mean gradient.
        sample : float
            sum_l w_l^2 n_l / (sum_l w_l n_l)^2: one over the records, where weights are equal.
        """
        found = self.propagation
        means = np.sqrt(np.maximum(found.eigenvalues, 0) / 2) * found.left
        squares, turned = np.linalg.eigh(variance * found.spread + sample * self.scatter)
        low, high = interval(share, turned.T @ means, np.sqrt(np.maximum(squares, 0)))
        low, high = max(found.offset + low, 0.0), max(found.offset + high, 0.0)
        expected = found.bias + variance * found.amplification + sample * self.sampling
        return widened(share, expected, (low, high), self.doubt(variance, sample) * self.least)

    def doubt(self, variance: float, sample: float) -> float:
        """Standard error of the expected relative fitness, as far as the loss is not known well; 0 where that is not known."""
        return 0.0 if self.followed is None else doubt_of(*self.followed, variance, sample)

    @classmethod
    def of(cls, estimate: PilotEstimate, steps: Steps, rounds: int, *, quadratic: bool = True) -> KnownLoss:
        """From an estimate of curvature, best theta and scatter; `quadratic` says whether the loss is squared."""
        found = propagate(estimate, steps, rounds)
        limits = () if quadratic else (PARABOLA if estimate.rows is None else AROUND_PATH,)
        at_wall, quadratic = at_walls(estimate, steps.box), quadratic or estimate.rows is None
        limits = (*limits, IN_BOX) if at_wall else limits
        limits = (*limits, ON_ITS_WAY) if not at_wall and quadratic and walled(estimate, steps, rounds) else limits
        longest = longest_step(estimate, steps, rounds)
        limits = limits if longest is None else (*limits, TOO_LONG.format(longest=longest))
        begin, followed = of_zero(estimate), (estimate, steps, rounds)
        return cls(found, found.drawn, found.sampling, estimate.least, begin, estimate.source, limits, followed)

    @classmethod
    def of_numbers(
        cls,
        size: int,
        *,
        amplification: float,
        bias: float,
        sampling: float,
        least: float,
        zeros: float = 1.0,
        source: str = "declared numbers",
    ) -> KnownLoss:
        """From sums over the eigenvectors, which are taken to share them alike.

        `zeros` is the loss of theta = 0, or the most that it can be: 1 of the squared loss and of the hinge, since targets lie
        in [-1, 1], and log 2 of the logistic loss.
        """
        if not least < zeros:
            raise SettingsInvalid(
                f"a least loss of {least!r}, and the loss of zeros is at most {zeros:.4g}.",
                remedy="Give the least loss in the program's units, where targets lie in [-1, 1].",
            )
        if not (0 < amplification < np.inf and 0 <= bias < np.inf and 0 <= sampling < np.inf):
            raise SettingsInvalid(
                f"amplification {amplification!r}, bias {bias!r}, sampling {sampling!r}.",
                remedy="Give finite numbers: the first above zero, the others at least 0.",
            )
        each = np.ones(size) / size
        propagation = _alike(np.ones(size), np.sqrt(2 * bias * each), amplification * each)
        return cls(propagation, sampling * np.diag(each), sampling, least, zeros - least, source, (ALIKE,))

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
        at = PilotEstimate(np.diag(grid), np.full(len(grid), steps.box), least, np.zeros((len(grid), len(grid))), source)
        worst = propagate(at, steps, rounds)
        h = grid[np.argmax(grid * np.square(worst.left))]
        noise = np.full(size, worst.amplifications.max())
        left = np.full(size, np.sqrt((grid * np.square(worst.left)).max() / h))
        s = size * least if sampling is None else sampling
        begin = size * curvature[1] * steps.box**2 / 2
        return cls(_alike(np.full(size, h), left, noise), np.eye(size) * s / size, s, least, begin, source, (WORST,))


def _alike(eigenvalues: Array, left: Array, amplifications: Array) -> Propagation:
    """Along the coordinates themselves; sums say nothing of the path."""
    return Propagation(
        eigenvalues, np.eye(len(left)), left, amplifications, np.diag(amplifications), np.zeros((len(left), len(left)))
    )


AROUND_PATH = "Noise is small enough for the loss to be a parabola around the path without it."
IN_BOX = "The best theta lies on a wall of its box, which stops the same coefficients with noise as without it."
ON_ITS_WAY = "The box stops theta on its way, and the same coefficients with noise as without it."
PARABOLA = "The loss is taken to be the parabola that it is near its best theta."
ALIKE = "Only sums over all coordinates are known; the interval takes the coordinates to share them alike."
WORST = "The forecast is what the worst loss within the declared bounds would give, so the result should be better."

N_CURVATURES = 200
"""Curvatures between declared ends that are tried."""
