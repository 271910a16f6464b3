"""Figures of fits: coefficients with their intervals, the path of a penalty, an ROC curve, a calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.report import Curve, Figure, Intervals, Series

if TYPE_CHECKING:
    from .penalty.cross_validation import Path
    from .quality.calibration import Calibration
    from .quality.roc import Roc

INTERCEPT = "Intercept"


def coefficients_figure(fit: Any, level: float, *, intercept: bool) -> Figure:
    """The figure of `plot` of a fit."""
    return Figure(*intervals_of(fit, level, intercept=intercept))


def intervals_of(fit: Any, level: float = 0.95, *, intercept: bool = False) -> tuple[Intervals, ...]:
    """Coefficients with their intervals, one drawing for each row of `coef_`; without an interval where a fit has none."""
    coef = np.atleast_2d(fit.coef_)
    ends = fit.conf_int(level) if hasattr(fit, "conf_int") else np.full((*fit.coef_.shape, 2), np.nan)
    ends = ends.reshape(*coef.shape, 2)
    kept = [i for i, name in enumerate(fit.names) if intercept or name != INTERCEPT] or list(range(len(fit.names)))
    return tuple(
        Intervals(
            title,
            "coefficient",
            [fit.names[i] for i in kept],
            row[kept].tolist(),
            *both[kept].T.tolist(),
            level=level,
        )
        for title, row, both in zip(_titles(fit, len(coef)), coef, ends, strict=True)
    )


def path_curves(path: Path) -> tuple[Curve, ...]:
    """Mean deviance of the records left out, with one standard error on both sides; and coefficients; both by penalty."""
    x, mean, se = path.penalties.tolist(), path.mean, path.standard_error
    band = Series("mean over folds", tuple(x), tuple(mean), low=tuple(mean - se), high=tuple(mean + se))
    drawn = [i for i in range(path.coefs.shape[1]) if path.spec.names[i] != INTERCEPT and path.coefs[:, i].any()]
    drawn.sort(key=lambda i: -float(np.abs(path.coefs[:, i]).max()))
    lines = [
        Series(path.spec.names[i], tuple(x), tuple(path.coefs[:, i]), "main" if place < 5 else "muted")
        for place, i in enumerate(drawn)
    ]
    note = f"The band is one standard error. Best penalty {path.best:.4g}; within one standard error {path.one_se:.4g}."
    curves = [Curve("Deviance of records left out", "penalty", "deviance", (band,), note=note, log="x")]
    if lines:
        curves.append(Curve("Coefficients", "penalty", "coefficient", tuple(lines[:12]), log="x"))
    return tuple(curves)


def roc_curves(roc: Roc) -> tuple[Curve, ...]:
    """True against false positive rate, over all thresholds from the highest."""
    others, events = (np.append(0.0, np.cumsum(counts[::-1])) for counts in (roc.others, roc.events))
    rates = (tuple((counts / max(counts[-1], 1e-300)).tolist()) for counts in (others, events))
    chance = Series("chance", (0.0, 1.0), (0.0, 1.0), "muted")
    line = Series(f"area {roc.auc:.3f}", *rates)
    return (Curve("ROC curve", "false positive rate", "true positive rate", (line, chance)),)


def calibration_curves(found: Calibration) -> tuple[Curve, ...]:
    """Share of events against the mean probability, by bins with records."""
    held = found.n > 0
    expected, events = ((counts[held] / found.n[held]).tolist() for counts in (found.expected, found.events))
    exact = Series("perfect", (0.0, 1.0), (0.0, 1.0), "muted")
    note = f"Expected calibration error {found.error:.4f}."
    ends = found.conf_int()[held].T.tolist() if found.exact else []
    bars = {"low": tuple(ends[0]), "high": tuple(ends[1])} if ends else {}
    if bars:
        note += " The band joins 95% intervals of each group (Clopper and Pearson)."
    return (
        Curve(
            "Calibration",
            "predicted",
            "observed",
            (Series("observed", tuple(expected), tuple(events), **bars), exact),
            note=note,
        ),
    )


def _titles(fit: Any, rows: int) -> list[str]:
    if rows == 1:
        return ["Coefficients"]
    return [f"Coefficients of {word}, against {fit.levels[0]}" for word in fit.levels[1:]]
