"""Expressions of a study's formula that have no finite value for some records of a simulation: told before a party is asked.

Stations look at their own records when they answer; there a sum that is not finite says only that it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.data.column import lacking
from hedgerow.data.faults import Fault, refuse
from hedgerow.errors import NotFinite
from hedgerow.stats import expressions
from hedgerow.stats.factors import Number

from .disclosed import terms_of
from .several import programs_in

if TYPE_CHECKING:
    from hedgerow.data import Table

    from .study import Study

REMEDY = (
    "Mend the records; name what stands for a missing value (such as -9) in `na_values`; or write an expression that is "
    "defined for all of them, such as log(1 + x)."
)


def refuse_undefined(study: Study, table: Table) -> None:
    """Refuse a formula of which an expression, such as `log(x)`, is undefined for records that have all its values.

    Raises
    ------
    NotFinite (HR-404)
        Tells the expression, how many records, and the first of them.
    """
    for _, given in programs_in(study):
        _refuse_of_formula(given.get("formula"), table)


def _refuse_of_formula(formula: Any, table: Table) -> None:
    """The same of one formula."""
    read = terms_of(formula, table.schema) if isinstance(formula, str) else None
    if read is None:
        return
    response, terms = read
    factors = dict.fromkeys(factor for one in terms for factor in one.factors)
    faults = [
        _undefined(one, table) for one in (response, *factors) if isinstance(one, Number) and one.text not in table.schema
    ]
    refuse([one for one in faults if one is not None], table.name, advice="The formula is that of [program].")


def _undefined(factor: Number, table: Table) -> Fault | None:
    absent = np.logical_or.reduce([lacking(table.columns[name]) for name in factor.reads(table.schema)])
    values = np.broadcast_to(expressions.evaluate(factor.text, table.columns), np.shape(absent))
    wrong = np.flatnonzero(~np.isfinite(values) & ~absent)
    if not len(wrong):
        return None
    what = f"{factor.text} of the formula has no finite value for {len(wrong)} of {values.size} records"
    return Fault(factor.text, 0, values.size, what, int(wrong[0]), (), NotFinite, REMEDY)
