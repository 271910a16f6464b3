"""How well coefficients of unit rows predict a table, and what a report shows of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases
from hedgerow.report import Outcome

from ..columns import schema_of
from .rows import UnitRows

Settings = Mapping[str, Any]


def row_length(rows: str | None, formula: str, schema: Schema, **more: Any) -> UnitRows:
    """Unit rows of a formula; where no length is given, fixed for a number, whose coefficients are wanted, else unit."""
    if rows is not None:
        return UnitRows.of(formula, schema, length=rows, **more)  # type: ignore[arg-type]
    found = UnitRows.of(formula, schema, **more)
    return UnitRows.of(formula, schema, length="fixed", **more) if found.numeric else found


def judge(rows: UnitRows, coef: Array, table: Table) -> float:
    """Share of labels on the right side of the boundary; of a number the share of variance that is explained."""
    table = whole_cases(table, rows.spec.schema.names)
    w = np.asarray(table.columns[rows.spec.weights], np.float64) if rows.spec.weights else np.ones(len(table))
    eta, t = rows.rows(table.columns, len(table)) @ coef, rows.targets(table.columns)
    if not rows.numeric:
        return float(np.average((eta > 0) == (t > 0.5), weights=w))
    error = np.average((t - np.clip(eta, -1.0, 1.0)) ** 2, weights=w)
    return 1 - float(error / np.average((t - np.average(t, weights=w)) ** 2, weights=w))


def told(rows_of: Callable[[Schema, Settings], UnitRows]) -> dict[str, Any]:
    """What `program` is told of a linear model of unit rows: what its report shows, and how it is scored.

    Parameters
    ----------
    rows_of : callable
        `(schema, settings) -> UnitRows` to which the state's `coef` belong.
    """

    def show(federation: Federation, settings: Settings, state: Any) -> Outcome:
        import pandas

        names = pandas.Index(rows_of(schema_of(federation), settings).names, name="column")
        frame = pandas.DataFrame({"coef": state.coef}, index=names)
        return Outcome(tables={"Coefficients of unit rows": frame}, coefficients=frame)

    def score(settings: Settings, state: Any, schema: Schema, table: Table) -> float:
        return judge(rows_of(schema, settings), state.coef, table)

    def watch(settings: Settings, state: Any, schema: Schema, test: Table | None) -> dict[str, float]:
        if test is None:
            return {}
        name = "R2" if rows_of(schema, settings).numeric else "accuracy"
        return {f"test {name}": score(settings, state, schema, test)}

    return {"outcome": show, "score": score, "watch": watch, "metric": metric}


def metric(schema: Schema) -> tuple[str, bool]:
    """Name of the score of a table's own target; more is better."""
    return "accuracy" if schema.classifies else "R2", True
