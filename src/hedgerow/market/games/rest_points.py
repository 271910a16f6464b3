"""Profiles from which no small step of an owner's own pays: the candidates for equilibria, also for those that are not stable.

    for every way to put each owner at the lowest epsilon, at the cap, or free between them:
        from many starts:   eps_free <- eps_free - (d slopes_free / d eps_free)^-1 slopes_free      Newton's steps, in the range
        keep where          slopes_free = 0,  their own derivatives <= 0,  slopes <= 0 at the lowest epsilon and >= 0 at the cap

Best responses lead to stable equilibria and hardly ever to others. Newton's steps lead to both.

With L owners there are 3^L ways. All are tried for at most 5 owners, from 48 starts each; for more, 400 of them from 6 starts
each: everybody free, and others drawn by chance. Nothing proves that all such profiles are found: a start leads to one, or to
none.

Source: derived for `hedgerow.market.games`.
"""

from __future__ import annotations

import itertools

import numpy as np

from hedgerow.core.arrays import Array

from .responses import OpennessGame

FEW, WAYS = 5, 400
"""Up to so many owners, all ways are tried; beyond, so many ways."""

STARTS, FEWER = 48, 6
"""Starts of each way for few owners, and for more. Of (4.2), mended, one start in seven leads to the unstable equilibrium."""

STEPS, FLAT = 60, 1e-9
"""Newton's steps, and the length of the last one of a start that arrived, as a share of the range."""


def rest_points(game: OpennessGame, rng: np.random.Generator) -> Array:
    """Find such profiles.

    Parameters
    ----------
    rng : Generator
        For starts: half of them uniform, half of them on a log scale, where small epsilons are found.

    Returns
    -------
    array of shape (found, players)
        Those that are found several times, several times.
    """
    ways = _ways(game.players, rng)  # -1 at the lowest epsilon, 1 at the cap, 0 free
    starts = STARTS if game.players <= FEW else FEWER
    way = np.repeat(ways, np.where((ways == 0).any(1), starts, 1), 0)
    free, low, span = way == 0, game.lowest, game.cap - game.lowest
    uniform = rng.random(way.shape)
    begun = low + span * np.where(rng.random((len(way), 1)) < 0.5, uniform, 10 ** (-4 * uniform))
    here = np.where(free, begun, np.where(way < 0, low, game.cap))
    moving = np.arange(len(here))
    with np.errstate(all="ignore"):  # where everybody is at 0, slopes have no derivatives
        for _ in range(STEPS):
            moved = np.clip(here[moving] + _newton(game, here[moving], free[moving]), low, game.cap)
            length = np.abs(moved - here[moving]).max(1)
            here[moving] = moved
            moving = moving[length > FLAT * span]
        step, slopes = _newton(game, here, free), game.own_slopes(here)
        bends = np.diagonal(game.slopes_of_slopes(here), axis1=-2, axis2=-1)
    arrived = np.abs(step).max(1) <= FLAT * span
    rests = np.where(free, ~(bends > 0), np.where(way < 0, slopes <= 0, slopes >= 0))
    found: Array = here[arrived & rests.all(1)]
    return found


def _ways(players: int, rng: np.random.Generator) -> Array:
    """Where each owner is put: shape (ways, players)."""
    if players <= FEW:
        return np.array(list(itertools.product((0, -1, 1), repeat=players)))
    return np.vstack([np.zeros((1, players), int), rng.integers(-1, 2, (WAYS - 1, players))])


def _newton(game: OpennessGame, here: Array, free: Array) -> Array:
    """Newton's step of those who are free; along the slopes where their derivatives cannot be solved with."""
    both = free[:, :, None] & free[:, None, :]
    still = -np.eye(game.players)
    matrix = np.where(both, game.slopes_of_slopes(here), still)
    matrix = np.where((np.abs(np.linalg.det(matrix)) > 0)[:, None, None], matrix, still)  # false for NaN as well
    found: Array = -np.linalg.solve(matrix, np.where(free, game.own_slopes(here), 0.0)[..., None])[..., 0]
    return found
