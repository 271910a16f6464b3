"""Products of columns that lie apart, summed over records: one question from which most statistics follow.

    G = sum over records of  x x',    x = (1, columns of all parties), in own units

Releases : G, of d + 1 columns, once: (d + 1) (d + 2) / 2 different numbers. Columns that have one value for all but fewer than
           `least` people are refused at home, before anything is opened.
Unit     : record. A record moves G by the squared length of its row, by declared ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array

from .channel import least_of
from .cross import Factors
from .design import HeldColumns, check_size
from .terms import CONSTANT, OwnTerm, own_columns


@dataclass(frozen=True)
class Gram:
    """Sums over records of products of columns in own units; the first column is the constant.

    Attributes
    ----------
    n : float
        Records; with noise what the constant's square says.
    products : array of shape (1 + d, 1 + d)
        Symmetric.
    names : tuple of str
        Of the d columns.
    centre, scale : arrays of shape (1 + d,)
        `x = centre + scale * own`.
    """

    products: Array
    names: tuple[str, ...]
    centre: Array
    scale: Array

    @property
    def n(self) -> float:
        return float(self.products[0, 0])

    @property
    def mean(self) -> Array:
        """Of the columns in their units, shape (d,)."""
        found: Array = (self.centre + self.scale * self.products[0] / self.n)[1:]
        return found

    @property
    def own_covariance(self) -> Array:
        """In own units, with n in the denominator; centring about means costs no digits, since centres are near them."""
        mean = self.products[0, 1:] / self.n
        found: Array = self.products[1:, 1:] / self.n - np.outer(mean, mean)
        return found

    @property
    def covariance(self) -> Array:
        """Of the columns in their units, with n - 1 in the denominator, shape (d, d)."""
        scale = self.scale[1:]
        found: Array = self.own_covariance * np.outer(scale, scale) * (self.n / (self.n - 1))
        return found


def gram(aligned: Any, owned: Sequence[tuple[str, OwnTerm]], *, constant_at: str | None = None) -> Gram:
    """Ask once for all products of a constant and columns; `owned` pairs each term with its party.

    Raises
    ------
    DisclosureExceeded (HR-216)
        As many columns as records.
    PartyDeclined (HR-221)
        A column differs in too few people (HR-604), or is not finite (HR-404), told by its code.
    """
    first = constant_at or owned[0][0]
    held = HeldColumns.of(aligned.names, [(first, CONSTANT), *owned])
    check_size(aligned.n, held.size)
    ask = partial(own_columns, terms=held.terms, least=least_of(aligned))
    products = np.asarray(aligned.cross(ask, bound=Factors(held.reaches())), dtype=float)
    products = products[np.ix_(held.place, held.place)]
    return Gram((products + products.T) / 2, held.names[1:], held.centre, held.scale)
