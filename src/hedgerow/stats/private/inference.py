"""Private regression with intervals: a plan whose last questions make the noise of the estimate known.

Linear, for a number:

    M           <- sum of  (a x x', b x y, c y^2)  in one ball                            shares a^2, b^2, c^2 of mu^2
    robust:
        R       <- sum of  min(r^2 / c, 1) x x'                          l2(1)            share .2, of M .8
    theta, V    <- least squares of M, and its covariance                                 `intervals.from_moments`

with r = y - x'theta and c as `intervals.residual_cut` says, by M. Logistic, for two classes:

    H           <- sum of  x x' / 4                                      l2(1/4)          share .05
    theta       <- the constant alone, by the sum of (y - p) x at zero   l2(1)            share .05   `newton.null_model`
    J           <- 4 p (1 - p) H, the information there
    theta       <- theta + J^-1 (sum of (y - p) x)                       l2(1)            share .05   `newton.damped`
    repeat 3 times:
        J       <- sum of p (1 - p) x x'                                 l2(1/4)          share .1 / 3
        theta   <- theta + J^-1 (sum of (y - p) x)                       l2(1)            share .05
    s           <- sum of (y - p) x                                      l2(1)            share .35
    J           <- sum of p (1 - p) x x'                                 l2(1/4)          share .25
    theta, V    <- theta + J^-1 s, and its covariance                                     `intervals.from_last_step`

Rows are divided by the largest length that there can be, so that the model is the formula's own. Numbers are told from the
middle of their ranges on: rows are no longer, and the smallest eigenvalue of their moments, which decides about intervals, is
several times that of numbers told from the lower end, which go along with the constant. Categories lose their
reference levels, as in an ordinary regression, since their indicators would add up to the constant. The shares are public
constants, looked at in simulations of 5 000 to 200 000 records, two to six columns, and rates of 3 to 60 percent.

Releases : what the boxes ask.
Unit     : record.
Source   : as `hedgerow.stats.private.intervals`, and `hedgerow.stats.private.newton`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import load
from hedgerow.report import Outcome

from ..columns import schema_of
from .fit import PrivateFit, private_fit
from .inference_plan import ASKED, PARTS, InferencePlan, InferenceState
from .intervals import scattered


def _show(federation: Federation, settings: Mapping[str, Any], state: InferenceState) -> Outcome:
    """Coefficients of rows, with standard errors where there are any."""
    import pandas

    plan = InferencePlan.of(schema_of(federation), settings)
    found = plan.estimated(federation, state)
    coef, covariance = scattered(found, plan.kept)
    index = pandas.Index(plan.rows.names, name="column")
    frame = pandas.DataFrame({"coef": coef}, index=index)
    if covariance is not None:
        frame["se"] = np.sqrt(np.diag(covariance))
    return Outcome(tables={"Coefficients": frame}, text={"Intervals": found.words}, coefficients=frame)


@program(
    "Linear or logistic regression with intervals that hold the noise of the release, within one budget.",
    outcome=_show,
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "epsilon": 4.0, "delta": 1e-5},
    ),
)
def private_inference(
    federation: Federation,
    *,
    formula: str,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    weights: str | None = None,
    robust: bool = False,
    start: InferenceState | None = None,
) -> Iterator[InferenceState]:
    """Ask for what a regression with intervals needs: see the module.

    Parameters
    ----------
    federation : Federation
        Whose schema declares the range of every column of the formula.
    formula : str
        As of `hedgerow.stats.regression`, with a constant. A number as target is a linear regression, a binary target a
        logistic one.
    epsilon, delta : float, optional
        The budget; without epsilon the channel's noise, which has to be Gaussian, is used as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of a budget.
    least : int
        For noise in shares: as many parties' shares make the whole.
    weights : str, optional
        Column of record weights, which count as repeated records.
    robust : bool
        Of a linear regression: whether intervals hold where residuals have no common variance, for a fifth of the budget.
    start : InferenceState, optional
        Continue after this state.

    Yields
    ------
    InferenceState
        After each question: once for a number, twice if robust, 11 times for two classes.

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403), NotBinary (HR-311), UnboundedSum (HR-210)
        As `UnitRows.of`; or the formula has no constant.
    SettingsInvalid (HR-511), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Noise that is not Gaussian, a budget that is none, or a cohort of some of the parties; before anybody is asked.

    Releases
    --------
    See the module.
    """
    given = {"formula": formula, "epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least, "weights": weights}
    given["robust"] = robust
    plan = InferencePlan.of(schema_of(federation), given)
    handles, d = plan.handles(federation, begins=start is None), plan.size
    if plan.linear:
        state = start or plan.moments(handles["moments"])
        if start is None:
            yield state
        if plan.robust and state.round < 2:
            yield plan.residuals(handles, state)
        return
    state = start or InferenceState(0, np.zeros(d), np.zeros((d, d)), np.zeros(d), np.zeros((d, d)))
    for part in ASKED[state.round :]:
        state = plan.after(handles, part, state)
        yield state


def inference(
    federation: Federation,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    weights: str | None = None,
    robust: bool = False,
) -> PrivateFit:
    """Linear or logistic regression with confidence intervals, within a budget: `private_inference` at once.

    Parameters
    ----------
    federation : Federation
        Whose schema declares the range of every column of the formula.
    formula : str
        With a constant. A number as target is a linear regression, a binary target a logistic one.
    epsilon, delta : float, optional
        The budget; without epsilon the channel's noise, which has to be Gaussian, is used as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of a budget.
    least : int
        For noise in shares: as many parties' shares make the whole.
    weights : str, optional
        Column of record weights, which count as repeated records.
    robust : bool
        Of a linear regression: whether intervals hold where residuals have no common variance, for a fifth of the budget.

    Returns
    -------
    PrivateFit
        With `covariance`, `se_` and `conf_int` where public numbers say that they hold; else `inference` says why there are
        none. Reference levels have a coefficient and a standard error of zero.

    Notes
    -----
    Intervals are of the model as if it were true, with records drawn from it; those of a linear regression suppose residuals of
    one variance, unless they are robust. Releases and errors as `private_inference`.
    """
    given: dict[str, Any] = {
        "formula": formula,
        "epsilon": epsilon,
        "delta": delta,
        "noise_at": noise_at,
        "least": least,
        "weights": weights,
        "robust": robust,
    }
    plan = InferencePlan.of(schema_of(federation), given)
    before = len(federation.ledger)
    *_, state = private_inference(federation, **given)
    found = plan.estimated(federation, state)
    coef, covariance = scattered(found, plan.kept)
    words = "least squares of noisy moments" if plan.linear else f"{ASKED.count('scores')} noisy scores and a last Newton step"
    whole = 0.8 if plan.robust else 1.0
    moments = {"gram": 0.5 * whole, "score": 0.4 * whole, "square": 0.1 * whole} | ({"residuals": 0.2} if plan.robust else {})
    parts = moments if plan.linear else {name: one.share for name, one in PARTS.items()}
    return private_fit(
        next(iter(plan.handles(federation).values())),
        plan.rows,
        "linear" if plan.linear else "logistic",
        coef,
        method=words,
        rounds=state.round,
        delta=delta,
        asked_before=before,
        shares=parts if epsilon is not None else {},
        covariance=covariance,
        inference=found.words,
    )
