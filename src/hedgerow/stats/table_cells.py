"""Cells of Table 1 as people see them.

    some count of the table lies between 1 and least - 1     all counts become multiples of `least`, that one "below 5"
    a small one would follow from sums and their parts       multiples of 2 `least`, or 4 (`table_rounding`)
    none does                                                 all are as they are

So totals and parts are never both exact, and no difference of two cells is a count. A small group's mean is not shown, nor is
then the mean of all, from which it would follow. Shares and differences are those of the counts that are shown. Behind noise
nothing is rounded: what was released has its noise.

Each table is rounded by itself. One with a small count and another without it, of the same records, are shown by different
rules, and together may tell more.

That is for readers: the server knows the totals, and what they cost was decided when they were asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.report import Dots, Figure, ForPapers

from .columns import levels_of
from .differences import difference_of_levels, difference_of_means
from .table_rounding import ShownCounts, multiple_for

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Column
    from hedgerow.data.cases import LeftOut

LEAST_SHOWN = 5
"""The smallest count that a table shows."""

HIDDEN = "not shown"
CLEAR = 0.1
"""Standardised differences above this are usually called an imbalance."""


@displayed
@dataclass(frozen=True, eq=False)
class TableOne(ForPapers):
    """Who was in a study, by group.

    Attributes
    ----------
    columns : tuple of Column
        In the order of the table.
    group : str or None
    groups : tuple of str
        The levels of the group; "all" where there is none; sites, or levels at sites.
    counts : array of shape (groups,)
        Records; as asked, not as shown, like all that follows.
    levels : dict of arrays
        By column, of shape (groups, levels).
    numbers : tuple of str
    n, mean, variance : arrays of shape (groups, k)
        Of `numbers`.
    quartiles : dict of arrays
        By column, of shape (groups, 3).
    least : int
        The smallest count that is shown.
    noisy : bool
        Whether counts have noise.
    cases : LeftOut, optional
        Records without a group, which are in no column; where there is a group that may be missing.
    """

    columns: tuple[Column, ...]
    group: str | None
    groups: tuple[str, ...]
    counts: Array
    levels: dict[str, Array]
    numbers: tuple[str, ...]
    n: Array
    mean: Array
    variance: Array
    quartiles: dict[str, Array] = field(default_factory=dict)
    least: int = LEAST_SHOWN
    noisy: bool = False
    cases: LeftOut | None = None

    # ---- as asked ---------------------------------------------------------------------------------------------------
    @property
    def sd(self) -> Array:
        """Standard deviations, shape (groups, k); NaN where noise has pushed a variance below zero."""
        found: Array = np.sqrt(np.where(self.variance >= 0, self.variance, np.nan))
        return found

    def present(self, name: str) -> Array:
        """Records of each group that have a value of a column, shape (groups,)."""
        found: Array = self.levels[name].sum(1) if name in self.levels else self.n[:, self.numbers.index(name)]
        return found

    def missing(self, name: str) -> Array:
        """Records of each group that have none, shape (groups,)."""
        found: Array = self.counts - self.present(name)
        return found

    def differences(self) -> dict[str, float]:
        """Standardised difference of each column, the largest of all pairs of groups; NaN where there is one group."""
        by_mean = difference_of_means(self.mean, self.variance)
        return {
            column.name: difference_of_levels(self.levels[column.name])
            if column.name in self.levels
            else float(by_mean[self.numbers.index(column.name)])
            for column in self.columns
        }

    @property
    def without_group(self) -> float:
        """Records that are in no column, since they lack the group; zero where that was not asked."""
        return float(self.cases.shown(self.cases.left_out)) if self.cases is not None and self.cases.known else 0.0

    # ---- as shown ---------------------------------------------------------------------------------------------------
    @cached_property
    def rounded(self) -> bool:
        """Whether some count is so small that all are shown as multiples of `least`."""
        if self.noisy or not self.least:
            return False
        cells = [self.counts, *(self.missing(c.name) for c in self.columns), *(self.present(c.name) for c in self.columns)]
        cells += [*self.levels.values(), np.array([self.without_group])]
        return any(bool(self._small(np.asarray(one)).any()) for one in cells)

    @cached_property
    def multiple(self) -> int:
        """Of which all counts are multiples, where they are rounded."""
        return multiple_for(self._sums(), self.least) if self.rounded else 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader has to know."""
        said = ["Numbers are mean (standard deviation), levels count (share of those that have a value)."]
        if self.quartiles:
            said.append("Medians stand with their quartiles in brackets.")
        if len(self.groups) > 1:
            said.append("Difference: standardised, in units of the groups' own spread; of several groups the largest of pairs.")
        if self.rounded:
            said.append(f"Counts are multiples of {self.multiple}, since some are below {self.least}; so shares are rough too.")
        if self.noisy:
            said.append("Counts have noise.")
        if self.without_group > 0:
            said.append(f"Records without {self.group} are in no column: {self._count(self.without_group)}.")
        return tuple(said)

    def to_frame(self) -> pandas.DataFrame:
        """The table as words, one row for each number and each level, one column for each group, missing and difference."""
        import pandas

        rows: list[dict[str, str]] = [{"": "records", **self._line(self.counts)}]
        differences = self.differences()
        for column in self.columns:
            told = {"missing": self._count(self.missing(column.name).sum())}
            if len(self.groups) > 1:
                told["difference"] = self._difference(column.name, differences[column.name])
            rows += self._level_rows(column, told) if column.name in self.levels else self._number_rows(column, told)
        names = ["", *self._heads, "missing", *(["difference"] if len(self.groups) > 1 else [])]
        return pandas.DataFrame(rows, columns=names).fillna("").set_index("")

    def dots(self) -> Dots:
        """Standardised differences as dots, one row for each column."""
        found = {name: self._shown_difference(name, value) for name, value in self.differences().items()}
        shown = {name: value for name, value in found.items() if value is not None and np.isfinite(value)}
        names = tuple(shown) or ("none",)
        values = tuple(shown.values()) or (float("nan"),)
        return Dots("Standardised differences", "difference", names, (("difference", values),), line=CLEAR)

    def plot(self) -> Figure:
        """Draw the standardised differences, as SVG."""
        return Figure(self.dots())

    @property
    def _heads(self) -> tuple[str, ...]:
        return self.groups if len(self.groups) == 1 else ("all", *self.groups)

    def _small(self, counts: Array) -> Array:
        return (counts > 1e-9) & (counts < self.least - 1e-9)

    def _few(self, count: float) -> bool:
        """Whether a count is shown as below the multiple."""
        return 1e-9 < count < self.multiple - 1e-9

    def _sums(self) -> ShownCounts:
        """Counts and their sums: records by group, by level within each, what is missing, and all groups together."""
        counts: list[float] = []
        shown: list[bool] = []
        parts: list[tuple[int, Array]] = []

        def add(values: Array, seen: bool, total_seen: bool) -> Array:
            """Places of values by group; behind them their total, where there are several."""
            here = len(counts) + np.arange(len(values))
            counts.extend(values)
            shown.extend([seen] * len(values))
            if len(values) > 1:
                parts.append((len(counts), here))
                counts.append(float(values.sum()))
                shown.append(total_seen)
            return here

        one = len(self.groups) == 1
        records = add(self.counts, True, True)
        for column in self.columns:
            blocks = [add(self.missing(column.name), one, True)]
            for code, values in enumerate(
                self.levels[column.name].T if column.name in self.levels else [self.present(column.name)]
            ):
                seen = column.name in self.levels and (column.kind != "binary" or code > 0)
                blocks.append(add(values, seen, seen))
            parts += [(int(whole), np.array(within)) for whole, *within in zip(records, *blocks, strict=True)]
        return ShownCounts(np.array(counts, float), np.array(shown), parts)

    def _with_total(self, counts: Array) -> Array:
        return counts if len(self.groups) == 1 else np.concatenate([[counts.sum()], counts])

    def _line(self, counts: Array) -> dict[str, str]:
        return dict(zip(self._heads, map(self._count, self._with_total(counts)), strict=True))

    def _number(self, count: float) -> float:
        """A count as it is shown; zero where it is not."""
        if not self.rounded:
            return max(round(float(count), 6), 0.0) if not self.noisy else max(float(round(count)), 0.0)
        return 0.0 if self._few(count) else float(np.floor(count / self.multiple + 0.5) * self.multiple)

    def _count(self, count: float) -> str:
        if self.rounded and self._few(count):
            return f"below {self.multiple}"
        return f"{self._number(count):,.10g}".replace(",", "\N{NARROW NO-BREAK SPACE}")

    def _level_rows(self, column: Column, told: dict[str, str]) -> list[dict[str, str]]:
        counts = self.levels[column.name]
        totals = self._with_total(self.present(column.name))
        binary = column.kind == "binary"
        rows: list[dict[str, str]] = [] if binary else [{"": column.name, **told}]
        for code, level in enumerate(levels_of(column)):
            if binary and code == 0:
                continue
            cells = [self._share(n, total) for n, total in zip(self._with_total(counts[:, code]), totals, strict=True)]
            head = column.name if binary else f"    {level}"
            rows.append({"": head, **dict(zip(self._heads, cells, strict=True)), **(told if binary else {})})
        return rows

    def _share(self, count: float, total: float) -> str:
        shown, of = self._number(count), self._number(total)
        said = self._count(count)
        if not of or said.startswith("below") or self._others_small(count, total):
            return said
        return f"{said} ({100 * min(shown / of, 1.0):.1f} %)"

    def _others_small(self, count: float, total: float) -> bool:
        """Whether all others are so few that a share would tell how many."""
        return self.rounded and self._few(total - count)

    def _number_rows(self, column: Column, told: dict[str, str]) -> list[dict[str, str]]:
        k = self.numbers.index(column.name)
        few = self.rounded and bool(self._small(self.n[:, k]).any())
        mean, sd = self._of_all(k) if len(self.groups) > 1 else ([], [])
        means, sds = np.append(mean, self.mean[:, k]), np.append(sd, self.sd[:, k])
        hidden = np.append([few] * len(mean), self.rounded & self._small(self.n[:, k]))
        digits = _digits_of(sds[hidden == 0], means[hidden == 0])
        cells = [HIDDEN if h else _spread(m, s, digits) for m, s, h in zip(means, sds, hidden, strict=True)]
        unit = f" ({column.unit})" if column.unit else ""
        rows = [{"": f"{column.name}{unit}", **dict(zip(self._heads, cells, strict=True)), **told}]
        if column.name in self.quartiles:
            quarters = self.quartiles[column.name]
            shown = quarters[[not (self.rounded and self._small(n)) for n in self.n[:, k]]]
            digits = _digits_of(shown[:, 2] - shown[:, 0], shown[:, 1])
            three = [
                HIDDEN if self.rounded and self._small(n) else _between(values, digits)
                for n, values in zip(self.n[:, k], quarters, strict=True)
            ]
            rows.append({"": "    median [quartiles]", **dict(zip(self.groups, three, strict=True))})
        return rows

    def _of_all(self, k: int) -> tuple[Any, Any]:
        """Mean and deviation of all groups together."""
        n, mean, variance = self.n[:, k], self.mean[:, k], self.variance[:, k]
        there = n > 0
        total = n[there].sum()
        if not total > 1:
            return [np.nan], [np.nan]
        centre = (n[there] * mean[there]).sum() / total
        within = np.where(n[there] > 1, (n[there] - 1) * np.nan_to_num(variance[there]), 0.0).sum()
        squares = within + (n[there] * (mean[there] - centre) ** 2).sum()
        return [centre], [np.sqrt(max(squares, 0.0) / (total - 1))]

    def _difference(self, name: str, value: float) -> str:
        shown = self._shown_difference(name, value)
        if shown is None:
            return HIDDEN
        return "" if np.isnan(shown) else f"{shown:.3f}"

    def _shown_difference(self, name: str, value: float) -> float | None:
        """The difference of the counts that are shown; `None` where it is hidden."""
        if self.rounded and bool(self._small(self.present(name)).any()):
            return None
        if not self.rounded or name not in self.levels:
            return value
        if any(map(self._few, self.levels[name].ravel())):
            return None
        return difference_of_levels(np.vectorize(self._number)(self.levels[name]))


def _digits_of(spreads: Array, middles: Array) -> int:
    """Decimals of a row: those of the widest spread, so that all of its cells have as many."""
    wide = spreads[np.isfinite(spreads) & (spreads > 0)]
    known = middles[np.isfinite(middles)]
    return _digits(float(wide.max() if len(wide) else np.abs(known).max(initial=0.0)))


def _spread(mean: float, sd: float, digits: int) -> str:
    if not np.isfinite(mean):
        return "–"
    return f"{mean:,.{digits}f} ({sd:,.{digits}f})".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("(nan)", "(–)")


def _between(quarters: Array, digits: int) -> str:
    low, middle, high = quarters
    if not np.isfinite(middle):
        return "–"
    return f"{middle:,.{digits}f} [{low:,.{digits}f}, {high:,.{digits}f}]".replace(",", "\N{NARROW NO-BREAK SPACE}").replace(
        "\N{NARROW NO-BREAK SPACE} ", ", "
    )


def _digits(size: float) -> int:
    """Decimals that show about three digits of a number."""
    return int(np.clip(2 - np.floor(np.log10(size)), 0, 6)) if size > 0 else 1
