"""Tables of one column and of two, of real records and of made-up ones: what quality is computed from.

    real    sums of the parties, exact or with noise of a public standard deviation; or what a synthesizer measured anyway
    made    counted from the made-up records, which everybody has

Tables that were measured inside classes are added up over the classes; that of a column in each class is also that of the
column and the classes' column, where each class is a code of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Table

from .codes import Codes
from .metrics import level_table, pair_table
from .tables import Clique, Tables
from .tree import cleaned, simplex

DRAWS = 8
"""Of noise, to say what it costs."""


@dataclass(frozen=True, eq=False)
class CountedTables:
    """Counts by the columns that they are of.

    Attributes
    ----------
    counts : mapping from a tuple of one or two places to array (codes,) or (codes, codes)
    sigmas : mapping from the same to float
        Standard deviation of the noise in each cell; zero, and left out, where counts are exact.
    """

    counts: Mapping[Clique, Array]
    sigmas: Mapping[Clique, float] = field(default_factory=dict)

    def sigma(self, clique: Clique) -> float:
        """Of the noise in each cell of a table."""
        return self.sigmas.get(clique, 0.0)

    @property
    def noisy(self) -> bool:
        """Whether any table has noise."""
        return any(self.sigmas.values())

    @cached_property
    def estimates(self) -> Mapping[Clique, Array]:
        """What the counts tell of tables without noise, none below zero; the counts where they are exact."""
        return {clique: estimated(table, self.sigma(clique)) for clique, table in self.counts.items()}

    def lost(self, clique: Clique, alike: Callable[[Array, Array], float]) -> float:
        """By how much noise alone lowers a similarity of equal tables, on average; zero where there is no noise.

        The estimate stands for the table: noise is added to it anew, removed again, and what is left is compared with it.
        """
        sigma = self.sigma(clique)
        if sigma <= 0:
            return 0.0
        rng, table = np.random.default_rng(0), self.estimates[clique]
        anew = (estimated(table + sigma * rng.normal(size=table.shape), sigma) for _ in range(DRAWS))
        return float(np.mean([1 - alike(one, table) for one in anew]))

    @property
    def pairs(self) -> list[Clique]:
        """Tables of two columns."""
        return [clique for clique in self.counts if len(clique) == 2]


def estimated(counts: Array, sigma: float) -> Array:
    """A table (codes,) or (codes, codes) without the noise that its form gives away: nearest to the counts, none below zero.

    Of two columns first the noise goes that shrinkage of singular values removes (`tree.cleaned`). A total below the standard
    deviation of one cell is taken to be that, which is in the unit of weights as counts are.
    """
    if sigma <= 0:
        return counts
    total = max(float(counts.sum()), sigma)
    if counts.ndim == 2:
        counts = cleaned(counts, simplex(counts.sum(1), total), simplex(counts.sum(0), total), sigma)
    return simplex(counts, total)


def counted(table: Table, fine: Codes, coarse: Codes, cliques: Iterable[Clique]) -> CountedTables:
    """Count the records of a table: of single columns by one set of codes, of pairs by another."""
    one, two = fine.number(table.columns), coarse.number(table.columns)
    found: dict[Clique, Array] = {}
    for clique in cliques:
        if len(clique) == 1:
            found[clique] = level_table(one, clique[0], fine.sizes)
        else:
            found[clique] = pair_table(two, clique[0], clique[1], coarse.sizes)
    return CountedTables(found)


def of_sums(layouts: Iterable[tuple[Tables, Array, float]]) -> CountedTables:
    """Tables that were asked of the parties, from flat arrays with the standard deviation of their noise.

    Parameters
    ----------
    layouts : iterable of (Tables, array (size,), float)
        Tables of one column first: of what several tables tell, that with the least noise is kept.
    """
    counts: dict[Clique, Array] = {}
    sigmas: dict[Clique, float] = {}

    def keep(clique: Clique, table: Array, sigma: float) -> None:
        if clique not in counts or sigma < sigmas[clique]:
            counts[clique], sigmas[clique] = table, sigma

    for layout, flat, sigma in layouts:
        n_classes, target = layout.n_classes, layout.target
        own = target >= 0 and layout.classes == tuple(range(layout.sizes[target]))  # each code of the target is a class
        for clique, table in layout.split(flat).items():
            keep(clique, table.sum(0), sigma * math.sqrt(n_classes))
            if len(clique) == 1 and own and clique[0] != target:
                (j,) = clique
                keep((min(j, target), max(j, target)), table if target < j else table.T, sigma)
                keep((target,), table.sum(1), sigma * math.sqrt(table.shape[1]))
    return CountedTables(counts, sigmas)


def middles(codes: Codes, j: int) -> Array:
    """A number for each code of a column but that of a missing value: the middle of its bin, or the code itself."""
    column = codes.columns[j]
    if column.kind in ("category", "binary"):
        return np.arange(len(codes.cuts[j]) + 1.0)
    if column.kind == "integer":
        first, last = codes.whole_ends(j)
        return np.asarray((first + last) / 2)
    ends = codes.ends(j)
    return np.asarray((ends[:-1] + ends[1:]) / 2)
