"""What a path of penalties shows: the curve of cross-validation, coefficients by penalty, and the model that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Schema
from hedgerow.report import Curve, Outcome, Series

from ..factors import INTERCEPT
from ..fitted import Fitted
from ..results import Settings, spec_of
from ..scores import reading
from .cross_validation import path_of

if TYPE_CHECKING:
    import pandas

    from .path import PathState

MOST_LINES = 12
"""At most so many columns have a line in the figure of a path: those that enter first."""


def show(federation: Federation, settings: Settings, state: PathState) -> Outcome:
    """Show a path: the curve of cross-validation, the coefficients by penalty, and the model that is chosen."""
    import pandas

    spec = spec_of(federation, settings, settings["family"])
    kept = {key: settings[key] for key in ("family", "l1_ratio", "standardised")}
    found = path_of(federation, spec, state, **kept)
    chosen = found.best if settings["choose"] == "best" else found.one_se
    fit, curve = found.fit(chosen), found.to_frame()
    frame = fit.to_frame()
    words = {"of the least deviance": found.best, "the largest within one standard error of it": found.one_se}
    chosen_row = {"best": 0, "one_se": 1}[settings["choose"]]
    choice = curve.loc[list(words.values())].reset_index().set_axis(pandas.Index(words, name="choice"))
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


def read(schema: Schema, settings: Settings, state: PathState) -> Fitted:
    """The coefficients that a study chooses, with their columns."""
    return reading(beta=lambda found: chosen(settings, found))(schema, settings, state)


def chosen(settings: Settings, state: PathState) -> Array:
    """The coefficients at the penalty that a study chooses; of a path that is not fitted yet, those of its last penalty."""
    by_fold = state.left_out
    if not state.converged:
        return state.beta[-1, -1]
    mean, error = by_fold.mean(1), by_fold.std(1, ddof=1) / np.sqrt(by_fold.shape[1])
    best = int(mean.argmin())
    within = int(np.flatnonzero(mean <= mean[best] + error[best])[0])  # penalties fall, so this is the largest
    return state.beta[best if settings["choose"] == "best" else within, -1]


def _validation(curve: pandas.DataFrame, folds: int) -> Curve:
    x = tuple(map(float, curve.index))
    mean, error = curve["deviance"].to_numpy(), curve["se"].to_numpy()
    lines = [Series("mean over folds", x, tuple(mean.tolist()))]
    lines += [
        Series(f"{word} one standard error", x, tuple(y.tolist()), "muted")
        for word, y in (("plus", mean + error), ("minus", mean - error))
    ]
    note = f"Mean deviance of the records that a model left out, over {folds} folds; of a linear regression the squared error."
    return Curve("Cross-validation", "penalty", "deviance", tuple(lines), note=note, log="x")


def _traces(penalties: Array, coefs: Array, names: Sequence[str]) -> Curve:
    """Lines of the columns that enter first; coefficients that are zero everywhere have none."""
    entered = [(int((coefs[:, j] != 0).sum()), j) for j, name in enumerate(names) if name != INTERCEPT]
    first = [j for n, j in sorted(entered, key=lambda pair: -pair[0]) if n][:MOST_LINES]
    x = tuple(penalties.tolist())
    styles = ["main", "reference", *["muted"] * MOST_LINES]
    lines = [Series(names[j], x, tuple(coefs[:, j].tolist()), style) for j, style in zip(first, styles, strict=False)]
    note = f"The {len(first)} columns that enter first. " if len(first) < len(entered) else ""
    return Curve("Coefficients", "penalty", "coefficient", tuple(lines), note=f"{note}In units of the columns.", log="x")
