"""Losses with a corner, which is rounded where a width is given: support vector machines and quantile regression.

    hinge   max(0, 1 - s * eta), s = 2 y - 1
    check   r * (share - [r < 0]), r = y - eta

A rounded corner is `max over s of (s * z - width * s^2 / 2)`, s between the slopes of both sides, which lies below the loss
by at most half a width.

Source : Nesterov 2005.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hedgerow.core.arrays import Array

from .loss import Loss, Parts


def _pull(z: Array, width: float, low: float, high: float) -> Array:
    """The slope of the rounded corner; without a width one of the subgradients."""
    return np.clip(z / width, low, high) if width > 0 else np.where(z > 0, high, low)


def _hinge(y: Array, eta: Array, width: float) -> Parts:
    sign = np.where(y > 0.5, 1.0, -1.0)
    z = 1.0 - sign * eta
    s = _pull(z, width, 0.0, 1.0)
    return {
        "value": lambda: np.maximum(z, 0.0),
        "smooth": lambda: s * (z - width * s / 2),
        "slope": lambda: -sign * s,
        "curvature": lambda: ((z > 0) & (z < width)) / (width or 1.0),
    }


def _most_of_hinge(eta: float, residual: float, width: float) -> dict[str, float]:
    return {"value": 1.0 + eta, "slope": 1.0, "curvature": 1.0 / (width or 1.0)}


HINGE = Loss("hinge", _hinge, _most_of_hinge, reads="binomial", binary=True)


@lru_cache(maxsize=64)
def check(share: float) -> Loss:
    """The loss whose minimum has a `share` of targets below it."""

    def parts(y: Array, eta: Array, width: float) -> Parts:
        r = y - eta
        s = _pull(r, width, share - 1.0, share)
        return {
            "value": lambda: r * (share - (r < 0)),
            "smooth": lambda: s * (r - width * s / 2),
            "slope": lambda: -s,
            "curvature": lambda: ((r > (share - 1.0) * width) & (r < share * width)) / (width or 1.0),
        }

    def most(eta: float, residual: float, width: float) -> dict[str, float]:
        return {"value": residual, "slope": 1.0, "curvature": 1.0 / (width or 1.0)}

    return Loss("check", parts, most, reads="gaussian")
