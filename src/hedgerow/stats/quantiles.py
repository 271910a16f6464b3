"""Quantiles by bisection: count what lies at or below some thresholds, halve the intervals, ask again.

    low, high <- declared range, for each quantile
    until high - low <= tol:
        t             <- (low + high) / 2                       broadcast, one threshold for each quantile
        below, n      <- sum of  w * [x <= t],  w               sum
        high, or low  <- t, where below reaches q * n, or not

Releases : counts at or below one threshold for each quantile, and n; once a round.
Unit     : record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, linf
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SchemaInvalid, SettingsInvalid
from hedgerow.report import Outcome

from .columns import NUMERIC, chosen, heaviest, range_of, schema_of

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Column, Schema

HALVINGS = 20
"""Rounds without a tolerance: a millionth of the range."""


@local(additive=True, stackable=True, holds=True)
def counts_below(thresholds: Array, party: Party, rng: Any, *, column: str, bounds: Bounds | None = None) -> dict[str, Array]:
    """Add up the weights of records at or below each threshold (k,), and of all records."""
    x, w = party[column], held(party.w, bounds, "below", len(thresholds))
    below = ((x[..., None, :] <= thresholds[:, None]) * w[..., None, :]).sum(-1)
    return {"below": below, "n": held(party.w, bounds, "n").sum(-1)}


def below_bounds(weight: float | None) -> dict[str, Bound] | None:
    """Return by how much one record moves `counts_below`: each count by at most its weight."""
    return None if weight is None else {"below": linf(weight, "record"), "n": linf(weight, "record")}


@displayed
@dataclass(frozen=True)
class QuantileState:
    """Each quantile lies above `low` and at or below `high`, both of shape (k,)."""

    round: int
    low: Array
    high: Array
    n: float = 0.0


def show_quantiles(federation: Federation, settings: Mapping[str, Any], state: QuantileState) -> Outcome:
    """Quantiles of a column."""
    found = quantiles_of(schema_of(federation), settings["column"], settings["q"], state)
    return Outcome.of_table(f"Quantiles of {settings['column']}", found.to_frame())


@program(
    "Quantiles of a column, by bisection on counts.",
    name="quantiles",
    outcome=show_quantiles,
    case=lambda: Case(load("diabetes").take(range(200)), {"column": "bmi", "tol": 1.0}),
)
def bisection(
    federation: Federation,
    column: str,
    q: Sequence[float] = (0.25, 0.5, 0.75),
    *,
    tol: float | None = None,
    low: float | None = None,
    high: float | None = None,
    start: QuantileState | None = None,
) -> Iterator[QuantileState]:
    """Bisect for all quantiles at once; parameters as `hedgerow.stats.quantiles`.

    Yields
    ------
    QuantileState
        After each round; the intervals halve from one to the next.
    """
    schema = schema_of(federation)
    bottom, top = _interval(chosen(schema, [column], NUMERIC)[0], low, high)
    shares = _shares(q)
    tol = (top - bottom) / 2**HALVINGS if tol is None else tol
    if not tol > 4 * np.spacing(max(abs(bottom), abs(top))):
        raise SettingsInvalid(f"tol={tol!r} is never reached.", remedy="Give a tolerance above zero, or leave it out.")
    state = start or QuantileState(0, np.full(len(shares), bottom), np.full(len(shares), top))
    federation = complete_cases(federation, [column])
    ask, bounds = partial(counts_below, column=column), below_bounds(heaviest(schema))
    while (state.high - state.low).max() > tol:
        middle = (state.low + state.high) / 2
        found = federation.sum(ask, middle, bound=bounds)
        reached = (found["below"] >= shares * found["n"] * (1 - 1e-12)) & (found["below"] > 0)
        state = QuantileState(
            state.round + 1,
            np.where(reached, state.low, middle),
            np.where(reached, middle, state.high),
            float(found["n"]),
        )
        yield state


def quantiles(
    federation: Federation,
    column: str,
    q: Sequence[float] = (0.25, 0.5, 0.75),
    *,
    tol: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> pandas.Series:
    """Quantiles of a column, as `numpy.quantile(..., method="inverted_cdf")` of the pooled records to within `tol`.

    Parameters
    ----------
    column : str
        Numbers, integers or a binary column.
    q : sequence of float
        Shares between 0 and 1.
    tol : float, optional
        In units of the column; a millionth of the range by default. A round halves the error. Quantiles of integers are
        exact where `tol` is below 1.
    low, high : float, optional
        Where to search; the declared range by default. What lies outside counts as lying at its ends.

    Returns
    -------
    pandas.Series
        Indexed by `q`.

    Raises
    ------
    SchemaInvalid (HR-409), SettingsInvalid (HR-511)
        No range is declared or given; `q` or `tol` are out of range. No party was asked.
    """
    schema = schema_of(federation)
    bottom, top = _interval(chosen(schema, [column], NUMERIC)[0], low, high)
    state = QuantileState(0, np.full(len(_shares(q)), bottom), np.full(len(_shares(q)), top))
    for state in bisection(federation, column, q, tol=tol, low=low, high=high):  # noqa: B007
        pass
    return quantiles_of(schema, column, q, state)


def quantiles_of(schema: Schema, column: str, q: Sequence[float], state: QuantileState) -> pandas.Series:
    """Turn the last state of `bisection` into quantiles."""
    import pandas

    read = chosen(schema, [column], NUMERIC)[0]
    whole = read.kind != "number" and (state.high - state.low).max() < 1
    found = np.floor(state.high) if whole else (state.low + state.high) / 2
    return pandas.Series(found, index=pandas.Index(list(q), name="q"), name=column)


def _interval(column: Column, low: float | None, high: float | None) -> tuple[float, float]:
    declared = range_of(column) or (column.low, column.high)
    bottom, top = (given if given is not None else end for given, end in zip((low, high), declared, strict=True))
    if bottom is None or top is None:
        raise SchemaInvalid(
            f"column {column.name!r} declares the range [{column.low}, {column.high}], and bisection needs both ends.",
            remedy=f"Give low= and high=, or declare them: table.declare({column.name}=(low, high)).",
        )
    if not bottom < top:
        raise SettingsInvalid(f"[{bottom}, {top}] is not an interval.", remedy="Give low < high.")
    # the lowest value itself must lie above the lower end of its interval
    return float(np.nextafter(bottom, -np.inf)), float(top)


def _shares(q: Sequence[float]) -> Array:
    shares = np.atleast_1d(np.asarray(q, dtype=float))
    if shares.ndim != 1 or not len(shares) or not ((shares >= 0) & (shares <= 1)).all():
        raise SettingsInvalid(f"q={q!r} are not shares.", remedy="Give numbers between 0 and 1, e.g. q=[0.25, 0.5].")
    return shares
