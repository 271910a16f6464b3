"""What programs of linear models on unit rows are told to show, and by what they are scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.report import Outcome

from .fit import PrivateFit
from .rows import UnitRows
from .scoring import judged

Settings = Mapping[str, Any]


def row_length(rows: str | None, formula: str, schema: Schema, **more: Any) -> UnitRows:
    """Unit rows of a formula; where no length is given, fixed for a number, whose coefficients are wanted, else unit."""
    if rows is not None:
        return UnitRows.of(formula, schema, length=rows, **more)  # type: ignore[arg-type]
    found = UnitRows.of(formula, schema, **more)
    return UnitRows.of(formula, schema, length="fixed", **more) if found.numeric else found


def reported(
    rows_of: Callable[[Schema, Settings], UnitRows], fit_of: Callable[[Federation, Settings, Any], PrivateFit]
) -> dict[str, Any]:
    """What `program` is told of a linear model of unit rows: what its report shows, and how it is scored.

    Parameters
    ----------
    rows_of : callable
        `(schema, settings) -> UnitRows` to which the state's `coef` belong.
    fit_of : callable
        `(federation, settings, state) -> PrivateFit`.
    """

    def show(federation: Federation, settings: Settings, state: Any) -> Outcome:
        fit = fit_of(federation, settings, state)
        frame = fit.to_frame()
        return Outcome(tables={"Coefficients of unit rows": frame}, text={"Summary": fit.summary()}, coefficients=frame)

    def score(settings: Settings, state: Any, schema: Schema, table: Table) -> float:
        return judge(rows_of(schema, settings), state.coef, table)

    def watch(settings: Settings, state: Any, schema: Schema, test: Table | None) -> dict[str, float]:
        if test is None:
            return {}
        name = "R2" if rows_of(schema, settings).numeric else "accuracy"
        return {f"test {name}": score(settings, state, schema, test)}

    return {"outcome": show, "score": score, "watch": watch, "metric": metric}


def judge(rows: UnitRows, coef: Array, table: Table) -> float:
    """Accuracy of labels, R2 of a number."""
    found = judged(rows, "linear" if rows.numeric else "logistic", coef, table)
    return found["R2" if rows.numeric else "accuracy"]


def metric(schema: Schema) -> tuple[str, bool]:
    """Name of the score of a table's own target; more is better."""
    return "accuracy" if schema.classifies else "R2", True
