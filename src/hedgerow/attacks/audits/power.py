"""What an audit would see: the probability that a law test turns red on a fault of a given size, in closed form.

A fault leaves noise of `noise` times the accounted standard deviation and canaries of `length` times their bound:

    canary   P[T >= t] for the noncentral t at the shift  length / noise * weight,  t exceeded by right code with the share
    noise    P[chi^2 <= c / noise^2],  c undercut by right code with the share; length is fitted, so it plays no part
    scale    P[|Z + sqrt(releases) * variation * known| >= z] for a division by a number that varies

The power of the whole is at least that of its best part, which is what is printed. Where noise is not normal the tests are
bounds; the power is then that of normal sums against them, an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from . import tails
from .law_parts import LEVEL, checked_level, divided, shares
from .noise_laws import NoiseLaw
from .sums import LawSums

_MOST_CANARIES = 10**7


@displayed
@dataclass(frozen=True)
class AuditPower:
    """Which faults a law test of so many canaries would see.

    Attributes
    ----------
    canaries : int
        In and out together.
    level : float
        Of the whole test.
    share : float
        Of each of its parts.
    weight : float
        The shift of the noncentral t of right code: the accounted mu over the standard error of its estimate.
    freedom : float
        Degrees of freedom of the estimate of the noise.
    numbers : float
        The same of the noise in all directions of all releases; 0 where nothing but scores is kept.
    kurtosis : float
        Of noise that is not normal; 0 of normal noise.
    division : float
        How far, in standard deviations of the noise, releases would have moved along the known sum, had each been divided by
        the number of those who took part and multiplied by the mean of that number; 0 where it is not known.
    known : float
        Length of the known sums of all releases together, in the same unit.
    """

    canaries: int
    level: float
    share: float
    weight: float
    freedom: float
    numbers: float = 0.0
    kurtosis: float = 0.0
    division: float = 0.0
    known: float = 0.0

    def against(self, noise: float = 1.0, length: float = 1.0) -> float:
        """Probability of a red light at a fault.

        Parameters
        ----------
        noise : float
            Standard deviation over the accounted one; 0.5 for half of it.
        length : float
            Of a canary over the bound: 3 without a clip where canaries are sent 3 times as long, sqrt(layers) where each layer
            is clipped by itself and one is charged.
        """
        return max(self.by_canaries(noise, length), self.by_noise(noise))

    def by_canaries(self, noise: float = 1.0, length: float = 1.0) -> float:
        """The same of the part that looks at the canaries."""
        if self.weight <= 0 or self.freedom < 1:
            return 0.0
        if self.kurtosis:
            least = 1 + (max(3.0, self.kurtosis) / self.share) ** 0.25 * max(noise, 1.0) / self.weight
            return float(scipy.special.ndtr((length - least) * self.weight / noise))
        t = tails.t_quantile(self.share, self.weight, self.freedom)
        return tails.t_above(t, self.weight * length / noise, self.freedom)

    def by_noise(self, noise: float = 1.0) -> float:
        """The same of the part that looks at what is left in all directions."""
        if not self.numbers:
            return 0.0
        if self.kurtosis:
            most = 1 - math.sqrt(-2 * self.kurtosis * math.log(self.share) / self.numbers)
            spread = math.sqrt((self.kurtosis - 1) / self.numbers)
            return float(scipy.special.ndtr((most / noise**2 - 1) / spread))
        least = float(scipy.special.chdtri(self.numbers, 1 - self.share))
        return tails.chi_below(least / noise**2, self.numbers)

    def by_scale(self, releases: int, variation: float, known: float) -> float:
        """The same of the part that looks along the known sum, where releases are divided by the number of those who took part.

        Parameters
        ----------
        releases : int
            How many.
        variation : float
            Standard deviation of that number over its mean: sqrt((1 - q) / (q N)) of a Poisson sample.
        known : float
            Length of the known sum over the accounted standard deviation of the noise.
        """
        return self._by_slope(math.sqrt(releases) * variation * known)

    def by_division(self) -> float:
        """The same of the releases that there were, had each been divided by how many took part; 0 if that never changed."""
        return self._by_slope(self.division) if self.division else 0.0

    def by_scaling(self, factor: float) -> float:
        """The same, had each release been multiplied by one factor, canaries and all."""
        return self._by_slope(abs(factor - 1) * self.known) if self.known else 0.0

    def _by_slope(self, shift: float) -> float:
        z = -float(scipy.special.ndtri(self.share / 6))  # one of three ways to look, on two sides
        if self.kurtosis:
            z = (3 * max(3.0, self.kurtosis) / self.share) ** 0.25
        return float(scipy.special.ndtr(shift - z) + scipy.special.ndtr(-shift - z))

    def canaries_for(self, power: float = 0.95, noise: float = 0.5, length: float = 1.0) -> int:
        """How many canaries see a fault with this power, by the part that looks at them, all else as it is.

        Raises
        ------
        SettingsInvalid (HR-511)
            A fault that does not make canaries more visible, or one that ten million do not see.
        """
        low, high = 0, 2
        while self._of(high).by_canaries(noise, length) < power:
            low, high = high, 2 * high
            if length <= noise or high > _MOST_CANARIES:
                raise SettingsInvalid(
                    f"{_MOST_CANARIES:,} canaries would not see noise of {noise:g} and a length of {length:g} so surely.",
                    remedy="Name a fault that leaks more than what was charged, or audit at a larger epsilon.",
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._of(middle).by_canaries(noise, length) >= power else (middle, high)
        return high

    def _of(self, canaries: int) -> AuditPower:
        times = canaries / self.canaries
        freedom = self.freedom if self.numbers else max(1.0, (self.freedom + 1) * times - 1)
        return replace(self, canaries=canaries, weight=self.weight * math.sqrt(times), freedom=freedom)

    def __str__(self) -> str:
        told = [f"{name} {self.against(*fault):.2f}" for name, fault in FAULTS.items()]
        return f"{self.canaries} canaries at level {self.level:g} would see {'; '.join(told)}"


FAULTS = {
    "half the noise": (0.5, 1.0),
    "noise over root 2": (0.5**0.5, 1.0),
    "no clip of canaries 3 times as long": (1.0, 3.0),
    "a clip of each of 4 layers, charged once": (1.0, 2.0),
}
"""Noise and length of the faults that are printed."""


def power_of_scores(n_in: int, n_out: int, mu: float, level: float = LEVEL) -> AuditPower:
    """Return the power of `law_of_scores`.

    Parameters
    ----------
    n_in, n_out : int
        Canaries; at least 1 in and 2 out.
    mu, level : float
        As of `law_of_scores`.

    Raises
    ------
    SettingsInvalid (HR-511)
        Too few canaries, or a mu or level out of range.
    """
    checked_level(mu, level)
    if n_in < 1 or n_out < 2:
        raise SettingsInvalid(f"{n_in} canaries in and {n_out} out.", remedy="Plan some hundred, each in by a fair coin.")
    return AuditPower(n_in + n_out, level, level, mu * (1 / n_in + 1 / n_out) ** -0.5, n_out - 1)


def power_of_law(
    canaries: int, laws: Sequence[NoiseLaw], directions: int, *, rate: float | None = None, level: float = LEVEL
) -> AuditPower:
    """Return the power of `law_test`, where canaries have the expected number of releases.

    Parameters
    ----------
    canaries : int
        Half of them in all releases, by coins; or each in a release with probability `rate`.
    laws : sequence of NoiseLaw
        Normal ones, one of each release.
    directions : int
        Numbers of a release.
    rate, level : float
        As of `law_test`.

    Raises
    ------
    SettingsInvalid (HR-511)
        No canaries or releases, noise that is not normal, or a rate or level out of range.
    """
    if canaries < 1 or not laws or not all(law.normal for law in laws) or not 0 < (rate or 0.5) <= 1:
        raise SettingsInvalid(
            f"no power is known for {canaries} canaries, {len(laws)} releases, rate {rate}, or noise that is not normal.",
            remedy="Plan canaries in at least one release of Gaussian noise.",
        )
    information = canaries * (rate or 0.5) * math.fsum(law.deviation**-2 for law in laws)
    checked_level(information, level)
    share = level / (3 + 2 * (len(laws) > 1) + 3 * (rate is not None))
    n = len(laws)
    return AuditPower(canaries, level, share, math.sqrt(information), directions * n - 1, directions * n - 1)


def power_of_sums(sums: LawSums, level: float = LEVEL) -> AuditPower:
    """Return the power of `law_test` with the canaries and releases that are in these sums.

    Parameters
    ----------
    sums : LawSums
    level : float
        As of `law_test`.
    """
    numbers = max(0, sums.directions - 1)
    weight = math.sqrt(max(0.0, float(sums.moments[1, 1])))
    slope = divided(sums)
    return AuditPower(
        canaries=sums.canaries,
        level=level,
        share=level / shares(sums),
        weight=weight,
        freedom=numbers,
        numbers=numbers,
        kurtosis=0.0 if sums.normal else sums.kurtosis,
        division=0.0 if slope is None else float(np.linalg.norm(slope)),
        known=float(np.linalg.norm(sums.known)) if sums.known else 0.0,
    )
