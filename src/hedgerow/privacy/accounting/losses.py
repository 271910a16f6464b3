"""Privacy loss distributions on a grid of 1e-4, rounded up (Doroshenko et al. 2022), over `dp_accounting`.

    gaussian, laplace   `dp_accounting`, on a Poisson sample too
    pure, approximate   randomised response, its losses split over their neighbours on the grid
    exponential         the hull of all pairs whose privacy loss has a range of epsilon: (e^(epsilon/2) - e^(x/2))^2 /
                        (e^epsilon - 1) at x in [-epsilon, epsilon] (Dong, Durfee & Rogers 2020; Zhu, Dong & Wang 2022)
    skellam             none is known for vectors, so the accountant answers infinity
    a batch             the curve of its uses together, moved by the sampling

The last uses that on a Poisson sample, with Q without the unit and P with it, for thresholds t = e^x

    H_t((1-q) Q + q P, Q) = q H_s(P, Q),      s = (t - 1 + q) / q                                where t > 1 - q
    H_t(Q, (1-q) Q + q P) = c H_s(Q, P),      s = t q / c,   c = 1 - t (1-q)                     where c > 0

`PLDAccountant` of `dp_accounting` 0.6 forgets the count of randomised response, so distributions are composed here directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .costs import Batch, Cost, Costs, Use, as_one_gaussian

GRID = 1e-4  # of privacy losses, in units of epsilon; each is rounded up
ROUGH = 1e-3  # ten times as quick, and a bound too
Array = NDArray[np.float64]
Curve = Callable[[Array], Array]


def total_loss(costs: Costs, grid: float = GRID) -> Any | None:
    """Return the privacy loss distribution of everything together; `None` where a mechanism has none."""
    uses = [(unsampled(cost), count) for cost, count in costs if isinstance(cost, Use)]
    batches = [(cost, count) for cost, count in costs if isinstance(cost, Batch)]
    losses: list[Any] = [loss(cost, count, grid) for cost, count in (*as_one_gaussian(uses), *batches)]
    return None if None in losses else reduce(lambda total, one: total.compose(one), losses)


def unsampled(use: Use) -> Use:
    """Return a use without its sampling where a unit is exchanged: the curves above are for a unit more."""
    return use._replace(rate=1.0, exchanged=False) if use.exchanged else use


@lru_cache(maxsize=32)
def loss(cost: Cost, count: int, grid: float = GRID) -> Any | None:
    """Return the privacy loss distribution of `count` uses of one mechanism."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(cost, Use) and cost.kind == "gaussian" and cost.rate == 1:
        return pld.from_gaussian_mechanism(cost.noise_multiplier / math.sqrt(count), value_discretization_interval=grid)
    if count > 1:
        once = loss(cost, 1, grid)
        return None if once is None else once.self_compose(count)
    if isinstance(cost, Batch):
        inside = total_loss(cost.uses, grid)
        return (
            None
            if inside is None
            else _sampled(
                _curve_of(inside._pmf_remove, grid), _curve_of(inside._pmf_add, grid), *_ends(inside, grid), cost.rate, grid
            )
        )
    if cost.kind in ("gaussian", "laplace"):
        make = pld.from_gaussian_mechanism if cost.kind == "gaussian" else pld.from_laplace_mechanism
        return make(cost.noise_multiplier, value_discretization_interval=grid, sampling_prob=cost.rate)
    if cost.kind == "exponential":
        hull = _range_hull(cost.epsilon)
        return _sampled(hull, hull, -cost.epsilon, cost.epsilon, cost.rate, grid)
    if cost.kind in ("pure", "approximate"):
        return _response(cost, grid)
    return None


def _response(use: Use, grid: float) -> Any:
    """Randomised response that reveals everything with probability `delta`, on a Poisson sample."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    without = scipy.special.expit(np.array([-use.epsilon, use.epsilon]))
    with_unit = (1 - use.rate) * without + use.rate * without[::-1]
    losses = np.log(with_unit) - np.log(without)
    remove = _rounded(losses, with_unit, use.leak, grid)
    if use.rate == 1:
        return pld.PrivacyLossDistribution(remove)
    return pld.PrivacyLossDistribution(remove, _rounded(-losses, without, use.leak, grid))


def _rounded(losses: Array, probabilities: Array, leak: float, grid: float) -> Any:
    """Return the least distribution on the grid that is at least as bad as these losses, infinity with `leak`."""
    from dp_accounting.pld import pld_pmf

    support = np.unique(np.concatenate([np.floor(losses / grid), np.ceil(losses / grid)]).astype(int))
    over = -np.expm1(np.minimum(0.0, support[:, None] * grid - losses))
    deltas = leak + (1 - leak) * (over * probabilities).sum(axis=1)
    return pld_pmf.create_pmf_pessimistic_connect_dots(grid, support, np.clip(deltas, 0.0, 1.0))


def _range_hull(epsilon: float) -> Curve:
    def hull(x: Array) -> Array:
        inside = np.clip(x, -epsilon, epsilon)
        found = np.expm1((inside - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
        return np.where(x < -epsilon, -np.expm1(np.minimum(x, 0.0)), found)

    return hull


def _sampled(remove: Curve, add: Curve, low: float, high: float, rate: float, grid: float) -> Any:
    """Return the distribution on a Poisson sample of a mechanism with these curves and losses from `low` to `high`."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    def with_unit(x: Array) -> Array:
        beyond = np.expm1(x) + rate
        at = np.log(np.maximum(beyond, 1e-300) / rate)
        return np.where(beyond > 0, rate * remove(at), -np.expm1(np.minimum(x, 0.0)))

    def without(x: Array) -> Array:
        left = rate - np.expm1(x) * (1 - rate)
        at = x + math.log(rate) - np.log(np.maximum(left, 1e-300))
        return np.where(left > 0, left * add(at), 0.0)

    def on_grid(curve: Curve, first: float, last: float) -> Any:
        lower, upper = math.floor(first / grid), math.ceil(last / grid)
        deltas = np.clip(curve(np.asarray(np.arange(lower, upper + 1) * grid, np.float64)), 0.0, 1.0)
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, lower, upper, np.minimum.accumulate(deltas))

    least, most = (end if rate == 1 else np.logaddexp(math.log1p(-rate), math.log(rate) + end) for end in (low, high))
    both = on_grid(with_unit, least, most), on_grid(without, -most, -least)
    return pld.PrivacyLossDistribution(*both)


def _curve_of(pmf: Any, grid: float) -> Curve:
    """Return the hockey-stick divergences of a distribution on the grid, at many thresholds."""
    dense = pmf.to_dense_pmf()
    losses = (np.arange(dense.size) + dense._lower_loss) * grid
    # from the greatest loss down: the mass above a threshold, and that of the other distribution there
    mass = np.append(np.cumsum(dense._probs[::-1])[::-1], 0.0)
    other = np.append(np.cumsum((dense._probs * np.exp(np.minimum(-losses, 700.0)))[::-1])[::-1], 0.0)

    def curve(x: Array) -> Array:
        above = np.searchsorted(losses, x, side="right")
        return np.asarray(dense._infinity_mass + mass[above] - np.exp(np.minimum(x, 700.0)) * other[above])

    return curve


def _ends(found: Any, grid: float) -> tuple[float, float]:
    """Return the least and greatest finite loss of removing the unit and, with its sign turned, of adding it."""
    remove, add = found._pmf_remove.to_dense_pmf(), found._pmf_add.to_dense_pmf()
    low = min(remove._lower_loss, -(add._lower_loss + add.size - 1)) * grid
    high = max(remove._lower_loss + remove.size - 1, -add._lower_loss) * grid
    return low, high
