"""How well coefficients of unit rows predict a table, and what a report shows of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases

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


def metric(schema: Schema) -> tuple[str, bool]:
    """Name of the score of a table's own target; more is better."""
    return "accuracy" if schema.classifies else "R2", True
