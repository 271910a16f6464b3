"""Columns that single out few common people: totals over them would tell of each.

    rows of a party, shape (n, d)      refused where a column is other than zero for one to `least` - 1 people,
                                       or the same for all but one to `least` - 1

The second is the complement of a group. A party looks at the rows that its local function made for a product, before anything
of them is masked, so it does not depend on which function that was. That a product was refused tells that a group is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import TooFewRecords
from hedgerow.vertical.few import first_of_few


def refuse_few_common(made: Any, least: int) -> None:
    """Refuse rows of which a column singles out fewer than `least` people.

    Parameters
    ----------
    made : array of shape (n,) or (n, d), or several
        What a local function returned.

    Raises
    ------
    TooFewRecords (HR-604)
    """
    for rows in _arrays(made):
        if (found := first_of_few(rows, least)) is not None:
            raise TooFewRecords(
                f"column {found[0]} of what is multiplied singles out {found[1]} of {len(rows)} common people, and "
                f"guard.vertical.least_common is {least}.",
                remedy="Join levels, or leave the column out.",
                asked=True,
            )


def watching(least: Callable[[], int]) -> Callable[[Any], None]:
    """What looks at the rows that a party makes, by the guard as it is then."""
    return lambda made: refuse_few_common(made, least())


def _arrays(made: Any) -> Iterator[Array]:
    """The arrays in what a local function returned, as columns."""
    if isinstance(made, dict):
        made = tuple(made.values())
    if isinstance(made, tuple | list):
        for one in made:
            yield from _arrays(one)
    elif made is not None:
        rows = np.asarray(made)
        if rows.ndim and rows.size:
            yield rows.reshape(len(rows), -1)
