"""Knots of a spline by quantiles, rounded to a declared step.

    t <- quantiles of the column at shares that Harrell recommends for n knots         a count at each, round by round
    t <- each to the nearest multiple of the step                                      published with the formula

Source : Harrell 2015, table 2.3.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from .columns import NUMERIC, chosen, range_of, schema_of
from .quantiles import quantiles

SHARES = {
    3: (0.10, 0.5, 0.90),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
    6: (0.05, 0.23, 0.41, 0.59, 0.77, 0.95),
    7: (0.025, 0.1833, 0.3417, 0.5, 0.6583, 0.8167, 0.975),
}


def knots_of(federation: Federation, column: str, n: int = 4, *, step: float = 5.0) -> tuple[float, ...]:
    """Knots for `rcs`: quantiles of a column as Harrell places them, each rounded to a multiple of a step.

    They are published: they stand in the formula, in the names of coefficients and in every report of the fit. Their step says
    how much they tell of records; it is declared beforehand, in units of the column.

    Parameters
    ----------
    column : str
        Of numbers, with a declared range.
    n : int
        3 to 7.
    step : float
        In units of the column.

    Returns
    -------
    tuple of float
        Rising; write them down: `f"died ~ rcs(age, {list(knots)})"`.

    Releases
    --------
    As `quantiles`, until each is known to an eighth of the step.

    Raises
    ------
    SettingsInvalid (HR-511)
        The number or the step are out of range; or, after parties were asked, the step makes two knots one.
    SchemaInvalid (HR-409)
        The column declares no range.

    Source
    ------
    Harrell 2015, table 2.3.
    """
    if n not in SHARES:
        raise SettingsInvalid(f"n={n!r} knots.", remedy="Take 3 to 7; 4 or 5 are usual.")
    declared = range_of(chosen(schema_of(federation), [column], NUMERIC)[0])
    width = math.inf if declared is None else declared[1] - declared[0]
    if not 0 < step <= width:
        raise SettingsInvalid(f"step={step!r} for a range of {width:g}.", remedy="A step is above zero and within the range.")
    found = quantiles(federation, column, SHARES[n], tol=step / 8).to_numpy()
    knots = tuple(float(f"{k * step:.12g}") for k in sorted({round(one) for one in (found / step).tolist()}))
    if len(knots) < n or not np.isfinite(knots).all():
        raise SettingsInvalid(
            f"{n} knots of {column!r} fall on {len(knots)} multiples of {step:g}: {', '.join(f'{one:g}' for one in knots)}.",
            remedy="Take a smaller step or fewer knots.",
            asked=True,
        )
    return knots
