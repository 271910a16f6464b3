"""An estimate from declared bounds alone: the curvature for which a forecast is worst, of all that inputs and loss allow.

    loss        curvature along any direction            f(0)     |theta*| at most
    squared     ridge to ridge + 2 length^2              1        the box's corner, and sqrt(2 f(0) / ridge)
    logistic    ridge to ridge + length^2 / 4            log 2
    hinge       ridge, where ridge >= length^2           1        b / ridge <= length / ridge

    excess = sum_i  g(h_i) theta*_i^2 + v A(h_i)         g(h) = h left(h)^2 / 2
           <= max_h [g(h) R^2 + v A(h)] + (d - 1) max_h v A(h)                 R the largest |theta*|

The right side is the forecast of the estimate that is returned: one direction with the first maximum and theta* along it, the
others with the second. Nothing is asked and nobody is looked at; the forecast is pessimistic, for lending about three times too
high in the noise and far more in what steps leave. The share that is due to the sample is not in it: no bound of the inputs
bounds it. f* has to be declared, and a smaller one makes the relative fitness larger.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries.inputs import Inputs
from hedgerow.learn.queries.losses import QueryLoss
from hedgerow.learn.queries.steps import Steps

from .pilot_estimate import PilotEstimate
from .propagation import propagate

LOWEST, POINTS = 1e-5, 241
"""Curvatures are tried from this share of the largest on, so many of them, evenly spread over factors."""


def worst_case(loss: QueryLoss, spec: Inputs, steps: Steps, horizon: int, variance: float, least: float) -> PilotEstimate:
    """The estimate whose forecast is worst.

    Parameters
    ----------
    variance : float
        v, of the noise in each coordinate of the mean gradient (`mean_variance`).
    least : float
        f*, declared: what the best model is expected to leave.

    Raises
    ------
    SettingsInvalid (HR-511)
        A hinge whose ridge is below the squared length of a row: its curvature has no bound. Or f* is not above zero.
    """
    if not 0 < least < math.inf:
        raise SettingsInvalid(f"a least loss of {least!r}.", remedy="Declare a number above zero, such as 0.02.")
    h, reach = _curvatures(loss, spec), _reach(loss, spec, steps.box)
    found = propagate(PilotEstimate(np.diag(h), np.full(len(h), reach), least, np.zeros((len(h), len(h))), ""), steps, horizon)
    order = np.argsort(found.eigenvalues)
    h, bias = found.eigenvalues[order], (found.eigenvalues * np.square(found.left) / 2)[order]
    noise = variance * found.amplifications[order]
    first, others = h[np.argmax(bias + noise)], h[np.argmax(noise)]
    curvature = np.diag([first, *[others] * (spec.size - 1)])
    best = np.array([reach, *[0.0] * (spec.size - 1)])
    return PilotEstimate(
        curvature,
        best,
        least,
        np.zeros_like(curvature),
        "declared bounds alone: the worst curvature that they allow, so that the forecast is pessimistic",
    )


def _curvatures(loss: QueryLoss, spec: Inputs) -> Array:
    length = spec.length(2)
    if loss.kind == "hinge":
        if loss.ridge < length**2 * (1 - 1e-12):
            raise SettingsInvalid(
                f"a hinge with ridge {loss.ridge:g} where rows are up to {length:g} long: its curvature has no bound.",
                remedy="Take records that belong to no party (PilotEstimate.of_records).",
            )
        return np.array([loss.ridge])
    largest = {"squared": 2.0, "logistic": 0.25}[loss.kind] * length**2
    spread: Array = largest * np.geomspace(LOWEST, 1.0, POINTS)
    return loss.ridge + spread


def _reach(loss: QueryLoss, spec: Inputs, box: float) -> float:
    corner = box * math.sqrt(spec.size)
    if loss.kind == "hinge":
        return min(corner, spec.length(2) / loss.ridge)
    at_zero = 1.0 if loss.kind == "squared" else math.log(2)
    return min(corner, math.sqrt(2 * at_zero / loss.ridge)) if loss.ridge else corner
