"""Epsilon from what it costs: pay people for the harm that their taking part may add, and keep the answer useful.

    a person who expects a harm of E without the study expects at most e^eps E with it: its cost is E (e^eps - 1)
    study       a count of N people, within +- alpha N but for a probability of g
    feasible    ln(1/g) / (alpha N)  <=  eps  <=  ln(1 + B / (N E))           accurate enough; paid from a budget of B

Harms, budgets and payments are in one currency.

Source: Wu 2019, section 2.4.2, from Hsu, Gaboardi, Haeberlen, Khanna, Narayan, Pierce & Roth 2014. Differs: epsilon is that of
neighbours that differ by a person who is there or not, which is what taking part changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .ranges import checked_count, checked_epsilon, checked_positive, checked_probability


@dataclass(frozen=True)
class FeasibleEpsilons:
    """Epsilons of a study that is accurate enough and can be paid.

    Attributes
    ----------
    least : float
        For the accuracy.
    most : float
        For the budget.
    """

    least: float
    most: float

    def __bool__(self) -> bool:
        """Whether there is one."""
        return self.least <= self.most


def compensation(harm: float, epsilon: float) -> float:
    """What taking part costs a person who expects `harm` without it, at most: harm (e^epsilon - 1)."""
    return checked_positive(harm, "an expected harm") * math.expm1(checked_epsilon(epsilon))


def feasible_epsilons(people: int, budget: float, harm: float, error: float, failure: float) -> FeasibleEpsilons:
    """Epsilons at which a count of `people` under Laplace noise is accurate enough, and everybody can be paid.

    Parameters
    ----------
    people : int
        N, each of whom is paid `compensation`.
    budget : float
        B, for all of them.
    harm : float
        What each expects without the study.
    error : float
        alpha: the count is wanted within `error` * `people`.
    failure : float
        Probability with which it may lie farther off.
    """
    n, alpha = checked_count(people, "a number of people", 1), checked_positive(error, "an error")
    least = -math.log(checked_probability(failure, "a probability of failure")) / (alpha * n)
    most = math.log1p(checked_positive(budget, "a budget") / (n * checked_positive(harm, "an expected harm")))
    return FeasibleEpsilons(least, most)
