"""Cox regression stratified by site: hazard ratios, each site's records compared with one another alone.

    for each round:
        beta           -> every party                                            broadcast
        score, information, log-likelihood                                       sum
                       <- each party's own risk sets, by strata (`risk_sets`)
        beta           <- beta + information^-1 score                            halved while the log-likelihood falls
    once, at the estimates:
        pairs          <- concordant, discordant, tied, and squares for the error    sum
        meat           <- outer products of score residuals, for robust errors       the same sum

No party's risk sets hold records of another, and sums over parties are those of the partial likelihood that is stratified
by party: exactly the fit of the pooled records with the site as a stratum. Sites may differ in their baseline hazards in any
way; these stay at the sites, and no question asks for them. A column that is constant at every site has no estimate;
`piecewise_exponential` has a baseline in common.

With `cuts` the follow-up is cut into periods, and columns have a coefficient for each: what survSplit and an interaction with
the period give in R. Risk sets are of one time, so that periods as strata change nothing. A record that comes later (`entry`)
is at risk from then on; records that begin where others of the same person end make covariates that change (give `cluster`).

Releases : score (d,), information (upper triangle), log-likelihood, records and events; once a round. Then six numbers of
           pairs; with robust errors the meat (upper triangle), and the number of clusters.
Unit     : party, by the most records that one has: a range for hidden sums, no sensitivity, since a record moves the risk
           sets of others. Channels that clip or add noise are refused (HR-211).
Source   : Cox 1972; Efron 1977; Lin & Wei 1989 (robust errors). Differs: stratified by party always.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.errors import NotIdentified, SettingsInvalid

from ..columns import schema_of
from ..difficulties import check_identified
from ..linear.newton import until_converged
from ..linear.sums import symmetric
from ..state import NewtonState, solve
from .asking import AskedSurvival, ask_for_survival, refuse_noise
from .cox_fit import CoxFit, cox_fit, show_cox
from .cox_sums import closing_bounds, cox_bounds, cox_closing, risk_set_sums
from .design import SurvivalDesign, read_survival
from .risk_sets import Ties
from .stepping import stepped_or_halved

Errors = Literal["model", "robust"]

INSTEAD = "Ask through a channel without them; behind secure aggregation the server sees totals alone."
NO_SPREAD = 1e-12
"""A column whose squares about the means of risk sets are below this share of a unit for each event does not vary in them."""


@program(
    "Cox regression stratified by site, by sums over each site's own risk sets.",
    name="cox",
    outcome=show_cox,
    case=lambda: Case(
        load("heart_failure"), {"formula": "time + death_event ~ age + anaemia", "errors": "robust"}, tolerance=1e-8
    ),
)
def cox_newton(
    federation: Federation,
    *,
    formula: str,
    time: str | None = None,
    event: str | None = None,
    strata: str | Sequence[str] | None = None,
    ties: Ties = "efron",
    errors: Errors = "model",
    cluster: str | None = None,
    cuts: Sequence[float] | None = None,
    varying: Sequence[str] | None = None,
    entry: str | None = None,
    probability: str | None = None,
    offset: str | None = None,
    most: float | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximum partial likelihood, stratified by party.

    Parameters
    ----------
    federation : Federation
    formula : str
        `"time + event ~ age + C(arm)"`, or `"~ age + C(arm)"` with `time` and `event`; `strata(...)` and `cluster(...)` as
        in R.
    time, event : str, optional
        Columns, or expressions: until when a record was followed, and whether that ended with the event (1) or not (0). By
        default the columns of these roles.
    strata : str or list of str, optional
        Categories within each site whose levels have risk sets of their own.
    ties : {"efron", "breslow"}
        What is done with events of one time.
    errors : {"model", "robust"}
        Of the coefficients: from the information, or from score residuals; robust where there are clusters or weights.
    cluster : str, optional
        Column: records of one value, at one party, belong together.
    cuts : list of float, optional
        Times at which coefficients change: each period has its own.
    varying : list of str, optional
        Terms whose coefficients change; all of them by default.
    entry : str, optional
        Column: from when a record is at risk (left truncation).
    probability : str, optional
        Column of weights that make a sample stand for others, such as of inverse probability.
    offset : str, optional
        Column or expression added to the log hazard.
    most : float, optional
        Most records of a party, where rows are hidden: a range for its sums. By default what the aggregation declares.
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    start : NewtonState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    NewtonState
        After each round, and after the closing question.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite, or not reached; or there is no event.
    RangeExceeded (HR-243)
        A party has more records than `most`.

    Releases
    --------
    See the module.
    """
    refuse_noise(federation, "a Cox regression", f"{INSTEAD} Or release noisy counts: survival_counts.")
    if ties not in ("efron", "breslow") or errors not in ("model", "robust"):
        raise SettingsInvalid(f"ties={ties!r}, errors={errors!r}.", remedy="ties: efron or breslow; errors: model or robust.")
    if max_rounds < 1 or not tol > 0:
        raise SettingsInvalid(f"max_rounds is {max_rounds}, tol is {tol}.", remedy="Rounds are one or more, tol above zero.")
    spec = read_survival(
        schema_of(federation), formula, time=time, event=event, entry=entry, strata=strata, cluster=cluster,
        probability=probability, cuts=cuts, varying=varying, offset=offset,
    )  # fmt: skip
    asked, state = ask_for_survival(federation, spec, most), start or NewtonState.at_zero(spec.size)
    steps = until_converged(asked.asked, state, lambda one: _advance(one, asked, ties, tol), max_rounds=max_rounds, tol=tol)
    for state in steps:
        yield state
    keys = (*(("meat",) if is_robust(spec, errors) else ()), *(() if spec.cuts else ("pairs",)))
    if keys and not set(keys) <= set(state.kept):
        yield _closed(state, asked, ties, keys)


def is_robust(spec: SurvivalDesign, errors: Errors) -> bool:
    """Whether errors follow from score residuals: where that is asked, and where a model's would be wrong."""
    return errors == "robust" or spec.cluster is not None or spec.probability is not None


def cox_totals(asked: AskedSurvival, beta: Array, ties: Ties) -> dict[str, Array]:
    """Ask for score, information, log-likelihood, records and events at coefficients of the columns as asked."""
    spec = asked.spec
    local = partial(risk_set_sums, ties=ties, columns=spec.columns, cuts=spec.cuts, **asked.settings)
    bounds = asked.bounds(cox_bounds(spec, beta, asked.most, asked.heaviest))
    found: dict[str, Array] = asked.asked.total(local, beta, bounds)
    return found | {"information": symmetric(found["information"])}


def _advance(state: NewtonState, asked: AskedSurvival, ties: Ties, tol: float) -> NewtonState:
    """Ask at the trial point, and judge it."""
    sums = cox_totals(asked, state.trial, ties)
    n, events, deviance = float(sums["n"]), float(sums["events"]), -2 * float(sums["log_likelihood"])
    information, score, kept = sums["information"], sums["score"], dict[str, Array]()
    if state.round == 0:
        check_varying(asked.spec.names, information, n, events)
        kept = {"null": np.array(deviance), "score_test": np.array(score @ solve(information, score))}
    return stepped_or_halved(
        state, asked.spec.names, score=score, information=information, deviance=deviance, n=n, events=events,
        hidden=asked.asked.hidden, tol=tol, kept=kept,
    )  # fmt: skip


def check_varying(names: Sequence[str], information: Array, n: float, events: float) -> None:
    """Refuse what has no estimate: no events, and columns that do not vary among those at risk.

    Raises
    ------
    NotIdentified (HR-320)
    """
    if not events > 0.5:
        raise NotIdentified(
            f"none of {n:g} records has the event.", remedy="Check how the event is coded: 1 where it happened."
        )
    largest = max(float(np.abs(np.diag(information)).max()), 0.0)
    floor = NO_SPREAD * max(largest, events)
    flat = [name for name, square in zip(names, np.diag(information), strict=True) if not square > floor]
    if flat:
        raise NotIdentified(
            f"{', '.join(map(repr, flat[:6]))} {'is' if len(flat) == 1 else 'are'} the same for everybody at risk, "
            "at each event of each site.",
            remedy="Drop it. What is constant at each site has no estimate where risk sets are those of sites: "
            "piecewise_exponential compares sites.\nWith cuts, a period may have no event.",
        )
    check_identified(information, n, names, residual=False)


def _closed(state: NewtonState, asked: AskedSurvival, ties: Ties, keys: tuple[str, ...]) -> NewtonState:
    """Ask once more, at the estimates, for what a fit shows besides."""
    spec, factors = asked.spec, asked.asked.factors
    local = partial(cox_closing, ties=ties, columns=spec.columns, keys=keys, cuts=spec.cuts, **asked.settings)
    bounds = asked.bounds(closing_bounds(keys, asked.most, asked.heaviest))
    found: dict[str, Array] = asked.asked.total(local, state.beta * factors, bounds)
    if "meat" in found:
        found["meat"] = symmetric(found["meat"]) * np.outer(factors, factors)
    return replace(state, round=state.round + 1, kept=state.kept | found)


def cox(
    federation: Federation,
    formula: str,
    *,
    time: str | None = None,
    event: str | None = None,
    strata: str | Sequence[str] | None = None,
    ties: Ties = "efron",
    errors: Errors = "model",
    cluster: str | None = None,
    cuts: Sequence[float] | None = None,
    **settings: Any,
) -> CoxFit:
    """Cox regression, stratified by site; equal to the fit of the pooled records with the site as a stratum.

    Parameters
    ----------
    federation : Federation
    formula, time, event, strata, ties, errors, cluster, cuts
        As `cox_newton`.
    **settings
        `varying`, `entry`, `probability`, `offset`, `most`, `tol` and `max_rounds`, as `cox_newton`.
    """
    asked_before = len(federation.ledger)
    given = dict(
        formula=formula, time=time, event=event, strata=strata, ties=ties, errors=errors, cluster=cluster, cuts=cuts, **settings
    )
    *_, state = cox_newton(federation, **given)
    return cox_fit(federation, given, state, asked_before)
