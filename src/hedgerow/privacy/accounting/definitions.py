"""Definitions of privacy as values, how each composes, what it gives to a group, and what follows from it.

    PureDP            epsilon                Dwork, McSherry, Nissim & Smith 2006
    ApproximateDP     epsilon, delta         Dwork, Kenthapadi, McSherry, Mironov & Naor 2006
    CDP               mu, tau                Dwork & Rothblum 2016: the loss less its mean, at most mu, is tau-subgaussian
    ZCDP              rho, xi                Bun & Steinke 2016: Renyi divergence at most xi + rho alpha for every alpha > 1
    RDP               order, epsilon         Mironov 2017: Renyi divergence of one order
    GDP               mu                     Dong, Roth & Su 2022: as hard to tell as N(0, 1) from N(mu, 1)

Arrows are theorems, and they go one way only:

    PureDP -> ApproximateDP, CDP, ZCDP, RDP      GDP -> ZCDP, RDP, ApproximateDP (exactly)
    CDP -> ZCDP -> RDP -> ApproximateDP

Haug 2022 (section 3.3) gives epsilon (e^epsilon - 1) / 2 as the rho of a pure mechanism. That is the mu of its CDP. The rho
is epsilon^2 / 2 (Bun & Steinke, Proposition 1.4), which is smaller for every epsilon. The same section calls (mu, tau)-CDP
the same as (mu - tau^2/2, tau^2/2)-zCDP; the first implies the second, and the converse holds up to constants only.

Differences in how neighbours are defined are not converted here: everything is for the adjacency at which it was proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.errors import BudgetInvalid

from .gaussian import gaussian_delta, gaussian_epsilon


@dataclass(frozen=True)
class ApproximateDP:
    """Probabilities of any event change by at most a factor e^epsilon and then delta."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _at_least_zero(epsilon=self.epsilon)
        if not 0 <= self.delta <= 1:
            raise BudgetInvalid(f"delta {self.delta:g} is not between 0 and 1", remedy="It is a probability.")

    def and_then(self, other: ApproximateDP) -> ApproximateDP:
        """Basic composition: both add (Dwork & Roth 2014, Theorem 3.16)."""
        return ApproximateDP(self.epsilon + other.epsilon, min(1.0, self.delta + other.delta))

    def of_group(self, size: int) -> ApproximateDP:
        """For neighbours that differ in `size` units: `group`."""
        return ApproximateDP(*group(self.epsilon, self.delta, size))


@dataclass(frozen=True)
class PureDP:
    """Probabilities of any event change by at most a factor e^epsilon."""

    epsilon: float

    def __post_init__(self) -> None:
        _at_least_zero(epsilon=self.epsilon)

    def and_then(self, other: PureDP) -> PureDP:
        """Epsilons add (Dwork & Roth 2014, Theorem 3.14)."""
        return PureDP(self.epsilon + other.epsilon)

    def of_group(self, size: int) -> PureDP:
        """Epsilon grows with the size (Dwork & Roth 2014, Theorem 2.2)."""
        return PureDP(_positive(size) * self.epsilon)

    def to_approximate(self) -> ApproximateDP:
        return ApproximateDP(self.epsilon, 0.0)

    def to_cdp(self) -> CDP:
        """mu = epsilon (e^epsilon - 1) / 2, tau = epsilon (Dwork & Rothblum 2016, section 3)."""
        return CDP(self.epsilon * math.expm1(self.epsilon) / 2, self.epsilon)

    def to_zcdp(self) -> ZCDP:
        """rho = epsilon^2 / 2 (Bun & Steinke 2016, Proposition 1.4)."""
        return ZCDP(self.epsilon**2 / 2)

    def to_rdp(self, order: float) -> RDP:
        """The Renyi divergence of randomised response, which is the worst of all (Mironov 2017, Proposition 5)."""
        from .renyi import response_curve

        return RDP(order, float(response_curve(self.epsilon, 1.0, (order,))[0]))


@dataclass(frozen=True)
class CDP:
    """The mean of the privacy loss is at most mu, and its deviation from the mean is subgaussian with scale tau."""

    mu: float
    tau: float

    def __post_init__(self) -> None:
        _at_least_zero(mu=self.mu, tau=self.tau)

    def and_then(self, other: CDP) -> CDP:
        """Means add, and so do squares of scales (Dwork & Rothblum 2016, section 3)."""
        return CDP(self.mu + other.mu, math.hypot(self.tau, other.tau))

    def to_zcdp(self) -> ZCDP:
        """xi = mu - tau^2/2, rho = tau^2/2 (Bun & Steinke 2016, section 4).

        E e^((a-1) Z) is at most e^((a-1) mu + (a-1)^2 tau^2 / 2), so the divergence of order a is at most
        mu + (a-1) tau^2 / 2.
        """
        return ZCDP(self.tau**2 / 2, self.mu - self.tau**2 / 2)


@dataclass(frozen=True)
class ZCDP:
    """The Renyi divergence of every order alpha > 1 is at most xi + rho alpha. `xi` may be negative."""

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        _at_least_zero(rho=self.rho)

    def and_then(self, other: ZCDP) -> ZCDP:
        """Both add (Bun & Steinke 2016, Lemma 1.7)."""
        return ZCDP(self.rho + other.rho, self.xi + other.xi)

    def of_group(self, size: int) -> ZCDP:
        """rho grows with the square of the size (Bun & Steinke 2016, Proposition 1.9); for xi = 0 only."""
        if self.xi:
            raise BudgetInvalid(
                f"group privacy of zCDP is known here for xi = 0, and xi is {self.xi:g}",
                remedy="Convert to (epsilon, delta) first, and take the group of that.",
            )
        return ZCDP(_positive(size) ** 2 * self.rho)

    def to_rdp(self, order: float) -> RDP:
        return RDP(order, max(0.0, self.xi + self.rho * order))

    def to_approximate(self, delta: float) -> ApproximateDP:
        """epsilon = xi + rho + 2 sqrt(rho ln(1/delta)) (Bun & Steinke 2016, Lemma 3.5; Proposition 1.3 for xi = 0)."""
        loss = self.xi + self.rho + 2 * math.sqrt(self.rho * -math.log(_delta(delta)))
        return ApproximateDP(max(0.0, loss), delta)


@dataclass(frozen=True)
class RDP:
    """The Renyi divergence of one order is at most epsilon. A curve over orders is `renyi.curve`."""

    order: float
    epsilon: float

    def __post_init__(self) -> None:
        _at_least_zero(epsilon=self.epsilon)
        if not self.order > 1:
            raise BudgetInvalid(f"a Renyi order of {self.order:g} is not above 1", remedy="Use orders such as 2 to 64.")

    def and_then(self, other: RDP) -> RDP:
        """Epsilons of one order add (Mironov 2017, Proposition 1)."""
        if other.order != self.order:
            raise BudgetInvalid(
                f"Renyi divergences of the orders {self.order:g} and {other.order:g} do not add",
                remedy="State both at one order.",
            )
        return RDP(self.order, self.epsilon + other.epsilon)

    def of_group(self, size: int) -> RDP:
        """For 2^c units: order / 2^c and 3^c epsilon, if the order is at least 2^(c+1) (Mironov 2017, Proposition 2)."""
        doublings = math.ceil(math.log2(_positive(size)))
        if self.order < 2 ** (doublings + 1):
            raise BudgetInvalid(
                f"a divergence of order {self.order:g} says nothing about groups of {size}",
                remedy=f"Start from an order of at least {2 ** (doublings + 1)}.",
            )
        return RDP(self.order / 2**doublings, 3**doublings * self.epsilon)

    def to_approximate(self, delta: float) -> ApproximateDP:
        """epsilon + ln(1 - 1/a) - (ln delta + ln a) / (a - 1) (Canonne, Kamath & Steinke 2020, Proposition 12).

        `classic` is the older and larger epsilon + ln(1/delta) / (a - 1) (Mironov 2017, Proposition 3).
        """
        a, log_delta = self.order, math.log(_delta(delta))
        return ApproximateDP(max(0.0, self.epsilon + math.log1p(-1 / a) - (log_delta + math.log(a)) / (a - 1)), delta)

    def classic(self, delta: float) -> ApproximateDP:
        """The conversion that published numbers before 2020 use."""
        return ApproximateDP(self.epsilon - math.log(_delta(delta)) / (self.order - 1), delta)


@dataclass(frozen=True)
class GDP:
    """Neighbours are at least as hard to tell as a normal variable from one moved by mu deviations."""

    mu: float

    def __post_init__(self) -> None:
        _at_least_zero(mu=self.mu)

    @classmethod
    def of_gaussian(cls, noise_multiplier: float) -> GDP:
        """mu = 1 / z (Dong, Roth & Su 2022, Theorem 2.7), with equality."""
        return cls(1 / noise_multiplier)

    def and_then(self, other: GDP) -> GDP:
        """Squares add (Dong, Roth & Su 2022, Corollary 3.3)."""
        return GDP(math.hypot(self.mu, other.mu))

    def of_group(self, size: int) -> GDP:
        """mu grows with the size (Dong, Roth & Su 2022, Theorem 2.14)."""
        return GDP(_positive(size) * self.mu)

    def to_zcdp(self) -> ZCDP:
        """rho = mu^2 / 2 (Dong, Roth & Su 2022, Corollary B.6)."""
        return ZCDP(self.mu**2 / 2)

    def to_approximate(self, delta: float) -> ApproximateDP:
        """The exact curve (Dong, Roth & Su 2022, Corollary 2.13; Balle & Wang 2018, Theorem 8)."""
        return ApproximateDP(gaussian_epsilon(1 / self.mu, _delta(delta)) if self.mu else 0.0, delta)

    def delta(self, epsilon: float) -> float:
        """The exact delta at an epsilon."""
        return gaussian_delta(1 / self.mu, epsilon) if self.mu else 0.0


def group(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Return what an (epsilon, delta)-private release guarantees to `size` units together.

    Returns
    -------
    tuple of float
        k epsilon, and delta (e^(k epsilon) - 1) / (e^epsilon - 1), at most 1: a chain of k neighbours, of which each adds
        its delta and multiplies the earlier ones by e^epsilon (as in Vadhan 2017, Lemma 2.2).
    """
    approximate = ApproximateDP(epsilon, delta)
    k = _positive(size)
    if delta == 0 or k == 1:
        return k * epsilon, approximate.delta
    if k * epsilon > 700:  # beyond that the exponential overflows, and no delta of use is left
        return k * epsilon, 1.0
    factor = math.expm1(k * epsilon) / math.expm1(epsilon) if epsilon > 0 else k
    return k * epsilon, min(1.0, delta * factor)


def _at_least_zero(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise BudgetInvalid(f"{name} {value:g} is not a number from 0 on", remedy="A privacy loss is never negative.")


def _positive(size: int) -> int:
    if size < 1:
        raise BudgetInvalid(f"a group of {size} is empty", remedy="Say how many units change together, from 1 on.")
    return size


def _delta(delta: float) -> float:
    if not 0 < delta < 1:
        raise BudgetInvalid(
            f"delta {delta:g} is not between 0 and 1", remedy="Choose it well below one over the number of units."
        )
    return delta
