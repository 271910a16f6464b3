"""The median of absolute residuals, by counts at many thresholds at once.

    low, high <- an interval that holds it
    until they are close:
        t              <- k thresholds between low and high               broadcast
        below, n       <- sum of  w * [|r| <= t],  w                      sum
        low, high      <- the two thresholds around the middle record

Each round divides the interval by k + 1. The middle of an even number of records is the mean of the two in the middle, so
two intervals are kept.

Releases : counts at or below k thresholds, and n; once a round.
Unit     : record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, linf
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held, linear

from ..blocks import by_blocks
from ..counts import tally
from ..linear.asking import Asked, refuse_unbounded

THRESHOLDS = 256
ROUNDS = 60


@local(additive=True, stackable=True, holds=True)
@by_blocks
def residuals_below(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, bounds: Bounds | None = None
) -> dict[str, Array]:
    """Add up the weights of records whose absolute residual is at or below each of the rising thresholds (k,)."""
    eta, points = linear(party["X"], broadcast["beta"], exact=bounds is not None), broadcast["thresholds"]
    size, w = np.abs(party["y"] - eta - party["offset"]), held(party.w, bounds, "below", len(points))
    counts = tally(np.searchsorted(points, size, side="left"), w, len(points) + 1)
    return {"below": np.cumsum(counts[..., :-1], axis=-1), "n": held(party.w, bounds, "n").sum(-1)}


def residual_bounds(weight: float | None) -> dict[str, Bound] | None:
    """By how much one record moves `residuals_below`."""
    return None if weight is None else dict.fromkeys(("below", "n"), linf(weight, "record"))


def median_residual(asked: Asked, beta: Array, *, guess: float, tol: float, within: float = 0.5) -> tuple[float, int]:
    """Ask for the median of `|y - x beta|`.

    Parameters
    ----------
    asked : Asked
    beta : array of shape (d,)
        Of its columns.
    guess : float
        About where it is; if it is far from there, more rounds are needed, not more luck.
    tol : float
        Relative to the median.
    within : float
        The first thresholds lie within this share of the guess.

    Returns
    -------
    (float, int)
        The median and the rounds that it took.
    """
    bounds = residual_bounds(asked.spec.weight_limit)
    refuse_unbounded(asked.federation, asked.spec, bounds)
    guess = max(guess, np.finfo(float).tiny)
    low, high = np.zeros(2), np.full(2, np.inf)  # of the last record of the lower half, and of the first of the upper half
    reach, rounds = np.array([guess * (1 - within), guess * (1 + within)]), 0
    while rounds < ROUNDS and not (np.isfinite(high).all() and (high - low <= tol * high).all()):
        points = np.unique(
            np.concatenate([_between(*ends, reach) for ends in {*zip(low.tolist(), high.tolist(), strict=True)}])
        )
        sums = asked.total(residuals_below, {"beta": beta, "thresholds": points}, bounds)
        rounds += 1
        half = float(sums["n"]) / 2
        for side, reached in enumerate([sums["below"] >= half * (1 - 1e-12), sums["below"] > half * (1 + 1e-12)]):
            first = int(np.argmax(reached)) if reached.any() else len(points)
            low[side] = max(low[side], points[first - 1]) if first else low[side]
            high[side] = min(high[side], points[first]) if first < len(points) else high[side]
        reach = np.array([0.0, 4 * reach[1]])
    return float((low + high).mean() / 2), rounds


def _between(low: float, high: float, reach: Array) -> Array:
    """Thresholds inside an interval: within reach of a guess at first, then evenly."""
    if not np.isfinite(high):
        bottom = max(low, float(reach[0]))
        return np.linspace(bottom, max(float(reach[1]), 2 * bottom), THRESHOLDS)
    return np.linspace(low, high, THRESHOLDS + 2)[1:-1]
