"""Best responses: from many starts at once, each found on a grid and then refined where its slope is zero.

repeat   for owner l = 1 .. L:   eps_l <- argmax over [lowest, cap] of payoff_l(eps_l, the others)
until nobody moves by more than 1e-10
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.market.prices.searches import falling_root

GRID = 257
"""Epsilons that are tried before the best is refined."""

STILL = 1e-10
"""Nobody moves by more than this: the end of a path."""


class OpennessGame(Protocol):
    """Owners that each choose an epsilon between `lowest` and `cap`; profiles are arrays of shape (..., players)."""

    @property
    def players(self) -> int:
        """How many owners."""
        ...

    @property
    def lowest(self) -> float:
        """Least epsilon of each."""
        ...

    @property
    def cap(self) -> float:
        """Largest epsilon of each."""
        ...

    def payoffs(self, profile: Array) -> Array:
        """Of each owner; shape (..., players)."""
        ...

    def own_slopes(self, profile: Array) -> Array:
        """Derivative of each payoff by its owner's epsilon; shape (..., players)."""
        ...

    def slopes_of_slopes(self, profile: Array) -> Array:
        """Derivative of each own slope by each epsilon; shape (..., players, players)."""
        ...


def best_responses(game: OpennessGame, owner: int, profiles: Array) -> Array:
    """What is best for an owner, given the others' epsilons.

    Parameters
    ----------
    owner : int
        Its place.
    profiles : array of shape (m, players)
        Its own epsilons there do not matter.

    Returns
    -------
    array of shape (m,)
        To about 1e-11 where a maximum lies inside; the lowest of several that are as good.
    """
    grid = np.linspace(game.lowest, game.cap, GRID)

    def payoff(epsilon: Array) -> Array:
        found: Array = game.payoffs(_with(profiles, owner, epsilon))[..., owner]
        return found

    def slope(epsilon: Array) -> Array:
        found: Array = game.own_slopes(_with(profiles, owner, epsilon))[..., owner]
        return found

    tried = np.repeat(grid[:, None], len(profiles), 1)
    at = payoff(tried).argmax(0)
    low, high = grid[np.maximum(at - 1, 0)], grid[np.minimum(at + 1, GRID - 1)]
    candidates = np.stack([grid[at], np.clip(falling_root(slope, low, high), low, high)])
    best: Array = np.take_along_axis(candidates, payoff(candidates).argmax(0)[None], 0)[0]
    return best


def paths(game: OpennessGame, starts: Array, rounds: int = 200) -> Array:
    """Let owners respond in turn.

    Parameters
    ----------
    starts : array of shape (m, players)
    rounds : int
        At most.

    Returns
    -------
    array of shape (rounds taken + 1, m, players)
    """
    walked = [np.array(starts, float)]
    for _ in range(rounds):
        walked.append(in_turn(game, walked[-1]))
        if np.abs(walked[-1] - walked[-2]).max() <= STILL:
            break
    return np.stack(walked)


def in_turn(game: OpennessGame, profiles: Array) -> Array:
    """Let every owner respond once, the first owner first: from profiles of shape (m, players) to such."""
    here = profiles.copy()
    for owner in range(game.players):
        here[:, owner] = best_responses(game, owner, here)
    return here


def deviation_gains(game: OpennessGame, profile: Array) -> Array:
    """What each owner would gain by its best other epsilon while the others stay, at least 0.

    A profile of shape (players,), or several of shape (m, players); the gains have its shape.
    """
    here = np.atleast_2d(np.asarray(profile, float))
    best = [game.payoffs(_with(here, k, best_responses(game, k, here)))[:, k] for k in range(game.players)]
    found: Array = np.maximum(np.stack(best, -1) - game.payoffs(here), 0.0)
    return found.reshape(np.shape(profile))


def _with(profiles: Array, owner: int, epsilon: Array) -> Array:
    """Profiles of shape (..., m, players) in which one owner has other epsilons, of shape (..., m)."""
    changed = np.broadcast_to(profiles, (*epsilon.shape, profiles.shape[-1])).copy()
    changed[..., owner] = epsilon
    return changed
