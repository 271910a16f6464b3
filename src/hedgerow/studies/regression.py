"""Regressions as a study: tables of coefficients, odds ratios, paths and summaries."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Curve, Outcome, Series
from hedgerow.stats import (
    DescentState,
    FirthState,
    MultinomialState,
    NegativeBinomialState,
    NewtonState,
    PathState,
    PenalisedState,
    RobustFit,
    SmoothState,
    classes_of,
    design_of,
    fit_of,
    margin_of,
    multinomial_fit,
    negative_binomial_fit,
    path_of,
    penalised_fit,
    raw_coefficients,
)
from hedgerow.stats.design import Design
from hedgerow.stats.factors import INTERCEPT
from hedgerow.stats.firth import METHOD
from hedgerow.stats.fit import Fit
from hedgerow.stats.hidden.descent import HiddenState
from hedgerow.stats.linear.loss import FamilyName
from hedgerow.stats.regression import left_of, protection_of

from .model_scores import Read
from .model_states import RobustState, ScaledState

Settings = Mapping[str, Any]
MOST_LINES = 12
"""At most so many columns have a line in the figure of a path: those that enter first."""


# ---- likelihoods ----------------------------------------------------------------------------------------------------
def outcome(family: FamilyName) -> Callable[[Federation, Settings, NewtonState], Outcome]:
    """Show the fit of a family."""

    def show(federation: Federation, settings: Settings, state: NewtonState) -> Outcome:
        return fitted(fit_of(federation, _spec(federation, settings, family), family, state))

    return show


def firth(federation: Federation, settings: Settings, state: FirthState) -> Outcome:
    """Show a fit of Firth's penalised likelihood."""
    fit = fit_of(federation, _spec(federation, settings, "binomial"), "binomial", state.newton)
    return fitted(replace(fit, method=METHOD))


def negative_binomial(federation: Federation, settings: Settings, state: NegativeBinomialState) -> Outcome:
    """Show a negative binomial regression; of one that has not come beyond its Poisson regression, that one."""
    spec = _spec(federation, settings, "negative binomial")
    if not state.information.any():
        return fitted(fit_of(federation, spec, "poisson", state.poisson))
    return fitted(negative_binomial_fit(federation, spec, state))


def multinomial(federation: Federation, settings: Settings, state: MultinomialState) -> Outcome:
    """Show a multinomial regression: one row for each level but the reference, and column."""
    spec = classes_of(federation.schema, settings["formula"], weights=settings["weights"])
    fit = multinomial_fit(federation, spec, state)
    frame = fit.to_frame()
    low, high = np.exp(fit.conf_int().reshape(-1, 2)).T
    names = pd.Index([f"{name} ({level})" for level, name in frame.index], name="column")
    frame = frame.set_axis(names)
    ratios = pd.DataFrame({"odds ratio": frame["odds ratio"], "low": low, "high": high}, index=names)
    metrics = {"log-likelihood": fit.log_likelihood, "AIC": fit.aic, "pseudo R2": fit.r_squared}
    tables = {"Coefficients": frame, "Odds ratios": ratios}
    return Outcome(metrics, tables=tables, text={"Summary": fit.summary()}, coefficients=frame)


def fitted(fit: Fit) -> Outcome:
    """Show a fit: coefficients with intervals, the ratios they stand for, goodness of fit, and the summary."""
    frame = fit.to_frame()
    gaussian, estimated = fit.family == "gaussian", fit.alpha_se is not None
    goodness = {
        "log-likelihood": fit.log_likelihood,
        "AIC": fit.aic,
        "R2": fit.r_squared if gaussian else None,
        "deviance": fit.deviance if fit.family in ("poisson", "gamma") else None,
        "dispersion": fit.dispersion if fit.family == "gamma" else None,
        "alpha": fit.alpha if estimated else None,
        "standard error of alpha": fit.alpha_se,
    }
    metrics = {name: float(value) for name, value in goodness.items() if value is not None}
    tables = {"Coefficients": frame}
    if not gaussian:
        binary = fit.family == "binomial"
        ratios = fit.odds_ratios().rename_axis("column")
        named = ratios if binary else ratios.rename(columns={"odds ratio": "ratio of means"})
        tables["Odds ratios" if binary else "Ratios of means"] = named
    return Outcome(metrics, tables=tables, text={"Summary": fit.summary()}, coefficients=frame)


def _spec(federation: Federation, settings: Settings, family: FamilyName) -> Design:
    given = {key: settings.get(key) for key in ("offset", "weights")}
    return design_of(federation.schema, settings["formula"], family, **given)


# ---- penalties ------------------------------------------------------------------------------------------------------
def penalised(federation: Federation, settings: Settings, state: PenalisedState) -> Outcome:
    """Show a lasso, ridge or elastic net."""
    spec, sums = _spec(federation, settings, settings["family"]), state.newton
    kept = {key: settings[key] for key in ("family", "penalty", "l1_ratio", "standardised")}
    fit = penalised_fit(federation, spec, state, **kept)
    metrics = {"selected": float(fit.n_selected), "deviance": fit.deviance}
    if fit.family == "gaussian" and spec.has_constant and sums.n:
        metrics["R2"] = 1 - fit.deviance / sums.total_squares
    frame = fit.to_frame()
    return Outcome(metrics, tables={"Coefficients": frame}, text={"Summary": fit.summary()}, coefficients=frame)


def path(federation: Federation, settings: Settings, state: PathState) -> Outcome:
    """Show a path: the curve of cross-validation, the coefficients by penalty, and the model that is chosen."""
    spec = _spec(federation, settings, settings["family"])
    kept = {key: settings[key] for key in ("family", "l1_ratio", "standardised")}
    found = path_of(federation, spec, state, **kept)
    chosen = found.best if settings["choose"] == "best" else found.one_se
    fit, curve = found.fit(chosen), found.to_frame()
    frame = fit.to_frame()
    words = {"of the least deviance": found.best, "the largest within one standard error of it": found.one_se}
    chosen_row = {"best": 0, "one_se": 1}[settings["choose"]]
    choice = curve.loc[list(words.values())].reset_index().set_axis(pd.Index(words, name="choice"))
    metrics = {"penalty": chosen, "deviance of left-out records": float(choice["deviance"].iloc[chosen_row])}
    metrics["selected"] = float(fit.n_selected)
    return Outcome(
        metrics,
        tables={"Choice": choice, f"Coefficients at the penalty {chosen:.6g}": frame, "Cross-validation": curve},
        text={"Summary": fit.summary()},
        arrays={"penalties": found.penalties, "coefficients": found.coefs, "deviance by fold": found.by_fold},
        coefficients=frame,
        curves=(_validation(curve, settings["folds"]), _traces(found.penalties, found.coefs, spec.names)),
    )


def chosen(settings: Settings, state: PathState) -> np.ndarray:
    """The coefficients at the penalty that a study chooses; of a path that is not fitted yet, those of its last penalty."""
    by_fold = state.left_out
    if not state.converged:
        return state.beta[-1, -1]
    mean, error = by_fold.mean(1), by_fold.std(1, ddof=1) / np.sqrt(by_fold.shape[1])
    best = int(mean.argmin())
    within = int(np.flatnonzero(mean <= mean[best] + error[best])[0])  # penalties fall, so this is the largest
    return state.beta[best if settings["choose"] == "best" else within, -1]


def _validation(curve: pd.DataFrame, folds: int) -> Curve:
    x = tuple(map(float, curve.index))
    mean, error = curve["deviance"].to_numpy(), curve["se"].to_numpy()
    lines = [Series("mean over folds", x, tuple(mean.tolist()))]
    lines += [
        Series(f"{word} one standard error", x, tuple(y.tolist()), "muted")
        for word, y in (("plus", mean + error), ("minus", mean - error))
    ]
    note = f"Mean deviance of the records that a model left out, over {folds} folds; of a linear regression the squared error."
    return Curve("Cross-validation", "penalty", "deviance", tuple(lines), note=note, log="x")


def _traces(penalties: np.ndarray, coefs: np.ndarray, names: Sequence[str]) -> Curve:
    """Lines of the columns that enter first; coefficients that are zero everywhere have none."""
    entered = [(int((coefs[:, j] != 0).sum()), j) for j, name in enumerate(names) if name != INTERCEPT]
    first = [j for n, j in sorted(entered, key=lambda pair: -pair[0]) if n][:MOST_LINES]
    x = tuple(penalties.tolist())
    styles = ["main", "reference", *["muted"] * MOST_LINES]
    lines = [Series(names[j], x, tuple(coefs[:, j].tolist()), style) for j, style in zip(first, styles, strict=False)]
    note = f"The {len(first)} columns that enter first. " if len(first) < len(entered) else ""
    return Curve("Coefficients", "penalty", "coefficient", tuple(lines), note=f"{note}In units of the columns.", log="x")


# ---- gradients, corners and outliers --------------------------------------------------------------------------------
def descent(read: Read) -> Callable[[Federation, Settings, DescentState], Outcome]:
    """Show where gradient descent has come."""

    def show(federation: Federation, settings: Settings, state: DescentState) -> Outcome:
        frame = _coefficients(federation, settings, read(federation.schema, settings, state).spec, state.beta, state)
        metrics = {"largest gradient": float(np.abs(state.gradient).max())}
        ended = "diverged" if state.diverged else "stopped" if state.stopped else "ended"
        words = "gradient descent, no intervals" + (": take a smaller learning rate" if state.diverged else "")
        return _brief(federation, settings, f"{ended} after {state.round} rounds", frame, metrics, words)

    return show


def hidden(read: Read) -> Callable[[Federation, Settings, ScaledState], Outcome]:
    """Show where gradient descent on a hidden model has come."""

    def show(federation: Federation, settings: Settings, state: ScaledState) -> Outcome:
        own: HiddenState = state.own(HiddenState)
        frame = _coefficients(federation, settings, read(federation.schema, settings, state).spec, own.theta, state)
        stands = "" if settings["family"] == "gaussian" else f"; a polynomial of degree {settings['degree']} for the logistic"
        metrics = {"length of the gradient": own.length}
        words = f"gradient descent by terms that need no model{stands}; no intervals"
        return _brief(federation, settings, f"ended after {state.round} rounds", frame, metrics, words)

    return show


def svm(read: Read) -> Callable[[Federation, Settings, ScaledState], Outcome]:
    """Show a support vector machine."""

    def show(federation: Federation, settings: Settings, state: ScaledState) -> Outcome:
        spec, own = read(federation.schema, settings, state).spec, state.own(SmoothState)
        given = 1.0 if settings["C"] is None and settings["penalty"] is None else settings["C"]
        machine = margin_of(spec, own, C=given, penalty=settings["penalty"])
        frame = _coefficients(federation, settings, spec, machine.coef_, state)
        metrics = {"objective": machine.objective, "off by at most": machine.gap, "C": machine.cost, "penalty": machine.penalty}
        words = "soft-margin linear support vector machine; coefficients have no intervals"
        return _brief(federation, settings, f"ended after {state.round} rounds", frame, metrics, words)

    return show


def huber(federation: Federation, settings: Settings, state: RobustState) -> Outcome:
    """Show Huber's regression, with intervals."""
    spec, lines = _spec(federation, settings, "gaussian"), state.lines
    fit = RobustFit(spec, lines.beta, state.covariance, lines.scale, lines.n, lines.objective, lines.asked + 2)
    metrics = {"scale of residuals": fit.scale, "objective": fit.objective}
    words = f"Huber's loss, linear beyond {settings['threshold']:g} scales; intervals by Huber's first proposal"
    return _brief(federation, settings, f"converged at {state.round} scales", fit.to_frame(), metrics, words)


def quantile(federation: Federation, settings: Settings, state: SmoothState) -> Outcome:
    """Show a quantile regression, which has no intervals."""
    frame = pd.DataFrame({"coef": state.beta}, index=pd.Index(_spec(federation, settings, "gaussian").names, name="column"))
    metrics = {"objective": float(state.value), "off by at most": float(state.gap + 2 * state.decrease)}
    words = f"the line below which a share of {settings['share']:g} of targets lies; no intervals"
    return _brief(federation, settings, f"ended after {state.round} rounds", frame, metrics, words)


def _coefficients(federation: Federation, settings: Settings, spec: Design, beta: np.ndarray, state: Any) -> pd.DataFrame:
    """Coefficients; of standardised columns in their own units too, where a formula allows that."""
    index = pd.Index(spec.names, name="column")
    if state.scaling is None:
        return pd.DataFrame({"coef": beta}, index=index)
    columns = {"coef": beta, "per standard deviation": beta}
    try:
        columns["coef"] = raw_coefficients(federation, settings["formula"], state.scaling, beta)
    except SettingsInvalid:  # a product of scaled columns: its parts belong to several coefficients
        columns.pop("coef")
    return pd.DataFrame(columns, index=index)


def _brief(
    federation: Federation, settings: Settings, ending: str, frame: pd.DataFrame, metrics: dict[str, float], method: str
) -> Outcome:
    """An outcome with a short summary: the formula, how it ended, how it was estimated and protected, and what left."""
    said = {"method": method, "protection": protection_of(federation), "left each party": left_of(federation, 0)}
    lines = [settings["formula"], ending, ""]
    for heading, words in said.items():
        lines += textwrap.wrap(words, 96, initial_indent=heading.ljust(18), subsequent_indent=" " * 18)
    return Outcome(metrics, tables={"Coefficients": frame}, text={"Summary": "\n".join(lines)}, coefficients=frame)
