"""What an epsilon means: in sentences for whoever signs, in numbers for whoever checks.

    odds        that somebody took part change by a factor of at most e^eps
    belief      of an adversary with a prior, at most and at least after all releases     `posterior`
    guess       the best attack names rightly who took part, so often                      `advantage`, `right_guess`
    test        power of the best test at a rate of false alarms                           `power`
    leakage     bits about one person, of "there or not" and of one of v values            `leakage`
    count       how far a count is off, and how likely it is exactly right                 `utility_of_count`

Each is a bound that some mechanism reaches. Where delta is above 0, numbers of Gaussian noise stand beside it: the noise that
spends just this epsilon and delta, whose advantage is much smaller.

Nothing is asked and no data are read. What the same epsilon costs a study in accuracy is a forecast of its own.

Source: Wu 2019, section 2.4; see `leakage`, `utility` and `posterior` for each formula and where we differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from hedgerow.core.events import Unit
from hedgerow.privacy.accounting import Adjacency, gaussian_noise
from hedgerow.privacy.statement import WEAK

from .leakage import between_values, leakage, times_likelier
from .posterior import (
    advantage,
    chance_beyond,
    gaussian_advantage,
    gaussian_power,
    least_posterior,
    posterior,
    power,
    right_guess,
)
from .ranges import checked_adjacency, checked_count, checked_delta, checked_epsilon, checked_positive

PRIORS = (0.01, 0.1, 0.5)
FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1)
VALUES = (2, 10)
BEYOND = 1.1
"""With delta above 0, odds are said to change by at most so many times e^epsilon, and how likely they rise or fall by more: of
the factor e^epsilon itself a delta promises nothing."""
SURE = 0.95
"""So often a count is within the error that is said of it."""


@dataclass(frozen=True)
class Belief:
    """What an adversary believes of "this person took part".

    Attributes
    ----------
    prior : float
        Before.
    most, least : float
        After all releases, but for the probability `Meaning.beyond`.
    unaided, right : float
        Chance of a right guess before, and of the best guess after, on average over what is released.
    """

    prior: float
    most: float
    least: float
    unaided: float
    right: float

    @property
    def times(self) -> float:
        """Multiplicative leakage: how many times likelier a right guess becomes."""
        return self.right / self.unaided


@dataclass(frozen=True)
class BestTest:
    """A test whether one person took part.

    Attributes
    ----------
    false_alarms : float
        How often it says "took part" of somebody who did not.
    power : float
        How often, at most, it says so of somebody who did.
    gaussian : float or None
        The same against Gaussian noise that spends this epsilon and delta.
    """

    false_alarms: float
    power: float
    gaussian: float | None


@dataclass(frozen=True)
class Leak:
    """What releases tell about one person's value.

    Attributes
    ----------
    values : int
        How many values it may have.
    bits : float
        Min-entropy leakage per person, at most.
    times : float
        How many times likelier a right guess becomes, where all values were as likely.
    """

    values: int
    bits: float
    times: float


@dataclass(frozen=True)
class Meaning:
    """What an epsilon means; made by `meaning`.

    Attributes
    ----------
    epsilon, delta : float
    adjacency : {"add-remove", "replace-one"}
    unit : {"record", "party"}
        Whose presence is protected. A record is taken to be a person.
    odds : float
        By this factor odds rise or fall at most: e^epsilon, and 1.1 times that where delta is above 0. Infinity where it is
        beyond floating point.
    beyond : float
        Probability, at most, that they rise by more, and that they fall by more; 0 at delta 0.
    beliefs : tuple of Belief
    advantage : float
        Power less false alarms of the best attack, at most.
    noise_multiplier, gaussian_advantage : float or None
        Of Gaussian noise that spends this epsilon and delta at once; none at delta 0.
    tests : tuple of BestTest
    presence : Leak
        Of "there or not".
    leaks : tuple of Leak
        Of a person's value. Under "add-remove" neighbours two values are two steps apart.
    count_error : int or None
        One count that spends all of epsilon, under geometric noise, is within so much of the truth in 95 of 100 answers; none
        at epsilon 0.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: Unit
    odds: float
    beyond: float
    beliefs: tuple[Belief, ...]
    advantage: float
    noise_multiplier: float | None
    gaussian_advantage: float | None
    tests: tuple[BestTest, ...]
    presence: Leak
    leaks: tuple[Leak, ...]
    count_error: int | None

    @property
    def weak(self) -> bool:
        """Whether this epsilon promises hardly anything."""
        return self.epsilon > WEAK

    @property
    def one(self) -> str:
        """What a unit is called."""
        return "person" if self.unit == "record" else "party"

    @property
    def many(self) -> str:
        """What units are called."""
        return "people" if self.unit == "record" else "parties"

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What it means in plain words, one thing in each sentence."""
        but = f", but for a probability of at most {self.beyond:.2g}" if self.delta else ""
        beliefs = [f"{percent(b.prior)} rises to at most {percent(b.most)}" for b in self.beliefs]
        half = "half took part" if self.adjacency == "add-remove" else "half have the one datum"
        sentences = [
            "Whoever sees everything that is released, whatever else they know, can raise or lower the odds "
            f"{ODDS[self.adjacency].format(self.one)} by a factor of at most {factor_told(self.odds)}{but}.",
            *([f"Belief in it of {', of '.join(beliefs)}."] if beliefs else []),
            f"Of 100 {self.many} of whom {half}, no attack guesses more than {hundred(self.advantage)} rightly, "
            "and a coin guesses 50.",
        ]
        if self.gaussian_advantage is not None:
            guessed = hundred(self.gaussian_advantage)
            sentences.append(f"Where Gaussian noise spends this epsilon and delta, that is no more than {guessed}.")
        told = next((leak for leak in self.leaks if leak.values == 2), None)
        if told is not None:
            sentences.append(f"Of one {self.one}'s yes or no, the releases tell at most {told.bits:.2g} of one bit.")
        sentences.append(COUNTED[self.unit])
        sentences.append(
            "Findings about people in general are not hidden: the study may find them, and say so of anybody, "
            f"whether or not that {self.one} takes part."
        )
        if self.weak:
            sentences.insert(0, f"An epsilon of {self.epsilon:g} promises hardly anything.")
        return tuple(sentences)

    def told(self) -> dict[str, Any]:
        """For other programs: the fields, and the sentences."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"sentences": list(self.sentences)}


ODDS = {
    "add-remove": "that one given {} took part",
    "replace-one": "that one given {} has one datum rather than another",
}
COUNTED = {
    "record": "A person is taken to be one record; for somebody with several the epsilons add up.",
    "party": "A party is protected as a whole, with all its records.",
}


def meaning(
    epsilon: float,
    delta: float = 0.0,
    adjacency: Adjacency = "add-remove",
    *,
    unit: Unit = "record",
    priors: tuple[float, ...] = PRIORS,
    values: tuple[int, ...] = VALUES,
    false_alarms: tuple[float, ...] = FALSE_ALARMS,
) -> Meaning:
    """What an epsilon means.

    Parameters
    ----------
    epsilon, delta : float
        Of everything that is released about a person together.
    adjacency : {"add-remove", "replace-one"}
        Neighbours differ by one person who is there or not, or in the data of one person.
    unit : {"record", "party"}
        Whether the person is one record, or a party with all its records stands in the person's place.
    priors : tuple of float
        What adversaries believed before.
    values : tuple of int
        How many values a person's secret may have.
    false_alarms : tuple of float
        Of tests.

    Raises
    ------
    BudgetInvalid (HR-214)
        A number is out of its range, or the adjacency is unknown.
    """
    checked_adjacency(adjacency)
    checked_epsilon(epsilon)
    z = gaussian_noise(epsilon, delta) if 0 < checked_delta(delta) < 1 else None
    kept = epsilon + (math.log(BEYOND) if delta else 0.0)
    return Meaning(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        unit=unit,
        odds=math.exp(kept) if kept < _OVERFLOWS else math.inf,
        beyond=chance_beyond(epsilon, delta, BEYOND),
        beliefs=tuple(_belief(prior, kept, right_guess(prior, epsilon, delta)) for prior in priors),
        advantage=advantage(epsilon, delta),
        noise_multiplier=z,
        gaussian_advantage=None if z is None else gaussian_advantage(z),
        tests=tuple(
            BestTest(alpha, power(alpha, epsilon, delta), None if z is None else gaussian_power(alpha, z))
            for alpha in false_alarms
        ),
        presence=_leak(2, epsilon, delta),
        leaks=tuple(_leak(v, *between_values(epsilon, delta, adjacency)) for v in values),
        count_error=None if epsilon == 0 else count_error(epsilon),
    )


def count_error(epsilon: float, sure: float = SURE) -> int:
    """How far a count under two-sided geometric noise is off in a share `sure` of answers: the least such whole number.

    P(noise beyond k) = 2 q^(k+1) / (1 + q), with q = e^-epsilon.
    """
    checked_positive(epsilon, "an epsilon")
    k = math.log(2 / ((1 - sure) * (1 + math.exp(-epsilon)))) / epsilon - 1
    return max(0, math.ceil(k))


def percent(share: float) -> str:
    """A share as a reader says it: three digits, and 100 % is said of no belief."""
    if share > 0.9995:
        return ">99.99 %" if share > 0.9999 else f"{100 * share:.2f} %"
    return f"{100 * share:.3g} %"


def hundred(gained: float) -> str:
    """Of a hundred people, so many are guessed rightly with this advantage over a coin."""
    return f"{50 * (1 + gained):.3g}"


def factor_told(factor: float) -> str:
    """A factor as a reader says it."""
    return f"{factor:.4g}" if math.isfinite(factor) else "more than 1e304"


_OVERFLOWS = 700.0


def _belief(prior: float, kept: float, right: float) -> Belief:
    return Belief(prior, posterior(prior, kept), least_posterior(prior, kept), max(prior, 1 - prior), right)


def _leak(values: int, epsilon: float, delta: float) -> Leak:
    return Leak(
        checked_count(values, "a number of values", 2), leakage(epsilon, values, delta), times_likelier(epsilon, values, delta)
    )
