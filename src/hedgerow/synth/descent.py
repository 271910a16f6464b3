"""Descent: records of a tree, under conditions exactly, by one pass of messages and no rejection.

    up        m_v(x_p) = sum over x_v of P(x_v | x_p) e_v(x_v) prod over children u of v: m_u(x_v)          from the leaves
    Z         sum over x_r of P(x_r) e_r(x_r) prod over children u of r: m_u(x_r)                           the root
    down      x_v given x_p  ~  P(x_v | x_p) e_v(x_v) prod over children u of v: m_u(x_v)                   from the root

e are the weights of `Conditions`, ones where there is none. Z of a class is the expected number of its records that satisfy
them, which is how classes share the rows.

Records are not drawn one by one. Of the k rows with one parent's code, each code of the child gets its share of k, rounded
down or up, by systematic sampling: a cell differs by less than one from its share, its expectation is its share, and where
shares are whole numbers the table of an edge is reproduced. Which of the k rows get it is a random order.

Source : messages on trees, Pearl 1988, section 4.2; systematic sampling, Madow & Madow 1944.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array

from .tree import ColumnTree

WHOLE = 1e-9
"""Shares this close to a whole number are one: of tables that were exact."""


@dataclass(frozen=True)
class Branch:
    """One column of a tree, on the way down.

    Attributes
    ----------
    column, parent : int
        Places; the parent of a root is -1.
    weights : array of shape (codes of the parent, codes)
        Of the child's codes given the parent's, the evidence below included; one row for a root.
    """

    column: int
    parent: int
    weights: Array


def passed(tree: ColumnTree, evidence: Mapping[int, Array]) -> tuple[float, list[Branch]]:
    """Pass messages up a tree: expected records that satisfy the evidence, and the steps down.

    Parameters
    ----------
    evidence : mapping from a column's place to its weights (codes,)
    """
    order = _order(tree)
    below = [np.array(evidence.get(j, np.ones(len(node))), dtype=float) for j, node in enumerate(tree.nodes)]
    steps, share = [], 1.0
    for column, parent in reversed(order):
        if parent < 0:
            weights = (tree.nodes[column] * below[column])[None]
            share *= weights.sum() / tree.total if tree.total > 0 else 0.0
        else:
            joint = tree.edges[parent, column] if parent < column else tree.edges[column, parent].T
            weights = joint * below[column]
            held = tree.nodes[parent]
            below[parent] *= np.divide(weights.sum(1), held, out=np.zeros_like(held), where=held > 0)
        steps.append(Branch(column, parent, weights))
    return share * tree.total, steps[::-1]


def rounded(weights: Array, groups: Array, rng: np.random.Generator) -> Array:
    """Divide each of `groups` (g,) rows among codes by weights (g, codes): whole numbers whose rows sum to the groups."""
    total = weights.sum(1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0) * groups[:, None]
    ends = np.cumsum(shares, axis=1)
    ends[:, -1] = groups
    start = rng.random((len(groups), 1))
    near = np.abs(ends - np.rint(ends)) < WHOLE * np.maximum(groups, 1)[:, None]
    ends = np.where(near, np.rint(ends), ends)
    found: Array = np.diff(np.floor(ends + start), axis=1, prepend=0.0).astype(np.intp)
    return found


def drawn(steps: Sequence[Branch], rows: int, f: int, rng: np.random.Generator) -> Array:
    """Draw the codes of so many records: shape (rows, f)."""
    codes = np.zeros((rows, f), np.intp)
    for step in steps:
        given = codes[:, step.parent] if step.parent >= 0 else np.zeros(rows, np.intp)
        counts = rounded(step.weights, np.bincount(given, minlength=len(step.weights)), rng)
        places = np.lexsort((rng.random(rows), given))
        codes[places, step.column] = np.repeat(np.tile(np.arange(counts.shape[1]), len(counts)), counts.ravel())
    return codes


def _order(tree: ColumnTree) -> list[tuple[int, int]]:
    """Columns with their parents, parents first: the first column of each part is its root."""
    near: dict[int, list[int]] = {j: [] for j in range(len(tree.nodes))}
    for i, j in tree.edges:
        near[i].append(j)
        near[j].append(i)
    order: list[tuple[int, int]] = []
    seen: set[int] = set()
    for root in near:
        waiting = [] if root in seen else [(root, -1)]
        while waiting:
            column, parent = waiting.pop()
            seen.add(column)
            order.append((column, parent))
            waiting += [(child, column) for child in near[column] if child != parent]
    return order
