"""How good made-up records are: similarities of columns, pairs and correlations, and what goes beside them.

    column    KS complement of the bins of a number; TV complement of the levels of a category, with its half
    pair      TV complement of the table of two columns
    numbers   1 - |r - s| / 2, correlations of the middles of bins
    beside    train on synthetic, test on real; distances to the closest made-up record

Noise in the real side lowers similarities, also after what can be removed of it. By how much noise alone lowers that of equal
tables, on average, follows from what was released and is said beside each: a perfect table scores about one less this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.report import Outcome

from .closest import Closeness
from .codes import Codes
from .counted import CountedTables, middles
from .metrics import (
    correlation_of_counts,
    correlation_similarity,
    ks_of_counts,
    tv_of_counts,
)
from .tables import Clique
from .tstr import Utility

if TYPE_CHECKING:
    import pandas

NUMBERS = ("number", "integer")
KS, TV = "KS complement", "TV complement"


@dataclass(frozen=True, eq=False, repr=False)
class Quality:
    """Made-up records beside real ones.

    Attributes
    ----------
    fine, coarse : Codes
        How single columns and pairs are read.
    real, made : CountedTables
        Their counts.
    source : str
        What the real side is: a sentence.
    exact_ks : mapping from column to float
        KS complements of values rather than bins, where somebody held both tables.
    utility : Utility or None
        Models trained on made-up records, scored on real ones.
    closeness : Closeness or None
        Distances to the closest made-up record.
    """

    fine: Codes
    coarse: Codes
    real: CountedTables
    made: CountedTables
    source: str
    exact_ks: Mapping[str, float] = field(default_factory=dict)
    utility: Utility | None = None
    closeness: Closeness | None = None

    @cached_property
    def ks_complements(self) -> dict[str, float]:
        """Of numbers, by column: of their values where those were at hand, else of their bins."""
        found = {name: ks_of_counts(*self._counts((j,))) for j, name in self._singles() if self._is_number(j)}
        return {name: self.exact_ks.get(name, value) for name, value in found.items()}

    @cached_property
    def tv_complements(self) -> dict[str, float]:
        """Of all columns: of levels, and of the bins of numbers."""
        return {name: tv_of_counts(*self._counts((j,))) for j, name in self._singles()}

    @cached_property
    def pairs(self) -> pandas.DataFrame:
        """Similarity of each pair of columns, (f, f); NaN on the diagonal, and where no table was measured."""
        return self._matrix(lambda clique: tv_of_counts(*self._counts(clique)), self.fine.names)

    @cached_property
    def correlations(self) -> tuple[pandas.DataFrame, pandas.DataFrame]:
        """Correlations of numbers and binary columns, of real and of made-up records; NaN where they are not defined."""
        columns = self.coarse.columns
        names = [column.name for column in columns if column.kind in (*NUMBERS, "binary")]
        mids = {j: middles(self.coarse, j) for j, column in enumerate(columns) if column.name in names}

        def of(side: CountedTables) -> pandas.DataFrame:
            def one(clique: Clique) -> float:
                i, j = clique
                if i not in mids or j not in mids:
                    return math.nan
                there = np.asarray(side.estimates[clique])[: len(mids[i]), : len(mids[j])]
                return correlation_of_counts(there, mids[i], mids[j])

            return self._matrix(one, self.coarse.names).loc[names, names]

        return of(self.real), of(self.made)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The few numbers that a reader looks for first."""
        r, s = self.correlations
        found = {
            f"{KS}, mean of numbers": _mean(self.ks_complements.values()),
            f"{TV}, mean of columns": _mean(self.tv_complements.values()),
            "pair similarity, mean": _mean(self.pairs.to_numpy().ravel()),
            "correlation similarity, mean": _mean(correlation_similarity(r, s).ravel()),
        }
        beside = {**(self.utility.named() if self.utility else {}), **(self.closeness.named() if self.closeness else {})}
        return {name: value for name, value in (found | beside).items() if not math.isnan(value)}

    @cached_property
    def farthest(self) -> tuple[str, str, float, float] | None:
        """Two columns whose correlations differ most, that of real and of made-up records; None where none is defined."""
        r, s = self.correlations
        apart = np.triu(np.abs(r.to_numpy() - s.to_numpy()), 1)
        if not np.nansum(apart) > 0:
            return None
        i, j = np.unravel_index(np.nanargmax(apart), apart.shape)
        return str(r.index[i]), str(r.columns[j]), float(r.iat[i, j]), float(s.iat[i, j])

    @cached_property
    def noise_cost(self) -> float:
        """By how much noise alone lowers the mean similarity of equal pairs, about; zero where there is none."""
        return _mean(self.real.lost(clique, tv_of_counts) for clique in self.real.pairs) if self.real.pairs else 0.0

    def to_frame(self) -> pandas.DataFrame:
        """One row for each column: its measure, similarity, and by how much noise alone would lower that of equal columns."""
        import pandas

        rows = []
        for j, name in self._singles():
            number = self._is_number(j)
            similarity = self.ks_complements[name] if number else self.tv_complements[name]
            lost = 0.0 if name in self.exact_ks else self.real.lost((j,), ks_of_counts if number else tv_of_counts)
            rows.append((name, KS if number else TV, similarity, lost))
        return pandas.DataFrame(rows, columns=["column", "measure", "similarity", "noise alone costs about"])

    def summary(self) -> str:
        """Return what a reader wants to know, as text."""
        lines = ["How good the made-up records are", self.source, ""]
        lines += [f"  {name:<46} {value:>8.4f}" for name, value in self.metrics.items()]
        if self.noise_cost:
            lines.append(f"  {'pair similarity that noise alone costs, about':<46} {self.noise_cost:>8.4f}")
        if self.farthest:
            one, other, real, made = self.farthest
            lines.append(
                f"  correlation that is farthest off: {one} and {other}, {made:.2f} where the real side has {real:.2f}"
            )
        frame = self.to_frame().sort_values("similarity")
        lines += ["", "Columns, the least similar first"]
        for name, measure, similarity, lowered in frame.itertuples(index=False):
            of_noise = f"   noise alone costs about {lowered:.4f}" if lowered else ""
            lines.append(f"  {name:<32} {measure:<14} {similarity:>8.4f}{of_noise}")
        return "\n".join(lines)

    def outcome(self) -> Outcome:
        """What a report shows: numbers, tables, histograms side by side, and matrices of pairs and correlations."""
        from .pictures import heats_of, histograms_of

        tables = {"How alike the columns are": self.to_frame()}
        if self.utility:
            tables["Train on synthetic, test on real"] = self.utility.to_frame().reset_index()
        return Outcome(
            metrics=self.metrics,
            tables=tables,
            bars=[*histograms_of(self), *([self.closeness.chart()] if self.closeness else [])],
            heats=heats_of(self),
            notes=[self.source],
        )

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {value:.4f}" for name, value in list(self.metrics.items())[:3])
        return f"Quality({len(self.fine.names)} columns: {said})"

    def _singles(self) -> Iterator[tuple[int, str]]:
        return ((j, name) for j, name in enumerate(self.fine.names) if (j,) in self.real.counts)

    def _counts(self, clique: Clique) -> tuple[Array, Array]:
        return self.real.estimates[clique], self.made.counts[clique]

    def _is_number(self, j: int) -> bool:
        return self.fine.columns[j].kind in NUMBERS

    def _matrix(self, of: Callable[[Clique], float], names: tuple[str, ...]) -> pandas.DataFrame:
        import pandas

        found = np.full((len(names), len(names)), math.nan)
        for i, j in self.real.pairs:
            found[i, j] = found[j, i] = of((i, j))
        return pandas.DataFrame(found, index=list(names), columns=list(names))


def _mean(values: Iterable[float]) -> float:
    there = [value for value in values if not math.isnan(value)]
    return math.fsum(there) / len(there) if there else math.nan
