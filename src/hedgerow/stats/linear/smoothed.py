"""The loss of quantile regression, smoothed by a kernel: its slope is a smoothed count of targets below the line.

    r = y - eta,   h = width / 2,   G(r) = share of a uniform kernel on [r - h, r + h] below zero = clip(1/2 - r / (2 h), 0, 1)

    slope       G(r) - share
    curvature   1 / (2 h)  where |r| < h
    smooth      (share - 1/2) r + |r| / 2  outside,   (share - 1/2) r + (r^2 + h^2) / (4 h)  inside

This is the check loss convolved with the kernel, and above it by at most h / 4. Its minimum has a `share` of targets below the
line up to second order in h, since the kernel is symmetric. A corner that is rounded as in `corners` reaches from
(share - 1) width to share width around the line, which is symmetric for the median alone: other lines then move to first order.
The slope is at most max(share, 1 - share).

Source : Fernandes, Guerre & Horta 2021; He, Pan, Tan & Zhou 2023.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hedgerow.core.arrays import Array

from .loss import Loss, Parts


@lru_cache(maxsize=64)
def smoothed_check(share: float) -> Loss:
    """The loss whose minimum has a `share` of targets below it, smoothed over a width."""

    def parts(y: Array, eta: Array, width: float) -> Parts:
        r, h = y - eta, width / 2
        far = np.abs(r) >= h
        return {
            "value": lambda: r * (share - (r < 0)),
            "smooth": lambda: (share - 0.5) * r + np.where(far, np.abs(r), (r * r + h * h) / (2 * h or 1.0)) / 2,
            "slope": lambda: (np.clip(0.5 - r / (2 * h), 0.0, 1.0) if h > 0 else (r < 0) * 1.0) - share,
            "curvature": lambda: ~far / (2 * h or 1.0),
        }

    def most(eta: float, residual: float, width: float) -> dict[str, float]:
        return {
            "value": residual,
            "smooth": residual + width / 8,
            "slope": max(share, 1.0 - share),
            "curvature": 1.0 / (width or 1.0),
        }

    return Loss("smoothed check", parts, most, reads="gaussian")
