"""One attack for all mechanisms: learn on half of the releases which outcomes speak for a neighbour, count on the other half.

Whatever event E is chosen, P(E) <= e^epsilon P'(E) + delta under (epsilon, delta); so Clopper-Pearson limits for both
probabilities give an epsilon below which the mechanism cannot be. An honest mechanism is accused with the stated
probability; one that claims too little is caught where enough releases fall into E.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from scipy import stats

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Streams

TRIALS = 100_000
FALSE_ALARM = 1e-6
"""Probability that an honest mechanism is accused by one attack."""


def entropy(seed: int = 0, purpose: str = "noise"):
    return Streams(seed).entropy(0, "server", purpose)


def epsilon_lower_bound(
    here: Array, there: Array, *, delta: float = 0.0, false_alarm: float = FALSE_ALARM, cells: int = 64
) -> float:
    """Return an epsilon that the mechanism exceeds but with probability `false_alarm`.

    Parameters
    ----------
    here, there : array of shape (trials,)
        One number for each release on either of two neighbours: the release, or a statistic of it.
    cells : int
        Outcomes are told apart where there are no more than this, else by quantiles.
    """
    both = ((here, there), (there, here))
    return max(_bound(first, second, delta, false_alarm / 2, cells) for first, second in both)


def _bound(here: Array, there: Array, delta: float, false_alarm: float, cells: int) -> float:
    edges = _edges(np.concatenate([here[::2], there[::2]]), cells)
    event = _telling(*(np.bincount(np.searchsorted(edges, x[::2]), minlength=len(edges) + 1) for x in (here, there)), delta)
    hits = [int(event[np.searchsorted(edges, x[1::2])].sum()) for x in (here, there)]
    return certain(hits[0], len(here[1::2]), hits[1], len(there[1::2]), delta, false_alarm)


def _edges(seen: Array, cells: int) -> Array:
    values = np.unique(seen)
    return values if len(values) <= cells else np.unique(np.quantile(seen, np.linspace(0, 1, cells + 1)[1:-1]))


def _telling(here: Array, there: Array, delta: float) -> Array:
    """The cells, most telling first, that together give the largest bound on the half that is learned from."""
    order = np.argsort(-(here + 0.5) / (there + 0.5), kind="stable")
    n, m = here.sum(), there.sum()
    bounds = [certain(a, n, b, m, delta, 1e-3) for a, b in zip(here[order].cumsum(), there[order].cumsum(), strict=True)]
    event = np.zeros(len(order), bool)
    event[order[: int(np.argmax(bounds)) + 1]] = True
    return event


def certain(hits: int, n: int, others: int, m: int, delta: float, false_alarm: float) -> float:
    """The epsilon implied by `hits` of n releases here and `others` of m there, with Clopper-Pearson limits."""
    low = stats.beta.ppf(false_alarm / 2, hits, n - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - false_alarm / 2, others + 1, m - others) if others < m else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


def low_bits(values: Array, grid: float) -> float:
    """Share of the values in (-1/2, 1/2) that are whole multiples of the grid: what floating-point noise gives away."""
    near = values[np.abs(values) < 0.5]
    return float((near / grid == np.round(near / grid)).mean())


def chi_square_p_value(drawn: Array, law: dict[int, float]) -> float:
    """Chi-square test of whole numbers against a law; values that are expected rarely share a bin."""
    kept = np.array([k for k, p in law.items() if p * len(drawn) >= 10])
    expected = np.array([law[k] for k in kept.tolist()]) * len(drawn)
    observed = np.array([(drawn == k).sum() for k in kept.tolist()])
    rest = len(drawn) - expected.sum()
    if rest > 5:
        expected, observed = np.append(expected, rest), np.append(observed, len(drawn) - observed.sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def on_neighbours(release: Callable[[Array, int], Array], pairs: Iterable[tuple[Array, Array]], **settings: float) -> float:
    """The largest lower bound over some pairs of neighbours; `release(data, seed)` returns a statistic of many releases."""
    found = []
    for k, (here, there) in enumerate(pairs):
        found.append(epsilon_lower_bound(release(here, 2 * k + 1), release(there, 2 * k + 2), **settings))
    return max(found)
