"""Continuous noise from secret bytes, and how far floating-point numbers are from it.

Objective perturbation needs noise with a density: on a grid, which minimisers can come out would tell which records there are.
So noise is drawn here as floating-point numbers, each within a stated distance of an ideal draw, and that distance is part of
the tolerance that noise on a grid covers afterwards (`hedgerow.stats.private.objective`).

    normal          |z| = -Phi^-1(u / 2), and a sign       u uniform, of 128 bits
    by its length   density proportional to exp(-|b| / scale):  a length Gamma(d), times a uniform direction

A draw fails to be that close with a chance below 2^-100, as the tables of the noise on grids do.

Source : Chaudhuri, Monteleoni & Sarwate 2011, section 3 (the law by its length); Mironov 2012 for why floats need the care.
"""

from __future__ import annotations

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy

CLOSE = 2.0**-44
"""A number of unit scale is closer than this to the ideal one; of noise by its length, each of d numbers than d times this."""


def uniform_numbers(size: int, entropy: Entropy) -> Array:
    """Return numbers in (0, 1) with 128 bits, rounded to 53 significant ones; shape (size,)."""
    words = np.frombuffer(entropy(16 * size), np.uint64).reshape(2, size).astype(np.float64)
    found: Array = np.clip((words[0] + (words[1] + 0.5) * 2.0**-64) * 2.0**-64, 2.0**-129, 1 - 2.0**-53)
    return found


def normal_numbers(size: int, entropy: Entropy) -> Array:
    """Return independent standard normal numbers, shape (size,)."""
    positive = np.frombuffer(entropy(size), np.uint8) & 1
    magnitude = -scipy.special.ndtri(uniform_numbers(size, entropy) / 2)
    return np.asarray(np.where(positive, magnitude, -magnitude))


def noise_by_length(scale: float, size: int, entropy: Entropy) -> Array:
    """Return noise with a density proportional to exp(-|b| / scale), shape (size,).

    A shift by a vector of length s changes the density by a factor of exp(s / scale) at most. The same cannot be said of
    independent Laplace numbers of this scale, whose factor follows from the l1 length, up to sqrt(size) times longer.
    """
    length = -np.log(uniform_numbers(size, entropy)).sum()
    direction = normal_numbers(size, entropy)
    found: Array = scale * length * (direction / np.linalg.norm(direction))
    return found
