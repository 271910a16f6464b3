"""Norms of records, forward and backward, in float64 and in a fixed order.

A record's numbers are (places, groups, width): statistics are of one group over all places. So LayerNorm over the last axis
takes each place for a record, of one place and one group, and GroupNorm of channels-last images takes groups of channels.

    out = (x - mean) inverse           inverse = 1 / sqrt(mean of squares + eps)
    dx  = (g - mean(g) - out mean(g out)) inverse         RMSNorm subtracts no means, forward or backward
"""

from __future__ import annotations

import numpy as np

from .folds import fold
from .subnormals import ieee


def _mean(values: np.ndarray) -> np.ndarray:
    """Over places and width of (m, places, groups, width), width first; kept axes."""
    return (fold(fold(values), 1) / (values.shape[1] * values.shape[3]))[:, None, :, None]


@ieee
def normalised(x: np.ndarray, eps: float, *, centred: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Divide each group by its standard deviation.

    Parameters
    ----------
    x : float32 array of shape (m, places, groups, width)
    eps : float
        Added to the variance.
    centred : bool
        Whether the mean is subtracted; without it this is RMSNorm.

    Returns
    -------
    out : float32 array of the shape of x
        Before any weights of channels are applied.
    inverse : float64 array of shape (m, groups)
        One over the standard deviation.
    """
    wide = x.astype(np.float64)
    if centred:
        wide -= _mean(wide)
    inverse = 1.0 / np.sqrt(_mean(wide * wide) + eps)
    return (wide * inverse).astype(np.float32), inverse[:, 0, :, 0]


@ieee
def normalised_slopes(g: np.ndarray, out: np.ndarray, inverse: np.ndarray, *, centred: bool = True) -> np.ndarray:
    """Gradient before `normalised`, float32 of the shape of g, from that behind it and from what it returned."""
    wide, there = g.astype(np.float64), out.astype(np.float64)
    slope = wide - there * _mean(wide * there)
    if centred:
        slope -= _mean(wide)
    return (slope * inverse[:, None, :, None]).astype(np.float32)


@ieee
def affine(x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None = None) -> np.ndarray:
    """Return x weight + bias, float32 of the shape of x, (..., c); weight and bias have the shape of its last axes."""
    wide = x.astype(np.float64)
    if weight is not None:
        wide *= weight
    if bias is not None:
        wide += bias
    return wide.astype(np.float32)


@ieee
def product_sums(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Gradients of the weights of `affine`: sums of g x over the places, float32 of shape (m, places, c) to (m, c)."""
    return fold(g.astype(np.float64) * x, 1).astype(np.float32)
