"""How useful a private answer can be: the largest chance that the analyst's best guess of the true answer is right.

    answers are the places of a graph, neighbours one step apart; b_d answers lie d steps from each one

    utility <= 1 / (1 + sum_d b_d e^(-d eps))          on rings, cliques, every graph that looks the same from each answer
            =  1 / (1 + c sum_{d <= n} e^(-d eps))     where b_d = c for every d up to n                        (2.3)

with all answers as likely. Both are attained by answers of probability like e^(-eps d) (`channels.by_distance`). An odd ring of
2 n + 1 has c = 2; a clique of k has n = 1 and c = k - 1; an even ring has one answer at its far end, so that (2.3) holds with
c = 1 only and is loose, where the sum over b_d is exact.

Counts lie on a line, whose ends have fewer neighbours: (2.3) does not cover it, and is exceeded. There the truncated
geometric mechanism is best for every prior at once, once the analyst remaps each output to the likeliest count.

Source: Wu 2019, (2.3), from Alvim et al. 2011, Theorem 3; Ghosh, Roughgarden & Sundararajan 2009. Differs: the thesis prints
(2.3) as (e^eps)^n (1 - e^eps) / ((e^eps)^n (1 - e^eps) + c (1 - (e^eps)^n)), which is 0/0 at eps 0 and overflows; it does not
say which graphs it is about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hedgerow.core.arrays import Array

from . import channels
from .ranges import checked_count, checked_epsilon


def utility(epsilon: float, distance: int, border: int) -> float:
    """Chance of a right guess, at most: (2.3), at every epsilon from 0 on.

    Parameters
    ----------
    epsilon : float
        For neighbouring answers.
    distance : int
        n, the steps to the farthest answer.
    border : int
        c: at least so many answers lie at each distance from 1 to n.
    """
    n, c = checked_count(distance, "a largest distance", 1), checked_count(border, "answers at each distance", 1)
    if checked_epsilon(epsilon) == 0:
        return 1 / (1 + c * n)
    away = math.exp(-epsilon) * math.expm1(-n * epsilon) / math.expm1(-epsilon)  # e^-eps + .. + e^(-n eps)
    return 1 / (1 + c * away)


def utility_of_borders(epsilon: float, borders: Sequence[int]) -> float:
    """Chance of a right guess, at most, where borders[d - 1] answers lie d steps from each answer: exact, and attained.

    The graph looks the same from every answer, as rings and cliques do: (2, 2, 1) is a ring of six.
    """
    checked_epsilon(epsilon)
    return 1 / (1 + sum(b * math.exp(-d * epsilon) for d, b in enumerate(borders, 1)))


def ring_borders(size: int) -> tuple[int, ...]:
    """How many answers of a ring lie at each distance from one of them."""
    checked_count(size, "answers on a ring", 2)
    return (2,) * ((size - 1) // 2) + (1,) * (size % 2 == 0)


def utility_of_count(epsilon: float, most: int, prior: Array | None = None) -> float:
    """Largest chance of a right guess of a count from 0 to `most`, over all mechanisms with this epsilon.

    That of the truncated geometric mechanism with the best remapping. Its closed form for a uniform prior, with q = e^-eps, is
    (2 + (most - 1) (1 - q)) / ((1 + q) (most + 1)).

    Parameters
    ----------
    prior : array of shape (most + 1,) or None
        How likely each count was before; uniform by default.
    """
    return channels.success(channels.truncated_geometric(most, epsilon), prior)
