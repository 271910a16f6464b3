"""Piecewise-exponential regression: hazard ratios with one baseline for all sites, constant between declared cuts.

    hazard of a record in interval k  =  exp(a_k + x b)
    of a record in interval k:  time it was at risk, t_k;  whether it had the event there, e_k;  mean m_k = t_k exp(a_k + x b)

    for each round:
        a, b           -> every party                                            broadcast
        score          <- sums of  e_k - m_k  (K),  and of  (e - m) x  (p)       sum
        information    <- sums of  m_k  (K),  m_k x  (K, p),  m x x'  (triangle) sum
        log-likelihood <- sum of  e (a + x b) - m                                sum
        a, b           <- + information^-1 score                                 halved while the log-likelihood falls

The first round is asked at hazards of one event in each interval; its sums give the fit of hazards alone, from which the
second starts. It is the Poisson regression of events by interval with the logarithm of the time at risk as offset, without a
row for each record and interval. Records of all sites are compared with one another, so that columns that are constant at a
site have estimates, and the baseline hazard is released: K numbers with intervals.

A record adds to at most K rows. Where rows are hidden, means are cut off at `ROOM` events in an interval and those beyond are
counted, as in `linear.reach`; a fit counts only if there are none.

Releases : 2 K + p + K p + p (p + 1) / 2 + 2 numbers, once a round; where rows are hidden the records beyond besides.
Unit     : record.
Source   : Holford 1980; Laird & Olivier 1981.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import load
from hedgerow.errors import Separated, SettingsInvalid, UnlawfulChannel

from ..blocks import by_blocks
from ..columns import is_exact, schema_of
from ..difficulties import check_identified
from ..expressions import interval
from ..linear.asking import Asked
from ..linear.newton import until_converged
from ..linear.reach import ROOM, SLACK
from ..linear.sums import along, products, symmetric, triangle
from ..state import NewtonState
from .asking import ask_for_rows
from .design import SurvivalDesign, period_names, read_survival, rising
from .piecewise_fit import PiecewiseFit, piecewise_fit, show_piecewise
from .stepping import stepped_or_halved


@local(additive=True, stackable=True)
@by_blocks
def piecewise_sums(
    theta: Array, party: Party, rng: object, *, cuts: tuple[float, ...], room: float | None = None
) -> dict[str, Array]:
    """Add up score (K + p,), the three parts of the information, log-likelihood and records at `theta`, K hazards and p slopes.

    Reads what `survival_design` prepares. With `room` means of an interval are cut off there, and those beyond are counted.
    """
    X, w, time, event = party["X"], party.w, party["time"], party["y"]
    since = party["since"] if "since" in party.columns else np.zeros_like(time)
    k = len(cuts) + 1
    ends = np.array([0.0, *cuts, np.inf])
    with np.errstate(all="ignore"):
        eta = X @ theta[k:] + party["offset"]
        beyond, total, likelihood = np.zeros_like(time), np.zeros_like(time), np.zeros_like(time)
        levels, crossed, scores = [], [], []
        for i in range(k):
            at_risk = np.maximum(np.minimum(time, ends[i + 1]) - np.maximum(since, ends[i]), 0.0)
            mean = np.where(at_risk > 0, at_risk * np.exp(theta[i] + eta), 0.0)
            if room is not None:
                beyond = np.maximum(beyond, mean > room)
                mean = np.minimum(mean, room)
            happened = event * (time > ends[i]) * (time <= ends[i + 1]) if i else event * (time <= ends[1])
            likelihood = likelihood + happened * (theta[i] + eta)
            total = total + mean
            scores.append((w * (happened - mean)).sum(-1))
            levels.append((w * mean).sum(-1))
            crossed.append(along(X, w * mean))
    found = {
        "score": np.concatenate([np.stack(scores, axis=-1), along(X, w * (event - total))], axis=-1),
        "hazards": np.stack(levels, axis=-1),
        "crossed": np.stack(crossed, axis=-2),
        "products": triangle(products(X, w * total)),
        "log_likelihood": (w * (likelihood - total)).sum(-1),
        "n": w.sum(-1),
    }
    return found if room is None else found | {"beyond": (w * beyond).sum(-1)}


@dataclass(frozen=True)
class AskedIntervals:
    """A design with its intervals, as sums are asked for."""

    asked: Asked
    spec: SurvivalDesign
    cuts: tuple[float, ...]

    @property
    def k(self) -> int:
        """How many intervals."""
        return len(self.cuts) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """Of hazards and slopes."""
        return (*(f"hazard {name}" for name in period_names(self.cuts)), *self.spec.names)

    def bounds(self, theta: Array) -> dict[str, Bound] | None:
        """By how much a record moves each number: columns lie within 1 of zero, and no mean is beyond `ROOM`."""
        rows, total = self.asked.spec, self.k * ROOM
        low, high = rows.offset_range or (0.0, 0.0)
        far = float(np.abs(theta[: self.k]).max() + np.abs(theta[self.k :]).sum()) + max(abs(low), abs(high))
        sizes = {
            "score": 1 + total,
            "hazards": ROOM,
            "crossed": ROOM,
            "products": total,
            "log_likelihood": far + total,
            "n": 1.0,
            "beyond": 1.0,
        }
        if not (self.asked.hidden and self.asked.bounded):
            return None
        w = rows.weight_limit or 1.0
        return {key: linf(w * size * SLACK, "record") for key, size in sizes.items()}

    def sums(self, theta: Array) -> dict[str, Any]:
        """Ask, and put the information together."""
        bounds, k = self.bounds(theta), self.k
        more = {"room": ROOM} if bounds is not None else {}
        found = self.asked.total(partial(piecewise_sums, cuts=self.cuts, **more), theta, bounds)
        information = np.zeros((len(theta), len(theta)))
        information[range(k), range(k)] = found["hazards"]
        information[:k, k:], information[k:, :k] = found["crossed"], found["crossed"].T
        information[k:, k:] = symmetric(found["products"])
        return {**found, "information": information, "events": found["score"][:k] + found["hazards"]}


@program(
    "Piecewise-exponential regression: hazard ratios with one baseline for all sites.",
    name="piecewise_exponential",
    outcome=show_piecewise,
    case=lambda: Case(
        load("heart_failure"), {"formula": "time + death_event ~ age + anaemia", "cuts": [60.0, 150.0]}, tolerance=1e-8
    ),
)
def piecewise_newton(
    federation: Federation,
    *,
    formula: str,
    cuts: Sequence[float],
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    offset: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximum likelihood of a piecewise-exponential model.

    Parameters
    ----------
    federation : Federation
    formula, time, event, entry, offset
        As `hedgerow.stats.cox_newton`, without strata.
    cuts : list of float
        Times at which the baseline hazard changes, rising; public, and chosen without looking at the data.
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    start : NewtonState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    NewtonState
        After each round; of K + p parameters.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite (such as the hazard of an interval without events), or not reached.
    RangeExceeded (HR-243)
        Rows are hidden, and fitted means lie far beyond what one record can have.

    Releases
    --------
    See the module.
    """
    if not is_exact(federation):
        raise UnlawfulChannel(
            "a piecewise-exponential regression takes Newton steps of exact sums.",
            remedy="Ask through a channel without noise or clip; or release noisy counts: survival_counts.",
        )
    if max_rounds < 1 or not tol > 0:
        raise SettingsInvalid(f"max_rounds is {max_rounds}, tol is {tol}.", remedy="Rounds are one or more, tol above zero.")
    ends = rising(cuts)
    spec = read_survival(schema_of(federation), formula, time=time, event=event, entry=entry, offset=offset)
    if spec.strata or spec.cluster:
        raise SettingsInvalid(
            "strata(...) and cluster(...) are of Cox regressions.",
            remedy="Write C(grade) for hazards in proportion, or take cox.",
        )
    k = len(ends) + 1
    asked = ask_for_rows(federation, spec).asked
    asked = replace(asked, factors=np.concatenate([np.ones(k), asked.factors]))
    found, begun = AskedIntervals(asked, spec, ends), start or _begun(spec, ends, k + spec.size)
    yield from until_converged(asked, begun, lambda one: _advance(one, found, tol), max_rounds=max_rounds, tol=tol)


def _begun(spec: SurvivalDesign, ends: tuple[float, ...], size: int) -> NewtonState:
    """Before the first round: one event in each interval, whose length is public."""
    found = interval(spec.time, spec.schema)
    last = max(found[1] - ends[-1], 0.0) if found is not None and np.isfinite(found[1]) else ends[-1]
    if not last > 0:
        raise SettingsInvalid(
            f"the last cut {ends[-1]:g} is not before the declared end of {spec.time}, {found[1] if found else 0:g}.",
            remedy="Drop it.",
        )
    theta = np.zeros(size)
    theta[: len(ends) + 1] = -np.log(np.diff([0.0, *ends, ends[-1] + last]))
    return replace(NewtonState.at_zero(size), beta=theta, trial=theta)


def _advance(state: NewtonState, found: AskedIntervals, tol: float) -> NewtonState:
    """Ask at the trial point, and judge it; of the first, move to the fit of hazards alone."""
    sums, k = found.sums(state.trial), found.k
    n, events, deviance = float(sums["n"]), sums["events"], -2 * float(sums["log_likelihood"])
    if state.round == 0:
        _check(found, sums, n)
        ratio = np.log(events / sums["hazards"])
        null = deviance - 2 * float(events @ ratio - events.sum() + sums["hazards"].sum())
        at_risk = sums["hazards"] / np.exp(state.trial[:k])
        kept = {"null": np.array(null), "at_risk": at_risk, "events_by_interval": events}
        trial = state.trial + np.concatenate([ratio, np.zeros(len(state.trial) - k)])
        return replace(state, round=1, trial=trial, n=n, deviance=np.inf, kept=kept)
    step = stepped_or_halved(
        state, found.names, score=sums["score"], information=sums["information"], deviance=deviance, n=n,
        events=round(float(events.sum()), 6), hidden=found.asked.hidden, tol=tol,
    )  # fmt: skip
    return replace(step, beyond=float(sums.get("beyond", 0.0)))


def _check(found: AskedIntervals, sums: Mapping[str, Array], n: float) -> None:
    """Refuse an interval without events, whose hazard is zero, and columns that are constant."""
    empty = [name for name, count in zip(period_names(found.cuts), sums["events"], strict=True) if not count > 0.5]
    if empty:
        raise Separated(
            f"nobody has the event in {', '.join(empty)}, so that the logarithm of its hazard is not finite.",
            remedy="Leave out a cut, so that every interval has events.",
        )
    check_identified(sums["information"], n, found.names, residual=False)


def piecewise_exponential(
    federation: Federation,
    formula: str,
    *,
    cuts: Sequence[float],
    time: str | None = None,
    event: str | None = None,
    **settings: Any,
) -> PiecewiseFit:
    """Hazard ratios with one baseline for all sites, constant between cuts: the Poisson regression of the pooled records.

    Parameters
    ----------
    formula, cuts, time, event
        As `piecewise_newton`.
    **settings
        `entry`, `offset`, `tol` and `max_rounds`, as `piecewise_newton`.
    """
    asked_before = len(federation.ledger)
    given = {"formula": formula, "cuts": cuts, "time": time, "event": event, **settings}
    *_, state = piecewise_newton(federation, **given)
    return piecewise_fit(federation, given, state, asked_before)
