"""Distributions of privacy losses on a grid, composed by Fourier transforms, after Koskela, Jälkö & Honkela 2020.

    from_curve   connect the dots (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, Algorithm 1): the privacy curve passes
                 through the given points of the grid, and between them it is above the given one
    from_atoms   the same of finitely many losses: each splits over its two neighbours on the grid
    compose      convolution. Of the result at most `TAIL` is cut off: above it becomes an infinite loss, below it moves up
    times        a power of the transform, on a window outside of which Chernoff's bound leaves at most `TAIL`

All of it is an upper bound, but for the rounding of Fourier transforms, which counts below a delta of 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import overload

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]

TAIL = 1e-15


@dataclass(frozen=True, eq=False)
class Distribution:
    """Of the losses of one of two neighbours.

    Attributes
    ----------
    grid : float
        Distance of losses.
    least : int
        The least loss, in steps of the grid.
    probabilities : array
        Of that loss and those above it.
    infinite : float
        Probability of an infinite loss.
    """

    grid: float
    least: int
    probabilities: Array
    infinite: float

    @classmethod
    def from_curve(cls, curve: Curve, low: float, high: float, grid: float) -> Distribution:
        """Return the distribution through a privacy curve at the points of the grid around losses from `low` to `high`."""
        least, most = math.floor(low / grid), math.ceil(high / grid)
        at: Array = np.arange(least, most + 1, dtype=np.float64) * grid
        deltas = np.minimum.accumulate(np.clip(curve(at), 0.0, 1.0))
        if len(deltas) == 1:
            return cls(grid, least, 1 - deltas, float(deltas[-1]))
        falls, step = np.diff(deltas), math.expm1(grid)
        inner = (falls[1:] - falls[:-1] * math.exp(grid)) / step
        ends = 1 - deltas[0] + falls[0] / step, falls[-1] / math.expm1(-grid)
        found = np.concatenate([[ends[0]], inner, [ends[1]]])
        return cls(grid, least, np.maximum(found, 0.0), float(deltas[-1]))

    @classmethod
    def from_atoms(cls, losses: Array, probabilities: Array, infinite: float, grid: float) -> Distribution:
        """Return the distribution of these losses, which have these probabilities where the loss is not infinite."""
        below = np.floor(losses / grid).astype(int)
        up = np.expm1(below * grid - losses) / math.expm1(-grid)  # both masses, e^-loss times the probability too, are kept
        found = np.zeros(int(below.max() - below.min()) + 2)
        np.add.at(found, below - below.min(), (1 - infinite) * (1 - up) * probabilities)
        np.add.at(found, below - below.min() + 1, (1 - infinite) * up * probabilities)
        return cls(grid, int(below.min()), found, infinite)

    @property
    def losses(self) -> Array:
        """From the least on, as many as there are probabilities."""
        found: Array = np.arange(self.least, self.least + len(self.probabilities), dtype=np.float64) * self.grid
        return found

    def compose(self, other: Distribution) -> Distribution:
        found = _convolved(self.probabilities, other.probabilities)
        first = _reaching(found, TAIL / 2)
        last = max(len(found) - _reaching(found[::-1], TAIL / 2), first + 1)
        kept = found[first:last].copy()
        kept[0] += found[:first].sum()
        infinite = self.infinite + other.infinite - self.infinite * other.infinite + float(found[last:].sum())
        return Distribution(self.grid, self.least + other.least + first, kept, infinite)

    def times(self, n: int) -> Distribution:
        """Return the distribution of `n` independent ones together."""
        first, last = _window(self.probabilities, n)
        size = scipy.fft.next_fast_len(max(last - first + 1, len(self.probabilities)))
        power = np.real(scipy.fft.ifft(scipy.fft.fft(self.probabilities, size) ** n))
        kept = np.roll(power, -first)[: last - first + 1]
        infinite = TAIL - math.expm1(n * math.log1p(-self.infinite)) if self.infinite < 1 else 1.0
        return Distribution(self.grid, n * self.least + first, kept, infinite)

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Array) -> Array: ...
    def delta(self, epsilon: float | Array) -> float | Array:
        """Return the privacy curve: the expected 1 - e^(epsilon - loss) of losses above epsilon."""
        if isinstance(epsilon, int | float):
            above = self.losses > epsilon
            return self.infinite + float(-np.expm1(epsilon - self.losses[above]) @ self.probabilities[above])
        mass, other = self._above()
        place = np.searchsorted(self.losses, epsilon, side="right")
        return np.asarray(self.infinite + mass[place] - np.exp(np.minimum(epsilon, 700.0)) * other[place])

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon, at least 0, at which the curve is at most `delta`; infinity where there is none."""
        if self.infinite > delta:
            return math.inf
        mass, other = self._above()
        deltas = self.infinite + mass[1:] - np.exp(np.minimum(self.losses, 700.0)) * other[1:]  # at each loss
        over = np.flatnonzero(deltas > delta)
        place = int(over[-1]) + 1 if len(over) else 0  # the first loss from which on the curve is low enough
        left = self.infinite + mass[place] - delta
        if left <= other[place]:
            return 0.0
        if other[place] == 0:  # so large a loss that e^-loss vanishes
            return max(0.0, float(self.losses[min(place, len(self.losses) - 1)]))
        return max(0.0, math.log(left / other[place]))

    def _above(self) -> tuple[Array, Array]:
        """Probability of the losses from each place on, and that of the same outcomes for the other neighbour."""
        with np.errstate(over="ignore"):
            weighed = self.probabilities * np.exp(np.minimum(-self.losses, 700.0))
        return _sums_from(self.probabilities), _sums_from(weighed)


@dataclass(frozen=True, eq=False)
class Losses:
    """Distributions of the loss of a neighbour with a unit more, and of one without; `add` is None where they are the same."""

    remove: Distribution
    add: Distribution | None = None

    def both(self) -> tuple[Distribution, Distribution]:
        return self.remove, self.remove if self.add is None else self.add

    def compose(self, other: Losses) -> Losses:
        remove = self.remove.compose(other.remove)
        if self.add is None and other.add is None:
            return Losses(remove)
        return Losses(remove, self.both()[1].compose(other.both()[1]))

    def times(self, n: int) -> Losses:
        return Losses(self.remove.times(n), None if self.add is None else self.add.times(n))

    def delta(self, epsilon: float) -> float:
        """Return the larger delta of both."""
        return max(one.delta(epsilon) for one in {*self.both()})

    def epsilon(self, delta: float) -> float:
        """Return the larger epsilon of both."""
        return max(one.epsilon(delta) for one in {*self.both()})


def _sums_from(values: Array) -> Array:
    """Sums of the values from each place to the end, the last of nothing."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def _convolved(one: Array, other: Array) -> Array:
    """Sums of two independent losses: their convolution, by Fourier transforms.

    The numbers are those of `scipy.signal.fftconvolve`, which would bring half of SciPy into a station's memory.
    """
    if 1 in (len(one), len(other)):
        return one * other
    n = len(one) + len(other) - 1
    size = scipy.fft.next_fast_len(n, real=True)
    found: Array = scipy.fft.irfft(scipy.fft.rfft(one, size) * scipy.fft.rfft(other, size), size)[:n]
    return found


def _reaching(values: Array, threshold: float) -> int:
    """How many values can be left out from the beginning before their sum exceeds a threshold."""
    over = np.cumsum(values) > threshold
    return int(np.argmax(over)) if over.any() else len(values)


def _window(probabilities: Array, n: int) -> tuple[int, int]:
    """First and last place of the sum of `n` places drawn alike, but for a probability of `TAIL` (Chernoff)."""
    size = len(probabilities)
    first, last, places = 0, (size - 1) * n, np.arange(size)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(probabilities, 0.0))
    for order in (k * sign / size for k in range(1, 21) for sign in (1, -1)):
        bound = (n * float(scipy.special.logsumexp(logs + order * places)) + math.log(2 / TAIL)) / order
        if order > 0:
            last = min(last, math.ceil(bound))
        else:
            first = max(first, math.floor(bound))
    return first, last
