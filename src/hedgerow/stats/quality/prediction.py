"""How good a prediction is, in one value: discrimination, calibration, Brier score and net benefit, with their errors.

    log-loss, Brier score, confusion, spread of scores  <- `binary_metrics`                            one question
    ROC curve with its area                             <- `roc`                                       one question of counts
    groups of the probability                           <- `calibration`                               one question of counts
    slope, intercept, and with knots a curve            <- `calibration_line`                          five to eight rounds each
    net benefit at declared thresholds                  <- `net_benefit`                               one question of counts

Releases : what these release; `numbers` says how many numbers left a party.
Unit     : record.
Source   : Steyerberg et al. 2010, for what belongs together; else as these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, ndtri

from hedgerow.core.federation import Federation
from hedgerow.display import displayed
from hedgerow.report import Curve, Series

from ..columns import is_exact, upper_end
from ..fitted import Fitted
from .benefit import NetBenefit, net_benefit
from .calibration import Calibration, calibration
from .calibration_line import CalibrationLine, calibration_line
from .cells import LEAST
from .curve import figure_of, words
from .metrics import BinaryMetrics, binary_metrics
from .roc import Roc, roc

if TYPE_CHECKING:
    import pandas

PLACES = 41
"""Along the axis, at which a smooth curve is drawn."""
SHARES = (0.05, 0.35, 0.65, 0.95)
"""Of the records below each knot of a smooth curve (Harrell 2015, table 2.3)."""


@displayed
@dataclass(frozen=True, eq=False)
class PredictionQuality:
    """How well probabilities do on the records that were asked.

    Attributes
    ----------
    metrics : BinaryMetrics
    curve : Roc
    groups : Calibration
    line, smooth : CalibrationLine or None
        Line and smooth curve of the calibration; none behind noise, and no curve unless it was asked for.
    benefit : NetBenefit or None
    exact : bool
        Whether totals arrived without noise.
    numbers : int
        That left each party.
    """

    metrics: BinaryMetrics
    curve: Roc
    groups: Calibration
    line: CalibrationLine | None
    smooth: CalibrationLine | None
    benefit: NetBenefit | None
    exact: bool
    numbers: int

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each measure: estimate and interval, NaN where there is none."""
        import pandas

        nothing = (float("nan"), float("nan"))
        reach = float(ndtri(upper_end(level))) * self.metrics.brier_error
        rows = {
            "AUC": (self.curve.auc, *(self.curve.conf_int(level) if self.exact else nothing)),
            "Brier score": (self.metrics.brier, self.metrics.brier - reach, self.metrics.brier + reach),
            "log-loss": (self.metrics.log_loss, *nothing),
            "observed over expected": (self.groups.ratio, *nothing),
        }
        if self.line is not None:
            table = self.line.to_frame(level).loc[["slope", "intercept at large"], ["estimate", "low", "high"]]
            rows |= {f"calibration {name}": tuple(row) for name, row in zip(table.index, table.to_numpy(), strict=True)}
        index = pandas.Index(list(rows), name="measure")
        return pandas.DataFrame(list(rows.values()), index=index, columns=["estimate", "low", "high"])

    def figures(self) -> tuple[Curve, ...]:
        """ROC curve and calibration with their bands, and net benefit where it was asked."""
        found = (figure_of(self.curve, exact=self.exact), self._calibration())
        return (*found, self.benefit.figure()) if self.benefit is not None else found

    def _calibration(self) -> Curve:
        from ..plots import calibration_curves

        (plain,) = calibration_curves(self.groups)
        groups, perfect = plain.series
        drawn = self.smooth or self.line
        if drawn is None or not np.isfinite(drawn.covariance).all():
            return plain
        p = np.clip(np.linspace(groups.x[0], groups.x[-1], PLACES), 1e-6, 1 - 1e-6)
        y, low, high = (tuple(part.tolist()) for part in drawn.curve(p).T)
        name = "smooth curve" if self.smooth else "line"
        curve = Series(name, tuple(p.tolist()), y, low=low, high=high)
        said = "" if self.line is None else f"{self.line.summary()} "
        note = f"{said}The band is of the {name}, 95%. Expected calibration error {self.groups.error:.4f}."
        muted = replace(groups, name="groups", style="muted", low=(), high=())
        return replace(plain, series=(curve, muted, perfect), note=note)

    def summary(self) -> str:
        """What these records say of the model, in sentences."""
        parts = [words(self.curve, self.exact)]
        if self.line is not None:
            parts.append(self.line.summary())
        error = f" (standard error {self.metrics.brier_error:.2g})" if np.isfinite(self.metrics.brier_error) else ""
        parts.append(f"Brier score {self.metrics.brier:.3f}{error}.")
        parts.append(f"{self.numbers} numbers left each party.")
        return " ".join(parts)


def knots_of(found: Roc) -> tuple[float, ...]:
    """Probabilities at bin edges near which 5, 35, 65 and 95 percent of the records lie below; fewer than three are none."""
    counted = found.counted or found
    below = np.cumsum(counted.others + counted.events)
    if not below[-1] > 0:
        return ()
    nearest = [int(np.abs(below[:-1] / below[-1] - share).argmin()) for share in SHARES]
    places = np.unique(counted.edges[nearest])
    return tuple(expit(places).tolist()) if len(places) > 2 else ()


def groups_of(found: Roc, groups: int) -> Any:
    """Edges of about so many groups of the probability, of equal width as nearly as cells of a curve allow.

    Groups of other edges would tell small counts beside the curve, as differences.
    """
    if not found.least or groups < 2 or not len(found.edges):
        return groups
    ends = expit(found.edges)
    nearest = {int(np.abs(ends - place).argmin()) for place in np.arange(1, groups) / groups}
    return np.array([0.0, *np.unique(ends[sorted(nearest)]), 1.0])


def prediction_quality(
    federation: Federation,
    model: Any,
    *,
    formula: str | None = None,
    bins: int | None = None,
    groups: int = 10,
    least: float = LEAST,
    thresholds: Sequence[float] = (),
    smooth: bool = False,
) -> PredictionQuality:
    """How good the probabilities of a model are: area, calibration, Brier score and net benefit, with their errors.

    Parameters
    ----------
    model : Fit, state, or array of shape (d,)
        Whose linear predictor is a log-odds. Ask records that it was not fitted to, or `leave_one_site_out`.
    bins, groups : int
        Of the score for the ROC curve (20, slowly more of many records), and of the probability for the calibration, of which
        edges are then some of the curve's.
    least : float
        No cell is shown with fewer events of the total, other than none, or with fewer others, nor is a difference of two.
    thresholds : sequence of float
        Probabilities at which net benefit is asked for; none by default.
    smooth : bool
        Whether a smooth calibration curve is asked for, some six rounds more.

    Releases
    --------
    See `hedgerow.stats.quality.prediction`.

    Raises
    ------
    SettingsInvalid (HR-511), UnboundedSum (HR-210)
    """
    asked_before, exact = len(federation.ledger), is_exact(federation)
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=True)
    metrics = binary_metrics(federation, fitted)
    others, events = sum(metrics.confusion[:2]), sum(metrics.confusion[2:])
    fitted = replace(fitted, sizes=(events, others), place=metrics.place)
    curve = roc(federation, fitted, bins=bins, least=least)
    told = calibration(federation, fitted, bins=groups_of(curve, groups) if exact else groups, least=least)
    line = calibration_line(federation, fitted) if exact else None
    knots = knots_of(curve) if smooth and exact else ()
    bent = calibration_line(federation, fitted, knots=knots) if knots else None
    beside = [curve.cells]  # of which the groups are
    benefit = net_benefit(federation, fitted, thresholds, least=least, beside=beside) if len(thresholds) else None
    numbers = sum(entry.numbers or 0 for entry in federation.ledger.entries[asked_before:])
    return PredictionQuality(metrics, curve, told, line, bent, benefit, exact, numbers)
