"""Roots and maxima of many functions at once, one in each coordinate of an array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hedgerow.core.arrays import Array

GOLDEN = (5**0.5 - 1) / 2


def falling_root(f: Callable[[Array], Array], low: Array, high: Array, steps: int = 100) -> Array:
    """Where functions that fall from left to right cross zero; the end that is nearest where they do not.

    Regula falsi with the Illinois rule, and bisection wherever that leaves the bracket, until a step moves none by more than
    1e-11; steps shrink faster than by a factor.

    Parameters
    ----------
    f : callable
        Array of shape (n,) to array of shape (n,): each coordinate a falling function of the same coordinate.
    low, high : arrays of shape (n,)
    """
    a, b = np.array(low, float), np.array(high, float)
    fa, fb = f(a), f(b)
    x = np.where(fa <= 0, a, b)
    open_ = (fa > 0) & (fb < 0)
    b, a = np.where(open_, b, x), np.where(open_, a, x)
    kept = np.zeros(len(x))  # which end stood still in the last step
    for k in range(steps):
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = (a * fb - b * fa) / (fb - fa)
        inside = np.isfinite(guess) & (guess > a) & (guess < b) & (k % 8 < 7)
        before, x = x, np.where(open_, np.where(inside, guess, (a + b) / 2), x)
        fx = f(x)
        right = fx > 0
        fb = np.where(right & (kept > 0), fb / 2, np.where(right, fb, fx))
        fa = np.where(~right & (kept < 0), fa / 2, np.where(right, fx, fa))
        a, b = np.where(right, x, a), np.where(right, b, x)
        kept = np.where(right, 1.0, -1.0)
        if (np.minimum(np.abs(x - before), b - a)[open_] <= 1e-11).all():
            break
    return x


def highest(f: Callable[[Array], Array], low: Array, high: Array, steps: int = 48) -> Array:
    """Where functions of one peak are highest: golden section, to about 1e-8 of what lies between low and high.

    Parameters
    ----------
    f : callable
        Array of shape (n,) to array of shape (n,).
    low, high : arrays of shape (n,)
    """
    a, b = np.array(low, float), np.array(high, float)
    c, d = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    fc, fd = f(c), f(d)
    for _ in range(steps):
        left = fc >= fd
        a, b = np.where(left, a, c), np.where(left, d, b)
        new = np.where(left, b - GOLDEN * (b - a), a + GOLDEN * (b - a))
        value = f(new)
        c, d = np.where(left, new, d), np.where(left, c, new)
        fc, fd = np.where(left, value, fd), np.where(left, fc, value)
    ends = np.stack([a, (a + b) / 2, b])
    values = np.stack([f(end) for end in ends])
    best: Array = np.take_along_axis(ends, values.argmax(0)[None], 0)[0]
    return best
