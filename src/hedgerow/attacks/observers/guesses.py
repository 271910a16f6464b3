"""How often guesses are right, always beside what is right without the model: a share alone says nothing of a leak."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import binomtest

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from .rates import Rate, clopper_pearson


@displayed
@dataclass(frozen=True)
class Guesses:
    """Guesses of an attack and of a baseline on the same records.

    Attributes
    ----------
    of : str
        What is guessed.
    attack, baseline : Rate
        Shares that are right, with the model and without it.
    gained : Rate
        Their difference, whose interval knows that both guess the same records.
    p_value : float
        How likely so great a difference is where the attack is no better: McNemar's exact test, one-sided.
    """

    of: str
    attack: Rate
    baseline: Rate
    gained: Rate
    p_value: float

    @classmethod
    def compared(cls, of: str, right: Array, right_without: Array, level: float = 0.95) -> Guesses:
        """Of which guesses are right: booleans (n,) with the model and without.

        Raises
        ------
        SettingsInvalid (HR-511)
            There are no guesses, or not as many of both.
        """
        right, without = np.asarray(right, bool), np.asarray(right_without, bool)
        if right.shape != without.shape or right.ndim != 1 or not len(right):
            raise SettingsInvalid(
                f"guesses of shape {right.shape} beside a baseline of shape {without.shape}.",
                remedy="Give both for the same records, at least one.",
            )
        n, better, worse = len(right), int((right & ~without).sum()), int((without & ~right).sum())
        difference = (better - worse) / n
        half = float(ndtri((1 + level) / 2)) * math.sqrt(max(better + worse - n * difference**2, 0.0)) / n
        p = 1.0 if better + worse == 0 else float(binomtest(better, better + worse, alternative="greater").pvalue)
        attack, baseline = (clopper_pearson(int(one.sum()), n, level) for one in (right, without))
        gained = Rate(difference, max(difference - half, -1.0), min(difference + half, 1.0))
        return cls(of, attack, baseline, gained, p)

    def __str__(self) -> str:
        return f"{self.of}: {self.attack} right with the model, {self.baseline} without it"
