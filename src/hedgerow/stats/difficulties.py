"""What makes estimates ambiguous or infinite, found from the sums alone and told in the names of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import NotIdentified, Separated

from .factors import INTERCEPT

SINGULAR = 1e-13
"""Eigenvalues of the information, scaled to a unit diagonal, below which columns are dependent: rounding stays below."""

NEGATIVE = -1e-3
"""Such an eigenvalue is no rounding of fixed point: sums of products of columns have none below zero."""


def check_identified(information: Array, n: float, names: Sequence[str], *, residual: bool, singular: float = SINGULAR) -> None:
    """Refuse columns that are constant or combinations of others.

    Parameters
    ----------
    information : array of shape (d, d)
        At coefficients of zero, where it is a matrix of sums of products of columns.
    residual : bool
        Whether records must be left over to estimate a dispersion.
    singular : float
        Eigenvalues below this are none.

    Raises
    ------
    NotIdentified (HR-320)
    """
    d = len(names)
    if residual and n <= d:
        raise NotIdentified(f"{n:g} records cannot give {d} coefficients and a variance.", remedy="Drop terms.")
    for name, square in zip(names, np.diag(information), strict=True):
        if not 0 <= square < np.inf:
            raise _no_sum_of_squares(f"the sum of squares of {name!r} is {square:g}")
    size = np.sqrt(np.diag(information))
    empty = [name for name, length in zip(names, size, strict=True) if length == 0]
    if empty:
        raise NotIdentified(
            f"{_listed(empty)} {'is' if len(empty) == 1 else 'are'} zero in every record.",
            remedy="Drop the column; for the level of a category, drop or merge the level in the schema.",
        )
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    if values[0] < NEGATIVE:
        raise _no_sum_of_squares(f"some weighted sum of the columns has squares that add up to {values[0]:.2g} of theirs")
    null = vectors[:, values < singular]
    if null.size == 0:
        return
    involved = [name for name, load in zip(names, np.abs(null).max(1), strict=True) if load > 1e-3]
    others = [name for name in involved if name != INTERCEPT]
    if len(others) == 1:
        raise NotIdentified(f"{_listed(others)} is constant.", remedy="Drop it from the formula.")
    raise NotIdentified(
        f"{_listed(involved)} are linear combinations of one another.",
        remedy="Drop one of them; of indicators that always add up to one, drop the intercept or one level.",
    )


def _no_sum_of_squares(what: str) -> NotIdentified:
    return NotIdentified(
        f"{what}, which no records give.",
        remedy="Some party answers with something else than sums of its records: ask parties one by one, or leave out "
        "those that you do not trust.",
    )


def check_counts(total: float, n: float) -> None:
    """Refuse a target that is zero in every record, whose mean has no logarithm.

    Raises
    ------
    Separated (HR-321)
    """
    if not total > 0:
        raise Separated(
            f"the target adds up to {total:g} in {n:g} records, so the logarithm of its mean is not finite.",
            remedy="Check how the target is coded: counts are zero or more, and some are above zero.",
        )


def check_target(events: float, n: float) -> None:
    """Refuse a binary target that is the same in every record.

    Raises
    ------
    Separated (HR-321)
    """
    if not 0 < events < n:
        raise Separated(
            f"the target is {'0' if events <= 0 else '1'} in all of {n:g} records, so no coefficient is finite.",
            remedy="Check how the target is coded; a target without variation has nothing to explain.",
        )


def separated(step: Array, beta: Array, names: Sequence[str], *, counts: bool = False) -> Separated:
    """Name the columns whose coefficients still move while the likelihood stands still."""
    moves = np.abs(step) > 0.01 * np.abs(beta)
    moving = [name for name, moved in zip(names, moves, strict=True) if moved] or list(names)
    named = [name for name in moving if name != INTERCEPT] or moving
    verb, otherwise = "separates" if len(named) == 1 else "separate", "Drop or merge the column or level"
    if counts:
        return Separated(
            f"{_listed(named)} {verb} counts of zero from the others: fitted means of some records run to 0, and these "
            "coefficients to minus infinity.",
            remedy=f"{otherwise}; or keep coefficients finite:\n"
            "penalised_regression(..., family='poisson', penalty=0.01, l1_ratio=0).",
        )
    return Separated(
        f"{_listed(named)} {verb} the classes: fitted probabilities of some "
        "records run to 0 or 1, and these coefficients to infinity.",
        remedy=f"{otherwise}, or gather more records of the rarer outcome.\n"
        "Or keep coefficients finite: logistic_regression(..., firth=True), or\n"
        "penalised_regression(..., family='binomial', penalty=0.01, l1_ratio=0).",
    )


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more columns" if len(names) > most else "")
