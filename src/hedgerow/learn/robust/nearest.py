"""Rules that choose rows by how near others are: Krum, multi-Krum, Bulyan.

    score_i    = sum of the n - f - 2 least |r_i - r_j|^2 over j != i
    Krum       = r_i of the least score
    multi-Krum = mean of the n - f rows of the least scores
    Bulyan     = of n - 2 f rows, in each coordinate the mean of the n - 4 f values nearest their median; Krum chooses the rows
                 one after another, each among the m that are left, by its m - f - 2 nearest others and by one at least

Needs  : 2 f + 2 < n for Krum and multi-Krum, n >= 4 f + 3 for Bulyan.
Cost   : O(n^2 d) for the distances, which are a product of matrices taken a block of coordinates at a time; Bulyan chooses in
         O(n^3) besides.
Source : Blanchard et al., NeurIPS 2017, section 4; El Mhamdi et al., ICML 2018, section 4.

Rows that are alike score well. Parties that send the same row look like agreement, so free riders win where parties differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .columns import blocks, products_of
from .rule import Array, Beside, CountingRule


def squared_distances(rows: Array) -> Array:
    """|r_i - r_j|^2 of rows (n, d), shape (n, n), in double precision; never below zero."""
    products = products_of(rows)
    squares = np.diag(products)
    found: Array = np.maximum(squares[:, None] + squares - 2 * products, 0.0)  # nearly equal rows give small negative numbers
    return found


def scores_of(rows: Array, f: int) -> Array:
    """Krum's score of each row, (n,): the least is best."""
    distances = squared_distances(rows)
    np.fill_diagonal(distances, np.inf)
    near = len(rows) - f - 2
    scores: Array = np.partition(distances, near - 1, axis=1)[:, :near].sum(1)
    return scores


def best_of(rows: Array, f: int, count: int) -> Array:
    """The rows of the least scores, in the order of the parties."""
    return rows[np.sort(np.argsort(scores_of(rows, f), kind="stable")[:count])]


def chosen_in_turn(rows: Array, f: int, count: int) -> Array:
    """So many rows, in the order of the parties, of which each is Krum's choice among those that are left."""
    distances, left = squared_distances(rows), np.arange(len(rows))
    np.fill_diagonal(distances, np.inf)
    chosen = []
    for _ in range(count):
        near = max(len(left) - f - 2, 1)
        scores = np.partition(distances[np.ix_(left, left)], near - 1, axis=1)[:, :near].sum(1)
        best = int(scores.argmin())
        chosen.append(left[best])
        left = np.delete(left, best)
    return rows[np.sort(chosen)]


def mean_near_median(rows: Array, count: int) -> Array:
    """In each coordinate of rows (n, d) the mean of the `count` values nearest their median."""
    found, n = np.empty(rows.shape[1], rows.dtype), len(rows)
    for part in blocks(rows):
        ordered = np.sort(rows[:, part].T.astype(np.float64), axis=1)
        middle = (ordered[:, (n - 1) // 2] + ordered[:, n // 2])[:, None] / 2
        # the nearest values are neighbours in order: the window whose farther end is nearest
        ends = np.maximum(middle - ordered[:, : n - count + 1], ordered[:, count - 1 :] - middle)
        first = ends.argmin(1)
        sums = np.concatenate([np.zeros((len(ordered), 1)), np.cumsum(ordered, 1)], 1)
        rows_of = np.arange(len(ordered))
        mean = (sums[rows_of, first + count] - sums[rows_of, first]) / count
        found[part] = np.clip(mean, ordered[rows_of, first], ordered[rows_of, first + count - 1])
    return found


@dataclass(frozen=True)
class Krum(CountingRule):
    """The row whose n - f - 2 nearest others are nearest (Blanchard et al. 2017); needs 2 f + 2 < n.

    Attributes
    ----------
    f : int, optional
        Of the rows, how many may be false; from `expect` where it is left out.
    """

    @property
    def name(self) -> str:
        return "krum"

    @property
    def condition(self) -> str:
        return "2 f + 2 < n"

    def largest(self, n: int) -> int:
        return (n - 3) // 2

    def combine(self, rows: Array, beside: Beside) -> Array:
        best: Array = best_of(rows, self.f or 0, 1)[0]
        return best.copy()


@dataclass(frozen=True)
class MultiKrum(CountingRule):
    """The mean of the n - f rows of the best scores of Krum (Blanchard et al. 2017, section 4); needs 2 f + 2 < n.

    Attributes
    ----------
    f : int, optional
        Of the rows, how many may be false; from `expect` where it is left out.
    """

    @property
    def name(self) -> str:
        return "multi-krum"

    @property
    def condition(self) -> str:
        return "2 f + 2 < n"

    def largest(self, n: int) -> int:
        return (n - 3) // 2

    def combine(self, rows: Array, beside: Beside) -> Array:
        f = self.f or 0
        mean: Array = best_of(rows, f, len(rows) - f).mean(0, dtype=np.float64)
        return mean.astype(rows.dtype)


@dataclass(frozen=True)
class Bulyan(CountingRule):
    """Of n - 2 f rows that Krum chooses one by one, the mean of the n - 4 f values nearest each median; needs n >= 4 f + 3.

    Source: El Mhamdi et al. 2018, section 4.

    Attributes
    ----------
    f : int, optional
        Of the rows, how many may be false; from `expect` where it is left out.
    """

    @property
    def name(self) -> str:
        return "bulyan"

    @property
    def condition(self) -> str:
        return "n >= 4 f + 3"

    def largest(self, n: int) -> int:
        return (n - 3) // 4

    def combine(self, rows: Array, beside: Beside) -> Array:
        n, f = len(rows), self.f or 0
        return mean_near_median(chosen_in_turn(rows, f, n - 2 * f), n - 4 * f)
