"""Functions of one number or of one row, with the same bits on every machine.

They take and give float32 and compute in float64, from additions, multiplications, divisions and square roots, which IEEE 754
rounds exactly, and from sums in a fixed order (`folds`). The C library's exp may differ from one machine to the next; this one
cannot. Rows that are not finite give NaN.
"""

from __future__ import annotations

import math

import numpy as np

from .folds import fold
from .subnormals import ieee

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the high part has 33 bits: n times it is exact
MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to a whole number, which then stands in the low bits
MAGIC_BITS = 0x4338000000000000
EXP = tuple(1 / math.factorial(i) for i in range(13, 1, -1))  # of r^13 to r^2
ATANH = tuple(1 / (2 * i + 1) for i in range(14, 0, -1))  # of s^28 to s^2 in atanh(s) / s

ERFC = (
    6.754726028292488e-08,
    -1.0093173351363426e-06,
    9.029737773641347e-07,
    6.384695114774447e-06,
    -1.2175882349167236e-05,
    -1.5454009621729925e-05,
    7.296214244964127e-05,
    -1.8053123732736105e-05,
    -0.00033177544266799484,
    0.00041890905706891445,
    0.001545350659166439,
    -0.0032396340519457592,
    -0.010755335162433412,
    0.01822111871468521,
    0.13973604643244714,
    0.34358034214532923,
    0.5107913526200771,
)  # of s^16 to 1 in exp(t^2) erfc(t) / u, u = 2 / (2 + t), s = 2 u - 1: to 1.3e-11, by Chebyshev's nodes


def _reduced(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of x in [-746, 710], n and exp(r) - 1 for x = n ln 2 + r, |r| <= 0.347; NaN in the second for NaN."""
    shifted = x * LOG2_E + MAGIC
    n = shifted - MAGIC
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    series = np.full_like(r, EXP[0])
    for c in EXP[1:]:
        series *= r
        series += c
    return shifted.view(np.int64) - MAGIC_BITS, r + r * r * series


def _power(n: np.ndarray) -> np.ndarray:
    return ((n + 1023) << 52).view(np.float64)


@ieee
def exp64(x: np.ndarray) -> np.ndarray:
    """Exponential of float64 numbers, to less than 2 units in the last place; overflows to infinity and underflows to zero.

    With x = n ln 2 + r it is 2^n (1 + (exp(r) - 1)), by the Taylor series to r^13, whose rest is below 2^-57.
    """
    n, less = _reduced(np.minimum(np.maximum(x, -746.0), 710.0))
    half = n >> 1
    return (1.0 + less) * _power(half) * _power(n - half)


def _exp_less_one(x: np.ndarray) -> np.ndarray:
    """exp(x) - 1 for x in [-40, 0], also close to zero."""
    n, less = _reduced(x)
    power = _power(n)
    return power * less + (power - 1.0)


@ieee
def tanh(x: np.ndarray) -> np.ndarray:
    """Hyperbolic tangent of float32 numbers."""
    wide = x.astype(np.float64)
    less = _exp_less_one(np.maximum(-2.0 * np.abs(wide), -40.0))
    return np.copysign(-less / (less + 2.0), wide).astype(np.float32)


def _sigmoid64(wide: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + exp64(-wide))


@ieee
def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) of float32 numbers."""
    return _sigmoid64(x.astype(np.float64)).astype(np.float32)


@ieee
def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) of float32 numbers: log(1 + t) = 2 atanh(t / (2 + t)), by its series."""
    wide = x.astype(np.float64)
    t = exp64(-np.abs(wide))
    s = t / (2.0 + t)
    square = s * s
    series = np.full_like(s, ATANH[0])
    for c in ATANH[1:]:
        series *= square
        series += c
    return (np.maximum(wide, 0.0) + 2.0 * (s + s * (series * square))).astype(np.float32)


def _normal64(wide: np.ndarray) -> np.ndarray:
    """Distribution function of the standard normal: half of erfc(-x / sqrt 2)."""
    t = np.abs(wide) * 0.7071067811865476
    u = 2.0 / (2.0 + t)
    s = 2.0 * u - 1.0
    series = np.full_like(s, ERFC[0])
    for c in ERFC[1:]:
        series *= s
        series += c
    tail = 0.5 * (exp64(-(t * t)) * series * u)
    return np.where(wide < 0.0, tail, 1.0 - tail)


@ieee
def gelu(x: np.ndarray) -> np.ndarray:
    """x times the normal distribution function at x, of float32 numbers; not its approximation by tanh."""
    wide = x.astype(np.float64)
    return (wide * _normal64(wide)).astype(np.float32)


@ieee
def silu(x: np.ndarray) -> np.ndarray:
    """x sigmoid(x) of float32 numbers."""
    wide = x.astype(np.float64)
    return (wide * _sigmoid64(wide)).astype(np.float32)


@ieee
def gelu_slopes(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Gradient before a GELU, from its input."""
    wide = x.astype(np.float64)
    density = 0.3989422804014327 * exp64(-0.5 * (wide * wide))
    return (g * (_normal64(wide) + wide * density)).astype(np.float32)


@ieee
def silu_slopes(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Gradient before a SiLU, from its input: g s (1 + x (1 - s)), s = sigmoid(x)."""
    wide = x.astype(np.float64)
    s = _sigmoid64(wide)
    return (g * (s * (1.0 + wide * (1.0 - s)))).astype(np.float32)


@ieee
def relu_slopes(g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Gradient before a ReLU: of shape and type of `g`, the gradient behind it, where its output is above zero."""
    kept = -(out > 0).astype(np.int32)  # all bits or none: faster than a choice
    return (g.view(np.int32) & kept).view(np.float32)


@ieee
def tanh_slopes(g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Gradient before a tanh: g (1 - out^2)."""
    wide = out.astype(np.float64)
    return (g * (1.0 - wide * wide)).astype(np.float32)


@ieee
def sigmoid_slopes(g: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Gradient before a sigmoid: g out (1 - out)."""
    wide = out.astype(np.float64)
    return (g * (wide * (1.0 - wide))).astype(np.float32)


@ieee
def softplus_slopes(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Gradient before a softplus, from its input: g sigmoid(x)."""
    return (g * _sigmoid64(x.astype(np.float64))).astype(np.float32)


@ieee
def softmax_slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of the cross-entropy at the outputs.

    Parameters
    ----------
    z : float32 array of shape (m, n)
    y : int64 array of shape (m,)
        Levels.

    Returns
    -------
    float32 array of shape (m, n)
        softmax(z) less one at the level; NaN in rows that are not finite, or whose level does not exist.
    """
    wide = z.astype(np.float64)
    e = exp64(wide - wide.max(1, keepdims=True, initial=-np.inf))
    e /= fold(e)[:, None]
    there = (y >= 0) & (y < z.shape[1]) & np.isfinite(z).all(1)
    e[np.flatnonzero(there), y[there]] -= 1.0
    e[~there] = np.nan
    return e.astype(np.float32)


def _of_target(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return z.astype(np.float64), y.reshape(z.shape).astype(np.float64)


@ieee
def squared_slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of (z - y)^2: z of shape (m,) or (m, 1), y of shape (m,), both float32; of the shape of z, NaN if not finite."""
    wide, target = _of_target(z, y)
    slope = 2.0 * (wide - target)
    return np.where(np.isfinite(slope), slope, np.nan).astype(np.float32)


@ieee
def binary_slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of the log-loss of logits, sigmoid(z) - y; shapes as for `squared_slopes`, NaN if not finite."""
    wide, target = _of_target(z, y)
    slope = _sigmoid64(wide) - target
    return np.where(np.isfinite(wide) & np.isfinite(target), slope, np.nan).astype(np.float32)
