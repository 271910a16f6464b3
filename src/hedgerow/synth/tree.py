"""Trees: a law of records whose columns are joined by the edges of a tree, fitted to noisy tables, and drawn from exactly.

    nodes     each column's table:  the mean of all its views weighted by their precision, in cells where noise explains how
              classes differ the same in all of them, projected to {x >= 0, sum n}
    edges     each pair's table:    cleaned of noise, moved to agree with its two nodes, none below zero
    law       P(x) = prod over edges of P(x_i, x_j) / prod over nodes of P(x_j)^(degree - 1)

Tables of a tree's edges that agree on its nodes are a law of whole records, so that nothing else has to be fitted. A table that
agrees already is left as it is: without noise a tree has the tables that were asked.

Noise is removed from a table by the shrinkage of its singular values. What is left of a pair when independence is taken away
has few directions that matter, since who is older is also more often married, whatever the age; and noise has all of them.

    R         <- table - nodes_i nodes_j' / n             (a, b), with noise of standard deviation sigma in each cell
    y         <- singular values of R / (sigma sqrt(b)),  a <= b,  beta = a / b
    keep      <- sqrt((y^2 - beta - 1)^2 - 4 beta) / y    where y > 1 + sqrt(beta), else 0
    table     <- nodes_i nodes_j' / n + U diag(keep) V' sigma sqrt(b)

Source : tables of a tree that agree, Chow & Liu 1968; measured with noise, McKenna, Miklau & Sheldon 2021 (MST), section 4;
         shrinkage of singular values for the squared error, Gavish & Donoho 2017, equation 7. The projection is that of Held,
         Wolfe & Crowder 1974.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array

AGREE = 60
"""Rounds of projections of an edge's table."""
SCALE = 50
"""Rounds of scaling its rows and columns, after which it agrees."""
NEAR = 1e-10
"""Of the records: tables that agree so far are left as they are."""


@dataclass(frozen=True)
class ColumnTree:
    """A law of records whose columns are joined by a tree, or by several.

    Attributes
    ----------
    nodes : tuple of arrays (codes,)
        Expected records with each code of each column; each sums to the same number.
    edges : mapping from (i, j), i < j, to array (codes of i, codes of j)
        Expected records with both; rows sum to node i, columns to node j.
    """

    nodes: tuple[Array, ...]
    edges: Mapping[tuple[int, int], Array]

    @property
    def total(self) -> float:
        """Expected records."""
        return float(self.nodes[0].sum())


def simplex(values: Array, total: float) -> Array:
    """The point of {x >= 0, sum x = total} that is nearest to an array of any shape; zeros of a total of zero or less."""
    if total <= 0:
        return np.zeros_like(values)
    ordered = np.sort(values, axis=None)[::-1]
    level = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    found: Array = np.maximum(values - level[np.flatnonzero(ordered > level)[-1]], 0.0)
    return found


def spanning(scores: Mapping[tuple[int, int], float]) -> list[tuple[int, int]]:
    """Edges of the tree with the largest sum of scores (Kruskal); those without a positive score are left out."""
    part = {j: j for pair in scores for j in pair}
    kept = []
    for pair in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        i, j = (part[end] for end in pair)
        if i != j and scores[pair] > 0:
            kept.append(pair)
            part = {place: i if group == j else group for place, group in part.items()}
    return kept


def combined(views: Sequence[tuple[Array, float]]) -> tuple[Array, float]:
    """One table from several views of it, each with the variance of its cells: their mean by precision, and its variance."""
    precision = sum(1 / variance for _, variance in views)
    mean: Array = np.sum([view / variance for view, variance in views], axis=0) / precision
    return mean, 1 / precision


def shrunk(means: Array, totals: Array, variance: float) -> Array:
    """Tables of a column in each class (classes, codes), those cells drawn to the column's law that noise explains.

    A cell's distance r from what its class would have of the column as a whole is kept by the part 1 - variance / r^2, and not
    at all where that is below zero: the rule of James & Stein 1961 for a single number (the garrote of Breiman 1995).
    """
    base = np.outer(totals / totals.sum(), simplex(means.sum(0), float(totals.sum())))
    off = means - base
    return np.asarray(base + off * np.maximum(1 - variance / np.maximum(off**2, variance), 0.0))


def independent(first: Array, second: Array) -> Array:
    """The table of two nodes that have nothing to do with each other."""
    total = first.sum()
    return np.outer(first, second) / total if total > 0 else np.zeros((len(first), len(second)))


def cleaned(table: Array, first: Array, second: Array, sigma: float) -> Array:
    """A table without the noise that shrinkage of its singular values removes; as it is where there is none."""
    if sigma <= 0:
        return table
    base = independent(first, second)
    U, s, Vt = np.linalg.svd(table - base, full_matrices=False)
    short, long = sorted(table.shape)
    beta, scale = short / long, sigma * np.sqrt(long)
    y = s / scale
    with np.errstate(invalid="ignore", divide="ignore"):
        keep = np.where(y > 1 + np.sqrt(beta), np.sqrt(np.maximum((y**2 - beta - 1) ** 2 - 4 * beta, 0)) / y, 0.0)
    found: Array = base + (U * (keep * scale)) @ Vt
    return found


def agreeing(table: Array, first: Array, second: Array) -> Array:
    """The table moved until its rows sum to one node and its columns to the other, with no cell below zero.

    Alternating projections to the three sets, then scaling of rows and columns, which ends in all of them.
    """
    total, near = first.sum(), NEAR * max(first.sum(), 1e-300)
    if total <= 0:
        return np.zeros_like(table)
    P = table
    for _ in range(AGREE):
        rows, columns = first - P.sum(1), second - P.sum(0)
        if max(np.abs(rows).max(), np.abs(columns).max(), -P.min()) <= near:
            return np.maximum(P, 0.0)
        P = np.maximum(P, 0.0)
        P = P + ((first - P.sum(1)) / len(second))[:, None]
        P = P + (second - P.sum(0)) / len(first)
    P = np.maximum(P, 0.0) + 1e-9 * independent(first, second)  # so that no row or column is empty that may not be
    for _ in range(SCALE):
        P = P * _ratio(first, P.sum(1))[:, None]
        P = P * _ratio(second, P.sum(0))
    return P


def _ratio(wanted: Array, found: Array) -> Array:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)
