"""Equilibria of a game: found from many starts in two ways, checked by what a deviation gains, and named.

    candidates   where best responses end, stable ones mostly;  where nobody's small step pays (`.rest_points`), stable or not
    kept         from which nobody gains more than 1e-6 by another epsilon, searched over its whole range

Nothing else is called an equilibrium. It is

    interior              everybody between the ends
    everybody at zero     everybody at the lowest epsilon (0)
    everybody at the cap
    on the boundary       somebody at an end

and stable, if best responses lead back to it after each owner alone, and all of them, were moved by 1e-3 up and down.
Equilibria that differ in which of several equal owners does what are counted apart. There may be more than are found: nothing
here proves that there are none.

Existence and uniqueness. Payoffs that are continuous and concave in an owner's own epsilon have an equilibrium. It is the only
one if they are diagonally strictly concave (Rosen 1965): G + G' negative definite at every profile, where G holds the
derivatives of the own slopes. `uniqueness` looks at random profiles, which can refute this and make it likely, not prove it. In
the games (4.1) and (4.2) payoffs are not continuous where everybody is at 0: that is an equilibrium more, whatever G says.

Source: Wu 2019, definition 2; Rosen 1965, theorem 2. Differs: the thesis concludes uniqueness from concavity alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from hedgerow.core.arrays import Array

from .responses import OpennessGame, deviation_gains, in_turn, paths
from .rest_points import rest_points

Kind = Literal["interior", "everybody at zero", "everybody at the cap", "on the boundary"]

GAINS = 1e-6
"""An equilibrium leaves nobody more than this to gain."""

NUDGE, APART = 1e-3, 1e-6
ROUNDS, ENDED = 200, 1e-8


@dataclass(frozen=True)
class Equilibrium:
    """Epsilons from which nobody gains by deviating.

    Attributes
    ----------
    epsilons : array of shape (players,)
    kind : str
    stable : bool
        Whether best responses lead back to it.
    deviation_gain : float
        The largest, at most 1e-6.
    payoffs : array of shape (players,)
    """

    epsilons: Array
    kind: Kind
    stable: bool
    deviation_gain: float
    payoffs: Array

    @property
    def individually_rational(self) -> bool:
        """Whether everybody is paid at least its cost (definition 3)."""
        return bool((self.payoffs >= 0).all())


@dataclass(frozen=True)
class Uniqueness:
    """Rosen's condition at random profiles.

    Attributes
    ----------
    largest : float
        Largest eigenvalue of G + G' over all of them; below 0 if the condition held at each.
    share : float
        Share of them where it held.
    own : float
        Largest second derivative of a payoff by its owner's epsilon; at most 0 where payoffs are concave.
    profiles : int
    """

    largest: float
    share: float
    own: float
    profiles: int

    @property
    def held(self) -> bool:
        """At every profile that was looked at."""
        return self.largest < 0


def equilibria(game: OpennessGame, starts: Array | None = None, *, n_starts: int = 12, seed: int = 0) -> list[Equilibrium]:
    """Find equilibria: where best responses end, where no small step pays, and where everybody is at an end.

    Parameters
    ----------
    starts : array of shape (m, players), optional
        Of best responses, besides random ones and the profiles in which some are at an end, everybody or one alone.
    n_starts : int
        Random starts of best responses. Small steps have starts of their own: 48 for every way to put some owners at an end
        for at most 5 owners, 6 for 400 ways for more.

    Returns
    -------
    list of Equilibrium
        Those found; interior ones first, and stable ones before others; those within 1e-6 of each other once.
    """
    rng = np.random.default_rng(seed)
    p, low, cap = game.players, game.lowest, game.cap
    alone = np.where(np.eye(p, dtype=bool), cap, low)
    tried = [rng.uniform(low, cap, (n_starts, p)), alone, cap + low - alone]
    ends = paths(game, np.vstack(tried if starts is None else [np.asarray(starts, float), *tried]))[-1]
    corners = np.array([np.full(p, low), np.full(p, cap)])
    candidates = np.vstack([ends, corners, rest_points(game, rng)])
    candidates = candidates[np.unique(candidates.round(8), axis=0, return_index=True)[1]]
    gains = deviation_gains(game, candidates).max(1)
    kept: list[int] = []
    for k in np.argsort(gains, kind="stable"):
        if gains[k] <= GAINS and all(np.abs(candidates[k] - candidates[other]).max() > APART for other in kept):
            kept.append(int(k))
    found = [
        Equilibrium(candidates[k], kind_of(game, candidates[k]), bool(back), float(gains[k]), game.payoffs(candidates[k]))
        for k, back in zip(kept, return_to(game, candidates[kept]), strict=True)
    ]
    return sorted(found, key=lambda e: (e.kind != "interior", not e.stable, *(-e.epsilons).round(6)))


def kind_of(game: OpennessGame, profile: Array) -> Kind:
    """What a profile is called."""
    at_low, at_cap = profile <= game.lowest + APART, profile >= game.cap - APART
    if at_low.all():
        return "everybody at zero"
    if at_cap.all():
        return "everybody at the cap"
    return "on the boundary" if (at_low | at_cap).any() else "interior"


def return_to(game: OpennessGame, profiles: Array) -> Array:
    """Whether best responses lead back to each profile after each owner alone, and all, were moved by 1e-3 up and down.

    Back is who comes within 1e-5 in 200 rounds.
    """
    nudges = NUDGE * np.vstack([np.eye(game.players), np.ones(game.players)])
    starts = np.clip(profiles[:, None] + np.vstack([nudges, -nudges]), game.lowest, game.cap)
    here, homes = starts.reshape(-1, game.players), np.repeat(profiles, starts.shape[1], 0)
    back, going = np.zeros(len(here), bool), np.arange(len(here))
    for _ in range(ROUNDS):
        if not len(going):
            break
        moved = in_turn(game, here[going])
        ended = np.abs(moved - here[going]).max(1) <= ENDED
        here[going], back[going] = moved, np.abs(moved - homes[going]).max(1) <= 10 * APART
        going = going[~(ended | back[going])]
    return np.asarray(back.reshape(starts.shape[:2]).all(1))


def uniqueness(game: OpennessGame, n_profiles: int = 400, seed: int = 0) -> Uniqueness:
    """Look at Rosen's condition at random profiles between the ends."""
    rng = np.random.default_rng(seed)
    largest, own = [], -math.inf
    for _ in range(n_profiles):
        # 1 - u lies in (0, 1]: never where everybody is at 0
        g = game.slopes_of_slopes(game.lowest + (game.cap - game.lowest) * (1 - rng.random(game.players)))
        largest.append(float(np.linalg.eigvalsh(g + g.T)[-1]))
        own = max(own, float(np.diag(g).max()))
    return Uniqueness(max(largest), float(np.mean(np.array(largest) < 0)), own, n_profiles)


def best_welfare(game: OpennessGame, n_starts: int = 8, seed: int = 0) -> tuple[Array, float]:
    """Epsilons at which the sum of payoffs is largest, and that sum: a local search from several starts."""
    rng = np.random.default_rng(seed)
    bounds = [(game.lowest, game.cap)] * game.players
    starts = [*rng.uniform(game.lowest, game.cap, (n_starts, game.players)), np.full(game.players, game.cap)]
    found = [
        scipy.optimize.minimize(lambda e: -game.payoffs(e).sum(), start, bounds=bounds, method="L-BFGS-B") for start in starts
    ]
    best = min(found, key=lambda one: one.fun)
    return best.x, float(-best.fun)


def price_of_anarchy(found: list[Equilibrium], best: float) -> float:
    """How many times the sum of payoffs at the worst of these equilibria is worse than the largest; NaN where signs differ.

    Where payoffs are losses, the equilibrium's loss over the least; where they are gains, the largest over the equilibrium's.
    """
    worst = min((float(one.payoffs.sum()) for one in found), default=math.nan)
    if worst < 0 and best < 0:
        return worst / best
    return best / worst if worst > 0 and best > 0 else math.nan
