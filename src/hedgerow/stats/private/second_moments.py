"""Second moments of unit rows as one question: the products of rows, the rows times targets, and the squared targets.

    record adds      a x x',  b t x,  c t^2            x a row of length one at most, t in [-1, 1]; one flat array
    isometric        the whole of x x', averaged with its transpose afterwards: its length is |x|^2
    by coefficient   its upper triangle, twice off the diagonal: the coefficients of the polynomial (t - x'theta)^2
    one ball         l2  sqrt(a^2 + b^2 + c^2)                       isometric
                     l2  sqrt((2 - 1/B) a^2 + b^2 + c^2)             by coefficient
                     l1  B a + sqrt(B) b + c                         by coefficient

B is the number of blocks of a row (`UnitRows`), in each of which one column at most differs from zero, so that |x|_1 is at
most sqrt(B): with d numbers B = d, and with categories or bins it is far below the number of columns. All three are reached
where every block has the same length. Parts of one ball share its noise, so that a number of a part with the factor a has
noise / a, and the share of mu^2 that the part gets is a^2 over the squared radius.

The noise of a coefficient 2 x_j x_k is twice that of the matrix entry x_j x_k that is made of it; noise of the coefficient's
size on the entry would be twice too much, and noise of the entry's size on the coefficient half of what is due.

Unit   : record.
Source : constants derived here and reached by brute force (tests); Zhang et al. 2012 print 2 (d + 1)^2 and d^2/4 + 3d instead
         of d + 2 sqrt(d) + 1 and d/8 + sqrt(d)/2: they hold as well, and their quotient with ours grows with d.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.core.whole import BITS, bound_in, by_column, linear, step_of

from ..blocks import by_blocks
from ..linear.sums import along, products, symmetric, triangle
from ..whole import ROUNDED, WholeRows


@travels
@dataclass(frozen=True)
class MomentParts:
    """What a record adds, and by which factors; a part of factor zero is not asked for.

    Attributes
    ----------
    gram, score, square : float
        Factors of products of rows, of rows times targets, and of squared targets.
    by_coefficient : bool
        Whether products are asked for as coefficients of a polynomial: the upper triangle, twice off the diagonal.
    """

    gram: float
    score: float
    square: float = 0.0
    by_coefficient: bool = False

    def bound(self, norm: int, blocks: int, heaviest: float = 1.0, *, l1: float | None = None, l2: float = 1.0) -> Bound:
        """The ball of one record.

        Parameters
        ----------
        norm : {1, 2}
            That of the noise: 1 for Laplace.
        blocks : int
            Of a row, in each of which one column at most differs from zero.
        heaviest : float
            Largest weight of a record.
        l1, l2 : float
            Largest lengths of a row; sqrt(blocks) and 1 by default.
        """
        a, b, c = self.gram, self.score, self.square
        if norm == 1:
            l1 = math.sqrt(blocks) * l2 if l1 is None else l1
            return Bound(1, heaviest * (l1 * l1 * a + l1 * b + c), "record")
        alike = 2 - 1 / blocks if self.by_coefficient else 1.0
        return Bound(2, heaviest * math.sqrt(alike * (a * l2 * l2) ** 2 + (b * l2) ** 2 + c * c), "record")

    def size(self, d: int) -> int:
        """Numbers of a contribution."""
        return self._products(d) + (d if self.score else 0) + (1 if self.square else 0)

    def read(self, total: Array, d: int) -> SecondMoments:
        """Take a total apart, each part in its own units: the matrix symmetric, what is not asked for zero."""
        gram, score, square = np.zeros((d, d)), np.zeros(d), 0.0
        start = self._products(d)
        if self.by_coefficient and self.gram:
            gram = symmetric(total[:start] / self.gram)
            gram[~np.eye(d, dtype=bool)] /= 2
        elif self.gram:
            gram = total[:start].reshape(d, d) / self.gram
            gram = (gram + gram.T) / 2
        if self.score:
            score = total[start : start + d] / self.score
        if self.square:
            square = float(total[-1]) / self.square
        return SecondMoments(gram, score, square)

    def _products(self, d: int) -> int:
        return 0 if not self.gram else d * (d + 1) // 2 if self.by_coefficient else d * d

    # ---- one record's length ----------------------------------------------------------------------------------------
    def lengths(self, rows: WholeRows, t: Array, norm: float) -> Array:
        """Length of what each record of weight one adds, shape (..., n)."""
        columns, t, a, b, c = rows.columns, np.abs(t), self.gram, self.score, self.square
        if norm == 1:
            length = by_column(np.abs(columns), np.ones(len(columns)))
            return np.asarray(a * length * length + b * t * length + c * t * t)
        squares = columns * columns
        square = by_column(columns, columns)
        matrix = square * square
        if self.by_coefficient:
            matrix = 2 * matrix - by_column(squares, squares)
        return np.sqrt(a * a * matrix + b * b * t * t * square + c * c * (t * t) ** 2)

    def rounding(self, d: int, norm: float) -> float:
        """By how many steps rounding to whole ones lengthens what a record adds, at most."""
        diagonal, off = d, (d * (d - 1) // 2 if self.by_coefficient else d * (d - 1))
        if norm == 1:
            return (diagonal + 2 * off + d + 1) / 2
        return math.sqrt(diagonal + (4 if self.by_coefficient else 1) * off + d + 1) / 2


@dataclass(frozen=True)
class SecondMoments:
    """Moments as released.

    Attributes
    ----------
    gram : array of shape (d, d)
    score : array of shape (d,)
    square : float
    """

    gram: Array
    score: Array
    square: float


@local(additive=True, stackable=True, holds=BITS, norms=(1, 2))
@by_blocks
def unit_moments(
    broadcast: Mapping[str, Array] | None,
    party: Party,
    rng: Any,
    *,
    parts: MomentParts,
    labels: bool,
    bounds: Bounds | None = None,
) -> Array:
    """Add up second moments of unit rows.

    Parameters
    ----------
    broadcast : mapping or None
        `scale`, shape (d,): by what each column is multiplied before.
    party : Party
        With `X` (..., n, d) and `y` (..., n) as `unit_rows` prepares them.
    parts : MomentParts
    labels : bool
        Whether targets are 0 and 1, of which t is -1 and 1.
    bounds : Bound, optional
        Behind noise: all that a record adds is held to it together, in whole steps.

    Returns
    -------
    array of shape (..., parts.size(d))
    """
    X, w = party["X"], party.w
    t = 2.0 * party["y"] - 1.0 if labels else party["y"]
    if broadcast is not None:
        X = X * broadcast["scale"]
    found = _held(X, t, w, parts, bound_in(bounds, "")) if bounds is not None else _exact(X, t, w, parts)
    if not parts.gram:
        return np.concatenate(found[1:], axis=-1)
    matrix, *others = found
    if parts.by_coefficient:
        d = X.shape[-1]
        rows, columns = np.triu_indices(d)
        matrix = matrix * np.where(rows == columns, 1.0, 2.0)
    else:
        matrix = symmetric(matrix).reshape(*matrix.shape[:-1], -1)
    return np.concatenate([matrix, *others], axis=-1)


@local(additive=True, stackable=True, holds=BITS, norms=(2,))
@by_blocks
def residual_moments(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, parts: MomentParts, bounds: Bounds | None = None
) -> Array:
    """Add up products of unit rows, each times its squared residual at `theta` (d,), over `most` and no larger than one.

    Returns
    -------
    array of shape (..., d * d)
    """
    X, exact = party["X"], bounds is not None
    residual = party["y"] - linear(X, broadcast["theta"], exact=exact)
    share = np.minimum(residual * residual / broadcast["most"], 1.0)
    weight = np.where(np.isfinite(share), party.w * share, 0.0)
    nothing = np.zeros_like(weight)
    found = _held(X, nothing, weight, parts, bound_in(bounds, "")) if bounds is not None else _exact(X, nothing, weight, parts)
    return symmetric(found[0]).reshape(*found[0].shape[:-1], -1)


def _exact(X: Array, t: Array, w: Array, parts: MomentParts) -> list[Array]:
    """Upper triangle of the products, rows times targets, squared targets: those that are asked for, times their factors."""
    found = [triangle(products(X, parts.gram * w)) if parts.gram else X[..., :0, 0]]
    if parts.score:
        found.append(along(X, parts.score * w * t))
    if parts.square:
        found.append((parts.square * w * t * t).sum(-1)[..., None])
    return found


def _held(X: Array, t: Array, w: Array, parts: MomentParts, bound: Bound) -> list[Array]:
    """The same in whole steps, each record made so small that all that it adds is within the ball, rounding included."""
    step, d = step_of(bound), X.shape[-1]
    room = max(bound.radius - step * parts.rounding(d, bound.norm), 0.0)
    free = Bound(2, 4 * bound.radius, "record", step)  # what it is asked for only rounds: the ball has been seen to
    with np.errstate(all="ignore"):  # of rows that are far out, which count as zeros
        rows = WholeRows.of(X)
        length = np.abs(w) * parts.lengths(rows, t, bound.norm) * ROUNDED
        lawful = np.isfinite(length) & np.isfinite(t) & np.isfinite(w)
        if rows.lost is not None:
            lawful &= ~rows.lost
        t, length = np.where(lawful, t, 0.0), np.where(lawful, length, 0.0)
        v = np.where(lawful, w, 0.0) * np.where(length > room, room / np.maximum(length, room or 1.0), 1.0)
        found = [rows.products(parts.gram * v, free) if parts.gram else X[..., :0, 0]]
        if parts.score:
            found.append(rows.sums(parts.score * v * t, free))
        if parts.square:
            found.append(np.rint(parts.square * v * t * t / step).sum(-1)[..., None] * step)
    return found
