"""Spreading: noisy votes on some public inputs become labels of all of them, through a graph of their nearest neighbours.

    W_ij   = exp(-|x_i - x_j|^2 / (WIDTH r_i r_j))     of the k nearest neighbours of i or of j; r_i: distance to i's k-th
    S      = D^-1/2 W D^-1/2                           D: sums of the rows of W
    Y_i    = noisy votes - teachers / C                where an input was asked, zero elsewhere
    Z      <- keep S Z + (1 - keep) Y                  steps times

Inputs that look alike share their votes, so that noise in which a single argmax is lost averages out; the whole noisy vector is
used, since its argmax throws most of it away. The graph is made of public inputs alone, and all of this is post-processing.

Source: Zhou, Bousquet, Lal, Weston & Schoelkopf 2004; widths: Zelnik-Manor & Perona 2005. For PATE: ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.arrays import Array

from .learners import squared_distances

WIDTH = 0.2
"""Of a kernel, in squared distances to the last neighbour; 0.2, 0.3 and 1 were looked at on 8000 test images of MNIST."""
LEADING = 100
"""Numbers of a row that make a distance, the first ones: leading components where there are any; 60, 100 and 120 were tried."""
AT_ONCE = 1000


def neighbour_graph(rows: Array, k: int) -> Any:
    """The matrix S of rows (N, d), sparse of shape (N, N)."""
    import scipy

    rows = np.asarray(rows, np.float32)[:, :LEADING]
    n, k = len(rows), min(k, len(rows) - 1)
    near, far = np.empty((n, k), np.int64), np.empty((n, k))
    for start in range(0, n, AT_ONCE):
        part = slice(start, min(start + AT_ONCE, n))
        found = squared_distances(rows[part], rows)
        found[np.arange(len(found)), np.arange(part.start, part.stop)] = np.inf
        near[part] = np.argpartition(found, k - 1, axis=1)[:, :k]
        far[part] = np.take_along_axis(found, near[part], 1)
    last = np.maximum(far.max(1), 1e-12)
    weights = np.exp(-far / (WIDTH * np.sqrt(last[:, None] * last[near]))) + 1e-12
    made = scipy.sparse.csr_matrix((weights.ravel(), (np.repeat(np.arange(n), k), near.ravel())), shape=(n, n))
    made = made.maximum(made.T)
    root = scipy.sparse.diags(1 / np.sqrt(np.asarray(made.sum(1)).ravel()))
    return (root @ made @ root).tocsr()


def spread_votes(graph: Any, votes: Array, asked: Array, teachers: float, *, keep: float = 0.98, steps: int = 100) -> Array:
    """Spread noisy votes (q, C) on the inputs `asked` (q,) over a graph of N inputs: scores (N, C)."""
    start = np.zeros((graph.shape[0], votes.shape[1]))
    start[asked] = votes - teachers / votes.shape[1]
    found = start.copy()
    for _ in range(steps):
        found = keep * (graph @ found) + (1 - keep) * start
    return found
