"""Survival counts: who was at risk, who had the event, and who was censored, between given times.

    every record adds its weight to one cell: group, interval of its time, event or censored      sum, once
    at risk in an interval    =  all whose time lies in it or later
    hazard                    =  events / at risk
    survival                  =  product of (1 - hazard) up to a time                              Kaplan & Meier
    variance                  =  survival² * sum of  events / (at risk * (at risk - events))      Greenwood

An interval holds its upper end. Who is censored in an interval counts as at risk in all of it, as Kaplan and Meier do with
ties; so where times are whole days and every day is asked for, the estimate is theirs exactly. With wider intervals theirs
lies between `survival` and `if censored first`, which counts nobody who is censored in an interval as at risk in it.

Releases : two counts for each group and interval; once.
Unit     : record. A record adds its weight to one count.
Source   : Kaplan & Meier 1958; Greenwood 1926; limits that are symmetric on the scale log(-log), Kalbfleisch & Prentice 1980.
    Differs: times are grouped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Curve, Figure, Outcome, Series

from ..columns import COUNTED, NUMERIC, chosen, heaviest, is_exact, levels_of, schema_of, upper_end
from ..counts import count_bound, tally
from ..sparse import LEAST, sparse

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Schema

Interval = Literal["log-log", "plain"]


@local(additive=True, stackable=True, holds=True)
def survival_tally(
    times: Array,
    party: Party,
    rng: Any,
    *,
    time: str,
    event: str,
    group: str | None,
    n_groups: int,
    bounds: Bounds | None = None,
) -> Array:
    """Count records by group, interval and outcome, shape (n_groups * (k + 1) * 2,).

    `times` (k,) are the upper ends of the intervals; what lies beyond them is in the last one. Outcome 0 is censored, 1 the
    event.
    """
    interval = np.searchsorted(times, party[time], side="left")
    groups = 0 if group is None else party[group].astype(np.intp)
    cell = (groups * (len(times) + 1) + interval) * 2 + party[event].astype(np.intp)
    return tally(cell, held(party.w, bounds), n_groups * (len(times) + 1) * 2)


@displayed
@dataclass(frozen=True)
class SurvivalState:
    """Counts after the only round.

    Attributes
    ----------
    times : array of shape (k,)
        Upper ends of the intervals.
    counts : array of shape (groups, k + 1, 2)
        Censored and events; the last interval is beyond all times.
    """

    round: int
    times: Array
    counts: Array


def show_survival(federation: Federation, settings: Mapping[str, Any], state: SurvivalState) -> Outcome:
    """Numbers at risk, and survival by Kaplan and Meier with Greenwood's intervals."""
    group, noisy = settings["group"], not is_exact(federation)
    how = {"interval": settings["interval"], "level": settings["level"]}
    table = survival_of(schema_of(federation), group, state, noisy=noisy, **how)
    known = [name for name in ("survival", "standard error", "low", "high", "if censored first") if name in table]
    shown = sparse(table, settings["least"], ["events", "censored"], beside=["if censored first"])
    shown = sparse(shown, settings["least"], ["at risk"], beside=["events", "censored", *known])
    tables = {"Survival": shown}
    if not noisy and not settings["least"]:
        tables["Median survival"] = median_survival(table, group)
    curve = survival_curve(table, group, settings["time"], settings["least"], settings["level"])
    return Outcome(tables=tables, coefficients=shown, curves=(curve,))


def survival_curve(
    table: pandas.DataFrame, group: str | None = None, unit: str = "time", least: float = 0, level: float = 0.95
) -> Curve:
    """Draw a table of `survival_counts`: a line for each group, with its band where the table has intervals.

    Parameters
    ----------
    group : str, optional
        Column of the table that tells groups apart.
    unit : str
        What stands below the axis of time.
    least : float
        Where fewer are at risk, a line ends.
    level : float
        Of the intervals, for the note.
    """
    lines, banded = [], {"low", "high"} <= set(table)
    for name, part in _by_group(table, group):
        kept = part[part["at risk"] >= least]
        kept = kept[np.isfinite(kept["survival"].astype(float))]
        survival = kept["survival"].astype(float)
        low, high = ((1.0, *kept[end].astype(float).fillna(survival)) if banded else () for end in ("low", "high"))
        lines.append(Series(str(name), (0.0, *kept["time"].astype(float)), (1.0, *survival), low=low, high=high))
    note = f"Bands are {level:.0%} intervals, point by point." if banded else ""
    return Curve("Survival", unit, "survival", tuple(lines), note=note)


def survival_plot(table: pandas.DataFrame, group: str | None = None, unit: str = "time", least: float = 0) -> Figure:
    """Draw a table of `survival_counts` as SVG; arguments as `survival_curve`."""
    return Figure(survival_curve(table, group, unit, least))


def median_survival(table: pandas.DataFrame, group: str | None = None, share: float = 0.5) -> pandas.DataFrame:
    """The time at which survival falls to one half, by group, with the interval in which the band crosses that.

    Parameters
    ----------
    table : pandas.DataFrame
        Of `survival_counts`.
    group : str, optional
        Column of the table that tells groups apart.
    share : float
        Other quantiles of survival, such as 0.75 for the time until which a quarter has had the event.

    Returns
    -------
    pandas.DataFrame
        `median` (or `time`, of another share), `low`, `high` by group; NaN where survival stays above. They are among the times
        asked for. Where survival stays exactly there, the middle of that stretch, as R has it.

    Source
    ------
    Brookmeyer & Crowley 1982.
    """
    import pandas

    if not 0 < share < 1:
        raise SettingsInvalid(f"share={share!r} of survival.", remedy="Between 0 and 1, such as 0.5 for the median.")
    rows, names = [], []
    for name, part in _by_group(table, group):
        names.append(str(name))
        times = part["time"].to_numpy(dtype=float)
        curves = [part[column].to_numpy(dtype=float) for column in ("survival", "low", "high") if column in part]
        rows.append([_falls_to(times, curve, share) for curve in curves] + [np.nan] * (3 - len(curves)))
    columns = ["median" if share == 0.5 else "time", "low", "high"]
    return pandas.DataFrame(rows, columns=columns, index=pandas.Index(names, name=group or "group"))


def _falls_to(times: Array, curve: Array, share: float) -> float:
    """The first time at which a falling curve is at or below a share."""
    below = np.flatnonzero(curve <= share * (1 + 1e-12))
    if not len(below):
        return float("nan")
    after = np.flatnonzero(curve < share * (1 - 1e-12))
    if curve[below[0]] < share * (1 - 1e-12) or not len(after):
        return float(times[below[0]])
    return float(times[below[0]] + times[after[0]]) / 2


def _by_group(table: pandas.DataFrame, group: str | None) -> Iterable[tuple[Any, pandas.DataFrame]]:
    return [("all", table)] if group is None else table.groupby(group, sort=False)


@program(
    "Numbers at risk, events and censored at given times, and the Kaplan-Meier estimate (1958).",
    name="survival_counts",
    keys={
        "least": LEAST,
        "interval": Key(Interval, "log-log", "scale on which the confidence interval of survival is symmetric"),
        "level": Key(float, 0.95, "of the confidence interval", {"gt": 0, "lt": 1}),
    },
    outcome=show_survival,
    case=lambda: Case(
        load("breast_cancer").take(range(200)), {"time": "mean_radius", "event": "malignant", "times": [10.0, 15.0]}
    ),
)
def survival_totals(
    federation: Federation,
    time: str,
    event: str,
    times: Sequence[float],
    group: str | None = None,
    *,
    start: SurvivalState | None = None,
) -> Iterator[SurvivalState]:
    """Ask once for the counts of all groups and intervals, as `hedgerow.stats.survival_counts`."""
    if start is None:
        schema = schema_of(federation)
        chosen(schema, [time], NUMERIC)
        chosen(schema, [event], ("binary",))
        ends, n_groups = _rising(times), len(groups_of(schema, group))
        federation = complete_cases(federation, [time, event, *([] if group is None else [group])])
        ask = partial(survival_tally, time=time, event=event, group=group, n_groups=n_groups)
        found = federation.sum(ask, ends, bound=count_bound(heaviest(schema)))
        yield SurvivalState(1, ends, found.reshape(n_groups, len(ends) + 1, 2))


def survival_counts(
    federation: Federation,
    time: str,
    event: str,
    times: Sequence[float],
    group: str | None = None,
    *,
    interval: Interval = "log-log",
    level: float = 0.95,
) -> pandas.DataFrame:
    """Numbers at risk, events and censored between given times, and the Kaplan-Meier estimate at them.

    Parameters
    ----------
    time : str
        Column of the time until event or censoring, in any unit.
    event : str
        Binary column: 1 where the time ended with the event, 0 where it was censored.
    times : sequence of float
        Rising; the upper ends of the intervals, in the unit of `time`. Public, and chosen without looking at the data.
    group : str, optional
        Category or binary column: one estimate for each of its levels.
    interval : {"log-log", "plain"}
        Scale on which the confidence interval is symmetric; "plain" is Greenwood's on survival itself.
    level : float
        Of the confidence interval.

    Returns
    -------
    pandas.DataFrame
        A row for each group and time; see `survival_of`.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409), SettingsInvalid (HR-511)
        A column is unknown or of another kind; times do not rise. No party was asked.
    """
    *_, state = survival_totals(federation, time, event, times, group)
    noisy = federation.protection.noisy
    return survival_of(schema_of(federation), group, state, interval=interval, level=level, noisy=noisy)


def survival_of(
    schema: Schema,
    group: str | None,
    state: SurvivalState,
    *,
    interval: Interval = "log-log",
    level: float = 0.95,
    noisy: bool = False,
) -> pandas.DataFrame:
    """Turn the state of `survival_totals` into a table.

    Parameters
    ----------
    group, interval, level
        As `hedgerow.stats.survival_counts`.
    noisy : bool
        Whether counts are noisy. Then standard errors and intervals, which know nothing of the noise, are left out, and hazards
        are brought between 0 and 1.

    Returns
    -------
    pandas.DataFrame
        `group` (where there is one), `time`, `at risk`, `events`, `censored`, `survival`, `standard error`, `low`, `high` and
        `if censored first`.
    """
    import pandas

    censored, events = state.counts[:, :-1, 0], state.counts[:, :-1, 1]
    at_risk = state.counts.sum(-1)[:, ::-1].cumsum(-1)[:, ::-1][:, :-1]
    survival, variance = kaplan_meier(at_risk, events)
    lines: dict[str, Array] = {
        "time": np.broadcast_to(state.times, events.shape),
        "at risk": at_risk,
        "events": events,
        "censored": censored,
        "survival": survival,
    }
    if not noisy:
        low, high = survival_interval(survival, variance, interval=interval, level=level)
        lines |= {"standard error": np.sqrt(variance), "low": low, "high": high}
    lines["if censored first"] = kaplan_meier(np.where(events > 0, at_risk - censored, at_risk), events)[0]
    table = pandas.DataFrame({name: values.ravel() for name, values in lines.items()})
    if group is not None:
        table.insert(0, group, np.repeat(groups_of(schema, group), len(state.times)))
    return table


def kaplan_meier(at_risk: Array, events: Array) -> tuple[Array, Array]:
    """Return survival and its variance by Greenwood after each interval; both arguments of shape (..., k).

    Survival is NaN from where nobody is at risk, unless it is zero before; the variance of a survival of zero is NaN.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        hazard = np.clip(np.where(at_risk > 0, events / at_risk, np.nan), 0.0, 1.0)
        gone = np.cumsum(hazard == 1.0, axis=-1) > 0
        survival = np.where(gone, 0.0, np.cumprod(1.0 - hazard, axis=-1))
        terms = np.where(hazard == 0.0, 0.0, events / (at_risk * (at_risk - events)))
        variance = np.where(gone, np.nan, survival**2 * np.cumsum(terms, axis=-1))
    return survival, variance


def survival_interval(survival: Array, variance: Array, *, interval: Interval, level: float) -> tuple[Array, Array]:
    """Return confidence limits of survival, pointwise; where nobody has had the event yet both ends are 1, as is survival."""
    if interval not in ("log-log", "plain"):
        raise SettingsInvalid(f"interval={interval!r} is no scale.", remedy='Give "log-log" or "plain".')
    z = float(ndtri(upper_end(level)))
    if interval == "plain":
        reach = z * np.sqrt(variance)
        return np.clip(survival - reach, 0.0, 1.0), np.clip(survival + reach, 0.0, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        reach = np.exp(z * np.sqrt(variance) / (survival * np.abs(np.log(survival))))
        inside = (survival > 0) & (survival < 1)
        low, high = np.where(inside, survival**reach, survival), np.where(inside, survival ** (1 / reach), survival)
    known = np.isfinite(variance)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def groups_of(schema: Schema, group: str | None) -> tuple[str, ...]:
    """Return the levels by which survival is told apart; one for all where there is no group."""
    return ("all",) if group is None else levels_of(chosen(schema, [group], COUNTED)[0])


def _rising(times: Sequence[float]) -> Array:
    ends = np.asarray(times, dtype=float)
    if ends.ndim != 1 or not len(ends) or not np.isfinite(ends).all() or not (np.diff(ends) > 0).all():
        raise SettingsInvalid(f"times {list(times)[:6]} do not rise.", remedy="Give one or more times in rising order.")
    return ends
