"""Cards of fitted models and other statistics."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from hedgerow.report import Card, Curve, Grid, Intervals, grid_of
from hedgerow.report.card import listed
from hedgerow.report.numerals import show
from hedgerow.stats.causal.effect import Balance, Effect
from hedgerow.stats.fit import Fit
from hedgerow.stats.imputation.pooled import PooledFit
from hedgerow.stats.losses.robust import RobustFit
from hedgerow.stats.losses.svm import Margin
from hedgerow.stats.moments import Moments
from hedgerow.stats.multinomial_fit import MultinomialFit
from hedgerow.stats.penalty.cross_validation import Path
from hedgerow.stats.penalty.penalised import PenalisedFit
from hedgerow.stats.plots import calibration_curves, intervals_of, path_curves, roc_curves
from hedgerow.stats.quality.calibration import Calibration
from hedgerow.stats.quality.metrics import BinaryMetrics, LinearMetrics
from hedgerow.stats.quality.roc import Roc
from hedgerow.stats.screen_results import Screen
from hedgerow.stats.survival.cox_fit import CoxFit
from hedgerow.stats.survival.log_rank import LogRank
from hedgerow.stats.survival.piecewise_fit import PiecewiseFit
from hedgerow.stats.table_cells import TableOne

from . import values

_COEFFICIENTS = 5
_UNBOUNDED = "not asked for: one record can move it without bound"


@singledispatch
def card(value: Any) -> Card:
    """The card of a statistic; of an unknown one its numbers and arrays."""
    return values.card(value)


@card.register
def _(fit: Fit) -> Card:
    law = fit.law
    found = {
        "log-likelihood": fit.log_likelihood,
        "AIC": fit.aic,
        "R²" if law.quadratic else "pseudo R²": fit.r_squared,
        "dispersion": fit.dispersion if law.has("pearson") else None,
        "alpha": fit.alpha,
    }
    metrics = tuple((name, value) for name, value in found.items() if value is not None)
    return _fitted(fit, law.title, metrics, fit.deviance is not None, fit.to_frame(), (("Summary", fit.summary()),))


@card.register
def _(fit: MultinomialFit) -> Card:
    metrics = (("log-likelihood", fit.log_likelihood), ("AIC", fit.aic), ("pseudo R²", fit.r_squared))
    width = len(fit.names)
    rows = tuple(
        (f"{word}: {fit.names[i]}" if i else f"{word}: {fit.names[0]}", *(float(part[k, i]) for part in _parts(fit)), *ends)
        for k, word in enumerate(fit.levels[1:])
        for i in range(width)
        for ends in [tuple(fit.conf_int()[k, i].tolist())]
    )
    grid = Grid(f"Coefficients, against {fit.levels[0]}", ("level: column", "coef", "se", "z", "p", "low", "high"), rows)
    return _fitted(fit, "multinomial logistic regression", metrics, True, grid, (("Summary", fit.summary()),))


@card.register
def _(fit: CoxFit) -> Card:
    found = (("log-likelihood", fit.log_likelihood), ("events", fit.n_events), ("concordance", fit.concordance))
    metrics = tuple((name, value) for name, value in found if np.isfinite(value))
    kind = "Cox regression of shared records" if fit.pooled else "Cox regression, stratified by site"
    return _fitted(fit, kind, metrics, True, fit.to_frame(), (("Summary", fit.summary()),))


@card.register
def _(fit: PiecewiseFit) -> Card:
    metrics = (("log-likelihood", fit.log_likelihood), ("events", fit.n_events), ("AIC", fit.aic))
    return _fitted(fit, "piecewise-exponential regression", metrics, True, fit.to_frame(), (("Summary", fit.summary()),))


@card.register
def _(found: LogRank) -> Card:
    metrics = (("chi-squared", found.statistic), ("df", found.df), ("p", found.p_value))
    tables = (grid_of("Events by group", found.to_frame()),)
    return Card(kind="log-rank test", title=found.on, metrics=metrics, tables=tables)


@card.register
def _(fit: PenalisedFit) -> Card:
    ratio = {0.0: "ridge", 1.0: "lasso"}.get(fit.l1_ratio, f"elastic net, l1 ratio {show(fit.l1_ratio)}")
    metrics = (("penalty", fit.penalty), ("selected columns", fit.n_selected), ("deviance", fit.deviance))
    return _fitted(fit, f"{fit.law.title}, {ratio}", metrics, True, fit.to_frame(), (("Summary", fit.summary()),))


@card.register
def _(fit: RobustFit) -> Card:
    found = (("scale of residuals", fit.scale), ("mean loss", fit.objective))
    metrics = tuple((name, value) for name, value in found if np.isfinite(value))
    return _fitted(fit, "robust regression", metrics, True, fit.to_frame())


@card.register
def _(fit: Margin) -> Card:
    metrics = (("C", fit.cost), ("penalty", fit.penalty), ("objective", fit.objective), ("off by at most", fit.gap))
    grid = Grid("Coefficients", ("column", "coef"), tuple(zip(fit.names, fit.coef_.tolist(), strict=True)))
    return _fitted(fit, "support vector machine", metrics, True, grid)


@card.register
def _(path: Path) -> Card:
    facts = (
        ("parties", path.n_parties),
        ("records", path.n_records),
        ("questions", path.rounds),
        ("penalties", len(path.penalties)),
    )
    return Card(
        kind=f"penalty path, family {path.family}",
        title=path.spec.formula,
        facts=facts,
        metrics=(("best penalty", path.best), ("within one standard error", path.one_se)),
        privacy=(path.protection, "open"),
        tables=(grid_of("Along the path", path.to_frame()),),
        figures=path_curves(path),
        text=(("What left each party", path.left),),
    )


@card.register
def _(found: Moments) -> Card:
    grid = grid_of("Moments", found.to_frame())
    return Card(kind="moments", facts=(("records", found.n), ("columns", len(found.names))), tables=(grid,), said=_means(found))


@card.register
def _(roc: Roc) -> Card:
    found = (("area", roc.auc), ("standard error", roc.standard_error()), ("by the bins at most", roc.bin_error))
    facts = (("events", float(roc.events.sum())), ("others", float(roc.others.sum())), ("cells", len(roc.events)))
    return Card(kind="ROC curve", facts=facts, metrics=found, figures=roc_curves(roc))


@card.register
def _(found: Calibration) -> Card:
    statistic, p = found.hosmer_lemeshow
    metrics = (
        ("calibration error", found.error),
        ("observed over expected", found.ratio),
        ("Hosmer-Lemeshow", statistic),
        ("p", p),
    )
    facts = (("records", float(found.n.sum())), ("events", float(found.events.sum())), ("bins", len(found.n)))
    return Card(kind="calibration", facts=facts, metrics=metrics, figures=calibration_curves(found))


@card.register
def _(found: BinaryMetrics) -> Card:
    metrics = tuple((name, getattr(found, name)) for name in ("accuracy", "precision", "recall", "specificity", "f1"))
    of_0, of_1 = found.confusion[:2], found.confusion[2:]
    grid = Grid("Records", ("truly", "predicted 0", "predicted 1"), (("0", *of_0), ("1", *of_1)))
    facts = (("records", found.n), ("log-loss", found.log_loss), ("Brier score", found.brier), ("threshold", found.threshold))
    return Card(kind="metrics of a binary target", facts=facts, metrics=metrics, tables=(grid,))


@card.register
def _(found: LinearMetrics) -> Card:
    metrics = (("R²", found.r_squared), ("root mean squared error", found.rmse), ("mean absolute error", found.mae))
    return Card(kind="metrics of a number", facts=(("records", found.n),), metrics=metrics)


@card.register
def _(fit: PooledFit) -> Card:
    lacking = tuple((f"{name} is missing in", f"{100 * share:.1f} %") for name, share in fit.imputed.items())
    kind = f"{fit.law.title} over {fit.copies} imputed copies"
    return _fitted(fit, kind, lacking, True, fit.to_frame(), (("Summary", fit.summary()),))


@card.register
def _(found: Effect) -> Card:
    low, high = found.conf_int()
    metrics = (("effect", found.effect), ("standard error", found.se), ("low", low), ("high", high))
    balance = () if found.balance is None else (grid_of("Balance", found.balance.to_frame()),)
    return Card(
        kind=f"effect of {found.treatment} on {found.outcome}",
        title=found.formula,
        facts=(("parties", found.n_parties), ("treated", float(found.n[1])), ("others", float(found.n[0]))),
        metrics=tuple((name, value) for name, value in metrics if np.isfinite(value)),
        tables=(grid_of("Effect", found.to_frame()), *balance),
        text=(("Summary", found.summary()),),
    )


@card.register
def _(found: Balance) -> Card:
    return Card(kind="balance", metrics=(("largest left", found.largest),), tables=(grid_of("Balance", found.to_frame()),))


@card.register
def _(found: TableOne) -> Card:
    grid = grid_of("Table 1", found.to_frame())
    return Card(kind="Table 1", title=f"by {found.group}" if found.group else "", tables=(grid,), said=found.notes)


@card.register
def _(found: Screen) -> Card:
    facts = (("records", found.n), ("columns", found.screened), ("tested", len(found.names)))
    return Card(kind="score tests", title=found.formula, facts=facts, tables=(grid_of("Screen", found.to_frame()),))


def _fitted(fit: Any, kind: str, metrics: Any, exact: bool, frame: Any, text: tuple[tuple[str, str], ...] = ()) -> Card:
    """The card of a fit, whoever fitted it."""
    parties = getattr(fit, "n_parties", None)
    n = fit.n_records if exact else f"about {show(max(round(fit.n_records), 0))}"
    facts = (("parties", parties), ("sum of weights" if fit.spec.weights else "records", n), ("questions", fit.rounds))
    missing = getattr(fit, "n_missing", 0)
    facts = (*facts, ("answers missing", missing)) if missing else facts
    protection = getattr(fit, "protection", "")
    left = getattr(fit, "left", "")
    return Card(
        kind=kind,
        title=fit.spec.formula,
        facts=tuple((name, value) for name, value in facts if value is not None),
        metrics=metrics,
        privacy=(f"{protection[:1].upper()}{protection[1:]}.", "open" if exact else "private") if protection else None,
        tables=(frame if isinstance(frame, Grid) else grid_of("Coefficients", frame),),
        figures=_drawn(fit),
        text=(*text, *((("What left each party", left),) if left else ())),
        said=(_estimates(fit),),
    )


def _drawn(fit: Any) -> tuple[Curve | Intervals, ...]:
    return intervals_of(fit)


def _parts(fit: MultinomialFit) -> tuple[Any, ...]:
    return fit.coef_, fit.se_, fit.statistic_, fit.p_values


def _estimates(fit: Any) -> str:
    """The first coefficients in a line, with their standard errors where a fit has them."""
    if np.ndim(fit.coef_) > 1:
        return f"{len(fit.coef_)} levels against {fit.levels[0]}, {len(fit.names)} coefficients each: summary()"
    se = fit.se_ if hasattr(fit, "se_") else np.full(len(fit.coef_), np.nan)
    said = [
        f"{name} {show(float(b))}" + (f" (se {show(float(e))})" if np.isfinite(e) else "")
        for name, b, e in zip(fit.names, fit.coef_, se, strict=True)
    ]
    return listed(said, _COEFFICIENTS)


def _means(found: Moments) -> tuple[str, ...]:
    said = [
        f"{name} {show(float(m))} (sd {show(float(s))})" for name, m, s in zip(found.names, found.mean, found.sd, strict=True)
    ]
    return (listed(said, 4),)
