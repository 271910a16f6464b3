"""Whether canaries were drawn as a Poisson sample draws them: each by itself, at the accounted rate, in each release anew.

    rate        how many took part in all: binomial, exactly. Red where too many did
    releases    how much the number in a release varies: less than by independent draws where samples have a fixed size
    canaries    how much the number of a canary's releases varies: not at all where data are shuffled and dealt, each once in an
                epoch; too much where some are drawn more often than others

Shuffled batches that are charged as Poisson samples are the most common one of these faults (Chua et al., ICML 2024). Where a
run has several rates, or several runs are audited together, each group of equal draws is held to its part of the share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Array

from . import tails
from .law_parts import LawPart
from .sums import Draws


def sampling_parts(draws: Sequence[Draws], share: float) -> list[LawPart]:
    """The parts of a law test that look at who took part.

    Parameters
    ----------
    draws : sequence of Draws
        Of each accounted rate.
    share : float
        Of the level, for each part.
    """
    if not draws:
        return []
    found = [_rate(draws, share)]
    by_release: dict[tuple[int, float], list[Array]] = {}
    by_canary: dict[tuple[int, float], list[Array]] = {}
    for one in draws:
        if one.releases:
            by_release.setdefault((len(one.canaries), one.rate), []).append(np.array(one.releases))
            by_canary.setdefault((len(one.releases), one.rate), []).append(one.canaries)
    for name, groups in (("releases", by_release), ("canaries", by_canary)):
        found.append(_varies(name, {key: np.concatenate(counts) for key, counts in groups.items()}, share))
    return found


def _rate(draws: Sequence[Draws], share: float) -> LawPart:
    told = []
    for rate in sorted({one.rate for one in draws}):
        drawn, asked = (sum(getattr(one, name) for one in draws if one.rate == rate) for name in ("drawn", "asked"))
        if asked:
            told.append((*tails.binomial(drawn, asked, rate), f"{drawn / asked:.4f}, accounted {rate:.4f}"))
    if not told:
        return LawPart("rate", "nobody could be drawn", 1.0, 1.0, share)
    many, few, says = min(told)
    return LawPart("rate", says, min(1.0, len(told) * many), min(1.0, len(told) * min(few, *(one[1] for one in told))), share)


def _varies(name: str, groups: dict[tuple[int, float], Array], share: float) -> LawPart:
    if not groups:
        return LawPart(name, "nobody was drawn alone", 1.0, 1.0, share)
    told = []
    for (of, rate), counts in groups.items():
        ratio = float(((counts - of * rate) ** 2).mean() / (of * rate * (1 - rate)))
        told.append((min(tails.dispersion(counts, of, rate)), f"numbers vary by {ratio:.2f} of what independent draws do"))
    leaks, says = min(told)
    return LawPart(name, says, min(1.0, 2 * len(told) * leaks), 1.0, share)
