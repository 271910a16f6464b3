"""Regressions as a study: the table of coefficients, the summary, and a score for the baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.stats import NewtonState, design_of, fit_of
from hedgerow.stats.families import FamilyName

from .listing import Outcome


def outcome(family: FamilyName) -> Callable[[Federation, Mapping[str, Any], NewtonState], Outcome]:
    """Show the fit of a family."""

    def show(federation: Federation, settings: Mapping[str, Any], state: NewtonState) -> Outcome:
        spec = design_of(federation.schema, settings["formula"], family, offset=settings["offset"], weights=settings["weights"])
        fit = fit_of(federation, spec, family, state)
        frame = fit.to_frame()
        goodness = {"log-likelihood": fit.log_likelihood, "AIC": fit.aic, "R2": fit.r_squared if family == "gaussian" else None}
        metrics = {name: float(value) for name, value in goodness.items() if value is not None}
        return Outcome(metrics, tables={"Coefficients": frame}, text={"Summary": fit.summary()}, coefficients=frame)

    return show


def score(family: FamilyName) -> Callable[[Mapping[str, Any], NewtonState, Schema, Table], float]:
    """Mean log-loss of a logistic regression, R2 of a linear one, on a table."""

    def judge(settings: Mapping[str, Any], state: NewtonState, schema: Schema, table: Table) -> float:
        spec = design_of(schema, settings["formula"], family, offset=settings["offset"], weights=settings["weights"])
        n = len(table)
        eta = spec.matrix(table.columns, n) @ state.beta + spec.offsets(table.columns, n)
        y = spec.response.columns(table.columns)[:, 0]
        w = table[spec.weights] if spec.weights else np.ones(n)
        if family == "binomial":
            return float(np.average(np.logaddexp(0, eta) - y * eta, weights=w))
        mean = np.average(y, weights=w)
        return 1 - float(np.average((y - eta) ** 2, weights=w) / np.average((y - mean) ** 2, weights=w))

    return judge
