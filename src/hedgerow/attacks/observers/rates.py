"""How well an attack tells members from others: area under the curve, advantage, true positives where few others are accused.

An attack gives each record a score, higher for those that it takes for members. A threshold on the score accuses all above it:

    true positive rate     share of members that are accused
    false positive rate    share of others that are accused
    advantage              the largest difference of the two rates over all thresholds
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import betaincinv
from scipy.stats import rankdata

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

LEAST_FALSE = 10
"""Others that are accused at a rate of false positives; a rate at which there would be fewer is refused."""


@dataclass(frozen=True)
class Rate:
    """A share with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2%} ({self.low:.2%} to {self.high:.2%})"


@displayed
@dataclass(frozen=True, eq=False)
class MembershipRates:
    """What scores tell of membership.

    Attributes
    ----------
    members, others : arrays of shape (n,)
        Scores of both, in descending order.
    """

    members: Array
    others: Array

    @classmethod
    def of(cls, members: Array, others: Array) -> MembershipRates:
        """Of scores of members and of others; equal scores are accused together.

        Raises
        ------
        SettingsInvalid (HR-511)
            There are none of one kind, or scores that are no numbers.
        """
        found = [np.sort(np.asarray(one, float).ravel())[::-1] for one in (members, others)]
        if any(not len(one) or np.isnan(one).any() for one in found):
            raise SettingsInvalid(
                f"{len(found[0])} members and {len(found[1])} others, or scores that are no numbers.",
                remedy="Score at least one record of each kind.",
            )
        return cls(*found)

    @property
    def area(self) -> float:
        """Area under the curve: the chance that a member's score is above another's, equal ones counting half."""
        n, m = len(self.members), len(self.others)
        ranks = rankdata(np.concatenate([self.members, self.others]))
        return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))

    @property
    def advantage(self) -> float:
        """The largest difference of both rates: of a threshold that was chosen on these very scores."""
        false, true = self.curve()
        return float((true - false).max())

    def curve(self) -> tuple[Array, Array]:
        """False and true positive rates of all thresholds, each from 0 to 1."""
        thresholds = np.unique(np.concatenate([self.members, self.others]))[::-1]
        false = len(self.others) - np.searchsorted(self.others[::-1], thresholds)
        true = len(self.members) - np.searchsorted(self.members[::-1], thresholds)
        return np.append(0.0, false / len(self.others)), np.append(0.0, true / len(self.members))

    def at(self, false_positives: float, level: float = 0.95) -> Rate:
        """The true positive rate at a rate of false positives, with an interval.

        Parameters
        ----------
        false_positives : float
            At most this share of the others is accused.
        level : float
            Of the interval of Clopper and Pearson, which knows the members as a sample and the threshold as given.

        Raises
        ------
        SettingsInvalid (HR-511)
            A rate or level is not between 0 and 1; fewer than ten of the others would be accused, so that the threshold hangs
            on a handful of scores.
        """
        for name, one in (("false_positives", false_positives), ("level", level)):
            if isinstance(one, bool) or not isinstance(one, Real) or not 0 < one < 1:
                raise SettingsInvalid(f"{name} is {one!r}.", remedy="A rate and a level are numbers between 0 and 1.")
        accused = int(np.floor(false_positives * len(self.others) * (1 + 1e-12)))
        if accused < LEAST_FALSE:
            raise SettingsInvalid(
                f"a true positive rate at {false_positives:g} false positives of {len(self.others)} others would hang on "
                f"{accused} of them.",
                remedy=f"Score at least {int(np.ceil(LEAST_FALSE / false_positives))} others, or give a higher rate.",
            )
        n = len(self.members)
        return clopper_pearson(round(float(self.true_at(false_positives)) * n), n, level)

    def true_at(self, false_positives: Array | float) -> Array:
        """True positive rates where at most these shares of the others are accused, of the same shape; none is refused."""
        accused = np.floor(np.asarray(false_positives, float) * len(self.others) * (1 + 1e-12)).astype(int)
        thresholds = np.append(self.others, -np.inf)[np.clip(accused, 0, len(self.others))]
        above = len(self.members) - np.searchsorted(self.members[::-1], thresholds, side="right")
        return np.where(accused >= len(self.others), 1.0, above / len(self.members))


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> Rate:
    """A share of n with the exact interval of a binomial (Clopper & Pearson, Biometrika 26, 1934)."""
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return Rate(hits / n, low, high)


def at_threshold(losses_in: Array, losses_out: Array, threshold: float) -> float:
    """True less false positive rate of accusing all losses up to a threshold (Yeom et al., CSF 2018, Adversary 1).

    With the mean training loss as the threshold it is the leakage of Jayaraman and Evans, USENIX Security 2019, which gives the
    adversary one number that only the trainer has.
    """
    return float((np.asarray(losses_in) <= threshold).mean() - (np.asarray(losses_out) <= threshold).mean())
