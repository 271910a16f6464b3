"""Cut points: public bins of a column, from its declared range alone.

Bin `b` holds the values above cut `b - 1` and up to cut `b`, included. Nothing here looks at data, so bins reveal nothing.

    equal     bins of equal width
    log       bins of equal width of log(1 + value - low): narrow where values are small, as incomes need
    whole     of whole numbers, one bin for each where there are no more of them than bins; and no bin without any
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, cast

import numpy as np

from .column import Column

Widths = Literal["equal", "log"]


def names_of(log: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the columns whose bins are on a logarithmic scale; a plain str is one name."""
    return (log,) if isinstance(log, str) else tuple(log or ())


def cut_points(low: float, high: float, n_bins: int, widths: Widths = "equal") -> tuple[float, ...]:
    """Return `n_bins` - 1 ascending cut points inside a range."""
    if widths == "log":
        return tuple((low + np.expm1(np.linspace(0.0, math.log1p(high - low), n_bins + 1)[1:-1])).tolist())
    return tuple(np.linspace(low, high, n_bins + 1)[1:-1].tolist())


def cuts_of_whole_numbers(low: float, high: float, n_bins: int, widths: Widths = "equal") -> tuple[float, ...]:
    """The same for whole numbers: one bin for each of them where there are no more than `n_bins`.

    A bin that holds no whole number, as narrow ones of a logarithm may, is one with the bin above it; then there are fewer bins
    than `n_bins`.
    """
    first, last = math.ceil(low), math.floor(high)
    if last - first < n_bins:
        return tuple(np.arange(first + 0.5, last).tolist())
    cuts = cut_points(low, high, n_bins, widths)
    below = [first - 1, *(math.floor(cut) for cut in cuts)]  # the last whole number up to each cut
    return tuple(cut for cut, least, most in zip(cuts, below, below[1:], strict=False) if least < most < last)


def cuts_of_column(column: Column, n_bins: int, widths: Widths = "equal") -> tuple[float, ...]:
    """The cut points of any column: between all levels of a category, and of a number, whose range is declared, as above."""
    if column.kind == "binary":
        return (0.5,)
    if column.kind == "category":
        return tuple(np.arange(0.5, len(column.levels) - 1).tolist())
    low, high = cast(float, column.low), cast(float, column.high)
    return (cuts_of_whole_numbers if column.kind == "integer" else cut_points)(low, high, n_bins, widths)
