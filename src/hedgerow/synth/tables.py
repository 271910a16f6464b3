"""Tables: how many records have each pair of codes in each class, all of them in one question.

    cell of table (i, j)     sum of w over the records with code a of column i, code b of column j, in class c
    a record                 adds its weight to one cell of each of m tables

So m tables that are asked together move by l2 sqrt(m) times the heaviest weight, and by l1 m times it: `ball` takes the one
that the channel's noise is scaled by. Noise scaled by 1, as if each table were alone, is too small by sqrt(m).

Classes are those of one column, the target: its codes, or groups of neighbouring codes where it is a number. Tables of one
column and of two columns have the same form, and so have tables without classes, which are those of a single class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held
from hedgerow.trees.noise import ball, deviation

from .codes import Codes

Clique = tuple[int, ...]
"""Places of the columns of a table, ascending."""


@dataclass(frozen=True)
class Tables:
    """Which tables are asked together.

    Attributes
    ----------
    sizes : tuple of int
        Codes of each column.
    cliques : tuple of tuple of int
        The columns of each table.
    target : int
        The column that classes are made of; -1 where there is one class.
    classes : tuple of int
        Class of each code of the target, from zero on.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    target: int = -1
    classes: tuple[int, ...] = ()

    @property
    def n_classes(self) -> int:
        """One where there is no target."""
        return max(self.classes, default=0) + 1

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of each table, classes first."""
        return tuple((self.n_classes, *(self.sizes[j] for j in clique)) for clique in self.cliques)

    @property
    def size(self) -> int:
        """Cells of all tables together."""
        return sum(map(prod, self.shapes))

    def split(self, flat: Array) -> dict[Clique, Array]:
        """The tables in a flat array (size,), by their columns, each of shape (classes, codes, ...)."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])
        parts = np.split(np.asarray(flat), ends)[: len(ends)]  # of no tables none
        return {clique: part.reshape(shape) for clique, part, shape in zip(self.cliques, parts, self.shapes, strict=True)}

    def bound(self, federation: Federation, heaviest: float | None) -> Bound | None:
        """By how much one record moves all tables together, in the norm of the federation's noise."""
        return None if heaviest is None else ball(federation, len(self.cliques), heaviest)

    def sigma(self, federation: Federation, heaviest: float | None) -> float:
        """Standard deviation of the noise in each cell: public."""
        return deviation(federation, self.bound(federation, heaviest), self.size)

    def ask(self, federation: Federation, heaviest: float | None) -> Array:
        """Ask for all tables at once: shape (size,). The federation's records have been `coded`."""
        about = {"sizes": self.sizes, "cliques": self.cliques, "target": self.target, "classes": self.classes}
        found: Array = federation.sum(partial(table_counts, **about), bound=self.bound(federation, heaviest))
        return found


def singles(codes: Codes, target: int = -1, classes: tuple[int, ...] = (), without: Iterable[int] = ()) -> Tables:
    """A table of each column, but those `without`."""
    left = [j for j in range(len(codes.columns)) if j not in set(without)]
    return Tables(codes.sizes, tuple((j,) for j in left), target, classes)


def pairs(codes: Codes, target: int = -1, classes: tuple[int, ...] = (), without: Iterable[int] = ()) -> Tables:
    """A table of each pair of columns, but those `without`."""
    left = [j for j in range(len(codes.columns)) if j not in set(without)]
    return Tables(codes.sizes, tuple(combinations(left, 2)), target, classes)


@local(additive=True, stackable=True, holds=True)
def table_counts(
    broadcast: None,
    party: Party,
    rng: Any,
    *,
    sizes: tuple[int, ...],
    cliques: tuple[tuple[int, ...], ...],
    target: int = -1,
    classes: tuple[int, ...] = (),
    bounds: Bounds | None = None,
) -> Array:
    """Count how many records have each value, or each pair of values together; in each class, where there are classes.

    Parameters
    ----------
    broadcast : None
    party : Party
        With `codes` of shape (n, f) as `coded` prepares them.
    sizes, cliques, target, classes
        As `Tables`.
    bounds : Bound, optional
        Behind noise: each record's weight, once in each table, is held to it, in whole steps.

    Returns
    -------
    array of shape (cells of all tables,)
        Table after table, row by row, classes first; with a leading axis for parties where they are stacked.
    """
    codes = np.moveaxis(party["codes"].astype(np.intp), -1, 0)
    lead, n_classes = codes.shape[1:-1], max(classes, default=0) + 1
    parties = prod(lead)
    w = held(party.w, bounds, times=len(cliques)).ravel()
    first = np.arange(parties).reshape(*lead, 1) * n_classes
    first = first + (np.array(classes, np.intp)[codes[target]] if classes else np.zeros_like(codes[0]))
    found = []
    for clique in cliques:
        place, cells = first, n_classes
        for j in clique:
            place, cells = place * sizes[j] + codes[j], cells * sizes[j]
        found.append(np.bincount(place.ravel(), w, parties * cells).reshape(*lead, cells))
    return np.concatenate(found, axis=-1)
