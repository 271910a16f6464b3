"""Summaries as a study: tables of moments, quantiles, counts and correlations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from hedgerow.core.federation import Federation
from hedgerow.stats import (
    CountState,
    DeviationState,
    QuantileState,
    correlation_of,
    counts_of,
    moments_of,
    quantiles_of,
)

from .listing import Outcome


def moments(federation: Federation, settings: Mapping[str, Any], state: DeviationState) -> Outcome:
    """Means and deviations."""
    return _table("Moments", moments_of(federation.schema, settings["columns"], state).to_frame())


def correlations(federation: Federation, settings: Mapping[str, Any], state: DeviationState) -> Outcome:
    """Moments and correlations."""
    table = _table("Correlations", correlation_of(federation.schema, settings["columns"], state))
    return Outcome(tables={**table.tables, **moments(federation, settings, state).tables}, coefficients=table.coefficients)


def quantiles(federation: Federation, settings: Mapping[str, Any], state: QuantileState) -> Outcome:
    """Quantiles of a column."""
    found = quantiles_of(federation.schema, settings["column"], settings["q"], state)
    return _table(f"Quantiles of {settings['column']}", found.to_frame())


def counts(federation: Federation, settings: Mapping[str, Any], state: CountState) -> Outcome:
    """Counts and shares of levels."""
    return _table("Counts", counts_of(federation.schema, settings["columns"], state).reset_index())


def _table(title: str, frame: pd.DataFrame) -> Outcome:
    return Outcome(tables={title: frame}, coefficients=frame)
