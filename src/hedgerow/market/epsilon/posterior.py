"""What an adversary can come to believe of a person, and how well it can tell who was there.

    odds         after <= e^eps times before; with delta, more than t e^eps times with probability at most delta / (1 - 1/t)
    posterior    <= 1 / (1 + (m - 1) e^(-eps Dv / Df))             m worlds as likely, each lacking one person (2.4)
    epsilon      =  Df / Dv ln((m - 1) rho / (1 - rho))            keeps the posterior at rho
    test         power <= min(e^eps alpha + delta, 1 - e^-eps (1 - delta - alpha))     at a false-alarm rate of alpha
    advantage    = max (power - alpha) = delta(eps = 0) of the mechanism itself  <=  (e^eps - 1 + 2 delta) / (e^eps + 1)

The advantage of a mechanism is read off its own privacy curve (`advantage_of`); Gaussian noise at (1, 1e-5) has 0.11 where the
bound of every mechanism at that epsilon and delta is 0.46. Yeom's e^eps - 1 is never used: it is larger, and above epsilon 0.69
it says nothing.

Neighbours. "Was this person there?" is about neighbours that differ by a person: epsilon under "add-remove". m worlds that each
lack one person differ by a person replaced, and so do two values of a person: take what `leakage.between_values` returns.

Source: Wu 2019, (2.4), from Lee & Clifton 2011; Wasserman & Zhou 2010 and Kairouz, Oh & Viswanath 2015 for tests; Humphries et
al. 2023 for the advantage. Differs: the thesis divides by a sum over all other worlds than the one believed in, which gives no
probability; it prints e for epsilon in the exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from hedgerow.core.events import Charge
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import Adjacency
from hedgerow.privacy.accounting.gaussian import gaussian_delta
from hedgerow.privacy.accounting.trade_off import GaussianTradeOff, budget_advantage, budget_power

from .ranges import checked_count, checked_delta, checked_epsilon, checked_positive, checked_probability


def posterior(prior: float, epsilon: float) -> float:
    """Largest belief in something that an adversary gave the probability `prior` before, at delta 0."""
    against = (1 - checked_probability(prior, "a prior")) / prior
    return 1 / (1 + against * math.exp(-checked_epsilon(epsilon)))


def least_posterior(prior: float, epsilon: float) -> float:
    """Smallest belief left in something that an adversary gave the probability `prior` before, at delta 0."""
    left = checked_probability(prior, "a prior") * math.exp(-checked_epsilon(epsilon))
    return left / (1 - prior + left)


def chance_beyond(epsilon: float, delta: float, times: float) -> float:
    """Probability, at most, that the odds change by more than `times` e^epsilon: delta / (1 - 1 / times).

    Attained. `times` is above 1: at 1 itself a delta promises nothing.
    """
    checked_epsilon(epsilon)
    more = checked_positive(times - 1, "a factor above 1, less 1,")
    return min(1.0, checked_delta(delta) * times / more)


def posterior_of_worlds(worlds: int, epsilon: float, change: float = 1.0, sensitivity: float = 1.0) -> float:
    """Largest belief in one of so many worlds that were as likely: Lee and Clifton, (2.4).

    Parameters
    ----------
    worlds : int
        m. Each lacks another person, so that two differ by a person replaced.
    epsilon : float
        Of a mechanism with noise like `sensitivity` / epsilon. Under "add-remove" neighbours two worlds are two steps apart:
        leave `change` and `sensitivity` and give 2 epsilon.
    change : float
        Dv, the farthest that two worlds' answers lie apart.
    sensitivity : float
        Df, the farthest that neighbours' answers lie apart.
    """
    m = checked_count(worlds, "a number of worlds", 2)
    ratio = checked_positive(change, "a change") / checked_positive(sensitivity, "a sensitivity")
    return 1 / (1 + (m - 1) * math.exp(-checked_epsilon(epsilon) * ratio))


def epsilon_for_posterior(worlds: int, belief: float, change: float = 1.0, sensitivity: float = 1.0) -> float:
    """Epsilon at which the belief in one of so many worlds is at most `belief`: the inverse of `posterior_of_worlds`.

    0 where `belief` is at most 1 / worlds, which is what was believed before.
    """
    m, rho = checked_count(worlds, "a number of worlds", 2), checked_probability(belief, "a belief")
    ratio = checked_positive(sensitivity, "a sensitivity") / checked_positive(change, "a change")
    return max(0.0, ratio * math.log((m - 1) * rho / (1 - rho)))


def power(false_alarms: float, epsilon: float, delta: float = 0.0) -> float:
    """Largest power of a test whether a person was there, at a rate of false alarms: 1 less the trade-off function."""
    return budget_power(false_alarms, checked_epsilon(epsilon), checked_delta(delta))


def gaussian_power(false_alarms: float, noise_multiplier: float) -> float:
    """Power of the best test against one Gaussian release: Phi(Phi^-1(alpha) + 1 / z), Neyman and Pearson's."""
    return GaussianTradeOff(1 / checked_positive(noise_multiplier, "a noise multiplier")).power(false_alarms)


def advantage(epsilon: float, delta: float = 0.0) -> float:
    """Largest power less false alarms of a membership attack, whatever the mechanism: (e^eps - 1 + 2 delta) / (e^eps + 1).

    At delta 0 it is tanh(epsilon / 2), reached by randomised response.
    """
    return budget_advantage(checked_epsilon(epsilon), checked_delta(delta))


def advantage_of(charges: Iterable[Charge], adjacency: Adjacency) -> float:
    """Largest power less false alarms against what was released, by its own noise: delta at epsilon 0 of the accountant.

    An upper bound, exact for Gaussian noise without sampling.

    Parameters
    ----------
    charges : iterable of Charge
        Cohorts with their events, as of `hedgerow.privacy.accounting.delta`.
    """
    return accounting.delta(charges, epsilon=0.0, adjacency=adjacency)


@lru_cache(maxsize=1024)
def gaussian_advantage(noise_multiplier: float) -> float:
    """Power less false alarms of the best attack against one Gaussian release: 2 Phi(1 / (2 z)) - 1."""
    return gaussian_delta(checked_positive(noise_multiplier, "a noise multiplier"), 0.0)


def right_guess(prior: float, epsilon: float, delta: float = 0.0) -> float:
    """Largest chance to guess rightly whether a person was there, for an adversary of this prior.

    It is at one of the corners of the trade-off function: guess "not there" but where delta gives it away, guess by the answer,
    or guess "there". Where the prior is far from one half an answer seldom changes the guess, and this stays near the larger of
    `prior` and 1 - `prior`.
    """
    p = checked_probability(prior, "a prior")
    by_answer = (1 + advantage(epsilon, delta)) / 2
    return max((1 - p) + p * delta, by_answer, p + (1 - p) * delta)
