"""Who shares masks with whom: a regular graph on a ring in random order, or everybody with everybody.

With n parties and k neighbours each, a party's cost depends on k, and k grows with the logarithm of n: 36 neighbours do for
100 000 parties of which one in twenty colludes with the server and one in twenty drops out.

The order of the ring follows from a public seed, so that every party can derive its neighbours for itself.

Source: Bell, Bonawitz, Gascon, Lepoint & Raykova 2020, section 3 (semi-honest case). Differs: tails are those of the
hypergeometric distributions themselves rather than bounds on them.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hedgerow.errors import SettingsInvalid

from .streams import keystream

Indices = NDArray[np.int64]

LARGEST_DEGREE = 2048
"""Neighbours that a party may have: products of the secret sharing are exact up to here."""


@lru_cache(maxsize=8)
def ring(seed: bytes, n: int) -> Indices:
    """The order of n parties on a ring: a permutation that follows from 32 public bytes; shape (n,), read-only."""
    order = np.argsort(np.frombuffer(keystream(seed, bytes(16), 8 * n), "<u8"), kind="stable").astype(np.int64)
    order.flags.writeable = False
    return order


def neighbours_of(seed: bytes, n: int, k: int, party: int) -> Indices:
    """The neighbours of one party, shape (k,), ascending.

    Raises
    ------
    SettingsInvalid (HR-511)
        No such graph exists.
    """
    _check(n, k)
    if k == n - 1:
        return np.delete(np.arange(n), party)
    order = ring(seed, n)
    place = int(np.flatnonzero(order == party)[0])
    steps = np.arange(1, k // 2 + 1)
    return np.sort(order[(place + np.concatenate([steps, -steps])) % n])


class Graph:
    """The graph of a whole epoch, as its server needs it.

    Parameters
    ----------
    seed : bytes of length 32
        From which the order of the ring follows.
    n, k : int
        Parties, and neighbours of each: even, or n - 1.
    """

    def __init__(self, seed: bytes, n: int, k: int) -> None:
        _check(n, k)
        self.seed, self.n, self.k = seed, n, k

    @cached_property
    def neighbours(self) -> Indices:
        """Neighbours of every party, shape (n, k), ascending in each row."""
        n, k = self.n, self.k
        if k == n - 1:
            others = np.arange(n - 1)
            return others + (others >= np.arange(n)[:, None])
        order = ring(self.seed, n)
        steps = np.arange(1, k // 2 + 1)
        around = order[(np.arange(n)[:, None] + np.concatenate([steps, -steps])) % n]
        found = np.empty((n, k), np.int64)
        found[order] = np.sort(around, axis=1)
        return found

    @cached_property
    def slots(self) -> Indices:
        """Where a party stands among the neighbours of its neighbours: shape (n, k).

        `neighbours[neighbours[i, j], slots[i, j]] == i`.
        """
        n, k = self.n, self.k
        own = np.arange(n)[:, None]
        edges = (own * n + self.neighbours).ravel()  # ascending, since rows and columns are
        back = np.searchsorted(edges, (self.neighbours * n + own).ravel()).reshape(n, k)
        return back - self.neighbours * k


@lru_cache(maxsize=256)
def neighbours_needed(
    n: int,
    corrupt: float,
    dropouts: float,
    privacy: float = 2.0**-40,
    correctness: float = 2.0**-20,
    active: bool = False,
) -> tuple[int, int]:
    """Fewest neighbours k, and the threshold t of their secret sharing, for n parties.

    Up to these probabilities, over the order of the ring: nobody has so many colluding neighbours that both secrets of a party
    come together, and the parties that neither collude nor drop out stay connected (`privacy`); everybody keeps t neighbours
    that answer (`correctness`). So many are t, and against a server that lies 2t - k: it can tell one half of the honest
    neighbours that a party answered, and the other half that it did not.

    Parameters
    ----------
    n : int
    corrupt, dropouts : float
        Fractions of parties that collude with the server, and that drop out of a round.
    active : bool
        The server lies. Take t above 2k/3.

    Returns
    -------
    k, t : int
        k is even, or n - 1 where no sparser graph does; t is above k / 2.

    Raises
    ------
    SettingsInvalid (HR-511)
        Not even the complete graph does.
    """
    bad, gone = math.ceil(corrupt * n), math.ceil(dropouts * n)
    for k in range(2, min(n - 1, LARGEST_DEGREE + 1), 2):
        cut = n * min(1.0, corrupt + dropouts) ** (k // 2)  # k/2 parties in a row, all colluding or gone
        if cut > privacy:
            continue
        least = majority(k, active)
        colluding = n * _upper_tails(n - 1, bad, k)  # [c]: P(at least c of k collude) over all parties
        lawful = np.arange(least, k + 1)
        enough = lawful[colluding[stood(k, lawful, active)] <= privacy]
        if not len(enough):
            continue
        t = int(enough[0])
        lost = n * _upper_tails(n - 1, gone, k)  # [j]: P(at least j of k drop out)
        if t <= k and lost[k - t + 1] <= correctness:
            return k, t
    k, t = n - 1, safest(n - 1, bad, active)
    if n >= 3 and t <= k - gone and k <= LARGEST_DEGREE:
        return k, t
    raise SettingsInvalid(
        f"no graph of {n} parties stands {corrupt:g} of them colluding and {dropouts:g} dropping out.",
        remedy="Lower corrupt or dropouts; both together must stay well below one half.",
    )


def majority(k: int, active: bool) -> int:
    """Least threshold among k neighbours: above k / 2, or above 2k / 3 against a server that lies."""
    return 2 * k // 3 + 1 if active else k // 2 + 1


def stood(k: int, t: Any, active: bool) -> Any:
    """Of how many colluding neighbours both secrets of a party can come together, at a threshold (or at several)."""
    return 2 * t - k if active else t


def safest(k: int, bad: int, active: bool) -> int:
    """Least threshold among k neighbours of whom so many certainly collude; above k where there is none."""
    return max(majority(k, active), (k + bad) // 2 + 1 if active else bad + 1)


def _upper_tails(population: int, marked: int, draws: int) -> NDArray[np.float64]:
    """P(at least j of `draws` are marked), j = 0..draws + 1, drawing without replacement."""
    j = np.arange(draws + 1)
    lawful = (j <= marked) & (draws - j <= population - marked)
    held = j[lawful]
    logs = _choose(marked, held) + _choose(population - marked, draws - held) - _choose(population, np.array([draws]))
    mass = np.zeros(draws + 2)
    mass[:-1][lawful] = np.exp(logs)
    return np.minimum(np.cumsum(mass[::-1])[::-1], 1.0)


def _choose(n: int, k: Indices) -> NDArray[np.float64]:
    """Logarithm of the binomial coefficient."""
    lgamma = scipy.special.gammaln
    found: NDArray[np.float64] = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return found


def _check(n: int, k: int) -> None:
    if not 2 <= k <= n - 1 or k > LARGEST_DEGREE or (k % 2 and k != n - 1):
        raise SettingsInvalid(
            f"no graph of {n} parties has {k} neighbours to each.",
            remedy=f"neighbours: even and below {n - 1}, or {n - 1}; at most {LARGEST_DEGREE}.",
        )
