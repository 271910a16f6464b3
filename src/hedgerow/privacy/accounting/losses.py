"""Privacy loss distributions on a grid of 1e-4, rounded up (Doroshenko et al. 2022).

    gaussian, laplace   their privacy curves, on a Poisson sample too, as `dp_accounting` knows them
    pure, approximate   randomised response, its losses split over their neighbours on the grid
    exponential         the hull of all pairs whose privacy loss has a range of epsilon: (e^(epsilon/2) - e^(x/2))^2 /
                        (e^epsilon - 1) at x in [-epsilon, epsilon] (Dong, Durfee & Rogers 2020; Zhu, Dong & Wang 2022)
    skellam             none is known for vectors, so the accountant answers infinity
    a batch             the curve of its uses together, moved by the sampling

A curve H_t(P, Q) is moved by a Poisson sample, with Q without the unit and P with it, for thresholds t = e^x

    H_t((1-q) Q + q P, Q) = q H_s(P, Q),      s = (t - 1 + q) / q                                where t > 1 - q
    H_t(Q, (1-q) Q + q P) = c H_s(Q, P),      s = t q / c,   c = 1 - t (1-q)                     where c > 0
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

import numpy as np
import scipy

from .costs import Batch, Cost, Costs, Use, as_one_gaussian
from .distribution import Array, Curve, Distribution, Losses

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_mechanism import AdditiveNoisePrivacyLoss

GRID = 1e-4  # of privacy losses, in units of epsilon; each is rounded up
ROUGH = 1e-3  # ten times as quick, and a bound too


def total_loss(costs: Costs, grid: float = GRID) -> Losses | None:
    """Return the privacy loss distribution of everything together; `None` where a mechanism has none."""
    uses = [(unsampled(cost), count) for cost, count in costs if isinstance(cost, Use)]
    batches = [(cost, count) for cost, count in costs if isinstance(cost, Batch)]
    found = [loss(cost, count, grid) for cost, count in (*as_one_gaussian(uses), *batches)]
    losses = [one for one in found if one is not None]
    return None if len(losses) < len(found) else reduce(Losses.compose, losses)


def unsampled(use: Use) -> Use:
    """Return a use without its sampling where a unit is exchanged: the curves above are for a unit more."""
    return use._replace(rate=1.0, exchanged=False) if use.exchanged else use


@lru_cache(maxsize=32)
def loss(cost: Cost, count: int, grid: float = GRID) -> Losses | None:
    """Return the privacy loss distribution of `count` uses of one mechanism."""
    if isinstance(cost, Use) and cost.kind == "gaussian" and cost.rate == 1:
        cost, count = cost._replace(noise_multiplier=cost.noise_multiplier / math.sqrt(count)), 1
    if count > 1:
        once = loss(cost, 1, grid)
        return None if once is None else once.times(count)
    if isinstance(cost, Batch):
        inside = total_loss(cost.uses, grid)
        if inside is None:
            return None
        remove, add = inside.both()
        low, high = min(remove.losses[0], -add.losses[-1]), max(remove.losses[-1], -add.losses[0])
        return _sampled(remove.delta, add.delta, float(low), float(high), cost.rate, grid)
    if cost.kind in ("gaussian", "laplace"):
        return _noise(cost, grid)
    if cost.kind == "exponential":
        hull = _range_hull(cost.epsilon)
        return _sampled(hull, hull, -cost.epsilon, cost.epsilon, cost.rate, grid)
    if cost.kind in ("pure", "approximate"):
        return _response(cost, grid)
    return None


def _response(use: Use, grid: float) -> Losses:
    """Randomised response that reveals everything with probability `delta`, on a Poisson sample."""
    without = scipy.special.expit(np.array([-use.epsilon, use.epsilon]))
    with_unit = (1 - use.rate) * without + use.rate * without[::-1]
    losses = np.log(with_unit) - np.log(without)
    remove = Distribution.from_atoms(losses, with_unit, use.leak, grid)
    return Losses(remove, None if use.rate == 1 else Distribution.from_atoms(-losses, without, use.leak, grid))


def _noise(use: Use, grid: float) -> Losses:
    """Gaussian or Laplace noise on a number, on a Poisson sample."""
    from dp_accounting.pld import privacy_loss_mechanism as library

    make = library.GaussianPrivacyLoss if use.kind == "gaussian" else library.LaplacePrivacyLoss

    def of(adjacency: library.AdjacencyType) -> Distribution:
        noise = make(use.noise_multiplier, sampling_prob=use.rate, adjacency_type=adjacency)
        ends = noise.connect_dots_bounds()
        curve = _curve(noise, use, removed=adjacency is library.AdjacencyType.REMOVE)
        return Distribution.from_curve(curve, ends.epsilon_lower, ends.epsilon_upper, grid)

    remove = of(library.AdjacencyType.REMOVE)
    return Losses(remove, None if use.rate == 1 else of(library.AdjacencyType.ADD))


def _curve(noise: AdditiveNoisePrivacyLoss, use: Use, *, removed: bool) -> Curve:
    """`noise.get_delta_for_epsilon` for a whole grid at once: its own loop over the grid takes seconds.

    At epsilon x the unsampled loss is l = log(1 + (e^x - 1) / q), or -log(1 + (e^-x - 1) / q) of the neighbour without the
    unit, and the noise is below -1/2 - l z^2 (Gaussian) or -1/2 - l z / 2 (Laplace), or 1 above it. The operations and their
    order are those of `dp_accounting`: thousands of rounds magnify a difference in the last digit.
    """
    q, z, sign, shift = use.rate, use.noise_multiplier, (1.0 if removed else -1.0), (0.0 if removed else 1.0)

    def unsampled_loss(x: Array) -> Array:
        at, end = sign * x, math.log(1 - q)
        scaled = at + np.log(1 / q)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = scaled + np.log1p(-np.exp(np.log(1 / q - 1) - scaled))
        found = np.where(at == 0, np.log(1 / q + (1 - 1 / q)), found)
        return sign * np.where(np.abs(at - end) <= 1e-9 * np.maximum(np.abs(at), abs(end)), -math.inf, found)

    def curve(x: Array) -> Array:
        found = -np.expm1(np.minimum(x, 0.0)) if removed else np.zeros_like(x)
        inside = np.full(x.shape, True) if q == 1 else sign * x > math.log1p(-q)
        loss = x[inside] if q == 1 else unsampled_loss(x[inside])
        if use.kind == "gaussian":
            place = -0.5 - loss * z**2
        else:
            place = np.where(loss * z > 1, -math.inf, np.where(loss * z <= -1, math.inf, 0.5 * (-1 - loss * z)))
        place = place + shift
        found[inside] = noise.mu_upper_cdf(place) - np.exp(x[inside] + noise.mu_lower_log_cdf(place))
        return np.clip(found, 0.0, 1.0)

    return curve


def _range_hull(epsilon: float) -> Curve:
    def hull(x: Array) -> Array:
        inside = np.clip(x, -epsilon, epsilon)
        found = np.expm1((inside - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
        return np.where(x < -epsilon, -np.expm1(np.minimum(x, 0.0)), found)

    return hull


def _sampled(remove: Curve, add: Curve, low: float, high: float, rate: float, grid: float) -> Losses:
    """Return the distribution on a Poisson sample of a mechanism with these curves and losses from `low` to `high`."""

    def with_unit(x: Array) -> Array:
        beyond = np.expm1(x) + rate
        at = np.log(np.maximum(beyond, 1e-300) / rate)
        return np.where(beyond > 0, rate * remove(at), -np.expm1(np.minimum(x, 0.0)))

    def without(x: Array) -> Array:
        left = rate - np.expm1(x) * (1 - rate)
        at = x + math.log(rate) - np.log(np.maximum(left, 1e-300))
        return np.where(left > 0, left * add(at), 0.0)

    if rate == 1 and remove is add:
        return Losses(Distribution.from_curve(remove, low, high, grid))
    least, most = (end if rate == 1 else np.logaddexp(math.log1p(-rate), math.log(rate) + end) for end in (low, high))
    below = Distribution.from_curve(with_unit, least, most, grid)
    return Losses(below, Distribution.from_curve(without, -most, -least, grid))
