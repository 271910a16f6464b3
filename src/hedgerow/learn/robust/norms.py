"""Rules that hold rows to a length: the norm bound, and the norm bound with noise.

    norm          mean_i r_i min(1, C / |r_i|)
    norm + noise  the same, and in each coordinate Gaussian noise of standard deviation z C / n

Needs  : nothing of f: a row that lies moves the result by 2 C / n at most, and f of them by 2 f C / n.
Source : Sun et al. 2019, sections 3.2 and 3.3.

C is a public number. Where C is "median", it is the median of this round's norms, which is lawful where the server gathers all
rows anyway. The noise is a defence against lies. It is charged as no privacy, since the server has seen every row; an epsilon
comes from a `mechanism` of the channel.
"""

from __future__ import annotations

from dataclasses import dataclass

from .centres import norms_of, shortened, weighted_sum
from .positive import Radius, lawful_radius, positive
from .rule import Array, Beside, Rule


def clipped_mean(rows: Array, radius: Radius) -> tuple[Array, float]:
    """The mean of rows clipped to a radius, in double precision, and that radius as a number."""
    share, limit = shortened(norms_of(rows), radius)
    return weighted_sum(share / len(rows), rows), limit


@dataclass(frozen=True)
class NormBound(Rule):
    """The mean of rows clipped to a public radius (Sun et al. 2019, section 3.2).

    Attributes
    ----------
    radius : float or "median"
        In units of a row; "median" is that of this round's norms.
    """

    radius: Radius

    def __post_init__(self) -> None:
        lawful_radius(self.radius)

    @property
    def name(self) -> str:
        return "norm"

    def combine(self, rows: Array, beside: Beside) -> Array:
        return clipped_mean(rows, self.radius)[0].astype(rows.dtype)


@dataclass(frozen=True)
class NormNoise(Rule):
    """The mean of rows clipped to a public radius, with Gaussian noise (Sun et al. 2019, section 3.3); without an epsilon.

    Attributes
    ----------
    radius : float or "median"
        In units of a row; "median" is that of this round's norms.
    noise_multiplier : float
        Standard deviation of the noise in the sum, over the radius.
    """

    radius: Radius
    noise_multiplier: float

    def __post_init__(self) -> None:
        lawful_radius(self.radius)
        positive(noise_multiplier=self.noise_multiplier)

    @property
    def name(self) -> str:
        return "norm-noise"

    def combine(self, rows: Array, beside: Beside) -> Array:
        mean, limit = clipped_mean(rows, self.radius)
        noise = beside.rng.standard_normal(len(mean)) * (self.noise_multiplier * limit / len(rows))
        return (mean + noise).astype(rows.dtype)
