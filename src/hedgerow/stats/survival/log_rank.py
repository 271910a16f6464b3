"""The log-rank test: do groups have the same hazards?

    by site    at each event time of each site's own risk sets: expected = d * (share of the group among those at risk)
               O, E       <- events, and what was expected, by group                       sum
               V          <- d (n - d) / (n - 1) * (diag(share) - share share')            the same sum
    by cells   counts of group, interval and outcome, as `survival_counts` asks them       sum
               O, E, V from the totals, each interval as if it were one time               at the server

    statistic  =  (O - E)' V^-1 (O - E),  chi-squared with groups - 1 degrees of freedom

By site the test is the exact one, stratified by site (and by `strata` within): sites may differ in their hazards. By cells
records of all sites are compared with one another, and times within an interval count as tied: the result names the cells.

Releases : by site O, E and a triangle of V and records by group; by cells two counts for each group and interval. Once.
Unit     : by site party, a range for hidden sums and no sensitivity: a record is in the risk sets of others. By cells record.
           The test knows nothing of noise, so that channels that clip or add any are refused (HR-211).
Source   : Mantel 1966; Peto & Peto 1972; Kalbfleisch & Prentice 2002, section 1.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import chdtrc

from hedgerow.core.arrays import Array
from hedgerow.core.bound import linf
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import NotIdentified, SettingsInvalid
from hedgerow.report import ForPapers, Outcome

from ..columns import COUNTED, NUMERIC, chosen, heaviest, levels_of, schema_of
from ..counts import count_bound
from ..linear.sums import symmetric, triangle
from .asking import refuse_noise
from .counts import survival_tally
from .cox_sums import SLACK, check_records, repeated
from .risk_sets import RiskSets

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Schema

By = Literal["site", "cells"]


@local
def log_rank_sums(
    broadcast: None,
    party: Party,
    rng: object,
    *,
    time: str,
    event: str,
    group: str,
    n_groups: int,
    strata: tuple[tuple[str, int], ...] = (),
    most: float | None = None,
) -> dict[str, Array]:
    """Add up over strata and event times: records, observed and expected events (groups,), and the variance of all groups but
    the last (upper triangle).
    """
    check_records(party, most)
    kept = repeated(party)
    groups = np.asarray(party[group])[kept].astype(np.intp)
    times, events = np.asarray(party[time], dtype=float)[kept], np.asarray(party[event])[kept] > 0.5
    stratum = np.zeros(len(kept), np.intp)
    for name, n_levels in strata:
        stratum = stratum * n_levels + np.asarray(party[name])[kept].astype(np.intp)
    indicators = (groups[:, None] == np.arange(n_groups)).astype(float)
    observed, apart, variance = indicators[events].sum(0), np.zeros(n_groups), np.zeros((n_groups, n_groups))
    for one in np.unique(stratum):
        rows = stratum == one
        flat = np.zeros(int(rows.sum()))
        sets = RiskSets(indicators[rows], flat, times[rows], events[rows], flat + 1.0, "breslow")
        n, d = sets.z0, sets.mass
        apart += sets.score
        variance += sets.information((n - d) / np.maximum(n - 1, 1.0))
    return {
        "n": indicators.sum(0),
        "observed": observed,
        "expected": observed - apart,
        "variance": triangle(variance[:-1, :-1]),
    }


@displayed
@dataclass(frozen=True)
class LogRankState:
    """Sums after the only round.

    Attributes
    ----------
    n, observed, expected : arrays of shape (groups,)
        Records, events, and events that are expected where hazards are the same.
    variance : array of shape (groups - 1, groups - 1)
        Of observed less expected, of all groups but the last.
    cells : int
        Intervals that the test is on; 0 where it is on every event time of each site.
    """

    round: int
    n: Array
    observed: Array
    expected: Array
    variance: Array
    cells: int = 0


@displayed
@dataclass(frozen=True, eq=False)
class LogRank(ForPapers):
    """A log-rank test.

    Attributes
    ----------
    statistic : float
        Chi-squared.
    df : int
    p_value : float
    groups : tuple of str
        Those with records at risk.
    n, observed, expected : arrays of shape (groups,)
    cells : int
        Intervals that the test is on; 0 where it is on every event time of each site.
    """

    statistic: float
    df: int
    p_value: float
    groups: tuple[str, ...]
    n: Array
    observed: Array
    expected: Array
    cells: int = 0

    @property
    def on(self) -> str:
        """What was compared with what, in words."""
        if not self.cells:
            return "at every event time, among records of the same site"
        return f"on {self.cells} cells of time, among records of all sites; times within a cell count as tied"

    def to_frame(self) -> pandas.DataFrame:
        """Records, observed and expected events by group."""
        import pandas

        values = {"records": self.n, "observed": self.observed, "expected": self.expected}
        return pandas.DataFrame(values, index=pandas.Index(self.groups, name="group"))

    def __str__(self) -> str:
        said = f"log-rank test {self.on}: chi-squared {self.statistic:.4g} on {self.df} df, p = {self.p_value:.3g}"
        return f"{said}\n{self.to_frame().round(2)}"


def show_log_rank(federation: Federation, settings: Mapping[str, Any], state: LogRankState) -> Outcome:
    """The test, and events by group."""
    found = log_rank_of(schema_of(federation), settings["group"], state)
    metrics = {"chi-squared": found.statistic, "p": found.p_value}
    return Outcome(metrics, tables={"Events by group": found.to_frame()}, text={"Test": str(found)})


@program(
    "Log-rank test of groups, stratified by site, or on declared cells of time.",
    name="log_rank",
    outcome=show_log_rank,
    case=lambda: Case(load("heart_failure"), {"time": "time", "event": "death_event", "group": "anaemia"}),
)
def log_rank_totals(
    federation: Federation,
    *,
    time: str,
    event: str,
    group: str,
    by: By = "site",
    cells: Sequence[float] | None = None,
    strata: str | Sequence[str] | None = None,
    most: float | None = None,
    start: LogRankState | None = None,
) -> Iterator[LogRankState]:
    """Ask once for observed and expected events.

    Parameters
    ----------
    federation : Federation
    time : str
        Column of the time until event or censoring.
    event : str
        Binary column: 1 where the time ended with the event.
    group : str
        Category or binary column whose levels are compared.
    by : {"site", "cells"}
        Whether records are compared within sites, at every event time, or across sites on intervals of time.
    cells : list of float, optional
        Rising ends of the intervals, for `by="cells"`; whatever is beyond them is one more.
    strata : str or list of str, optional
        Categories within each site whose levels are compared apart, for `by="site"`.
    most : float, optional
        Most records of a party, where rows are hidden; by default what the aggregation declares.
    start : LogRankState, optional
        A state that was yielded before.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    """
    refuse_noise(
        federation, "a log-rank test", "Ask through a channel without them; or take survival_counts, and test nothing."
    )
    schema = schema_of(federation)
    chosen(schema, [time], NUMERIC)
    chosen(schema, [event], ("binary",))
    n_groups = len(levels_of(chosen(schema, [group], COUNTED)[0]))
    names = (strata,) if isinstance(strata, str) else tuple(strata or ())
    if by not in ("site", "cells") or (by == "cells") != (cells is not None) or (by == "cells" and names):
        raise SettingsInvalid(
            f"by={by!r} with cells={cells!r} and strata={names!r}.",
            remedy='by="site", which may have strata=; or by="cells" with cells=[...].',
        )
    if start is not None:
        return
    federation = complete_cases(federation, [time, event, group, *names])
    if by == "cells":
        yield _of_cells(federation, time, event, group, n_groups, np.asarray(cells, dtype=float))
        return
    within = tuple((column.name, len(levels_of(column))) for column in (chosen(schema, names, COUNTED) if names else ()))
    settings = {"time": time, "event": event, "group": group, "n_groups": n_groups, "strata": within}
    records = most or federation.protection.records
    bound = linf(records * SLACK, "party") if records and federation.protection.hides_rows else None
    more = {"most": most} if most is not None else {}
    found = federation.sum(partial(log_rank_sums, **settings, **more), bound=bound)
    yield LogRankState(1, found["n"], found["observed"], found["expected"], symmetric(found["variance"]))


def _of_cells(federation: Federation, time: str, event: str, group: str, n_groups: int, ends: Array) -> LogRankState:
    """Observed and expected events from counts of group, interval and outcome."""
    if ends.ndim != 1 or not len(ends) or not np.isfinite(ends).all() or not (np.diff(ends) > 0).all():
        raise SettingsInvalid(f"cells {ends.tolist()[:6]} do not rise.", remedy="Give one or more times in rising order.")
    ask = partial(survival_tally, time=time, event=event, group=group, n_groups=n_groups)
    counts = federation.sum(ask, ends, bound=count_bound(heaviest(schema_of(federation))))
    counts = counts.reshape(n_groups, len(ends) + 1, 2)
    events, at_risk = counts[:, :, 1], counts.sum(-1)[:, ::-1].cumsum(-1)[:, ::-1]
    d, n = events.sum(0), at_risk.sum(0)
    share = at_risk / np.maximum(n, 1e-300)
    scale = d * (n - d) / np.maximum(n - 1, 1.0)
    variance = np.diag(share @ scale) - (share * scale) @ share.T
    return LogRankState(1, at_risk[:, 0], events.sum(-1), share @ d, variance[:-1, :-1], len(ends) + 1)


def log_rank(
    federation: Federation,
    time: str,
    event: str,
    group: str,
    *,
    by: By = "site",
    cells: Sequence[float] | None = None,
    **settings: Any,
) -> LogRank:
    """Test whether groups have the same hazards; as `log_rank_totals`.

    Parameters
    ----------
    time, event, group, by, cells
        As `log_rank_totals`.
    **settings
        `strata` and `most`.

    Raises
    ------
    NotIdentified (HR-320)
        Fewer than two groups have records and events.
    """
    *_, state = log_rank_totals(federation, time=time, event=event, group=group, by=by, cells=cells, **settings)
    return log_rank_of(schema_of(federation), group, state)


def log_rank_of(schema: Schema, group: str, state: LogRankState) -> LogRank:
    """Turn the state of `log_rank_totals` into a test of the groups that have records at risk when something happens."""
    names, held = levels_of(schema[group]), state.expected > 1e-9
    if held.sum() < 2:
        raise _incomparable(group)
    size = len(names)
    variance = np.zeros((size, size))
    variance[:-1, :-1] = state.variance
    variance[-1, :-1] = variance[:-1, -1] = -state.variance.sum(0)  # groups add up to nothing
    variance[-1, -1] = state.variance.sum()
    kept = np.flatnonzero(held)[:-1]
    apart, matrix = (state.observed - state.expected)[kept], variance[np.ix_(kept, kept)]
    values, vectors = np.linalg.eigh(matrix)
    compared = values > 1e-9 * state.expected.sum()  # groups that no site has together have no variance
    df = int(compared.sum())
    if not df:
        raise _incomparable(group)
    statistic = float(((vectors[:, compared].T @ apart) ** 2 / values[compared]).sum())
    return LogRank(
        statistic,
        df,
        float(chdtrc(df, statistic)),
        tuple(name for name, one in zip(names, held, strict=True) if one),
        state.n[held],
        state.observed[held],
        state.expected[held],
        state.cells,
    )


def _incomparable(group: str) -> NotIdentified:
    return NotIdentified(
        f"no two groups by {group!r} are at risk together when something happens.",
        remedy="Compare groups that are at the same sites, or by='cells', which compares across sites.",
    )
