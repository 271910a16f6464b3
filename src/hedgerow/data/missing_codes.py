"""Numbers that look like codes for missing values, such as 999 in a column of percentages: said, not decided.

    a code     -9, 99 and longer ones of the same digits, of either sign
    positive   and further above all other values than these lie apart
    negative   and no other value is

What is declared with a range is not looked at: there, such a value is refused.
"""

from __future__ import annotations

import warnings

import numpy as np

from hedgerow.errors import HedgerowWarning

CODES = tuple(float(word) for n in range(1, 6) for word in ("-" + "9" * n, "-" + "8" * n, "9" * n, "8" * n) if len(word) > 1)
"""Codes that are common in clinical and survey data."""
FEWEST = 5
"""Other values that there must be different ones of, for a code to lie outside."""


def codes_in(values: np.ndarray) -> list[tuple[float, int]]:
    """Return the values that look like codes for missing ones, and how often each is there.

    Parameters
    ----------
    values : array of numbers, shape (n,)
    """
    known = values[np.isfinite(values)]
    here = [code for code in CODES if (known == code).any()]
    rest = known[~np.isin(known, here)]
    if not here or len(np.unique(rest)) < FEWEST:
        return []
    low, high = float(rest.min()), float(rest.max())
    strange = [code for code in here if (code < 0 <= low) or code > high + (high - low)]
    return [(code, int((known == code).sum())) for code in strange]


def warn_of_codes(name: str, values: np.ndarray, where: str) -> None:
    """Warn of such values in a column of which no range is declared."""
    for code, count in codes_in(values):
        warnings.warn(
            f"{where}: column {name!r} has {count} of {len(values)} values {code:g}, far outside all others. If that stands "
            f"for a missing value, say na_values = [{code:g}] for this column; if not, declare its range.",
            HedgerowWarning,
            stacklevel=4,
        )
