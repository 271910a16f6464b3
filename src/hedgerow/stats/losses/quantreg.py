"""Quantile regression on sums: the linear function below which a given share of targets lies.

    minimise  mean of r * (share - [r < 0]),  r = y - x beta

Begins at least squares, then as `hedgerow.stats.losses.smooth`.

Source : Koenker & Bassett 1978.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from ..columns import schema_of
from ..linear.asking import ask_for
from ..regression import design_of
from .robust import RobustFit
from .smooth import SmoothState, least_squares, refuse_noise, rounded_newton


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
    """The program behind `quantile_regression`, with its parameters."""
    if not (0 < share < 1 and tol > 0 and max_rounds >= 1):
        raise SettingsInvalid(
            f"share={share!r}, tol={tol!r}, max_rounds={max_rounds!r}.",
            remedy="A share lies between 0 and 1, a tolerance above 0, and rounds are at least one.",
        )
    refuse_noise(federation, "quantile_regression", "Ask gradient_descent(family='check', share=...), or quantiles(...).")
    spec = design_of(schema_of(federation), formula, "gaussian", offset=offset, weights=weights)

    def program() -> Iterator[SmoothState]:
        asked, state = ask_for(federation, spec, target=False), start
        if state is None:
            state = least_squares(asked)
            yield state
        yield from rounded_newton(asked, "check", state, shape=share, tol=tol, max_rounds=max_rounds)

    return program()


def quantile_regression(
    federation: Federation,
    formula: str,
    *,
    share: float = 0.5,
    tol: float = 1e-5,
    max_rounds: int = 200,
    offset: str | None = None,
    weights: str | None = None,
) -> RobustFit:
    """Quantile regression; the objective is the pooled one's to within `tol`.

    Parameters
    ----------
    formula : str
        As of `hedgerow.stats.linear_regression`.
    share : float
        Of targets below the line; 0.5 for the median.
    tol : float
        Relative to the objective, by the gap to a dual one.

    Returns
    -------
    RobustFit
        Without standard errors, which take a density at the line.

    Releases
    --------
    As `hedgerow.stats.losses.smooth`, after one question for least squares.

    Raises
    ------
    SettingsInvalid (HR-511), FormulaInvalid (HR-310), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotIdentified (HR-320), NotConverged (HR-322)
    """
    settings = {"offset": offset, "weights": weights}
    *_, state = quantile_lines(federation, formula=formula, share=share, tol=tol, max_rounds=max_rounds, **settings)
    spec = design_of(schema_of(federation), formula, "gaussian", **settings)
    unknown = np.full((spec.size, spec.size), np.nan)
    return RobustFit(spec, state.beta, unknown, float("nan"), state.n, state.value, state.round)
