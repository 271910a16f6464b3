"""Quantile regression on sums: the linear function below which a given share of targets lies.

    minimise  mean of r * (share - [r < 0]),  r = y - x beta

Begins at least squares, then as `hedgerow.stats.losses.smooth`.

Source : Koenker & Bassett 1978.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Outcome

from ..columns import schema_of
from ..design import design_of
from ..linear.asking import ask_for
from ..results import Settings, brief, coefficients, spec_of
from ..scores import mean_loss_of, reading, scored
from .robust import RobustFit
from .smooth import SmoothState, least_squares, refuse_noise, rounded_newton


def show(federation: Federation, settings: Settings, state: SmoothState) -> Outcome:
    """Show the line, which has no intervals."""
    frame = coefficients(federation, settings, spec_of(federation, settings, "gaussian"), state.beta, state)
    metrics = {"objective": float(state.value), "off by at most": float(state.gap + 2 * state.decrease)}
    words = f"the line below which a share of {settings['share']:g} of targets lies; no intervals"
    return brief(federation, settings, f"ended after {state.round} rounds", frame, metrics, words)


@program(
    "The line below which a share of targets lies (Koenker & Bassett 1978).",
    name="quantile_regression",
    outcome=show,
    case=lambda: Case(load("diabetes").take(range(200)), {"formula": "progression ~ bmi + sex", "share": 0.8, "tol": 0.1}),
    **scored(reading("gaussian"), mean_loss_of("check"), "quantile loss"),
)
def quantile_lines(
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
    """Minimise the loss of a share; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    formula : str
        As of a linear regression.
    share : float
        Of targets below the line; 0.5 for the median.
    tol : float
        Relative to the objective, by the gap to a dual one.
    offset : str, optional
        Column or expression that is subtracted from the target.

    Raises
    ------
    SettingsInvalid (HR-511), FormulaInvalid (HR-310), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotIdentified (HR-320), NotConverged (HR-322)

    Releases
    --------
    As `hedgerow.stats.losses.smooth`, after one question for least squares.
    """
    if not (0 < share < 1 and tol > 0 and max_rounds >= 1):
        raise SettingsInvalid(
            f"share={share!r}, tol={tol!r}, max_rounds={max_rounds!r}.",
            remedy="A share lies between 0 and 1, a tolerance above 0, and rounds are at least one.",
        )
    refuse_noise(federation, "quantile_regression", "Ask gradient_descent(family='check', share=...), or quantiles(...).")
    spec = design_of(schema_of(federation), formula, "gaussian", offset=offset, weights=weights)

    def lines() -> Iterator[SmoothState]:
        asked, state = ask_for(federation, spec, target=False), start
        if state is None:
            state = least_squares(asked)
            yield state
        yield from rounded_newton(asked, "check", state, shape=share, tol=tol, max_rounds=max_rounds)

    return lines()


def quantile_regression(federation: Federation, formula: str, **settings: Any) -> RobustFit:
    """Quantile regression; the objective is the pooled one's to within `tol`.

    Parameters
    ----------
    formula, **settings
        As `quantile_lines`.

    Returns
    -------
    RobustFit
        Without standard errors, which take a density at the line.
    """
    *_, state = quantile_lines(federation, formula=formula, **settings)
    spec = spec_of(federation, settings | {"formula": formula}, "gaussian")
    unknown = np.full((spec.size, spec.size), np.nan)
    return RobustFit(spec, state.beta, unknown, float("nan"), state.n, state.value, state.round)
