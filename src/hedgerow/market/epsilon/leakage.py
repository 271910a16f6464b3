"""How much a private answer tells about one person: min-entropy leakage, in bits.

A person has one of v values, an adversary guesses which. Before the answer its best guess is right with probability max p(x),
after it with probability sum_z max_x p(x) K[x, z]. The leakage is how many times the chance of a right guess doubles:

    H_inf(X)       = -log2 max_x p(x)                              before                              (2.4.1)
    H_inf(X | Z)   = -log2 sum_z p(z) max_x p(x | z)               after
    leakage        = H_inf(X) - H_inf(X | Z)
                  <= log2( v (e^eps + (v - 1) delta) / (v - 1 + e^eps) )       for each person         (2.2)

The bound is attained by randomised response (`channels`) where all values were as likely. An adversary who
knew something before gains less often a better guess: `channels.gain` says how much, for its own prior.

Per person. A database of u people leaks at most u times as much, which is reached only by a mechanism that answers about each
of them; a count of them leaks far less. So the bits of a database grow with its size and say nothing about anybody in it:
they have a function of their own, `database_leakage`, and no report prints them.

Neighbours. (2.2) is about an epsilon under which one person's value is replaced by another. Where neighbours differ by a
person who is there or not, two values are two such steps apart: `between_values`.

Source: Wu 2019, (2.2) and section 4.3, from Alvim, Andres, Chatzikokolakis, Degano & Palamidessi 2011. Differs: the thesis
prints `log 2` where it is the logarithm to base 2; its formula of H_inf(X) is that of H_inf(X | Z); delta is 0 there.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.privacy.accounting import Adjacency, group

from .ranges import checked_adjacency, checked_count, checked_delta, checked_epsilon


def leakage(epsilon: float, values: int = 2, delta: float = 0.0) -> float:
    """Bits that an answer leaks about one person, at most: (2.2) with u = 1.

    Parameters
    ----------
    epsilon : float
        Between two values of one person; see `between_values`.
    values : int
        How many values the person may have, v. "There or not" are two.
    delta : float

    Returns
    -------
    float
        At most log2 of `values`, and at most epsilon / ln 2 where delta is 0.
    """
    return float(np.log1p(_gained(epsilon, values, delta)) / math.log(2))


def times_likelier(epsilon: float, values: int = 2, delta: float = 0.0) -> float:
    """Factor by which the best guess becomes right more often, where all values were as likely: 2 to the power of `leakage`."""
    return 1 + _gained(epsilon, values, delta)


def leakage_slope(epsilon: float, values: int = 2) -> float:
    """Bits per unit of epsilon, the derivative of `leakage` at delta 0: (v - 1) / (ln 2 (v - 1 + e^epsilon))."""
    v, shrunk = checked_count(values, "a number of values", 1), math.exp(-checked_epsilon(epsilon))
    return (v - 1) * shrunk / (math.log(2) * ((v - 1) * shrunk + 1))


def database_leakage(epsilon: float, values: int, people: int) -> float:
    """Bits that answers leak about all people of a database together, at most: (2.2), u times `leakage`.

    Reached only where each person is answered about. It grows with the database and says nothing of a person in it; for a count
    `channels.capacity(channels.truncated_geometric(people, epsilon))` is exact and much smaller.
    """
    return checked_count(people, "a number of people", 1) * leakage(epsilon, values)


def min_entropy(prior: Array) -> float:
    """H_inf of what an adversary believes, in bits: -log2 of its largest probability. `prior` of shape (v,) sums to 1."""
    return float(-np.log2(np.max(prior)))


def between_values(epsilon: float, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    """Return epsilon and delta between two values that one person may have.

    Neighbours that differ by a person who is there or not are one step apart; a person with another value is one who leaves and
    one who comes. So what holds under "add-remove" is doubled: 2 epsilon, and (1 + e^epsilon) delta.
    """
    checked_adjacency(adjacency)
    checked_epsilon(epsilon)
    checked_delta(delta)
    if adjacency == "replace-one":
        return epsilon, delta
    return group(epsilon, delta, 2)


def _gained(epsilon: float, values: int, delta: float) -> float:
    """v times the largest chance of a right guess, less 1."""
    v = checked_count(values, "a number of values", 1)
    shrunk = math.exp(-checked_epsilon(epsilon))
    # v (1 + (v-1) delta s) / (1 + (v-1) s) - 1, with s = e^-eps, exact also where epsilon is tiny
    return (v - 1) * (v * checked_delta(delta) * shrunk - math.expm1(-epsilon)) / (1 + (v - 1) * shrunk)
