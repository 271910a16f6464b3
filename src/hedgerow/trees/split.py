"""The best split of every node, from a level's histogram. Numbers in, numbers out: nothing here knows of parties.

A cell of a histogram holds, for one node, feature and bin, the weighted count of every class (classification), or the
weighted count and the weighted sum of the target (regression). With n the count and m the classes' counts or the sum,

    score = sum(m^2) / n          gain = score(left) + score(right) - score(both)

which is the decrease of n times the Gini impurity, or of the sum of squares: the squares of the target cancel, so they
are never asked. Noise may make counts negative; they are read as zero, and no node below `min_records` is made.

Source: Breiman, Friedman, Olshen & Stone 1984, sections 4.3 and 8.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from hedgerow.core.arrays import Array

from .bins import Bins
from .histograms import every_feature, padded

TIE = 1e-13
"""Gains closer than this share of the scores they come from are equal: sums in another order differ by as much."""

AT_ONCE = 512
"""So many nodes are split at once: those of a forest are many."""


@dataclass(frozen=True)
class Splits:
    """The best split of each of k nodes.

    Attributes
    ----------
    feature, threshold : array of int, shape (k,)
        Bins up to `threshold` go left.
    gain : array of shape (k,)
        Decrease of the node's impurity times its records; zero where no split is worth making.
    left, right : array of shape (k, s)
        What the two children hold, as in a histogram's cell.
    """

    feature: Array
    threshold: Array
    gain: Array
    left: Array
    right: Array


def weigh(cells: Array, classified: bool) -> tuple[Array, Array]:
    """Split cells of shape (..., s) into records of shape (...) and class counts, or sums, of shape (..., m)."""
    if classified:
        counts = np.maximum(cells, 0.0)
        return counts.sum(-1), counts
    return np.maximum(cells[..., 0], 0.0), cells[..., 1:]


def score(cells: Array, classified: bool) -> Array:
    """Return `sum(m^2) / n` of cells of shape (..., s); zero where there are no records."""
    n, m = weigh(cells, classified)
    found: Array = np.divide((m**2).sum(-1), n, out=np.zeros_like(n), where=n > 0)
    return found


def by_feature(histogram: Array, bins: Bins) -> Array:
    """Give every feature as many bins as the largest has, at least two: (k, sum of sizes, s) to (k, f, largest, s)."""
    every = every_feature(len(histogram), len(bins.features))
    return padded(histogram.reshape(-1, histogram.shape[-1]), every, bins.sizes)


def best_splits(histogram: Array, bins: Bins, *, min_records: float, chosen: Array | None = None) -> Splits:
    """Choose the split of largest gain in each node; among equals the first feature, then the lowest threshold.

    Parameters
    ----------
    histogram : array of shape (k, m, largest, s)
        As `by_feature`, or `histograms.padded`, returns it.
    min_records : float
        Weighted records that both children must have.
    chosen : array of int, shape (k, m), optional
        The features of each node, where they are not all.
    """
    classified = bool(bins.classes)
    return splits_by(
        partial(score, classified=classified),
        lambda cells: weigh(cells, classified)[0],
        histogram,
        every_feature(len(histogram), len(bins.features)) if chosen is None else chosen,
        bins.sizes,
        least=min_records,
    )


def splits_by(
    scored: Callable[[Array], Array],
    weighed: Callable[[Array], Array],
    histogram: Array,
    chosen: Array,
    sizes: tuple[int, ...],
    *,
    least: float,
) -> Splits:
    """Choose the splits that raise a score most, of two children that weigh at least `least` each."""
    if len(histogram) > AT_ONCE:
        blocks = [slice(i, i + AT_ONCE) for i in range(0, len(histogram), AT_ONCE)]
        made = [splits_by(scored, weighed, histogram[one], chosen[one], sizes, least=least) for one in blocks]
        return Splits(*(np.concatenate([getattr(one, field.name) for one in made]) for field in fields(Splits)))
    below = histogram.cumsum(2)
    both, left = below[:, :, -1:], below[:, :, :-1]
    right = both - left
    children = scored(left) + scored(right)
    smaller = np.minimum(weighed(left), weighed(right))
    is_cut = np.arange(left.shape[2]) < (np.array(sizes)[chosen] - 1)[..., None]
    gain = np.where(is_cut & (smaller >= least), children - scored(both), 0.0)
    tie = TIE * children.max((1, 2))
    first = (gain >= (gain.max((1, 2)) - tie)[:, None, None]).reshape(len(gain), -1).argmax(1)
    feature, threshold = np.divmod(first, left.shape[2])
    at = np.arange(len(gain)), feature, threshold
    found = gain[at]
    return Splits(chosen[at[0], feature], threshold, np.where(found > tie, found, 0.0), left[at], right[at])
