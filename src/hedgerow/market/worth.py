"""What an owner is worth to the others: by what it adds to them, by what is missing without it, by Shapley's rule.

    worth of a set     a function of sums over its members: v(sum of parts)
        precision      parts n^2 / (s n + A a); v their sum: 1 / (excess - bias) of the best weights, hence additive
        best weights   the same parts; v = nobody - min(bias + 1 / sum, nobody)
        equal weights  parts n and a;  v = nobody - min(bias + s / sum n + A sum a / (sum n)^2, nobody)

    marginal worth     v(S with l) - v(S without l), for a given set S
    leave one out      the same for S = everybody
    Shapley            the mean of l's marginal worth over all orders in which owners may join

`nobody` is the excess of the coefficients that cost no question, zeros: a result that is worse than these is not used, and so
no set is worth less than nothing. Shapley's shares add up to the worth of everybody; alike owners have alike shares; who adds
nothing to any set has none. Of precision the share is the owner's own part, whoever else takes part, and no order is tried. Of
fitness, orders are sampled: each is one cumulative sum, and no model is trained; with few owners all sets are counted instead.

Source: Shapley 1953. Sampled orders: Castro, Gomez and Tejada 2009. The worths are derived for `hedgerow.market.coalitions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .coalitions import precisions

FEW = 16
"""With so many owners at most, all their sets are counted."""

AT_ONCE = 1 << 20
"""So many places in orders are held at once."""


@dataclass(frozen=True)
class CoalitionWorth:
    """The worth of every set of owners, as a function of what its members add up.

    Parameters
    ----------
    parts : array of shape (owners, parts)
        At least 0.
    of_sums : callable
        Sums of parts, shape (..., parts), to worths, shape (...); sums of nobody are zeros, and worth 0.
    """

    parts: Array
    of_sums: Callable[[Array], Array]

    @classmethod
    def precision(cls, records: Array, variances: Array, sampling: float, amplification: float) -> CoalitionWorth:
        """Of 1 / (excess - bias) under the best weights; arguments as of `hedgerow.market.excess`."""
        parts = precisions(records, variances, sampling, amplification)
        return cls(parts[:, None], lambda sums: sums[..., 0])

    @classmethod
    def of_best_weights(
        cls, records: Array, variances: Array, sampling: float, amplification: float, bias: float, nobody: float
    ) -> CoalitionWorth:
        """Of the excess that a set saves under its best weights, in units of the loss.

        Parameters
        ----------
        nobody : float
            Excess of coefficients that are all zero.
        """
        parts = precisions(records, variances, sampling, amplification)

        def saved(sums: Array) -> Array:
            with np.errstate(divide="ignore"):
                return nobody - np.minimum(bias + 1 / sums[..., 0], nobody)

        return cls(parts[:, None], saved)

    @classmethod
    def of_equal_weights(
        cls, records: Array, variances: Array, sampling: float, amplification: float, bias: float, nobody: float
    ) -> CoalitionWorth:
        """The same where all members have the same weight: who adds much noise may be worth less than nothing to the others."""
        precisions(records, variances, sampling, amplification)  # refuses what cannot be

        def saved(sums: Array) -> Array:
            n, a = sums[..., 0], sums[..., 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                found = bias + sampling / n + amplification * a / n**2
            return nobody - np.minimum(np.where(n > 0, found, np.inf), nobody)

        return cls(np.column_stack([records, variances]).astype(float), saved)

    def of(self, members: Array) -> Array:
        """Worth of sets: `members` of shape (..., owners), true or false; shape (...)."""
        return self.of_sums(np.asarray(members, float) @ self.parts)

    @property
    def everybody(self) -> float:
        """Worth of all owners together."""
        return float(self.of_sums(self.parts.sum(0)))


def marginal_worth(worth: CoalitionWorth, members: Array) -> Array:
    """What each owner adds to a set: v(S with l) - v(S without l).

    Parameters
    ----------
    members : array of bool, shape (owners,)
        S; its own members are taken out of it in turn.

    Returns
    -------
    array of shape (owners,)
    """
    inside = np.asarray(members, bool)[:, None]
    held = np.where(inside, worth.parts, 0.0)
    before = np.cumsum(held, axis=0) - held
    after = np.cumsum(held[::-1], axis=0)[::-1] - held
    others = before + after
    found: Array = worth.of_sums(others + worth.parts) - worth.of_sums(others)
    return found


def leave_one_out(worth: CoalitionWorth) -> Array:
    """What would be missing without each owner, if all others stayed: shape (owners,)."""
    return marginal_worth(worth, np.ones(len(worth.parts), bool))


def shapley(worth: CoalitionWorth) -> Array:
    """Shapley's shares by counting all sets, of `FEW` owners at most: shape (owners,).

    Raises
    ------
    SettingsInvalid (HR-511)
        There are more owners.
    """
    count = len(worth.parts)
    if count > FEW:
        raise SettingsInvalid(
            f"{count} owners have 2^{count} sets.", remedy=f"Count at most {FEW} owners; use sampled_shapley for more."
        )
    sets = np.arange(1 << count)[:, None] >> np.arange(count) & 1
    values, sizes = worth.of(sets), sets.sum(1)
    chance = np.array([1 / (count * math.comb(count - 1, size)) for size in range(count)])  # of the set before its l-th owner
    found = np.empty(count)
    for owner in range(count):
        without = np.flatnonzero(sets[:, owner] == 0)
        found[owner] = chance[sizes[without]] @ (values[without | 1 << owner] - values[without])
    return found


def sampled_shapley(worth: CoalitionWorth, orders: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Shapley's shares over orders that are drawn at random, with their standard errors: two arrays of shape (owners,).

    Parameters
    ----------
    orders : int
        At least 2; an error falls with their root. The shares of each order add up to the worth of everybody.
    """
    if orders < 2:
        raise SettingsInvalid(f"{orders=}.", remedy="Draw at least 2, from whose spread the error follows.")
    count, parts = worth.parts.shape
    total, squares, at_once = np.zeros(count), np.zeros(count), max(1, AT_ONCE // (count * parts))
    for begin in range(0, orders, at_once):
        order = rng.permuted(np.tile(np.arange(count), (min(at_once, orders - begin), 1)), axis=1)
        reached = worth.of_sums(np.cumsum(worth.parts[order], axis=1))
        added = np.empty_like(reached)
        np.put_along_axis(added, order, np.diff(reached, axis=1, prepend=0.0), axis=1)
        total += added.sum(0)
        squares += np.square(added).sum(0)
    mean = total / orders
    spread = np.maximum(squares / orders - mean**2, 0.0) * orders / (orders - 1)
    return mean, np.sqrt(spread / orders)
