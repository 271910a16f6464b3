"""Programs of `hedgerow.stats` as study files name them: by a formula, and with every setting a key.

They are the programs behind `multinomial_regression`, `svm` and so on; nothing is computed here. Where a program can
standardise columns, its states carry means and deviations, so that a run that is continued does not ask for them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid
from hedgerow.stats import (
    DescentState,
    FirthState,
    MultinomialState,
    NegativeBinomialState,
    NewtonState,
    PathState,
    PenalisedState,
    SmoothState,
    classes_of,
    design_of,
    joint_newton,
    margins,
    penalised,
    quantile_lines,
    regression,
    softmax_newton,
)
from hedgerow.stats.columns import schema_of
from hedgerow.stats.firth import firth
from hedgerow.stats.hidden.descent import HiddenState
from hedgerow.stats.hidden.descent import hidden_gradient_descent as hidden_descent
from hedgerow.stats.linear.asking import ask_for
from hedgerow.stats.losses.descent import Optimiser
from hedgerow.stats.losses.descent import gradient_descent as descend
from hedgerow.stats.losses.robust import huber_covariance, huber_lines
from hedgerow.stats.penalty.path import penalty_path as fit_path
from hedgerow.stats.standard import scaled

from .model_states import RobustState, ScaledState, packed, scaling_for

PenalisedFamily = Literal["gaussian", "binomial", "poisson", "gamma"]
HiddenFamily = Literal["gaussian", "binomial"]
DescentFamily = Literal["gaussian", "binomial", "hinge", "check"]


# ---- likelihoods ----------------------------------------------------------------------------------------------------
def multinomial_regression(
    federation: Federation,
    *,
    formula: str,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: MultinomialState | None = None,
) -> Iterator[MultinomialState]:
    """Log-odds of a category's levels.

    Settings as `hedgerow.stats.logistic_regression`, the formula as `hedgerow.stats.multinomial_regression`.
    """
    spec = classes_of(schema_of(federation), formula, weights=weights)
    return softmax_newton(federation, spec, tol=tol, max_rounds=max_rounds, start=start)


def log_regression(
    federation: Federation,
    *,
    formula: str,
    family: Literal["poisson", "gamma"],
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """The logarithm of a mean, of counts or of what is above zero: settings as `hedgerow.stats.logistic_regression`.

    Parameters
    ----------
    formula : str
        For example `"visits ~ age + C(site)"`; the target of a Poisson regression is a count, of a gamma regression above zero.
    family : {"poisson", "gamma"}
        Of the target.
    offset : str, optional
        Column or expression added to the log of the mean, such as `log(exposure)`.
    """
    settings: dict[str, Any] = {"offset": offset, "weights": weights, "tol": tol, "max_rounds": max_rounds}
    return regression(federation, formula=formula, family=family, **settings, start=start)


def negative_binomial_regression(
    federation: Federation,
    *,
    formula: str,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NegativeBinomialState | None = None,
) -> Iterator[NegativeBinomialState]:
    """Counts that vary more than a Poisson distribution: settings as `hedgerow.stats.logistic_regression`.

    Parameters
    ----------
    formula : str
        The target is a count.
    offset : str, optional
        Column or expression added to the log of the mean, such as `log(exposure)`.
    """
    spec = design_of(schema_of(federation), formula, "negative binomial", offset=offset, weights=weights)
    return joint_newton(federation, spec, tol=tol, max_rounds=max_rounds, start=start)


def firth_regression(
    federation: Federation,
    *,
    formula: str,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 200,
    start: FirthState | None = None,
) -> Iterator[FirthState]:
    """Firth's logistic regression: settings as `hedgerow.stats.logistic_regression`.

    Parameters
    ----------
    max_rounds : int
        Rounds before giving up; an iteration takes two.
    """
    spec = design_of(schema_of(federation), formula, "binomial", offset=offset, weights=weights)
    return firth(federation, spec, tol=tol, max_rounds=max_rounds, start=start)


# ---- penalties ------------------------------------------------------------------------------------------------------
def penalised_regression(
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
    start: PenalisedState | None = None,
) -> Iterator[PenalisedState]:
    """Lasso, ridge or elastic net.

    Settings as `hedgerow.stats.logistic_regression`, penalties as `hedgerow.stats.penalised_regression`.

    Parameters
    ----------
    formula : str
        As of a regression without penalty.
    family : {"gaussian", "binomial", "poisson", "gamma"}
        Of the target: linear, logistic, counts, or above zero.
    offset : str, optional
        Column or expression added to the linear predictor; by default the schema's offset column.
    """
    spec = design_of(schema_of(federation), formula, family, offset=offset, weights=weights)
    settings: dict[str, Any] = {"family": family, "penalty": penalty, "l1_ratio": l1_ratio, "standardised": standardised}
    return penalised(federation, spec, **settings, tol=tol, max_rounds=max_rounds, start=start)


def penalty_path(
    federation: Federation,
    *,
    formula: str,
    family: PenalisedFamily = "gaussian",
    l1_ratio: float = 1.0,
    penalties: list[float] | None = None,
    n_penalties: int = 50,
    smallest: float = 1e-3,
    folds: int = 5,
    standardised: bool = False,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-7,
    max_rounds: int = 200,
    start: PathState | None = None,
) -> Iterator[PathState]:
    """A path of penalties with cross-validation.

    Settings as `hedgerow.stats.logistic_regression`, penalties as `hedgerow.stats.penalised_regression`.

    Parameters
    ----------
    formula : str
        As of a regression without penalty.
    family : {"gaussian", "binomial", "poisson", "gamma"}
        Of the target: linear, logistic, counts, or above zero.
    penalties : list of float, optional
        By default `n_penalties`, evenly spaced by their logarithms, down from the smallest that leaves all coefficients zero.
    n_penalties : int
        How many penalties, where they are not given.
    smallest : float
        The least penalty over the largest, where they are not given.
    folds : int
        Of cross-validation; records of a party take turns in them.
    offset : str, optional
        Column or expression added to the linear predictor; by default the schema's offset column.
    tol : float
        Stop when the next step is shorter than this, of families but the linear one.
    """
    spec = design_of(schema_of(federation), formula, family, offset=offset, weights=weights)
    settings: dict[str, Any] = {"family": family, "l1_ratio": l1_ratio, "standardised": standardised}
    grid: dict[str, Any] = {"penalties": penalties, "n_penalties": n_penalties, "smallest": smallest, "folds": folds}
    return fit_path(federation, spec, **settings, **grid, tol=tol, max_rounds=max_rounds, start=start)


# ---- gradients, corners and outliers --------------------------------------------------------------------------------
def gradient_descent(
    federation: Federation,
    *,
    formula: str,
    family: DescentFamily = "gaussian",
    learning_rate: float,
    rounds: int,
    optimiser: Optimiser = "plain",
    standardise: bool = False,
    batch: int | None = None,
    stop: float | None = None,
    patience: int = 3,
    penalty: float = 0.0,
    share: float = 0.5,
    with_loss: bool = False,
    offset: str | None = None,
    weights: str | None = None,
    start: DescentState | None = None,
) -> Iterator[DescentState]:
    """Gradient descent on sums: settings as `hedgerow.stats.logistic_regression` and as `hedgerow.stats.gradient_descent`.

    Parameters
    ----------
    formula : str
        As of a linear or a logistic regression.
    standardise : bool
        Whether numbers and integers of the formula are standardised beforehand, of a gaussian the target too.
    patience : int
        Rounds in a row for which the gradient has to stay below `stop`.
    share : float
        Of targets below the line of a quantile regression, family "check".
    """
    settings: dict[str, Any] = {"learning_rate": learning_rate, "rounds": rounds, "optimiser": optimiser, "batch": batch}
    settings |= {"standardise": standardise, "stop": stop, "patience": patience, "penalty": penalty, "share": share}
    settings |= {"with_loss": with_loss, "offset": offset, "weights": weights}
    return descend(federation, formula=formula, family=family, **settings, start=start)


def hidden_gradient_descent(
    federation: Federation,
    *,
    formula: str,
    family: HiddenFamily = "gaussian",
    degree: Literal[1, 3] = 1,
    learning_rate: float = 0.1,
    rounds: int = 100,
    standardise: bool = True,
    records: float | None = None,
    largest: float = 8.0,
    start: ScaledState | None = None,
) -> Iterator[ScaledState]:
    """Gradient descent whose model can be hidden from parties: settings as `hedgerow.stats.hidden_gradient_descent`.

    Parameters
    ----------
    formula : str
        As of a linear or a logistic regression.
    family : {"gaussian", "binomial"}
        Linear or logistic regression.
    learning_rate : float
        Of the gradient of half the mean squared error, or of the mean log-loss of the polynomial.
    rounds : int
        Gradients in all.
    standardise : bool
        Whether numbers and integers of the formula are standardised beforehand, of a gaussian the target too; parties are
        told means and deviations.
    """
    settings: dict[str, Any] = {"family": family, "degree": degree, "learning_rate": learning_rate, "rounds": rounds}
    if min(learning_rate, rounds, largest, records or 1.0) <= 0 or (degree == 3 and family == "gaussian"):
        raise SettingsInvalid(
            f"learning_rate={learning_rate}, rounds={rounds}, degree={degree}, records={records}, largest={largest}.",
            remedy="All are above zero; degree is 1, or 3 for a binomial family.",
        )
    walk = partial(hidden_descent, formula=formula, records=records, largest=largest, **settings)
    spec = design_of(schema_of(federation), formula, family)

    def program() -> Iterator[ScaledState]:
        known = scaling_for(federation, spec, start, standardise, target=family == "gaussian")
        before = None if start is None else start.own(HiddenState)
        for state in walk(scaled(federation, known), start=before):
            yield ScaledState.of(state, known)

    return program()


def svm(
    federation: Federation,
    *,
    formula: str,
    C: float | None = None,
    penalty: float | None = None,
    standardise: bool = False,
    tol: float = 5e-4,
    max_rounds: int = 200,
    weights: str | None = None,
    start: ScaledState | None = None,
) -> Iterator[ScaledState]:
    """Linear support vector machine: settings as `hedgerow.stats.logistic_regression` and as `hedgerow.stats.svm`.

    Parameters
    ----------
    formula : str
        As of a logistic regression.
    standardise : bool
        Whether numbers and integers of the formula are standardised beforehand.
    """
    given = 1.0 if C is None and penalty is None else C
    spec = design_of(schema_of(federation), formula, "binomial", weights=weights)
    lines = partial(margins, formula=formula, C=given, penalty=penalty, tol=tol, max_rounds=max_rounds, weights=weights)
    lines(federation)  # it refuses what is wrong; nobody is asked before its first state

    def program() -> Iterator[ScaledState]:
        known = scaling_for(federation, spec, start, standardise, target=False)
        before = None if start is None else start.own(SmoothState)
        for state in lines(scaled(federation, known), start=before):
            yield ScaledState.of(state, known)

    return program()


def huber_regression(
    federation: Federation,
    *,
    formula: str,
    threshold: float = 1.345,
    tol: float = 1e-9,
    max_rounds: int = 50,
    offset: str | None = None,
    weights: str | None = None,
    start: RobustState | None = None,
) -> Iterator[RobustState]:
    """Huber's regression: settings as `hedgerow.stats.logistic_regression` and as `hedgerow.stats.huber_regression`.

    Parameters
    ----------
    formula : str
        As of a linear regression.
    offset : str, optional
        Column or expression that is subtracted from the target.
    """
    fit = partial(huber_lines, formula=formula, threshold=threshold, tol=tol, max_rounds=max_rounds)
    lines = fit(federation, offset=offset, weights=weights, start=None if start is None else start.lines)
    spec = design_of(schema_of(federation), formula, "gaussian", offset=offset, weights=weights)

    def program() -> Iterator[RobustState]:
        for state in lines:
            covariance = np.full((spec.size, spec.size), np.nan)
            if state.converged:
                covariance = huber_covariance(ask_for(federation, spec, target=False), state, threshold)
            yield RobustState(state.round, packed(state), covariance)

    return program()


def quantile_regression(
    federation: Federation,
    *,
    formula: str,
    share: float = 0.5,
    tol: float = 1e-5,
    max_rounds: int = 200,
    offset: str | None = None,
    weights: str | None = None,
    start: SmoothState | None = None,
) -> Iterator[SmoothState]:
    """Quantile regression: settings as `hedgerow.stats.logistic_regression` and as `hedgerow.stats.quantile_regression`.

    Parameters
    ----------
    formula : str
        As of a linear regression.
    offset : str, optional
        Column or expression that is subtracted from the target.
    """
    settings: dict[str, Any] = {"tol": tol, "max_rounds": max_rounds, "offset": offset, "weights": weights}
    lines = quantile_lines(federation, formula=formula, share=share, **settings, start=start)
    return (replace(state, converged=bool(state.converged)) for state in lines)  # a checkpoint has no numpy booleans
