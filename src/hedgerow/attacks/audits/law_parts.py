"""The parts of a law test, each with its probability under right code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from . import tails
from .sums import LawSums

Light = Literal["green", "amber", "red"]

LEVEL = 1e-3
"""Of a test that runs every night on many studies."""

ROUNDING = 1e-6
"""Of a canary's length, over its bound, that is taken for rounding."""


@dataclass(frozen=True)
class LawPart:
    """One of the things that were held against what was charged.

    Attributes
    ----------
    name : str
        canary, noise, scale, fresh, repeated, numbers, within, rate, releases, canaries, alone or ledger.
    says : str
        What was found.
    leaks, spares : float
        Probability, of right code, to look as much like a leak, and as much like more noise than was charged.
    share : float
        Of the level; 0 of a part that follows no chance.
    """

    name: str
    says: str
    leaks: float
    spares: float
    share: float

    @property
    def light(self) -> Light:
        return "red" if self.leaks <= self.share else "amber" if self.spares <= self.share else "green"

    def __str__(self) -> str:
        return f"{self.name}: {self.says}: {self.light}"


def checked_level(mu: float, level: float) -> None:
    """Refuse what no test can be made of."""
    if not 0 < mu < math.inf:
        raise SettingsInvalid(
            f"an accounted mu of {mu!r}, or canaries that were never in a release.",
            remedy="Audit a run with noise, and let about half of the canaries in.",
        )
    if not 0 < level < 1:
        raise SettingsInvalid(f"level {level!r}.", remedy="Give a probability; 1e-3 is usual.")


def shares(sums: LawSums) -> int:
    """Over how many parts the level is divided."""
    again = any(len(one) > 1 for one in sums.sketches.values())
    return 2 + bool(sums.known) + bool(sums.paired) + 3 * bool(sums.draws) + 2 * bool(sums.squares) + again


def canary(mu: float, accounted: float, weight: float, freedom: int, share: float) -> tuple[LawPart, float, float]:
    """The part, and the interval of mu; `weight` times mu is the shift of the t."""
    t = mu * weight
    low, high = (end / weight for end in tails.shifts(t, freedom, share))
    leaks, spares = tails.t_above(t, accounted * weight, freedom), tails.t_below(t, accounted * weight, freedom)
    return LawPart("canary", f"{mu / accounted:.2f} of the accounted mu", leaks, spares, share), low, high


def noise(squares: float, freedom: int, share: float) -> tuple[LawPart, tuple[float, float]]:
    """The part, and the interval of the deviation of normal noise."""
    low, high = (math.sqrt(squares / float(scipy.special.chdtri(freedom, p))) for p in (share, 1 - share))
    says = f"{math.sqrt(squares / freedom):.3f} of the accounted standard deviation"
    return LawPart("noise", says, tails.chi_below(squares, freedom), tails.chi_above(squares, freedom), share), (low, high)


def any_noise(left: float, numbers: int, kurtosis: float, share: float) -> tuple[LawPart, tuple[float, float]]:
    """The same of noise with this kurtosis, of whatever law."""
    variance = (kurtosis - 1) / numbers
    seen, wide = left / numbers, math.sqrt(variance / share)
    leaks = tails.squares_below(seen, numbers, kurtosis)
    ends = math.sqrt(seen / (1 + wide)), math.sqrt(seen / (1 - wide)) if wide < 1 else math.inf
    says = f"{math.sqrt(seen):.3f} of the accounted standard deviation"
    return LawPart("noise", says, leaks, tails.cantelli(seen - 1, variance), share), ends


def any_canary(
    theta: float, error: float, kurtosis: float, noise: tuple[float, float], share: float
) -> tuple[LawPart, float, float]:
    """The part, and the interval of mu over the accounted one, of noise with this kurtosis."""
    wide = error * (max(3.0, kurtosis) / share) ** 0.25
    found = LawPart(
        "canary",
        f"{theta:.2f} of the charged bound",
        tails.fourth(theta - 1, error**2, kurtosis),
        tails.fourth(1 - theta, error**2, kurtosis),
        share,
    )
    return found, (theta - wide) / noise[1], (theta + wide) / noise[0] if noise[0] > 0 else math.inf


def divided(sums: LawSums) -> Array | None:
    """How far each release would have moved along the known sum, had it been divided by the number of those who took part.

    None where that number is not known, or always the same.
    """
    known, sizes = np.array(sums.known), np.array(sums.took_part)
    if not len(sizes) or (sizes <= 0).any() or sizes.std() == 0:
        return None
    return np.asarray(known * (sizes.mean() / sizes - 1))


def scale(sums: LawSums, noise: float, share: float) -> list[LawPart]:
    """What is left along the known sum: its squares, its slope on the known length, and on what a division would make of it.

    It is held against the accounted noise, and against the noise that was found where that is larger.
    """
    if not sums.known:
        return []
    along, known, division = np.array(sums.along), np.array(sums.known), divided(sums)
    slopes = [known] if division is None else [known, division]
    along, n = along / max(1.0, noise), len(along)
    squares = float(along @ along)
    z = [abs(float(along @ slope)) / float(np.linalg.norm(slope)) for slope in slopes]
    if sums.normal:
        found = [tails.chi_above(squares, n), *(2 * float(scipy.special.ndtr(-one)) for one in z)]
    else:
        found = [
            tails.cantelli(squares - n, n * (max(3.0, sums.kurtosis) - 1)),
            *(tails.fourth(one, 1.0, sums.kurtosis) for one in z),
        ]
    says = f"{math.sqrt(squares / n):.2f} standard deviations along what is known, of 1"
    return [LawPart("scale", says, min(1.0, len(found) * min(found)), 1.0, share)]


def fresh(sums: LawSums, theta: float, share: float) -> list[LawPart]:
    """Correlation of disjoint pairs of releases that follow each other: exactly that of independent normal numbers.

    What canaries should have added is taken away, which makes it exact, and also what they did add, so that canaries that are
    too long are not taken for noise that is used twice: it is red where both correlations are too large.
    """
    if not sums.paired:
        return []
    r, far = max((_correlation(sums, part) for part in {1.0, theta}), key=lambda one: one[1])
    return [LawPart("fresh", f"correlation {r:.3f} with the release before", far, 1.0, share)]


def _correlation(sums: LawSums, theta: float) -> tuple[float, float]:
    less: Array = np.array([1.0, -theta])
    both, first, second = (float(less @ one @ less) for one in sums.pairs)
    r = both / math.sqrt(first * second) if first > 0 and second > 0 else 1.0
    n = sums.paired - 1
    if sums.normal:
        return r, 2 * float(scipy.special.stdtr(n, -abs(r) * math.sqrt(n / max(1 - r * r, 1e-300)))) if n else 1.0
    return r, min(1.0, 1 / ((n + 1) * r * r)) if r else 1.0


def alone(sums: LawSums) -> list[LawPart]:
    """What a canary adds that is asked about alone, before any noise: it is within its bound, or it is not."""
    if not sums.longest:
        return []
    beyond = sums.longest > 1 + ROUNDING
    return [LawPart("alone", f"{sums.longest:.2f} of the bound, asked about alone", 0.0 if beyond else 1.0, 1.0, 0.0)]


def ledger(sums: LawSums) -> list[LawPart]:
    """Whether each release is in the ledger as it was made."""
    if not sums.charged:
        return []
    says = "not charged: " + ", ".join(sums.uncharged) if sums.uncharged else "every release is charged as it was made"
    return [LawPart("ledger", says, 0.0 if sums.uncharged else 1.0, 1.0, 0.0)]
