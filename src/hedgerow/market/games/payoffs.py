"""The two games of Wu 2019, chapter 4: an owner is paid by the others' share of openness, and its epsilon costs e^epsilon.

    payoff_l = wf_l g(eps_l) - e^eps_l              g in (4.1): bits that leak;  in (4.2): chance of a right guess

    wf_l = sum_{j != l} eps_j n_j^c / sum_j eps_j n_j^c  x  scale             0 where everybody is at 0

                    printed                                              mended
    (4.1) g         u log 2 (v e^eps / (v - 1 + e^eps))                  u log_2 (..), bits
    (4.1) scale     max g / max e^eps                                    max e^eps / max g: as large as the largest cost
    (4.2) g         (e^eps)^n (1 - e^eps) / ((e^eps)^n (1 - e^eps)       1 / (1 + c sum_{d <= n} e^(-d eps)), which is the same
                    + c (1 - (e^eps)^n)), 0/0 at eps 0                   number and defined everywhere
    (4.2) scale     max ((e^eps)^n (1 - e^eps) / ((1 - e^eps)            max e^eps / max g
                    + c (1 - (e^eps)^n))) / max e^eps, a factor lost
    sign            V = wf U - L is minimised (section 4.2); the         the payoff is maximised: what is paid less what it
                    payoff (4.1) is called compensation                  costs

Two exponents are called c, and two numbers n: of records in wf, of steps in (4.2). Largest values are over [0, cap].

Source: Wu 2019, sections 4.2 to 4.4. It names no u, v, n, c, cap or sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

Form = Literal["mended", "printed", "factor restored"]
"""How a game is scaled: "factor restored" is (4.2) as printed, with the factor that its scale has lost."""


class Gain(Protocol):
    """What is paid for, as a function of an owner's epsilon: rising, from arrays to arrays."""

    def value(self, epsilon: Array) -> Array:
        """g."""
        ...

    def slope(self, epsilon: Array) -> Array:
        """Its first derivative."""
        ...

    def bend(self, epsilon: Array) -> Array:
        """Its second derivative."""
        ...


@dataclass(frozen=True)
class LeakageGain:
    """Bits that leak from a database of `people` with one of `values` values each, at most: (2.2)."""

    people: int
    values: int

    def value(self, epsilon: Array) -> Array:
        """u (log2 v + eps / ln 2 - log2 (v - 1 + e^eps))."""
        e = np.asarray(epsilon, float)
        found: Array = -self.people / math.log(2) * np.log1p((self.values - 1) / self.values * np.expm1(-e))
        return found

    def slope(self, epsilon: Array) -> Array:
        """u / ln 2 (v - 1) / (v - 1 + e^eps)."""
        found: Array = self.people / math.log(2) * (self.values - 1) / (self.values - 1 + np.exp(epsilon))
        return found

    def bend(self, epsilon: Array) -> Array:
        """Below 0 everywhere: g is concave."""
        e = np.exp(epsilon)
        found: Array = -self.people / math.log(2) * (self.values - 1) * e / np.square(self.values - 1 + e)
        return found


@dataclass(frozen=True)
class UtilityGain:
    """Chance of a right guess, at most, where `border` answers lie at each distance up to `distance`: (2.3)."""

    distance: int
    border: int

    def value(self, epsilon: Array) -> Array:
        """1 / (1 + c sum_{d <= n} e^(-d eps))."""
        return 1 / self._over(epsilon, 0)

    def slope(self, epsilon: Array) -> Array:
        """Its first derivative."""
        return -self._over(epsilon, 1) / np.square(self._over(epsilon, 0))

    def bend(self, epsilon: Array) -> Array:
        """Its second derivative: above 0 at small epsilon where c n is large, so g is not concave."""
        over, first, second = (self._over(epsilon, k) for k in range(3))
        return (2 * np.square(first) / over - second) / np.square(over)

    def _over(self, epsilon: Array, derivative: int) -> Array:
        """One over g, or a derivative of that."""
        d = np.arange(1, self.distance + 1)
        terms = self.border * (-d.astype(float)) ** derivative * np.exp(-np.multiply.outer(epsilon, d))
        found: Array = terms.sum(-1) + (derivative == 0)
        return found


@dataclass(frozen=True)
class ShareGame:
    """A game in which the others' share of openness is what an owner's own is worth.

    Parameters
    ----------
    gain : Gain
    sizes : tuple of float
        n_l^c: how much an owner's epsilon counts beside the others'.
    scale : float
    cap : float
        Largest epsilon; the least is 0.
    sign : {1, -1}
        -1 if the payoff is minimised.
    """

    gain: Gain
    sizes: tuple[float, ...]
    scale: float
    cap: float
    sign: int = 1
    lowest: float = 0.0

    @property
    def players(self) -> int:
        """How many owners."""
        return len(self.sizes)

    def payoffs(self, profile: Array) -> Array:
        """Each owner's payoff; profile of shape (..., players)."""
        others, total = self._sums(profile)
        share = np.divide(others, total, out=np.zeros_like(total), where=total > 0)
        found: Array = self.sign * (share * self.scale * self.gain.value(profile) - np.exp(profile))
        return found

    def own_slopes(self, profile: Array) -> Array:
        """Derivative of each payoff by its owner's epsilon; shape (..., players)."""
        others, total = self._sums(profile)
        total = np.where(total > 0, total, 1.0)
        share, moved = others / total, -np.array(self.sizes) * others / np.square(total)
        g = self.scale * (share * self.gain.slope(profile) + moved * self.gain.value(profile))
        found: Array = self.sign * (g - np.exp(profile))
        return found

    def slopes_of_slopes(self, profile: Array) -> Array:
        """Derivative of each owner's own slope by each epsilon: shape (..., players, players); not where everybody is at 0."""
        w, e = np.array(self.sizes), np.asarray(profile, float)
        others, total = self._sums(e)
        share, g, slope, bend = others / total, self.gain.value(e), self.gain.slope(e), self.gain.bend(e)
        by_others = (w * e / total**2)[..., None] * w  # of the share, by the others' epsilons
        own_and_others = np.outer(w, w) * (2 * others / total**3 - 1 / total**2)[..., None]
        found: Array = self.scale * (by_others * slope[..., None] + own_and_others * g[..., None])
        own = share * bend - 2 * w * others / total**2 * slope + 2 * w**2 * others / total**3 * g
        k = np.arange(self.players)
        found[..., k, k] = self.scale * own - np.exp(e)
        return self.sign * found

    def _sums(self, profile: Array) -> tuple[Array, Array]:
        """Openness of the others, and of all, each of shape (..., players)."""
        t = np.asarray(profile, float) * np.array(self.sizes)
        total = np.broadcast_to(t.sum(-1, keepdims=True), t.shape)
        return np.maximum(total - t, 0.0), total


def leakage_game(
    sizes: tuple[float, ...],
    *,
    people: int,
    values: int,
    cap: float,
    form: Form = "mended",
    exponent: float = 1.0,
    minimised: bool = False,
) -> ShareGame:
    """(4.1).

    Parameters
    ----------
    sizes : tuple of float
        Records of each owner.
    people, values : int
        u and v.
    cap : float
        Largest epsilon.
    form : {"mended", "printed"}
        Which scale.
    exponent : float
        c of n^c.
    minimised : bool
        The sign of section 4.2.
    """
    if form == "factor restored":
        raise SettingsInvalid("(4.1) has lost no factor.", remedy='Take "mended" or "printed".')
    gain = LeakageGain(people, values)
    highest = float(gain.value(np.array(cap)))
    scale = math.exp(cap) / highest if form == "mended" else highest / math.exp(cap)
    return ShareGame(gain, _sizes(sizes, exponent), scale, cap, -1 if minimised else 1)


def utility_game(
    sizes: tuple[float, ...],
    *,
    distance: int,
    border: int,
    cap: float,
    form: Form = "mended",
    exponent: float = 1.0,
    minimised: bool = False,
) -> ShareGame:
    """(4.2), where `distance` and `border` are n and c of (2.3); see `leakage_game` for the others."""
    gain = UtilityGain(distance, border)
    highest = float(gain.value(np.array(cap)))
    if form == "printed":
        # (e^eps)^n (1 - e^eps) / ((1 - e^eps) + c (1 - (e^eps)^n)) is (e^eps)^n / (1 + c (1 + .. + e^((n-1) eps))), which rises
        highest = math.exp(distance * cap) / (1 + border * sum(math.exp(d * cap) for d in range(distance)))
    scale = math.exp(cap) / highest if form == "mended" else highest / math.exp(cap)
    return ShareGame(gain, _sizes(sizes, exponent), scale, cap, -1 if minimised else 1)


def _sizes(sizes: tuple[float, ...], exponent: float) -> tuple[float, ...]:
    if len(sizes) < 2 or min(sizes) <= 0:
        raise SettingsInvalid(f"owners of sizes {sizes!r}.", remedy="Give two or more numbers above 0.")
    return tuple(float(size) ** exponent for size in sizes)
