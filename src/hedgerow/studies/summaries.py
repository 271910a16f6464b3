"""Summaries as a study: tables of moments, quantiles, counts, histograms, cross tables, correlations and survival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from hedgerow.core.federation import Federation
from hedgerow.report import Curve, Series
from hedgerow.stats import (
    CountState,
    CrossState,
    DeviationState,
    HistogramState,
    MeanState,
    QuantileState,
    SurvivalState,
    correlation_of,
    counts_of,
    cross_of,
    histogram_of,
    independence,
    means_of,
    moments_of,
    quantiles_of,
    survival_of,
)
from hedgerow.stats.columns import is_exact

from .listing import Listing, Outcome

LEAST: tuple[Any, Any] = (
    int,
    Field(
        0,
        ge=0,
        description="counts below this number are printed as '< least'. That is for readers: it changes neither what the "
        "server learns nor what it costs, and others may be computed from totals. It is no privacy",
    ),
)
"""The setting `least`, which programs of counts share."""


def moments(federation: Federation, settings: Mapping[str, Any], state: DeviationState) -> Outcome:
    """Means and deviations."""
    return _table("Moments", moments_of(federation.schema, settings["columns"], state).to_frame())


def means(federation: Federation, settings: Mapping[str, Any], state: MeanState) -> Outcome:
    """Means."""
    table = means_of(federation.schema, settings["columns"], state).to_frame().assign(n=state.n)
    return _table("Means", table.reset_index())


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
    table = counts_of(federation.schema, settings["columns"], state).reset_index()
    return _table("Counts", sparse(table, settings["least"], ["count"], beside=["share"]))


def histogram(federation: Federation, settings: Mapping[str, Any], state: HistogramState) -> Outcome:
    """Counts and shares of bins."""
    found = histogram_of(state)
    total = found["count"].sum()
    table = found.assign(share=found["count"] / total if total > 0 else np.nan)
    return _table(f"Histogram of {settings['column']}", sparse(table, settings["least"], ["count"], beside=["share"]))


def contingency(federation: Federation, settings: Mapping[str, Any], state: CrossState) -> Outcome:
    """A cross table; where counts are exact, Pearson's test of independence besides."""
    table = cross_of(federation.schema, settings["rows"], settings["columns"], state)
    shown = sparse(table, settings["least"], list(table.columns)).reset_index()
    found = independence(state.counts) if is_exact(federation) else None
    metrics: dict[str, float] = {}
    text: dict[str, str] = {}
    if found is not None:
        metrics = {"chi-square": found.statistic, "df": float(found.df), "p": found.p_value}
        if found.smallest_expected < 5:
            text["Note"] = f"The smallest expected count is {found.smallest_expected:.3g}, so the p-value is rough."
    title = f"{settings['rows']} by {settings['columns']}"
    return Outcome(metrics=metrics, tables={title: shown}, text=text, coefficients=shown)


def survival(federation: Federation, settings: Mapping[str, Any], state: SurvivalState) -> Outcome:
    """Numbers at risk, and survival by Kaplan and Meier with Greenwood's intervals."""
    group, noisy = settings["group"], not is_exact(federation)
    how = {"interval": settings["interval"], "level": settings["level"]}
    table = survival_of(federation.schema, group, state, noisy=noisy, **how)
    known = [name for name in ("survival", "standard error", "low", "high", "if censored first") if name in table]
    shown = sparse(table, settings["least"], ["events", "censored"], beside=["if censored first"])
    shown = sparse(shown, settings["least"], ["at risk"], beside=["events", "censored", *known])
    lines = []
    for name, part in [("all", table)] if group is None else table.groupby(group, sort=False):
        kept = part[part["at risk"] >= settings["least"]]
        lines.append(Series(str(name), (0.0, *kept["time"].astype(float)), (1.0, *kept["survival"].astype(float))))
    curve = Curve("Survival", settings["time"], "survival", tuple(lines))
    return Outcome(tables={"Survival": shown}, coefficients=shown, curves=(curve,))


def sparse(table: pd.DataFrame, least: int, columns: Sequence[str], *, beside: Sequence[str] = ()) -> pd.DataFrame:
    """Print counts of `columns` above zero and below `least` as such, and nothing of them in the columns `beside`."""
    if least <= 0:
        return table
    found = table.astype(dict.fromkeys([*columns, *beside], object))
    for name in columns:
        number = pd.to_numeric(table[name], errors="coerce")
        few = (number > 0) & (number < least)
        found.loc[few, name] = f"< {least}"
        found.loc[few, list(beside)] = None
    return found


def listings() -> dict[str, Listing]:
    """The catalogue's lines of what is counted."""
    return {
        "means": Listing(
            "hedgerow.stats:mean_totals",
            "Means of columns and nothing else, by one sum; through noise cheaper than moments.",
            means,
        ),
        "counts": Listing(
            "hedgerow.stats:level_totals", "How often each level of a category occurs.", counts, instead={"least": LEAST}
        ),
        "histogram": Listing(
            "hedgerow.stats:bin_totals", "How many records lie between given edges.", histogram, instead={"least": LEAST}
        ),
        "contingency": Listing(
            "hedgerow.stats:cross_totals",
            "How often each pair of levels of two columns occurs, with Pearson's test.",
            contingency,
            instead={"least": LEAST},
        ),
        "survival_counts": Listing(
            "hedgerow.stats:survival_totals",
            "Numbers at risk, events and censored at given times, and the Kaplan-Meier estimate (1958).",
            survival,
            instead={
                "least": LEAST,
                "interval": (
                    Literal["log-log", "plain"],
                    Field("log-log", description="scale on which the confidence interval of survival is symmetric"),
                ),
                "level": (float, Field(0.95, gt=0, lt=1, description="of the confidence interval")),
            },
        ),
    }


def _table(title: str, frame: pd.DataFrame) -> Outcome:
    return Outcome(tables={title: frame}, coefficients=frame)
