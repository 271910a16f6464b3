"""Small mechanisms as matrices, and what they leak and are worth, exactly.

    K          of shape (inputs, outputs): K[x, z] is the probability of output z at input x; rows sum to 1
    capacity   log2 sum_z max_x K[x, z]              min-entropy leakage at the worst prior, which is the uniform one
    success    sum_z max_x p(x) K[x, z]              chance of a right guess by an adversary of prior p
    remap      argmax_x p(x) K[x, z]                 its guess at each output
    gain       success / max_x p(x)                  multiplicative leakage at p: between 1 and 2^capacity

The same numbers are leakage where x is a person's value, and utility where x is the true answer and a right guess is what the
analyst wants (`hedgerow.market.utility`).

Source: Alvim, Andres, Chatzikokolakis, Degano & Palamidessi 2011; Ghosh, Roughgarden & Sundararajan 2009 for the truncated
geometric mechanism.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import BudgetInvalid

from .ranges import checked_count, checked_epsilon

_MOST_ROWS = 4096


def capacity(channel: Array) -> float:
    """Bits that a channel leaks at most, whatever the prior: its min-entropy capacity, reached by the uniform prior."""
    return float(np.log2(channel.max(axis=0).sum()))


def success(channel: Array, prior: Array | None = None) -> float:
    """Chance that the best guess of the input is right, after the output.

    Parameters
    ----------
    channel : array of shape (inputs, outputs)
    prior : array of shape (inputs,) or None
        Sums to 1; uniform by default.
    """
    return float(_joint(channel, prior).max(axis=0).sum())


def remap(channel: Array, prior: Array | None = None) -> Array:
    """The best guess of the input at each output: whole numbers of shape (outputs,)."""
    return np.asarray(_joint(channel, prior).argmax(axis=0))


def gain(channel: Array, prior: Array | None = None) -> float:
    """Factor by which the best guess becomes right more often than without the output: multiplicative leakage."""
    before = 1 / len(channel) if prior is None else float(np.max(prior))
    return success(channel, prior) / before


def largest_loss(channel: Array, neighbours: Array | None = None) -> float:
    """The epsilon of a channel: largest log ratio of two neighbouring rows.

    Parameters
    ----------
    neighbours : boolean array of shape (inputs, inputs) or None
        Which inputs are neighbours; all by default.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(channel)
    apart = np.where(np.isneginf(logs[:, None]) & np.isneginf(logs[None]), 0.0, _difference(logs))
    pairs: Array = apart.max(axis=2)
    return float(pairs.max() if neighbours is None else pairs[np.asarray(neighbours, bool)].max(initial=0.0))


def randomised_response(values: int, epsilon: float) -> Array:
    """A person's value with probability e^eps / (v - 1 + e^eps), each other one with probability 1 / (v - 1 + e^eps)."""
    v, shrunk = checked_count(values, "a number of values", 1), math.exp(-checked_epsilon(epsilon))
    made = np.full((v, v), shrunk)
    np.fill_diagonal(made, 1.0)
    rows: Array = made / (1 + (v - 1) * shrunk)
    return rows


def on_each(channel: Array, people: int) -> Array:
    """The channel used on every one of so many people: inputs are databases, of shape (v^people, outputs^people).

    Raises
    ------
    BudgetInvalid (HR-214)
        More than 4 096 databases.
    """
    if max(channel.shape) ** checked_count(people, "a number of people", 1) > _MOST_ROWS:
        raise BudgetInvalid(
            f"{channel.shape[0]} values of {people} people are {channel.shape[0]}^{people} databases.",
            remedy=f"A matrix has at most {_MOST_ROWS} rows and columns; capacities of independent answers add up.",
        )
    made: Array = np.ones((1, 1))
    for _ in range(people):
        made = np.kron(made, channel)
    return made


def truncated_geometric(most: int, epsilon: float) -> Array:
    """Two-sided geometric noise on a count from 0 to `most`, cut to that range: shape (most + 1, most + 1).

    Neighbouring counts differ by 1. Its ratio of neighbouring rows is e^epsilon everywhere.
    """
    n, q = checked_count(most, "a largest count", 1), math.exp(-checked_epsilon(epsilon))
    inputs = np.arange(n + 1)
    made: Array = (1 - q) / (1 + q) * q ** np.abs(inputs[:, None] - inputs)
    made[:, 0], made[:, -1] = q**inputs / (1 + q), q ** (n - inputs) / (1 + q)
    return made


def by_distance(distances: Array, epsilon: float) -> Array:
    """Outputs are inputs, with probabilities like e^(-epsilon d), made to sum to 1 in each row.

    Its epsilon is the one given where the sums are equal, as on rings and cliques, and up to twice that elsewhere.

    Parameters
    ----------
    distances : array of shape (k, k)
        Steps between neighbours from one answer to another.
    """
    weights = np.exp(-checked_epsilon(epsilon) * np.asarray(distances, float))
    rows: Array = weights / weights.sum(axis=1, keepdims=True)
    return rows


def ring(size: int) -> Array:
    """Distances of `size` answers in a circle, each next to two."""
    places = np.arange(checked_count(size, "answers on a ring", 1))
    apart = np.abs(places[:, None] - places)
    steps: Array = np.minimum(apart, size - apart)
    return steps


def clique(size: int) -> Array:
    """Distances of `size` answers, each next to all others."""
    return 1 - np.eye(checked_count(size, "answers of a clique", 1))


def line(size: int) -> Array:
    """Distances of `size` answers in a row, as counts are."""
    places = np.arange(checked_count(size, "answers on a line", 1))
    steps: Array = np.abs(places[:, None] - places)
    return steps


def _joint(channel: Array, prior: Array | None) -> Array:
    believed = np.full(len(channel), 1 / len(channel)) if prior is None else np.asarray(prior, float)
    if believed.shape != channel.shape[:1] or (believed < 0).any() or abs(believed.sum() - 1) > 1e-9:
        raise BudgetInvalid(
            f"a prior of shape {believed.shape} and sum {believed.sum():g} for {len(channel)} inputs.",
            remedy="Give one probability for each input; together they are 1.",
        )
    joint: Array = believed[:, None] * channel
    return joint


def _difference(logs: Array) -> Array:
    with np.errstate(invalid="ignore"):
        apart: Array = logs[:, None] - logs[None]
    return apart
