"""Where the excess of ONE run lies: a sum of squares of normal variables with means and deviations of their own.

    Q = sum_i (m_i + d_i z_i)^2,  z_i ~ N(0, 1)            excess of a run: m_i what steps leave, d_i what noise and sample add

    E exp(-s Q) = prod_i (1 + 2 s d_i^2)^(-1/2) exp(-s m_i^2 / (1 + 2 s d_i^2))      singular on the negative axis only
    P(Q <= x)   = 1 / (2 pi i)  integral of  exp(s x) E exp(-s Q) / s  ds            along any path that goes around that axis

The path is a parabola through the saddle point c > 0, open to the left, on which the integrand falls like a normal density; the
trapezoidal rule then gains digits in proportion to its points (about 1e-10 with some hundred). Nothing is approximated but the
integral, and it is computed twice, with half the step, until both agree.

Source: inversion of a Laplace transform on a parabola, Weideman and Trefethen 2007; the law, Imhof 1961. Differs: Imhof's
integral runs along the imaginary axis, where it falls too slowly for one or two squares.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.errors import NotConverged, SettingsInvalid

AGREE = 1e-8
"""Two steps of the rule agree to this in probability."""
CERTAIN = 1e-12
"""Deviations of Q below this share of it count as none."""
MOST = 1 << 12
"""Points of the rule at most."""
DEPTH = 40.0
"""The path ends where its integrand has fallen by exp(-DEPTH)."""


def probability(x: float, means: Array, deviations: Array) -> float:
    """P(Q <= x).

    Parameters
    ----------
    means, deviations : arrays of shape (d,)
        m and d; deviations of at least zero.

    Raises
    ------
    SettingsInvalid (HR-511)
        A deviation is below zero, or a number is not finite.
    """
    m2, d2, least = _squares(means, deviations)
    if x <= least:
        return 0.0 if x < least or d2.size else 1.0
    if not d2.size:
        return 1.0
    return _inverted(x - least, m2, d2)


def quantile(p: float, means: Array, deviations: Array) -> float:
    """The x with P(Q <= x) = p, for p in (0, 1)."""
    if not 0 < p < 1:
        raise SettingsInvalid(f"a quantile at {p!r}.", remedy="Give a probability between 0 and 1.")
    m2, d2, least = _squares(means, deviations)
    mean, deviation = float((m2 + d2).sum()), math.sqrt(float((4 * m2 * d2 + 2 * d2**2).sum()))
    if not d2.size or deviation <= CERTAIN * mean:
        return least + mean
    reach = deviation * math.sqrt(max(1 / p, 1 / (1 - p)))  # Cantelli: nothing lies further
    low, high = max(mean - reach, 0.0), mean + reach
    if low == 0:
        low = _below(p, m2, d2, mean)
    return least + float(scipy.optimize.brentq(lambda x: _inverted(x, m2, d2) - p, low, high, xtol=1e-12 * mean, rtol=1e-9))


def interval(share: float, means: Array, deviations: Array) -> tuple[float, float]:
    """The ends between which so large a share of runs lies, as many below as above."""
    outside = (1 - share) / 2
    return quantile(outside, means, deviations), quantile(1 - outside, means, deviations)


def _squares(means: Array, deviations: Array) -> tuple[Array, Array, float]:
    """Squares of means and deviations where there is a deviation, and what the others add for certain."""
    m, d = np.asarray(means, float), np.asarray(deviations, float)
    if not (np.isfinite(m).all() and np.isfinite(d).all() and (d >= 0).all() and m.shape == d.shape):
        raise SettingsInvalid(f"means {m} and deviations {d}.", remedy="Give finite numbers, deviations of at least zero.")
    moves = d > 0
    return np.square(m[moves]), np.square(d[moves]), float(np.square(m[~moves]).sum())


def _below(p: float, m2: Array, d2: Array, mean: float) -> float:
    """A point below the quantile: halved until its probability is smaller."""
    x = mean
    while _inverted(x, m2, d2) > p:
        x /= 4
    return x


def _exponent(s: Array, x: float, m2: Array, d2: Array) -> Array:
    """log of exp(s x) E exp(-s Q)."""
    grown = 1 + 2 * np.multiply.outer(s, d2)
    found: Array = s * x - np.log(grown).sum(-1) / 2 - s * (m2 / grown).sum(-1)
    return found


def _saddle(x: float, m2: Array, d2: Array, side: int) -> tuple[float, float]:
    """Where exp(s x) E exp(-s Q) / |s| is least on one side of zero, and the second derivative of log E exp(-s Q) there."""

    def slope(s: float) -> float:
        grown = 1 + 2 * s * d2
        return x - float((d2 / grown).sum()) - float((m2 / grown**2).sum()) - 1 / s

    if side > 0:
        low = high = 1 / x  # the slope there is below zero
        while slope(high) < 0:
            high *= 8.0
    else:
        edge = -1 / (2 * float(d2.max()))
        low, high = edge * (1 - 1e-12), edge * 1e-3
        while slope(high) < 0:
            high /= 8.0
    s = float(scipy.optimize.brentq(slope, low, high, rtol=1e-6))
    grown = 1 + 2 * s * d2
    return s, float((2 * d2**2 / grown**2).sum() + (4 * m2 * d2 / grown**3).sum())


def _inverted(x: float, m2: Array, d2: Array) -> float:
    """The integral along s = c + i y - y^2 / (2 R), which passes zero on the side where less of the law lies.

    A narrow parabola ends soonest; where the integrand rises beside c, because squares differ much, it is opened.
    """
    side = 1 if x < float((m2 + d2).sum()) else -1
    c, curvature = _saddle(x, m2, d2, side)
    top = float(_exponent(np.array([c]), x, m2, d2)[0]) - math.log(abs(c))
    width = 1 / math.sqrt(curvature + 1 / c**2)
    if top + math.log(width) < -DEPTH:  # Chernoff's bound
        return 0.5 - side / 2
    for opened in 4.0 ** np.arange(-4, 12):
        tail = _along(x, m2, d2, (c, 2 * opened * x / curvature), top, width)
        if tail is not None:
            return min(max(tail if side > 0 else 1 + tail, 0.0), 1.0)
    raise NotConverged(f"P(Q <= {x:g}) with squares {m2} and {d2}.", remedy="Give means and deviations that differ less.")


def _along(x: float, m2: Array, d2: Array, path: tuple[float, float], top: float, width: float) -> float | None:
    """The integral along one parabola; None where its integrand rises beside the vertex or does not settle.

    Where the integrand is small enough the path leaves the parabola and goes straight up, and that part is left out.
    """
    c, bend = path

    def log_at(y: Array, turn: float = math.inf) -> Array:
        s = c + 1j * y - np.minimum(y, turn) ** 2 / (2 * bend)
        found: Array = (
            _exponent(s, x, m2, d2) - np.log(s) + np.log1p(1j * np.minimum(y, turn) / bend)
        )  # ds = i (1 + i y / R) dy
        return found

    ends = width * 1.3 ** np.arange(80)
    low = np.flatnonzero(log_at(ends).real < top - DEPTH)
    if not low.size or log_at(ends[low[0] :], ends[low[0]]).real.max() > top - DEPTH + 1.0:
        return None
    end = float(ends[low[0]])
    points, last = 32, math.inf
    while points <= MOST:
        logs = log_at((np.arange(points) + 0.5) * end / points)
        if logs.real.max() > top + 1.0:
            return None
        found = float(np.exp(logs).real.sum()) * end / points / math.pi
        if abs(found - last) < AGREE:
            return found
        points, last = 2 * points, found
    return None
