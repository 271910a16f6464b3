"""Odds ratios, each variable by itself beside all together.

Of indicators (binary columns and levels of categories) the odds ratio by itself follows from a table of counts, so one
question about all tables is enough; of numbers it takes a logistic regression of one variable.

Releases : records and events with each indicator, once; what `newton` releases, for all variables together and for each
           number by itself.
Unit     : record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local

from ..blocks import by_blocks
from ..columns import schema_of, upper_end
from ..design import Design, design, design_of
from ..expressions import is_binary
from ..factors import Levels, Term
from ..fit import fit_of
from ..glm import newton
from ..indicators import cases_of_model
from ..linear.asking import refuse_unbounded

if TYPE_CHECKING:
    import pandas


@local(additive=True, stackable=True, rowwise=True)
@by_blocks
def events_by_column(broadcast: None, party: Party, rng: Any) -> dict[str, Array]:
    """Add up records and events, over all and over those with each indicator (d,)."""
    X, w, y = party["X"], party.w, party["y"]
    with_column = np.swapaxes(X, -1, -2) @ np.stack([w, w * y], axis=-1)
    return {"n": party.n, "events": (w * y).sum(-1), "with": with_column[..., 0], "events_with": with_column[..., 1]}


def table_bounds(weight: float | None) -> dict[str, Bound] | None:
    """By how much one record moves `events_by_column`, whose columns are indicators."""
    return None if weight is None else dict.fromkeys(("n", "events", "with", "events_with"), linf(weight, "record"))


def odds_ratio_table(
    federation: Federation,
    formula: str,
    *,
    level: float = 0.95,
    offset: str | None = None,
    weights: str | None = None,
    **settings: Any,
) -> pandas.DataFrame:
    """Odds ratios of each variable by itself (`odds ratio`) and adjusted for the others, with confidence intervals.

    Parameters
    ----------
    formula : str
        As of `hedgerow.stats.regression`. Each term but the intercept is a variable; levels of one category are
        compared with its reference level.
    level : float
        Of the intervals (Wald, on the log scale).
    **settings
        Of `newton`: `tol`, `max_rounds`, `rounds`.

    Returns
    -------
    pandas.DataFrame
        One row for each column but the intercept: `odds ratio`, `low`, `high`, `adjusted`, `adjusted low`, `adjusted high`.
        Where a cell of a table is empty the odds ratio is 0 or infinite, and its interval is not known.

    Raises
    ------
    As `hedgerow.stats.regression`.
    """
    import pandas

    upper_end(level)  # refused before anybody is asked
    spec = design_of(schema_of(federation), formula, "binomial", offset=offset, weights=weights)
    logs = _adjusted(federation, spec, level, settings)
    alone = np.full((spec.size, 3), np.nan)
    parts = _columns(spec)
    counted = [(term, columns) for term, columns in parts if _is_indicator(term, spec) and spec.offset is None]
    if counted:
        terms = tuple(_against_reference(term) for term, _ in counted)
        alone_columns = [column for term, columns in counted for column in columns[len(columns) - _width(term) :]]
        alone[alone_columns] = _tables(federation, replace(spec, terms=terms), level)
    for term, columns in parts:
        if term.factors and not any(term is done for done, _ in counted):
            single = replace(spec, terms=(Term(), term))
            alone[list(columns)] = _adjusted(federation, single, level, settings)[1:]
    kept = [i for term, columns in parts if term.factors for i in columns]
    with np.errstate(over="ignore"):
        values = np.exp(np.column_stack([alone, logs])[kept])
    names = ["odds ratio", "low", "high", "adjusted", "adjusted low", "adjusted high"]
    return pandas.DataFrame(values, index=pandas.Index([spec.names[i] for i in kept], name="column"), columns=names)


def _adjusted(federation: Federation, spec: Design, level: float, settings: dict[str, Any]) -> Array:
    """Coefficients and their intervals, shape (d, 3)."""
    asked_before = len(federation.ledger)
    *_, state = newton(federation, spec, family="binomial", **settings)
    fit = fit_of(federation, spec, "binomial", state, asked_before)
    return np.column_stack([fit.coef_, fit.conf_int(level)])


def _columns(spec: Design) -> list[tuple[Term, range]]:
    found, start = [], 0
    for term in spec.terms:
        found.append((term, range(start, start + len(term.names))))
        start += len(term.names)
    return found


def _is_indicator(term: Term, spec: Design) -> bool:
    if len(term.factors) != 1:
        return False
    factor = term.factors[0]
    return isinstance(factor, Levels) or is_binary(factor.text, spec.schema)


def _against_reference(term: Term) -> Term:
    factor = term.factors[0]
    return Term((factor.without_reference(),)) if isinstance(factor, Levels) and factor.full else term


def _width(term: Term) -> int:
    return len(_against_reference(term).names)


def _tables(federation: Federation, spec: Design, level: float) -> Array:
    """Log odds ratios of all indicators against their references, with intervals, by one question; shape (d, 3)."""
    bounds, end = table_bounds(spec.weight_limit), upper_end(level)
    refuse_unbounded(federation, spec, bounds)
    federation = cases_of_model(federation, spec)
    sums = federation.prepare(design, spec=spec).sum(events_by_column, bound=bounds)
    found = []
    for _, columns in _columns(spec):
        part = list(columns)
        n, events = sums["with"][part], sums["events_with"][part]
        rest, rest_events = np.full(len(n), sums["n"] - n.sum()), np.full(len(n), sums["events"] - events.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            cells = np.stack([events, rest - rest_events, n - events, rest_events])
            log_ratio = np.log(cells[:2]).sum(0) - np.log(cells[2:]).sum(0)
            reach = ndtri(end) * np.sqrt((1 / cells).sum(0))
        exact = federation.protection.exact
        reach = np.where(np.isfinite(log_ratio) & exact, reach, np.nan)
        found.append(np.column_stack([log_ratio, log_ratio - reach, log_ratio + reach]))
    return np.concatenate(found)
