"""Secure scaling: means and standard deviations from one sum, as in the thesis, and as printed before it.

    n, X1, X2   <- sums of  1, x, x^2                           once
    m           =  X1 / n
    s^2         =  (X2 - n m^2) / n                             "2.0": the variance of the records
    s^2         =  (X2 - (2 n - 1) m^2) / n                     "printed": too small by (n - 1) / n times m^2

The printed formula is right for a mean of zero and off by nearly the square of the mean otherwise; where the mean is longer
than the standard deviation it is below zero. It is kept as a baseline and refuses such columns.

One sum is all that this needs, and all digits that it has: where a mean is many standard deviations from zero, X2 and
n m^2 cancel. `hedgerow.stats.scaling` asks twice, the second time about the mean, and loses nothing; its variance has
n - 1 in the denominator.

Releases : n, sums (k,) and sums of squares (k,); once.
Unit     : record.
Source   : van Aarle 2021, sections 3.2 and 3.2.1, after Mandal & Gong 2019. Differs: standardised values are (x - m) / s,
           where x / s * m is printed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import HedgerowWarning, SettingsInvalid

from ..columns import chosen, heaviest, names_of, schema_of
from ..moments import deviation_bounds, deviations
from ..scaling import Scaling

VarianceFormula = Literal["2.0", "printed"]

CANCELLED = 1e-12
"""Of squares whose variance is a smaller part than this, rounding has left nothing."""


def variance(n: float, total: Array, squares: Array, formula: VarianceFormula = "2.0") -> Array:
    """Return variances, shape (k,), from a number of records and the sums of values and of squares."""
    if formula not in ("2.0", "printed"):
        raise SettingsInvalid(f"formula is {formula!r}.", remedy="'2.0', or 'printed' for the baseline.")
    mean = total / n
    return (squares - (n if formula == "2.0" else 2 * n - 1) * mean**2) / n


@local(additive=True, stackable=True, rowwise=True)
def squares(broadcast: None, party: Party, rng: Any, *, columns: tuple[str, ...]) -> Any:
    """The number of records, sums of values and of squares."""
    return deviations(np.zeros(len(columns)), party, rng, columns=columns, cross=False)


def secure_scaling(
    federation: Federation, columns: Sequence[str] | None = None, *, formula: VarianceFormula = "2.0"
) -> Scaling:
    """Ask once for what standardises columns: every number and integer among the features by default.

    Parameters
    ----------
    formula : {"2.0", "printed"}
        `"printed"` is a baseline that is off; see the module.

    Raises
    ------
    SettingsInvalid (HR-511)
        The printed formula gives a variance that is not above zero.

    Notes
    -----
    A column whose variance is lost in rounding, as a constant column's is, keeps its scale, with a warning.
    """
    schema = schema_of(federation)
    if columns is None:
        columns = [name for name in schema.features if schema[name].kind in ("number", "integer") and not schema[name].shape]
    variance(1.0, np.zeros(0), np.zeros(0), formula)  # refuses an unknown formula before anybody is asked
    read = chosen(schema, columns, ("number", "integer"))
    names, zero = names_of(read), np.zeros(len(read))
    bounds = deviation_bounds(zero, read, heaviest(schema), cross=False)
    sums: dict[str, Any] = federation.sum(partial(squares, columns=names), bound=bounds)
    n = float(sums["n"])
    found = variance(n, sums["sum"], sums["squares"], formula)
    means = sums["sum"] / n
    if formula == "printed" and not (found > 0).all():
        i = int(np.argmin(found))
        raise SettingsInvalid(
            f"the printed formula gives {names[i]!r}, of mean {means[i]:.4g}, a variance of {found[i]:.4g}.",
            remedy="Take formula='2.0'; the printed one is a baseline for columns whose mean is near zero.",
            asked=True,
        )
    lost = ~(found > CANCELLED * sums["squares"] / n)
    if lost.any():
        warnings.warn(
            f"{', '.join(np.array(names)[lost])}: constant, or so far from zero that squares about zero say nothing of the "
            "spread; not scaled. hedgerow.stats.scaling asks about the mean and tells the two apart.",
            HedgerowWarning,
            stacklevel=2,
        )
    scales = np.sqrt(np.where(lost, 1.0, found))
    return Scaling(names, tuple(map(float, means)), tuple(map(float, scales)))
