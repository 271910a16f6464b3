"""Ridge, lasso and elastic net by sums: proximal Newton steps, whose quadratic models the server minimises.

What is minimised, per record, is half the deviance plus a penalty, as scikit-learn's `ElasticNet` has it:

    deviance / (2 n)  +  penalty * ( l1_ratio * sum |b_j|  +  (1 - l1_ratio) / 2 * sum b_j^2 )

    for each round:
        beta           -> every party                                            broadcast
        score, information, deviance  <- sums, as in `newton`                    sum
        beta           <- minimum of their quadratic model plus the penalty      halved while the objective rises

A linear regression is solved by the first step, and the next round confirms it. The intercept is not penalised.

Releases : as `newton`; with `standardised` n, sums and squares of the design's columns (d,) besides, once.
Unit     : record.
Source   : Friedman, Hastie & Tibshirani 2010 (glmnet). Differs: on sums, with an exact search
           over signs (`hedgerow.stats.penalty.signs`) instead of coordinate descent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.report import Figure, ForPapers, Outcome

from ..columns import is_exact, schema_of
from ..design import Design, design_of
from ..difficulties import check_counts, check_target
from ..glm import at_constant, glm_sums
from ..linear.asking import Asked, ask_for
from ..linear.loss import Loss
from ..linear.losses import FamilyName, loss_of
from ..linear.newton import has_risen, is_last, until_converged
from ..provenance import provenance
from ..results import Settings, spec_of
from ..scores import explained, reading, scored
from ..state import NewtonState
from .columns import penalised_columns, scales_of
from .signs import drowned, least

if TYPE_CHECKING:
    import pandas

PenalisedFamily = Literal["gaussian", "binomial", "poisson", "gamma"]
PENALISED = get_args(PenalisedFamily)


@dataclass(frozen=True)
class Penalty:
    """What is added to half the mean deviance.

    Attributes
    ----------
    strength, l1_ratio : float
        `alpha` and `l1_ratio` of scikit-learn's `ElasticNet`.
    weights : array of shape (d,)
        By what each coefficient is multiplied before it is penalised: zero for an intercept, a standard deviation for a
        standardised column, else one.
    """

    strength: float
    l1_ratio: float
    weights: Array

    def of(self, beta: Array) -> float:
        """The penalty at coefficients (d,)."""
        sizes = np.abs(beta) * self.weights
        if math.isinf(self.strength):
            return 0.0
        return float(self.strength * (self.l1_ratio * sizes.sum() + (1 - self.l1_ratio) / 2 * (sizes**2).sum()))

    def step(self, information: Array, score: Array, beta: Array, n: float) -> Array:
        """Return the minimum of the quadratic model at `beta` plus the penalty."""
        strength, weights = n * self.strength, self.weights
        if math.isinf(strength):
            l1, ridge = np.where(weights > 0, np.inf, 0.0), np.zeros(len(beta))
        else:
            l1, ridge = strength * self.l1_ratio * weights, strength * (1 - self.l1_ratio) * weights**2
        if ((ridge > 0) & (ridge < LEAST_RIDGE * np.diag(information))).any():
            raise drowned()
        return least(information + np.diag(ridge), score + information @ beta, l1, beta)


LEAST_RIDGE = 1e-13
"""Beside a column's sum of squares a ridge that is smaller drowns in rounding."""


def check_penalty(penalty: float, l1_ratio: float) -> None:
    """Refuse a penalty below zero and a ratio outside [0, 1]."""
    if not (penalty >= 0 and 0 <= l1_ratio <= 1):
        raise SettingsInvalid(
            f"penalty is {penalty!r}, l1_ratio is {l1_ratio!r}.",
            remedy="A penalty is zero or above; l1_ratio is 1 for the lasso, 0 for ridge, between them an elastic net.",
        )


def show(federation: Federation, settings: Settings, state: NewtonState) -> Outcome:
    """Show a lasso, ridge or elastic net."""
    spec = spec_of(federation, settings, settings["family"])
    kept = {key: settings[key] for key in ("family", "penalty", "l1_ratio", "standardised")}
    fit = penalised_fit(federation, spec, state, **kept)
    metrics = {"selected": float(fit.n_selected), "deviance": fit.deviance}
    if fit.law.quadratic and spec.has_constant and state.n:
        metrics["R2"] = 1 - fit.deviance / state.total_squares
    frame = fit.to_frame()
    return Outcome(metrics, tables={"Coefficients": frame}, text={"Summary": fit.summary()}, coefficients=frame)


@program(
    "Lasso, ridge and elastic net of a linear, logistic or count model.",
    name="penalised_regression",
    outcome=show,
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "family": "binomial", "penalty": 0.02, "standardised": True},
    ),
    **scored(reading(), explained(), "D2", more=True),
)
def penalised(
    federation: Federation,
    *,
    formula: str,
    family: PenalisedFamily = "gaussian",
    penalty: float,
    l1_ratio: float = 1.0,
    standardised: bool = False,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Minimise half the mean deviance plus a penalty; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    formula : str
        As of a regression without penalty.
    family : {"gaussian", "binomial", "poisson", "gamma"}
        Of the target: linear, logistic, counts, or above zero.
    penalty : float
        `alpha` of scikit-learn's `ElasticNet`: it is added to half the mean deviance. `Ridge(alpha)` is
        `penalty=alpha / n, l1_ratio=0`; `LogisticRegression(C)` is `penalty=1 / (n * C)`.
    l1_ratio : float
        1 for the lasso, 0 for ridge, between them an elastic net.
    standardised : bool
        Whether coefficients are penalised in units of their columns' standard deviations (n in the denominator). They are
        returned in units of the columns all the same.
    tol : float
        Stop when the next step is shorter than this, in units of the quadratic model (standard errors without penalty).

    Yields
    ------
    NewtonState
        After each round.

    Raises
    ------
    Separated (HR-321), NotConverged (HR-322)
    UnlawfulChannel (HR-211)
        The channel clips or adds noise.

    Releases
    --------
    As `newton`; with `standardised` sums and squares of the design's columns besides, once.
    """
    spec = design_of(schema_of(federation), formula, family, offset=offset, weights=weights)
    check_penalty(penalty, l1_ratio)
    law = penalised_law(federation, family)
    asked = ask_for(federation, spec)
    begun = start or NewtonState.at_zero(spec.size)
    if start is None:
        begun = replace(begun, kept={"scales": scales_of(asked, spec, standardised), "objective": np.array(math.inf)})

    def advance(state: NewtonState) -> NewtonState:
        weights = state.kept["scales"] * penalised_columns(spec) / asked.factors
        return _advance(state, asked, Penalty(penalty, l1_ratio, weights), law, tol)

    remedy = "Allow more rounds with max_rounds=, or a larger penalty; if parties drop out, resume later."
    yield from until_converged(asked, begun, advance, max_rounds=max_rounds, tol=tol, remedy=remedy)


def penalised_law(federation: Federation, family: FamilyName) -> Loss:
    """Return the family, or refuse one that cannot be penalised, and channels that clip or add noise."""
    if family not in PENALISED:
        raise SettingsInvalid(f"no penalised regression of family {family!r}.", remedy=f"One of {', '.join(PENALISED)}.")
    if not is_exact(federation):
        raise UnlawfulChannel(
            "a penalised regression asks for sums without noise or clip.",
            remedy="linear_regression and logistic_regression go through channels with noise.",
        )
    return loss_of(family)


def _advance(state: NewtonState, asked: Asked, paid: Penalty, law: Loss, tol: float) -> NewtonState:
    """Judge the trial point by its sums: halve the step that led there, or accept it and look for the next."""
    sums = glm_sums(asked, state, law)
    n, deviance = float(sums["n"]), float(sums["deviance"])
    objective, before = deviance / (2 * n) + paid.of(state.trial), float(state.kept["objective"])
    judged = state.round > 0 and n == state.n and not law.quadratic
    if judged and has_risen(objective, before, state.length, asked.hidden):
        return state.halved()
    reached = state.reached(sums)
    if state.round == 0 and law.binary:
        check_target(reached.raw_sum, n)
    if state.round == 0 and law.log_link:
        check_counts(reached.raw_sum, n)
        reached, objective = at_constant(reached, asked.spec, law), math.inf
    trial = paid.step(reached.information, reached.score, reached.beta, n)
    step = trial - reached.beta
    scale = max(deviance / n, 1e-12 * reached.raw_squares / n) or 1.0 if law.free_dispersion else 1.0
    length = math.sqrt(max(float(step @ reached.information @ step), 0.0) / scale)
    converged = state.round > 0 and is_last(length, state.length, tol, asked.hidden)
    kept = state.kept | {"objective": np.array(objective)}
    return replace(reached, trial=trial, length=length, converged=converged, kept=kept)


# ---- a fit ----------------------------------------------------------------------------------------------------------
@displayed
@dataclass(frozen=True, eq=False)
class PenalisedFit(ForPapers):
    """Coefficients of a penalised regression; a penalty leaves no standard errors.

    Attributes
    ----------
    spec : Design
    family : {"gaussian", "binomial", "poisson", "gamma"}
    coef_ : array of shape (d,)
        In units of the columns, standardised or not.
    penalty, l1_ratio : float
    standardised : bool
    n_records : float
        Records, or the sum of their weights.
    deviance : float
        Without the penalty.
    rounds, n_parties, n_missing, left, protection, cases
        As in `Fit`.
    """

    spec: Design
    family: FamilyName
    coef_: Array
    penalty: float
    l1_ratio: float
    standardised: bool
    n_records: float
    deviance: float
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    cases: LeftOut | None = None

    @property
    def law(self) -> Loss:
        """The family."""
        return loss_of(self.family)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.spec.names

    @property
    def n_selected(self) -> int:
        """Penalised coefficients that are not zero."""
        return int(((self.coef_ != 0) & (penalised_columns(self.spec) > 0)).sum())

    def predict(self, frame: Any) -> Array:
        """Expected target of new records, as `Fit.predict`."""
        return self.law.mean(self.spec.predictor(self.coef_, frame))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each coefficient."""
        import pandas

        return pandas.DataFrame({"coef": self.coef_}, index=pandas.Index(self.names, name="column"))

    def plot(self, *, intercept: bool = False) -> Figure:
        """Draw the coefficients, which have no intervals, as SVG; the intercept is left out where it is not asked for."""
        from ..plots import coefficients_figure

        return coefficients_figure(self, 0.95, intercept=intercept)

    def summary(self) -> str:
        """Return the coefficients as text, with what left each party and how it was protected."""
        from ..summary import penalised_summary

        return penalised_summary(self)

    def __str__(self) -> str:
        return self.summary()


def penalised_regression(
    federation: Federation,
    formula: str,
    *,
    family: PenalisedFamily = "gaussian",
    penalty: float,
    l1_ratio: float = 1.0,
    standardised: bool = False,
    **settings: Any,
) -> PenalisedFit:
    """Lasso, ridge or elastic net; equal to the pooled fit.

    Parameters
    ----------
    family, penalty, l1_ratio, standardised, **settings
        As `penalised`.
    """
    asked_before = len(federation.ledger)
    kept: dict[str, Any] = {"family": family, "penalty": penalty, "l1_ratio": l1_ratio, "standardised": standardised}
    *_, state = penalised(federation, formula=formula, **kept, **settings)
    return penalised_fit(federation, spec_of(federation, settings | {"formula": formula}, family), state, asked_before, **kept)


def penalised_fit(
    federation: Federation, spec: Design, state: NewtonState, asked_before: int = 0, **settings: Any
) -> PenalisedFit:
    """Turn the last state of `penalised` into a fit; `settings` are family, penalty, l1_ratio and standardised."""
    return PenalisedFit(
        spec=spec,
        coef_=state.beta,
        n_records=state.n,
        deviance=state.deviance,
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
        **settings,
    )
