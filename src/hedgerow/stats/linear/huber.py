"""Huber's loss: half the squared error of small residuals, and linear beyond a width (Huber 1981)."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array

from .loss import Loss, Parts


def _parts(y: Array, eta: Array, width: float) -> Parts:
    r = y - eta
    pull = np.clip(r, -width, width)
    return {
        "value": lambda: pull * (r - pull / 2),
        "slope": lambda: -pull,
        "curvature": lambda: (np.abs(r) < width) * 1.0,
    }


def _most(eta: float, residual: float, width: float) -> dict[str, float]:
    return {"value": width * residual, "slope": width, "curvature": 1.0}


HUBER = Loss("huber", _parts, _most, reads="gaussian")
