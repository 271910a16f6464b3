"""Weighting by propensity scores, with errors that know that scores were estimated.

    score          logistic regression of the treatment                                    as `hedgerow.stats.glm`
    models         regression of the outcome in each arm, of the doubly robust estimate    the same
    totals         values and shares by arm                                                sum, once
    balance        columns of the score by arm, before and after                           sum, once
    slopes         of the moments along all coefficients, at the solution                  sum, once
    squares        of influences, with slopes and informations broadcast                   sum, once

    effect   = mean of the treated less mean of the others
    variance = sum of squared influences / (sum of shares)²

That is the sandwich of all estimating equations stacked, first stages included: it is what one would get from the slope and the
outer product of (score, models, means), of which only what is needed is asked.

Through noise overlap weights alone are estimated, whose weights are at most 1, and without errors, which would not know the
noise.

Releases : score, information and others of each regression, once a round; then as `hedgerow.stats.causal.sums` says.
Unit     : record.
Source   : Lunceford & Davidian 2004; Robins, Rotnitzky & Zhao 1994; Li, Morgan & Zaslavsky 2018; Stefanski & Boos 2002.
           Differs: weights are those of scores held within [trim, 1 - trim].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.report import Dots, Outcome

from ..columns import is_exact, schema_of
from ..factors import Levels
from ..glm import newton
from ..indicators import with_indicators
from ..provenance import provenance
from ..state import NewtonState, solve
from .effect import Balance, Effect
from .problem import AskedWeighting, problem_of
from .sums import arm_balance, arm_only, arm_slopes, arm_squares, arm_totals
from .weights import Weighting


@displayed
@dataclass(frozen=True)
class CausalState:
    """What is known after each stage.

    Attributes
    ----------
    stage : int
        1 the score is fitted; 2 the models of the outcome, where there are any; then totals, balance, slopes and squares.
    score : array of shape (p,)
        Coefficients of the propensity score.
    inverse : array of shape (p, p)
        Of its information.
    models, inverses : arrays of shape (2, q) and (2, q, q)
        The same of the outcome's models, others first; empty without models.
    mean : array of shape (2,)
        Of the outcome, others first, as weighted.
    n, share : arrays of shape (2,)
        Records and shares by arm.
    beyond : float
        Records whose score was held within the trim.
    covariance : array of shape (2, 2)
        Of `mean`; NaN until it is known, and where there is noise.
    balance : dict of arrays
        By arm: `before` and `after` (2, p), means of the columns of the score, and `variance` (2, p).
    """

    round: int
    stage: int
    score: Array
    inverse: Array
    models: Array
    inverses: Array
    mean: Array = field(default_factory=lambda: np.full(2, np.nan))
    n: Array = field(default_factory=lambda: np.zeros(2))
    share: Array = field(default_factory=lambda: np.zeros(2))
    beyond: float = 0.0
    covariance: Array = field(default_factory=lambda: np.full((2, 2), np.nan))
    slopes: dict[str, Array] = field(default_factory=dict)
    balance: dict[str, Array] = field(default_factory=dict)


def _case(**more: Any) -> Case:
    settings = {"propensity": "anaemia ~ age + sex + ejection_fraction"}
    return Case(load("heart_failure").take(range(200)), settings | more, tolerance=1e-6)


@program(
    "Inverse probability weighting by propensity scores; errors know that scores were estimated.",
    name="ipw",
    fixed={"outcome_formula": None},
    outcome=lambda federation, settings, state: show_effect(federation, settings, state),
    case=lambda: _case(outcome="serum_sodium"),
)
@program(
    "Overlap weighting by propensity scores: weights of at most one.",
    name="overlap_weights",
    fixed={"weighting": "overlap", "trim": 0.0, "outcome_formula": None},
    outcome=lambda federation, settings, state: show_effect(federation, settings, state),
    case=lambda: _case(outcome="serum_sodium"),
)
@program(
    "Augmented inverse probability weighting, doubly robust: propensity scores and models of the outcome.",
    name="aipw",
    fixed={"weighting": "inverse", "outcome": None},
    outcome=lambda federation, settings, state: show_effect(federation, settings, state),
    case=lambda: _case(outcome_formula="serum_sodium ~ age + sex"),
)
def weighting_rounds(
    federation: Federation,
    *,
    outcome: str | None = None,
    propensity: str,
    treatment: str | None = None,
    weighting: Literal["inverse", "treated", "overlap"] = "inverse",
    trim: float = 0.01,
    outcome_formula: str | None = None,
    start: CausalState | None = None,
) -> Iterator[CausalState]:
    """Estimate the effect of a treatment by weighting, stage by stage.

    Parameters
    ----------
    outcome : str, optional
        Column or expression whose mean is compared, a number or binary; by default the target of `outcome_formula`.
    propensity : str
        Formula of the treatment, such as `"treated ~ age + C(stage)"`; or its right-hand side, where `treatment` is given.
    treatment : str, optional
        Binary column, or category of two levels.
    weighting : {"inverse", "treated", "overlap"}
        Whose effect: of all records, of the treated, of those who might have been either.
    trim : float
        Scores are held within [trim, 1 - trim] where weights are inverse ones; below 0.5.
    outcome_formula : str, optional
        Of the doubly robust estimate: the outcome's model, fitted in each arm; logistic where the outcome is binary.

    Yields
    ------
    CausalState
        After each stage.

    Releases
    --------
    See the module.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SettingsInvalid (HR-511)
        Before any party is asked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        A first stage has no unique or finite estimate; where arms are separated by a column, they do not overlap.
    UnboundedSum (HR-210)
        The channel adds noise and weights are inverse ones; or it hides rows, and a column has no declared range.

    Source
    ------
    Lunceford & Davidian 2004; Robins, Rotnitzky & Zhao 1994; Li, Morgan & Zaslavsky 2018.
    """
    found = problem_of(
        schema_of(federation), outcome, propensity, treatment, weighting=weighting, trim=trim, outcome_formula=outcome_formula
    )
    exact = is_exact(federation)
    if not exact and weighting != "overlap":
        raise UnboundedSum(
            "inverse weights are as large as 1 / trim, so that noise on their sums would be too, and errors would not know it.",
            remedy='Take overlap weights, which are at most 1 (`overlap_weights`, weighting = "overlap"); or no noise.',
        )
    federation = with_indicators(complete_cases(federation, found.reads), found.score, found.outcome)
    asked = found.asked(federation)
    state = start
    if state is None:
        *_, fit = newton(federation, found.score, family="binomial")
        none = np.zeros((2, 0))
        state = CausalState(1, 1, fit.beta, _inverse(fit, exact=exact), none, np.zeros((2, 0, 0)))
        yield state
    if state.stage == 1:
        state = replace(state, stage=2)
        if found.robust:
            fits = [
                _last(newton(federation.prepare(arm_only, spec=found.score, arm=arm), found.outcome, family=found.family))
                for arm in (0, 1)
            ]
            inverses = np.array([_inverse(fit, exact=True) for fit in fits])
            state = replace(state, round=state.round + 1, models=np.array([fit.beta for fit in fits]), inverses=inverses)
            yield state
    for stage, step in ((3, _totals), (4, _balance), (5, _slopes), (6, _squares)):
        if state.stage == stage - 1 and (exact or stage == 3):
            state = replace(step(state, asked), round=state.round + 1, stage=stage)
            yield state


def _last(states: Iterator[NewtonState]) -> NewtonState:
    """The last state of a fit."""
    *_, state = states
    return state


def _inverse(state: NewtonState, *, exact: bool) -> Array:
    if not exact:
        return np.full(state.information.shape, np.nan)
    return solve(state.information, np.eye(len(state.beta)))


def _totals(state: CausalState, asked: AskedWeighting) -> CausalState:
    totals = asked.sum(arm_totals, asked.broadcast(state), asked.total_bounds(state))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = asked.centre + asked.scale * totals["value"] / totals["share"]
    return replace(state, mean=mean, n=totals["n"], share=totals["share"], beyond=float(totals["beyond"]))


def _balance(state: CausalState, asked: AskedWeighting) -> CausalState:
    settings = {"score": asked.broadcast(state)["score"]}
    sums = asked.federation.sum(
        partial(arm_balance, weighting=asked.problem.weighting, trim=asked.problem.trim), settings, bound=asked.balance_bounds()
    )
    n = sums["n"][:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        before, after = sums["sum"] / n, sums["weighted"] / sums["weight"][:, None]
        variance = np.maximum(sums["squares"] / n - before**2, 0.0) * n / (n - 1)
    factors = asked.score_factors
    return replace(state, balance={"before": before * factors, "after": after * factors, "variance": variance * factors**2})


def _slopes(state: CausalState, asked: AskedWeighting) -> CausalState:
    slopes = asked.sum(arm_slopes, asked.broadcast(state), asked.slope_bounds(state))
    return replace(state, slopes=slopes)


def _squares(state: CausalState, asked: AskedWeighting) -> CausalState:
    broadcast = asked.broadcast_pulls(state)
    unit = float(broadcast["unit"])
    squares = asked.sum(arm_squares, broadcast, asked.square_bound()) * unit**2
    products = np.array([[squares[0], squares[1]], [squares[1], squares[2]]])
    return replace(state, covariance=asked.scale**2 * products / np.outer(state.share, state.share))


# ---- results --------------------------------------------------------------------------------------------------------
def effect_of(federation: Federation, settings: Mapping[str, Any], state: CausalState, asked_before: int = 0) -> Effect:
    """Turn the last state of `weighting_rounds`, which ran with these settings, into an effect."""
    weighting: Weighting = settings.get("weighting", "inverse")
    trim = settings.get("trim", 0.01)
    names = ("outcome", "propensity", "treatment", "outcome_formula")
    given = {name: settings.get(name) for name in names}
    found = problem_of(
        schema_of(federation),
        given["outcome"],
        settings["propensity"],
        given["treatment"],
        weighting=weighting,
        trim=trim,
        outcome_formula=given["outcome_formula"],
    )
    response = found.score.response
    named = response.names[0] if isinstance(response, Levels) else response.text
    return Effect(
        formula=found.score.formula,
        outcome=found.outcome_name,
        weighting=weighting,
        robust=found.robust,
        trim=0.0 if weighting == "overlap" else trim,
        treatment=named,
        mean=state.mean,
        covariance=state.covariance,
        n=state.n,
        beyond=state.beyond,
        balance=Balance.of(found.score.names, state.balance) if state.balance else None,
        rounds=state.round,
        **provenance(federation, asked_before, found.reads),
    )


def show_effect(federation: Federation, settings: Mapping[str, Any], state: CausalState) -> Outcome:
    """The effect, and the balance of columns before and after."""
    found = effect_of(federation, settings, state)
    tables = {"Effect": found.to_frame()}
    dots: tuple[Dots, ...] = ()
    if found.balance is not None:
        tables["Balance"] = found.balance.to_frame()
        dots = (found.balance.dots(),)
    metrics = {"effect": found.effect} | ({"standard error": found.se} if np.isfinite(found.se) else {})
    return Outcome(metrics, tables=tables, text={"Summary": found.summary()}, coefficients=tables["Effect"], dots=dots)


def _effect(federation: Federation, **settings: Any) -> Effect:
    asked_before = len(federation.ledger)
    *_, state = weighting_rounds(federation, **settings)
    return effect_of(federation, settings, state, asked_before)


def ipw(
    federation: Federation,
    outcome: str,
    propensity: str,
    treatment: str | None = None,
    *,
    trim: float = 0.01,
    estimand: Literal["all", "treated"] = "all",
) -> Effect:
    """Effect of a treatment by inverse probability weighting.

    Parameters
    ----------
    outcome, propensity, treatment, trim
        As `weighting_rounds`.
    estimand : {"all", "treated"}
        Whose effect: of all records, or of those who were treated.
    """
    if estimand not in ("all", "treated"):
        raise SettingsInvalid(f"estimand={estimand!r}.", remedy='Give "all" or "treated"; overlap_weights has its own.')
    weighting: Weighting = "inverse" if estimand == "all" else "treated"
    return _effect(federation, outcome=outcome, propensity=propensity, treatment=treatment, weighting=weighting, trim=trim)


def overlap_weights(federation: Federation, outcome: str, propensity: str, treatment: str | None = None) -> Effect:
    """Effect of a treatment where groups overlap: treated count by 1 - e, others by e, so that no weight exceeds 1.

    Parameters
    ----------
    outcome, propensity, treatment
        As `weighting_rounds`. It runs through noise too, and then gives no error.
    """
    return _effect(federation, outcome=outcome, propensity=propensity, treatment=treatment, weighting="overlap", trim=0.0)


def aipw(
    federation: Federation,
    outcome_formula: str,
    propensity: str,
    treatment: str | None = None,
    *,
    trim: float = 0.01,
) -> Effect:
    """Effect of a treatment by augmented inverse probability weighting: right if the scores are, or the outcome's models.

    Parameters
    ----------
    outcome_formula : str
        The outcome's model, such as `"weight ~ age + stage"`; it is fitted in each arm by itself.
    propensity, treatment, trim
        As `weighting_rounds`.
    """
    return _effect(
        federation,
        propensity=propensity,
        treatment=treatment,
        weighting="inverse",
        trim=trim,
        outcome_formula=outcome_formula,
    )
