"""A clip that follows a quantile of the lengths of updates, asked for in the same sum as the update.

    party k:   u_k   <- local SGD from w                                          not clipped yet
               v_k   <- ( a u_k min(1/S, 1/|u_k|),  b (2 [|u_k| <= S] - 1) )      |v_k| <= 1, since a^2 + b^2 = 1
    server:    mean  <- S (sum of v_k's first part + noise) / (a m)               m: expected size of the cohort, public
               below <- ((sum of v_k's last number + noise) / (b m) + 1) / 2      share of updates that the clip left whole
               S     <- S exp(-step (below - quantile))

A contribution is measured in units of the clip, so its bound is the same in each round, l2(1), and one event covers both
parts. With noise of multiplier z on v_k the update has z_update = z / a, the counted half-units have 2 sigma = z / b, and

    z_update = (z^-2 - (2 sigma)^-2)^-1/2

follows from a^2 + b^2 = 1. It is nothing that a caller could get wrong.

Source: Andrew et al., NeurIPS 2021, Algorithm 1 and Theorem 1. Differs: the noise of the count is at most as large as they
advise, and larger in small cohorts, where it would take more than a tenth of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.bound import l2
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.level import known_level

from ..descent import Solver, descend
from ..models import Model
from ..settings import Weighting

UNIT = l2(1.0)
"""The bound of a contribution in units of the clip."""

COUNTS = 20.0
"""Parties of an expected cohort to one standard deviation of the count's noise, as the source advises."""

MOST_FOR_COUNT = 0.1
"""At most this share of a release goes into the count: b^2 above."""


@dataclass(frozen=True)
class Split:
    """How a release is divided between the update and the count of updates below the clip.

    Attributes
    ----------
    update, below : float
        a and b above; `below` is 0 where the clip is fixed.
    """

    update: float = 1.0
    below: float = 0.0

    @classmethod
    def of(cls, noise: float, cohort: float, count_noise: float | None = None) -> Split:
        """Divide a release.

        Parameters
        ----------
        noise : float
            Standard deviation of the noise on each number of a contribution of length one; 0 without a mechanism.
        cohort : float
            Expected size of the cohort.
        count_noise : float, optional
            Standard deviation of the noise of the count, in parties; a twentieth of the cohort by default.
        """
        if noise == 0:
            return cls(1.0, 1.0)  # exact sums need not share anything
        if math.isnan(noise):
            raise SettingsInvalid(
                "the clip follows a quantile, and the noise on its count is not known.",
                remedy="With this mechanism keep the clip fixed: quantile = None.",
            )
        b = noise / (2 * (cohort / COUNTS if count_noise is None else count_noise))
        if count_noise is None:
            b = min(b, math.sqrt(MOST_FOR_COUNT))
        if not 0 < b < 1:
            raise SettingsInvalid(
                f"count_noise is {count_noise}, and the mechanism's noise alone is {noise:g}.",
                remedy=f"The count would take the whole release: choose more than {noise / 2:g} parties.",
            )
        return cls(math.sqrt(1 - b**2), b)

    def multiplier(self, noise_multiplier: float) -> float:
        """The noise multiplier that the update has by itself: z_update above."""
        return noise_multiplier / self.update


@local(stackable=True)
def in_units_of_the_clip(
    broadcast: Mapping[str, np.ndarray],
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    split: Split,
) -> dict[str, np.ndarray]:
    """Train from `w`, shape (d,); return `update`, (d,), clipped and divided by the clip, and `below`, (1,), or nothing of it.

    Together their length is at most one, or they are not finite, and a mechanism counts them as zero.
    """
    u = descend(broadcast["w"], party, rng, model=model, solver=solver).change
    return joined(u, float(broadcast["clip"][0]), split)


def joined(u: np.ndarray, clip: float, split: Split) -> dict[str, np.ndarray]:
    """What a party sends of updates of shape (d,), or (n_parties, d)."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt((u.astype(np.float64) ** 2).sum(-1, keepdims=True))
        made = {"update": (u * (split.update / np.maximum(length, clip))).astype(np.float32)}
    if split.below:
        made["below"] = np.where(np.isfinite(length), split.below * np.where(length <= clip, 1.0, -1.0), np.nan)
    return made


@dataclass(frozen=True)
class Released:
    """What the server reads out of one noisy total.

    Attributes
    ----------
    mean : array of shape (d,)
        Mean clipped update of the cohort.
    below : float
        Share of updates that were no longer than the clip; nan where it was not asked for.
    noise : float
        Standard deviation of the noise in each number of `mean`.
    """

    mean: np.ndarray
    below: float
    noise: float


def read(total: Mapping[str, np.ndarray], clip: float, split: Split, cohort: Federation, noise: float) -> Released:
    """Bring a total back to the units of updates, by public numbers only."""
    m = cohort.expected_size
    below = (float(total["below"][0]) / (split.below * m) + 1) / 2 if "below" in total else math.nan
    unit = clip / (split.update * m)
    return Released((total["update"] * unit).astype(np.float32), below, noise * unit)


def followed(clip: float, below: float, quantile: float, step: float) -> float:
    """The next clip: larger where fewer updates than `quantile` passed whole."""
    return clip * math.exp(-step * (below - quantile))


def noise_now(federation: Federation, size: int) -> float:
    """Standard deviation of the noise on each number of the next contribution of length one.

    0 without a mechanism; nan for one whose noise differs from question to question in a way of its own, such as a tree.
    """
    found = known_level(federation, UNIT, "update", size)
    return math.nan if found is None else found
