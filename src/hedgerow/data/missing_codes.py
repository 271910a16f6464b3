"""Numbers that look like codes for missing values, such as 999 in a column of percentages: said, not decided.

    a code     -9, 99 and longer ones of the same digits, of either sign; those of sevens and eights; 98, 997 and their like
    9, 8, 7    among at most four other values that follow one another, as of a scale
    positive   and further above all other values than these lie apart
    negative   and no other value is
    a level    that is such a number among words, or further above all other levels than these lie apart

On a side where a range is declared nothing is looked for: there, such a value is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from hedgerow.errors import HedgerowWarning

SCALE = 4
"""Values of a scale, at most, among which a single digit may be a code."""
FEWEST = 2
"""Other values that there must be different ones of, for a code to lie outside."""


def _written() -> Iterable[str]:
    for digits in range(1, 6):
        for last in "987":
            yield last * digits
            yield "9" * (digits - 1) + last


CODES = tuple(sorted({sign * float(word) for word in _written() for sign in (-1, 1)}))
"""Codes that are common in clinical and survey data."""


def codes_in(values: np.ndarray, low: float | None = None, high: float | None = None) -> list[tuple[float, int]]:
    """Return the values that look like codes for missing ones, and how often each is there.

    Parameters
    ----------
    values : array of numbers, shape (n,)
    low, high : float, optional
        Ends of the declared range; no code is looked for beyond one.
    """
    known = values[np.isfinite(values)]
    different = np.unique(known)
    small = len(different) <= SCALE + 1
    here = [code for code in CODES if (code < 0 or code > 9 or small) and code in different]
    rest = different[~np.isin(different, here)]
    if not here or len(rest) < FEWEST:
        return []
    least, most = float(rest[0]), float(rest[-1])
    if not np.array_equal(rest, np.arange(least, most + 1)[: len(rest) + 1]):
        here = [code for code in here if code < 0 or code > 9]
    below, above = (
        (code < 0 <= least and low is None for code in here),
        (code > 2 * most - least and high is None for code in here),
    )
    strange = [code for code, lower, upper in zip(here, below, above, strict=True) if lower or upper]
    return [(code, int((known == code).sum())) for code in strange]


def codes_among(levels: Sequence[str]) -> list[str]:
    """Return the levels, read off the records, that look like codes for missing values."""
    numbers = {level: number for level in levels if (number := _number(level)) is not None}
    if len(numbers) < len(levels):
        return [level for level, number in numbers.items() if number in CODES and (number < 0 or number > 9)]
    strange = {code for code, _ in codes_in(np.array(list(numbers.values())))}
    return [level for level, number in numbers.items() if number in strange]


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def warn_of_codes(name: str, values: np.ndarray, where: str, low: float | None = None, high: float | None = None) -> None:
    """Warn of such values in a column, on a side where no range is declared."""
    for code, count in codes_in(values, low, high):
        warnings.warn(
            f"{where}: column {name!r} has {count} of {len(values)} values {code:g}, far outside all others. If that stands "
            f"for a missing value, say na_values = [{code:g}] for this column; if not, declare its range.",
            HedgerowWarning,
            stacklevel=4,
        )


def warn_of_levels(name: str, levels: Sequence[str], where: str) -> None:
    """Warn of such levels in a category whose levels nobody declared."""
    for level in codes_among(levels):
        warnings.warn(
            f"{where}: the level {level!r} of column {name!r} looks like a code for a missing value. If it is one, say "
            f"na_values = [{level}] for this column; if not, declare its levels.",
            HedgerowWarning,
            stacklevel=4,
        )
