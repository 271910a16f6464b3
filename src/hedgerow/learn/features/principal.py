"""Private principal components: a first layer that is estimated once, with noise, and then fixed.

    x      <- record / |record|                                  at the party, so that |x x^T| <= 1
    M      <- sum of x x^T + noise                               one sum, its upper triangle with sqrt(2) off the diagonal
    V      <- leading k eigenvectors of M                        server, from the release alone
    record -> |record| forgotten, x V, brought to length one     at the party from now on

The triangle so weighted has the length of the whole matrix, which one record moves by at most 1; symmetric noise costs no
more. Everything after the release is post-processing. Behind noise x is rounded to 12 bits and the root to 7, neither up
beyond the length: all products are then whole numbers, of which a product of matrices in float64 adds up exactly.

Releases : the sum, of shape (d (d + 1) / 2,), once for each of `rounds`.
Unit     : record; l2(1), times the largest declared weight.
Source   : Abadi et al. 2016, section 4 (differentially private PCA), after Dwork et al. 2014. Differs: several releases from
           Poisson samples may take the place of one from all records, so that noise, sampling and cost of a release are
           those of a training step; rows are brought to length one again after the projection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import elementwise, local, travels
from hedgerow.core.whole import bound_in, step_of, whole
from hedgerow.data import Column, Schema
from hedgerow.errors import SettingsInvalid

from ..tensors import width
from .rows import FeatureReading, bound_of, of_length_one, reading, rows_of
from .steps import FeatureStep, Matrix

NAME = "principal components"
"""The column that the projection makes."""

AT_ONCE = 4096
"""Records whose numbers are held in float64 at once."""


@dataclass(frozen=True)
class Basis:
    """Leading directions of the second moments of records of length one.

    Attributes
    ----------
    vectors : array of shape (d, k)
    values : array of shape (k,)
        Their noisy second moments, the largest first.
    """

    vectors: np.ndarray
    values: np.ndarray


ROOT = 181 / 128
"""The root of two, rounded down to a number of which whole multiples are whole."""
BITS = 32
"""Steps to a radius: 24 for a product of two numbers of 12 bits, 7 for `ROOT`, 1 for an even number."""


@lru_cache(maxsize=4)
def _triangle(d: int, root: float = math.sqrt(2.0)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the upper triangle, and the root of two off the diagonal."""
    rows, columns = np.triu_indices(d)
    return rows, columns, np.where(rows == columns, 1.0, root)


@local(additive=True, holds=BITS, norms=(2, math.inf))
def second_moments(
    broadcast: None, party: Party, rng: Any, *, reads: FeatureReading, bounds: Bounds | None = None
) -> np.ndarray:
    """Upper triangle of the sum of w x x^T, off the diagonal times sqrt(2), or `ROOT` behind noise; shape (d (d + 1) / 2,)."""
    if bounds is None:
        x = rows_of(party.columns, reads)
        return _weighed(x.T @ (x * party.w[:, None]), math.sqrt(2.0))
    return _weighed(reduce(np.add, (x.T @ x for x in _whole_rows(party, reads, bound_in(bounds, "")))), ROOT)


def _weighed(products: np.ndarray, root: float) -> np.ndarray:
    rows, columns, weight = _triangle(len(products), root)
    found: np.ndarray = products[rows, columns] * weight
    return found


def _whole_rows(party: Party, reads: FeatureReading, bound: Bound) -> Iterator[np.ndarray]:
    """Rows times the roots of their weights, in steps of which products, times `ROOT`, are whole steps of the bound."""
    power = -(-(math.frexp(step_of(bound))[1] - 1 + 7) // 2)
    rows = Bound(2, math.sqrt(bound.radius), "record", math.ldexp(1.0, power))
    for start in range(0, max(len(party.w), 1), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        yield whole(np.sqrt(np.maximum(party.w[part], 0.0))[:, None] * rows_of(party.columns, reads, part), rows)


def principal(federation: Federation, components: int, *, rounds: int = 1, sampling_rate: float | None = None) -> Basis:
    """Estimate leading directions by noisy sums.

    Parameters
    ----------
    components : int
        Directions to keep, at most the numbers of a record.
    rounds : int
        Releases, which are added up.
    sampling_rate : float, optional
        Each release asks about a sample, which every record joins by itself with this probability; all records otherwise.

    Raises
    ------
    SettingsInvalid (HR-511)
        Before any party is asked.
    """
    ask = partial(second_moments, reads=reading(federation.schema))
    d = _checked(federation.schema, components, rounds)
    total = np.zeros(d * (d + 1) // 2)
    for _ in range(rounds):
        cohort = federation if sampling_rate is None else federation.sample(records=sampling_rate)
        total += np.asarray(cohort.sum(ask, bound=bound_of(federation.schema)))
    held = federation.protection.noisy and federation.protection.clip is None
    return leading(total, d, components, ROOT if held else math.sqrt(2.0))


def some_basis(schema: Schema, components: int) -> Basis:
    """A basis of the right shape, made from nothing, to try a module on."""
    d = _checked(schema, components, 1)
    return Basis(np.eye(d, components, dtype=np.float32), np.ones(components))


def leading(triangle: np.ndarray, d: int, components: int, root: float = math.sqrt(2.0)) -> Basis:
    """Eigenvectors of a symmetric matrix, given as `second_moments` does, with the largest eigenvalues."""
    rows, columns, weight = _triangle(d, root)
    matrix = np.zeros((d, d))
    matrix[columns, rows] = triangle / weight  # `eigh` reads the lower triangle
    values, vectors = np.linalg.eigh(matrix)
    kept = vectors[:, ::-1][:, :components]
    signs = np.sign(kept[np.abs(kept).argmax(0), np.arange(components)])  # which sign is arbitrary: choose one
    return Basis((kept * signs).astype(np.float32), values[::-1][:components].copy())


@travels
@elementwise
def project(columns: Any, *, reads: FeatureReading, matrix: Matrix, length: float) -> dict[str, np.ndarray]:
    """Make the column of projected records, each of the given length; shape (n, k), float32.

    Products are added up number by number, so that a record's column does not depend on how many others there are.
    """
    n = len(columns[reads.features[0]])
    made = np.empty((n, matrix.shape[1]), np.float32)
    for start in range(0, n, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        made[part] = length * of_length_one(_on(matrix.values, rows_of(columns, reads, part)))
    return {NAME: made}


def _on(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows (n, d) times a matrix (d, k), the first numbers of rows first."""
    found = np.zeros((len(rows), matrix.shape[1]))
    for numbers, weights in zip(np.ascontiguousarray(rows.T), matrix, strict=True):
        found += numbers[:, None] * weights
    return found


def projection(schema: Schema, basis: Basis, *, length: float = 1.0) -> FeatureStep:
    """Return the step that projects records onto a basis, and gives each the same length."""
    given = {"reads": reading(schema), "matrix": Matrix.of(basis.vectors), "length": float(length)}
    return FeatureStep(project, tuple(sorted(given.items())), Column(NAME, "number", shape=(basis.vectors.shape[1],)))


def _checked(schema: Schema, components: int, rounds: int) -> int:
    """Numbers of a record, of which there are so many components."""
    d = math.prod(width(schema))
    if not 1 <= components <= d or rounds < 1:
        raise SettingsInvalid(
            f"{components} principal components of {d} numbers from {rounds} releases.", remedy="At least one, at most all."
        )
    return d
