"""How well a regression does: by the simulator on a table, and by sums over the parties where a study asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.errors import BudgetExhausted, DisclosureExceeded
from hedgerow.report import Curve, Measured

from .columns import is_exact
from .design import design_of
from .factors import Number
from .fitted import Fitted
from .linear.losses import FamilyName, family_of, loss_of
from .plots import calibration_curves
from .quality.calibration import calibration
from .quality.cells import BINS
from .quality.curve import figure_of
from .quality.metrics import binary_metrics, linear_metrics
from .quality.roc import Roc, roc
from .scaling import rescale, rescaled

Settings = Mapping[str, Any]
Read = Callable[[Schema, Settings, Any], Fitted]
Judge = Callable[[Settings, Any, Array, Array, Array], float]
Score = Callable[[Settings, Any, Schema, Table], float]


def scored(read: Read, judge: Judge, metric: str, *, more: bool = False, ask: bool = True) -> dict[str, Any]:
    """What `program` is told of a regression's score.

    Parameters
    ----------
    more : bool
        Whether more of the metric is better.
    ask : bool
        Whether a finished fit can be measured by sums over the parties.
    """
    return scored_by(score(read, judge), metric, more=more) | ({"ask": over_parties(read)} if ask else {})


def scored_by(judge: Score, metric: str, *, more: bool = False) -> dict[str, Any]:
    """The same of what scores a state on a table by itself."""
    return {"score": judge, "watch": on_test(metric, judge), "metric": lambda schema: (metric, more)}


# ---- coefficients of a state ----------------------------------------------------------------------------------------
def reading(family: FamilyName | None = None, beta: Callable[[Any], Array] = lambda state: state.beta) -> Read:
    """Return what reads a state's coefficients with their columns; the family is that of the settings if not given."""

    def read(schema: Schema, settings: Settings, state: Any) -> Fitted:
        name, scale = family or settings["family"], getattr(state, "scaling", None)
        given = {key: settings.get(key) for key in ("offset", "weights")}
        spec = design_of(rescaled(schema, scale), settings["formula"], family_of(name), **given)
        return Fitted(spec, beta(state), scale)

    return read


def predicted(fitted: Fitted, table: Table) -> tuple[Array, Array, Array]:
    """Target, linear predictor and weights of a table's records, each (n,), in the target's own units."""
    spec, scale, n = fitted.spec, fitted.scaling, len(table)
    columns = dict(table.columns)
    if scale is not None:
        columns |= rescale(columns, names=scale.names, means=scale.means, scales=scale.scales)
    with np.errstate(all="ignore"):  # a diverged iteration has no numbers
        eta = spec.matrix(columns, n) @ fitted.coef + spec.offsets(columns, n)
    y = spec.response.columns(columns)[:, 0]
    w = np.asarray(table[spec.weights], dtype=np.float64) if spec.weights else np.ones(n)
    mean, size = target_units(fitted)
    return y * size + mean, eta * size + mean, w


def target_units(fitted: Fitted) -> tuple[float, float]:
    """Mean and standard deviation by which the target was standardised; 0 and 1 where it was not."""
    scale, response = fitted.scaling, fitted.spec.response
    if scale is None or not isinstance(response, Number) or response.text not in scale.names:
        return 0.0, 1.0
    i = scale.names.index(response.text)
    return scale.means[i], scale.scales[i]


# ---- scores on a table ----------------------------------------------------------------------------------------------
def score(read: Read, judge: Judge) -> Score:
    """Return how a listing scores a state on a table."""

    def found(settings: Settings, state: Any, schema: Schema, table: Table) -> float:
        fitted = read(schema, settings, state)
        if not np.isfinite(fitted.coef).all():
            return float("nan")
        with np.errstate(all="ignore"):  # coefficients of a few records may lead far astray on others
            return judge(settings, state, *predicted(fitted, table))

    return found


def log_loss(settings: Settings, state: Any, y: Array, eta: Array, w: Array) -> float:
    """Mean log-loss of a logistic regression."""
    return float(np.average(np.logaddexp(0, eta) - y * eta, weights=w))


def r_squared(settings: Settings, state: Any, y: Array, eta: Array, w: Array) -> float:
    """Share of the target's variance that is explained."""
    mean = np.average(y, weights=w)
    return 1 - float(np.average((y - eta) ** 2, weights=w) / np.average((y - mean) ** 2, weights=w))


def explained(family: FamilyName | None = None) -> Judge:
    """Share of the deviance that is explained, D2; of a gaussian R2."""

    def judge(settings: Settings, state: Any, y: Array, eta: Array, w: Array) -> float:
        law = loss_of(family or settings["family"])
        mean = np.average(y, weights=w)
        left, whole = (np.average(law.deviance(y, at), weights=w) for at in (eta, np.full_like(eta, law.link(mean))))
        return 1 - float(left / whole) if whole > 0 else float("nan")

    return judge


def accuracy(settings: Settings, state: Any, y: Array, eta: Array, w: Array) -> float:
    """Share of records on the side of the boundary where they belong."""
    return float(np.average((eta > 0) == (y > 0.5), weights=w))


def absolute_error(settings: Settings, state: Any, y: Array, eta: Array, w: Array) -> float:
    """Mean absolute error."""
    return float(np.average(np.abs(y - eta), weights=w))


def mean_loss_of(family: str | None = None) -> Judge:
    """Mean of the loss that is minimised, in the target's own units."""

    def judge(settings: Settings, state: Any, y: Array, eta: Array, w: Array) -> float:
        loss = loss_of(family or settings["family"], settings.get("share", 0.5))
        return float(np.average(loss.counted * loss.part("value", y, eta), weights=w))

    return judge


def on_test(name: str, judge: Score) -> Callable[[Settings, Any, Schema, Table | None], dict[str, float]]:
    """Watch a score by round where the server holds records, and the loss of a program that asks for it."""

    def watch(settings: Settings, state: Any, schema: Schema, test: Table | None) -> dict[str, float]:
        trained = {"training loss": float(state.loss)} if settings.get("with_loss") else {}
        return trained if test is None else trained | {f"test {name}": judge(settings, state, schema, test)}

    return watch


# ---- metrics by sums ------------------------------------------------------------------------------------------------
def over_parties(read: Read) -> Callable[[Federation, Settings, Any], dict[str, float]]:
    """Ask for metrics of a finished fit: R2 and errors of numbers, log-loss, accuracy and area of log-odds and margins.

    Means behind another link have none of these. Metrics are further releases, so nothing is asked before the fit is there.
    """

    def ask(federation: Federation, settings: Settings, state: Any) -> dict[str, float]:
        trained = {"training loss": float(state.loss)} if settings.get("with_loss") else {}
        fitted = read(federation.schema, settings, state)

        def named(metrics: dict[str, float]) -> dict[str, float]:
            return {f"noisy {name}" if federation.protection.noisy else name: value for name, value in metrics.items()}

        if not finished(settings, state) or not np.isfinite(fitted.coef).all():
            return trained
        law = loss_of(settings.get("family") or ("binomial" if fitted.binary else "gaussian"))
        if law.log_link or (law.binary and not (law.log_odds or law.reads)):
            return {}
        if fitted.binary:
            found = binary_metrics(federation, fitted)
            confusion, exact = found.confusion, is_exact(federation)
            metrics = {"log-loss": found.log_loss, "accuracy": found.accuracy}
            known = replace(fitted, sizes=(confusion[2] + confusion[3], confusion[0] + confusion[1]), place=found.place)
            try:
                curve = roc(federation, known, bins=settings.get("evaluation.bins", BINS))
            except (BudgetExhausted, DisclosureExceeded) as refusal:  # what came before is not thrown away
                return Measured(trained | named(metrics), refused=refusal)
            sharp = exact and curve.is_sharp  # DeLong's error knows nothing of noise, nor of bins that hide much
            error = {"AUC standard error": curve.standard_error()} if sharp else {}
            metrics |= {"AUC": curve.auc}
            figures = [figure_of(curve, exact=exact)]
            if groups := settings.get("evaluation.groups"):
                metrics |= {"Brier score": found.brier}
                figures = [replace(figures[0], shape="square")]
                try:
                    figures += _calibrated(federation, known, curve, groups)
                except (BudgetExhausted, DisclosureExceeded) as refusal:
                    return Measured(trained | named(metrics) | error, *figures, refused=refusal)
            return Measured(trained | named(metrics) | error, *figures)
        numbers, size = linear_metrics(federation, fitted), target_units(fitted)[1]
        return trained | named(
            {
                "R2": numbers.r_squared,
                "mean squared error": numbers.mse * size**2,
                "mean absolute error": numbers.mae * size,
            }
        )

    return ask


def _calibrated(federation: Federation, fitted: Fitted, curve: Roc, groups: int) -> list[Curve]:
    """Events that occurred beside those that were predicted, in groups of about equally many records."""
    found = calibration(federation, fitted, bins=even_edges(curve, groups), beside=[curve.cells])
    said = f"Groups of about equally many records. Expected calibration error {found.error:.3f}."
    if found.exact:
        said += " Lines: 95% intervals (Clopper and Pearson)."
    note = f"{said} Measured on the records that it was fitted to: expect a little worse elsewhere."
    return [replace(one, shape="points", note=note) for one in calibration_curves(found)]


def even_edges(curve: Roc, groups: int) -> Array:
    """Probabilities at edges of a curve's bins, between which about equally many records lie, from 0 to 1.

    How many there are follows from the numbers of bins and of groups alone, so that a rehearsal asks as a run does.
    """
    counted = curve.counted or curve
    below = np.cumsum(counted.others + counted.events)[:-1]
    total, inner = max(float((counted.others + counted.events).sum()), 1.0), min(groups - 1, len(below))
    places: list[int] = []
    for i in range(inner):
        nearest = int(np.abs(below / total - (i + 1) / (inner + 1)).argmin())
        first, last = (places[-1] + 1 if places else 0), len(below) - (inner - i)
        places.append(min(max(nearest, first), last))
    if curve.counted is not None:  # edges that the curve shows first, since those between are not shown beside it
        shown = np.flatnonzero(np.isin(counted.edges, curve.edges))
        wanted = (np.arange(inner) + 1) / (inner + 1)
        best = [int(shown[np.abs(below[shown] / total - share).argmin()]) for share in wanted if len(shown)]
        places = sorted(list(dict.fromkeys([*best, *places, *range(len(below))]))[:inner])
    return np.array([0.0, *np.unique(expit(counted.edges[places])), 1.0])


def finished(settings: Settings, state: Any) -> bool:
    """Whether a state is the last of its program."""
    ended = (getattr(state, name, False) for name in ("converged", "stopped", "diverged"))
    return any(ended) or state.round == settings.get("rounds")
