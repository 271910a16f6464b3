"""How far two columns of any kinds are associated: a number from 0 to 1.

    number, number        |r|, the absolute correlation
    number, category      the correlation ratio: share of the variance between levels, its root
    category, category    Cramér's V

All are one formula. A column gives centred orthonormal columns Q, one of a number, up to L - 1 of L levels, several of an
array; the association of two columns is |Q_i' Q_j| (Frobenius) over the root of the smaller rank. It is computed from records
in the clear, for simulations.
"""

from __future__ import annotations

import numpy as np

from .column import Column
from .table import Table

MOST_OF_ARRAY = 50
"""Numbers of an array that are looked at, evenly spread."""


def associations(table: Table) -> np.ndarray:
    """Return the association of each pair of columns, an array of shape (k, k) with ones on its diagonal.

    A column that does not vary is associated with none, nor with itself.
    """
    bases = [_orthonormal(_numbers(column, np.asarray(table.columns[column.name]))) for column in table.schema]
    found = np.zeros((len(bases), len(bases)))
    for i, one in enumerate(bases):
        for j, other in enumerate(bases[: i + 1]):
            rank = min(one.shape[1], other.shape[1])
            found[i, j] = found[j, i] = np.linalg.norm(one.T @ other) / rank**0.5 if rank else 0.0
    return np.minimum(found, 1.0)


def _numbers(column: Column, values: np.ndarray) -> np.ndarray:
    if column.kind == "category":
        return (values[:, None] == np.unique(values)).astype(float)
    flat = values.reshape(len(values), -1).astype(float)
    kept = flat[:, np.unique(np.linspace(0, flat.shape[1] - 1, min(flat.shape[1], MOST_OF_ARRAY)).astype(int))]
    return np.where(np.isfinite(kept), kept, 0.0)


def _orthonormal(numbers: np.ndarray) -> np.ndarray:
    centred = numbers - numbers.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found: np.ndarray = u[:, s > 1e-9 * max(float(np.abs(numbers).max(initial=0.0)), 1e-300) * len(numbers) ** 0.5]
    return found
