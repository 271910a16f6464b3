"""Whether what a run released has the law that its ledger charged: the length of canaries, and the noise, against each other.

Of each release y is what was released less what is known, over the standard deviation that was charged, and g what of it the
canaries are that are in. y is theta g and normal noise of standard deviation s, both 1 as charged. Then

    canary   t = theta^ sqrt(sum g^2) / s^  is noncentral t with the shift (theta / s) sqrt(sum g^2), exactly. Its interval is
             one of mu = theta / s times the accounted mu. Red where it lies above: too little noise, or canaries that are
             longer than the bound that was charged
    noise    squares of what is left, y - theta^ g, are s^2 chi^2. Red where s is below 1, "more noise than charged" above
    scale    the same in the one direction of the known sum, also against its length and against the number of those who took
             part. Red where it is large: the release moves with the data in a way that nobody charged, as where it is divided
             by that number
    fresh    correlation of what is left in one release and the next one. Red where it is not 0: noise that is used twice
    repeated    the same with every other release, by 64 weighted sums of each
    numbers, within    where all numbers are given: the least noise of a number or a block, and noise that is twice in a release
    rate, releases, canaries    of a sampled run: how many took part, and whether they were drawn one by one
    alone    where canaries were asked about alone: red where one adds more than its bound. It follows no chance
    ledger   where a ledger is given: red where a release is not in it with its sampling and its event. Nor does it

One level is divided over the parts (Bonferroni); each is one-sided where more than charged is harmless. A run of right code is
red with at most that probability, and says "more noise than charged" with at most that probability. Only sums over releases
are needed (`sums`), so no row is kept.

Noise that is not normal (Laplace, few grid steps) is held against bounds that need its variance and kurtosis alone (`tails`).
They are wider, never wrong. "Exactly" holds where g does not follow earlier noise; in training it does, by the model.

Source: the design is ours. Exact noncentral t: Johnson & Kotz, Continuous Univariate Distributions 2, chapter 31.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from . import law_parts as parts
from .law_parts import LEVEL, LawPart, Light, checked_level
from .noise_parts import noise_parts
from .power import AuditPower, power_of_scores, power_of_sums
from .sampled import sampling_parts
from .sightings import Sighting
from .sums import LawSums


@displayed
@dataclass(frozen=True)
class LawTest:
    """What canaries and the rest of the releases say of the law that was charged.

    Attributes
    ----------
    mu, low, high : float
        Distance of a canary's two worlds over the noise, and the interval of it, each end at the part's share of the level.
    accounted : float
        What was charged, in the same unit.
    of : {"run", "release"}
        Whether it is that of all releases together, where every canary is in all of them or in none, or of one.
    noise, noise_low, noise_high : float
        Standard deviation of the noise over the accounted one, and its interval; not a number where only scores were given.
    length : float
        Of canaries over their bound; not a number where only scores were given.
    parts : tuple of LawPart
        Everything that was held against the ledger.
    level : float
        Probability, at most, of a red light on right code.
    canaries, releases : int
        How many.
    power : AuditPower
        What a test of these canaries and releases would see.
    """

    mu: float
    low: float
    high: float
    accounted: float
    of: Literal["run", "release"]
    noise: float
    noise_low: float
    noise_high: float
    parts: tuple[LawPart, ...]
    level: float
    canaries: int
    releases: int
    length: float
    power: AuditPower

    @property
    def light(self) -> Light:
        """Red where one part is, else amber where one part says "more noise than charged"."""
        lights = {part.light for part in self.parts}
        return "red" if "red" in lights else "amber" if "amber" in lights else "green"

    @property
    def by_chance(self) -> bool:
        """Whether a part is red that compares with what chance allows; `alone` does not."""
        return any(part.light == "red" and part.share > 0 for part in self.parts)

    @property
    def sureness(self) -> float:
        """Probability with which the interval of mu holds the true one."""
        return 1 - 2 * self.parts[0].share

    def sentence(self) -> str:
        """What the light means, in a line."""
        if self.light == "green":
            return "the noise and the clip are what the ledger says"
        found = "; ".join(f"{part.name}: {part.says}" for part in self.parts if part.light == self.light)
        return f"more leaks than the ledger says ({found})" if self.light == "red" else f"more noise than charged ({found})"

    def __str__(self) -> str:
        what = "mu" if self.of == "run" else "mu of one release"
        return (
            f"{what} {self.mu:.3g}, {self.sureness:.4g} interval {self.low:.3g} to {self.high:.3g}, accounted "
            f"{self.accounted:.3g}: {self.light.upper()} at level {self.level:g}, {self.sentence()}"
        )


def law_of_scores(scores_in: Array, scores_out: Array, mu: float, level: float = LEVEL) -> LawTest:
    """Hold scores of canaries against the accounted mu, where nothing but scores was kept.

    mu^ = (mean in - mean out) / sd out, with the exact interval of the noncentral t.

    Parameters
    ----------
    scores_in, scores_out : arrays of shape (n,)
        Decorrelated ones, as `CanaryDirections.scores` gives them of the sum of all releases less what is known: normal noise
        of one standard deviation, independent of one another, about two means.
    mu : float
        As accounted: sqrt(releases) / noise multiplier, without sampling.
    level : float
        Probability, at most, of a red light on right code.

    Raises
    ------
    SettingsInvalid (HR-511)
        Fewer than 2 canaries that are out or none that is in, scores that are no numbers, a mu that is not above 0, or a level
        outside (0, 1).
    """
    inside, outside = np.ravel(scores_in).astype(float), np.ravel(scores_out).astype(float)
    n_in, n_out = len(inside), len(outside)
    if n_in < 1 or n_out < 2 or np.isnan(inside).any() or np.isnan(outside).any():
        raise SettingsInvalid(
            f"{n_in} canaries in and {n_out} out, or scores that are no numbers.", remedy="Score some hundred canaries of each."
        )
    checked_level(mu, level)
    weight = (1 / n_in + 1 / n_out) ** -0.5
    ratio = float((inside.mean() - outside.mean()) / outside.std(ddof=1))
    part, low, high = parts.canary(ratio, mu, weight, n_out - 1, level)
    nan, power = math.nan, power_of_scores(n_in, n_out, mu, level)
    return LawTest(ratio, low, high, mu, "run", nan, nan, nan, (part,), level, n_in + n_out, 1, nan, power)


def law_test(
    seen: Sequence[Sighting] | LawSums, *, rate: float | None = None, level: float = LEVEL, accounted: float | None = None
) -> LawTest:
    """Hold what releases say of canaries, and what is left in them, against what was charged.

    Parameters
    ----------
    seen : sequence of Sighting, or LawSums
        One of each release, in their order, as `CanaryDirections.seen` gives them, of the same canaries. Their directions may
        differ from release to release. Or their sums, of one run or of several.
    rate : float, optional
        The accounted probability that a canary is in a release, where each is drawn by itself. Leave it out where everybody
        takes part, where canaries are in all releases or in none, or where sums have it.
    level : float
        Probability, at most, of a red light on right code.
    accounted : float, optional
        mu of all releases, by the ledger, in whose unit mu is told. By default that of the laws of noise, without sampling.

    Raises
    ------
    SettingsInvalid (HR-511)
        No sightings, sightings of other canaries, canaries that are never present, or a level or rate out of range.
    """
    if rate is not None and not 0 < rate < 1:
        raise SettingsInvalid(f"a sampling rate of {rate!r}.", remedy="Leave it out where everybody takes part.")
    sums = seen if isinstance(seen, LawSums) else LawSums.of(seen, rate)
    if not sums.releases:
        raise SettingsInvalid("0 sightings.", remedy="Give one for each release.")
    (yy, yg), (_, gg) = sums.moments.tolist()
    mu = accounted if accounted is not None else math.sqrt(sums.information / (1 if sums.whole else sums.releases))
    checked_level(gg if accounted is None else mu, level)
    share = level / parts.shares(sums)
    theta = yg / gg if gg > 0 else math.nan
    squares, freedom = (max(0.0, yy - theta * yg), sums.directions - 1) if gg > 0 else (yy, sums.directions)
    blind = LawPart("canary", "no canary was in a release", 1.0, 1.0, share), 0.0, math.inf
    spread = math.sqrt(squares / freedom) if freedom else math.nan
    if sums.normal:
        noise, ends = parts.noise(squares, freedom, share) if freedom else _unseen(share)
        canary, low, high = (
            parts.canary(theta / spread * mu, mu, math.sqrt(gg) / mu, freedom, share) if freedom and gg > 0 else blind
        )
    else:
        left = yy - 2 * yg + gg
        noise, ends = parts.any_noise(left, sums.directions, sums.kurtosis, share)
        spread = math.sqrt(left / sums.directions)
        error = max(spread, 1.0) / math.sqrt(gg) if gg > 0 else math.inf
        canary, low, high = parts.any_canary(theta, error, sums.kurtosis, ends, share) if gg > 0 else blind
        low, high = low * mu, high * mu
    held = (
        canary,
        noise,
        *parts.scale(sums, ends[1], share),
        *parts.fresh(sums, theta if gg > 0 else 1.0, share),
        *noise_parts(sums, theta if gg > 0 else 1.0, ends[1], share),
        *sampling_parts(sums.draws, share),
        *parts.alone(sums),
        *parts.ledger(sums),
    )
    return LawTest(
        theta / spread * mu, low, high, mu, "run" if sums.whole or accounted is not None else "release", spread, *ends,
        held, level, sums.canaries, sums.releases, theta, power_of_sums(sums, level),
    )  # fmt: skip


def _unseen(share: float) -> tuple[LawPart, tuple[float, float]]:
    return LawPart("noise", "no number is left besides the canaries'", 1.0, 1.0, share), (0.0, math.inf)
