"""Squared error: the target is the linear predictor plus errors of one variance."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array

from .loss import Loss, Parts


def _parts(y: Array, eta: Array, width: float) -> Parts:
    return {"value": lambda: (y - eta) ** 2 / 2, "slope": lambda: eta - y, "curvature": lambda: np.ones_like(eta)}


GAUSSIAN = Loss("gaussian", _parts, title="linear regression", quadratic=True, free_dispersion=True, counted=2.0)
