"""Changes of rows. mu and sd are mean and standard deviation, coordinate by coordinate, of the honest rows that liars see.

scaled           c own                                        sign flip: c = -4; replacement: c = n / f
gaussian         N(0, s^2), s in units of the mean of sd
a little enough  mu - z sd, s = floor(n/2) + 1 - f, z = Phi^-1((n - f - s)/(n - f))
inner product    -e mu
min-max          mu - g sd, with the largest g whose distance to any row is at most the largest among them
free rider       zeros, or noise as large as the last change of what was broadcast
sybils           the first liar's row, under every liar's name
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from hedgerow.core.arrays import Array

from .act import Kind, Knows, Moment, RowsAct


@dataclass(frozen=True)
class ScaledRows(RowsAct):
    """Own rows times a factor: -4 flips the sign, n/f replaces the mean by the liars' (Bagdasaryan et al. 2020)."""

    factor: float
    kind: Kind = "lie"
    knows: Knows = "own"

    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """Own rows, scaled."""
        return own * self.factor


@dataclass(frozen=True)
class GaussianRows(RowsAct):
    """Noise in place of rows, its standard deviation in units of the mean spread of the rows that are seen."""

    factor: float = 100.0
    kind: Kind = "lie"
    knows: Knows = "colluders"

    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """Noise; of a single row that is seen, in units of its root mean square."""
        spread = float(seen.std(0).mean()) if len(seen) > 1 else float(np.sqrt(np.mean(seen.astype(float) ** 2)))
        return moment.rng.normal(0.0, self.factor * spread, own.shape)


@dataclass(frozen=True)
class Alie(RowsAct):
    """As far from the mean as the spread of honest rows hides: all liars send mu - z sd.

    Source: Baruch, Baruch and Goldberg, NeurIPS 2019, Algorithm 1.

    Parameters
    ----------
    z : float, optional
        By default the largest z at which honest rows that a majority needs are further away than the liars'.
    """

    z: float | None = None
    kind: Kind = "lie"
    knows: Knows = "colluders"

    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """One row for all."""
        z = hidden_z(moment.asked, len(own)) if self.z is None else self.z
        return np.repeat((seen.mean(0) - z * seen.std(0))[None], len(own), 0)


def hidden_z(n: int, f: int) -> float:
    """z of `Alie` for n parties of which f lie, 0 where that is negative: n = 20 and f = 4 give 0.157."""
    supporters = n // 2 + 1 - f
    share = (n - f - supporters) / max(n - f, 1)
    return max(float(ndtri(share)), 0.0) if 0 < share < 1 else 0.0


@dataclass(frozen=True)
class InnerProduct(RowsAct):
    """All liars send -e mu: a small e hides among rows that differ, a large one turns a mean around.

    Source: Xie, Koyejo and Gupta, UAI 2020, section 3.
    """

    e: float = 0.5
    kind: Kind = "lie"
    knows: Knows = "colluders"

    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """One row for all."""
        return np.repeat((-self.e * seen.mean(0))[None], len(own), 0)


@dataclass(frozen=True)
class MinMax(RowsAct):
    """As far from the mean, against the spread, as some honest row is from another.

    Source: Shejwalkar and Houmansadr, NDSS 2021, section IV-C (their AGR-agnostic attack, with the direction -sd).
    """

    steps: int = 40
    kind: Kind = "lie"
    knows: Knows = "colluders"

    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """One row for all."""
        wide = seen.astype(np.float64)
        mean, away = wide.mean(0), -wide.std(0)
        largest = float(cdist(wide, wide).max())
        low, high = 0.0, 1.0
        while high < 2.0**30 and _furthest(wide, mean + high * away) <= largest and away.any():
            low, high = high, 2 * high
        for _ in range(self.steps):
            middle = (low + high) / 2
            low, high = (middle, high) if _furthest(wide, mean + middle * away) <= largest else (low, middle)
        return np.repeat((mean + low * away)[None], len(own), 0)


def _furthest(rows: Array, point: Array) -> float:
    return math.sqrt(float(((rows - point) ** 2).sum(1).max()))


@dataclass(frozen=True)
class FreeRider(RowsAct):
    """Parties that do not work: zeros, or noise as large as what they were sent.

    Source: Lin, Du and Liu 2019 ("Free-riders in federated learning").

    Parameters
    ----------
    noise : float
        Standard deviation in units of the root mean square of the broadcast; 0 sends zeros.
    """

    noise: float = 0.0
    kind: Kind = "lie"
    knows: Knows = "own"

    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """Zeros, or noise."""
        if not self.noise or moment.released is None:
            return np.zeros_like(own)
        size = float(np.sqrt(np.mean(moment.released.astype(np.float64) ** 2)))
        return moment.rng.normal(0.0, self.noise * size, own.shape)


@dataclass(frozen=True)
class Sybils(RowsAct):
    """One participant under several names: each of them sends what the first one made."""

    kind: Kind = "lie"
    knows: Knows = "colluders"

    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """The first row, for all names."""
        return np.repeat(own[:1], len(own), 0)
