"""Rates of one attack over several targets: models of one program, each with members and randomness of its own.

Scores of one target depend on each other, as all of them are made of one model. So each target has a threshold of its own, and
an interval follows from how the targets differ: Student's, of their mean. Targets share candidates and shadow models, which the
interval does not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from .rates import LEAST_FALSE, MembershipRates, Rate


@displayed
@dataclass(frozen=True)
class TargetRates:
    """Rates of an attack on each of several targets.

    Attributes
    ----------
    each : tuple of MembershipRates
        At least two.
    """

    each: tuple[MembershipRates, ...]

    @classmethod
    def of(cls, scores: Sequence[Array], members: Sequence[Array]) -> TargetRates:
        """Of the scores (n,) of each target, and who its members are, booleans (n,).

        Raises
        ------
        SettingsInvalid (HR-511)
            Fewer than two targets, whose differences would be unknown; members that are no booleans.
        """
        if len(scores) < 2 or len(scores) != len(members):
            raise SettingsInvalid(
                f"{len(scores)} targets with members of {len(members)}.", remedy="Attack at least two models."
            )
        for one, there in zip(map(np.asarray, scores), map(np.asarray, members), strict=True):
            if there.dtype != bool or there.shape != one.shape or one.ndim != 1:
                raise SettingsInvalid(
                    f"scores of shape {one.shape}, and members of shape {there.shape} and type {there.dtype}.",
                    remedy="Give for each target scores (n,) and booleans (n,): who was in its training.",
                )
        pairs = zip(map(np.asarray, scores), map(np.asarray, members), strict=True)
        found = (MembershipRates.of(one[there], one[~there]) for one, there in pairs)
        return cls(tuple(found))

    @property
    def area(self) -> Rate:
        return self._mean(lambda one: one.area)

    @property
    def advantage(self) -> Rate:
        return self._mean(lambda one: one.advantage)

    def at(self, false_positives: float, level: float = 0.95) -> Rate:
        """The mean true positive rate at a rate of false positives of each target, as `MembershipRates.at` refuses it."""
        return self._mean(lambda one: one.at(false_positives).value, level)

    def _mean(self, number: Callable[[MembershipRates], float], level: float = 0.95) -> Rate:
        values = np.array([number(one) for one in self.each])
        half = student.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        middle = float(values.mean())
        return Rate(middle, max(middle - float(half), 0.0), min(middle + float(half), 1.0))

    def curve(self, points: int = 60) -> tuple[Array, Array]:
        """Mean true positive rates at rates of false positives from the least that is not refused to 1, in equal factors."""
        least = max(LEAST_FALSE / len(one.others) for one in self.each)
        false = np.geomspace(min(least, 1.0), 1.0, points)
        return false, np.mean([one.true_at(false) for one in self.each], axis=0)
