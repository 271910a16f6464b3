"""True privacy curves of sums of one number with Gaussian noise, by adding up all cohorts and integrating.

    world     from party to its records, each a number
    release   the clipped total of the cohort that was drawn, plus noise of z radii
    law       a mixture of normals, one for each cohort that can be drawn
    delta     of two worlds: the integral of max(0, p - e^epsilon q), the larger of both directions

Nothing here knows of accountants: it is what they are compared with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.events import Sampling, Unit

World = Mapping[str, Sequence[float]]

FINE = 400
"""Points to one deviation of the noise."""

FAR = 9.0
"""Deviations beyond which nothing counts."""


def laws(world: World, sampling: Sampling, unit: Unit, radius: float = 1.0) -> Iterator[tuple[float, float]]:
    """Give each cohort's probability and its total.

    Parameters
    ----------
    sampling : Sampling
        Of a schedule, or a part, the first `size` parties: who they are is public.
    unit : {"record", "party"}
        A party's sum is clipped where it is the unit.
    """

    def total(records: Sequence[float]) -> float:
        found = math.fsum(records)
        return found if unit == "record" else math.copysign(min(abs(found), radius), found)

    totals = [total(records) for records in world.values()]
    q = sampling.rate
    if sampling.kind == "all":
        yield 1.0, math.fsum(totals)
    elif sampling.kind in ("given", "part", "dealt"):
        yield 1.0, math.fsum(totals[: sampling.size])
    elif sampling.kind == "fixed":
        cohorts = list(combinations(totals, sampling.size))
        yield from ((1 / len(cohorts), math.fsum(cohort)) for cohort in cohorts)
    else:
        units = totals if sampling.kind == "poisson" else [x for records in world.values() for x in records]
        for drawn in product((False, True), repeat=len(units)):
            chance = math.prod(q if taken else 1 - q for taken in drawn)
            yield chance, math.fsum(x for x, taken in zip(units, drawn, strict=True) if taken)


def true_delta(
    one: World, other: World, sampling: Sampling, unit: Unit, noise_multiplier: float, epsilon: float, radius: float = 1.0
) -> float:
    """Return the least delta at which two worlds are (epsilon, delta)-alike, to about five digits."""
    sigma = noise_multiplier * radius
    mixtures = [list(laws(world, sampling, unit, radius)) for world in (one, other)]
    means = [mean for mixture in mixtures for _, mean in mixture]
    x = np.arange(min(means) - FAR * sigma, max(means) + FAR * sigma, sigma / FINE)
    p, q = (_density(mixture, sigma, x) for mixture in mixtures)
    gains = (np.maximum(here - math.exp(epsilon) * there, 0.0) for here, there in ((p, q), (q, p)))
    return max(float(gain.sum()) * sigma / FINE for gain in gains)


def _density(mixture: Sequence[tuple[float, float]], sigma: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    merged: dict[float, float] = {}
    for chance, mean in mixture:
        merged[mean] = merged.get(mean, 0.0) + chance
    found = np.zeros_like(x)
    for mean, chance in merged.items():
        found += chance * np.exp(-((x - mean) ** 2) / (2 * sigma**2))
    return found / (sigma * math.sqrt(2 * math.pi))
