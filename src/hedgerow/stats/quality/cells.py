"""Cells of a score: where public bins lie, and how neighbours are taken together until none shows a small count.

    centre, scale    from mean and standard deviation of the linear predictor, where they are known (`place_of`)
    edges            centre + scale * log(i / (k - i)), i = 1 .. k - 1
    cells            runs of bins, each with `least` events of the total or none, and `least` others or none; of all such
                     partitions the one whose cells hide the fewest pairs of an event and another record

Bins follow the scores of the model: those that are shrunk, steep or shifted are told apart as well as log-odds. With a score
normal in each class, as wide in both, bins take least from the area where their density is the cube root of the product of
the two densities: a normal one between the classes, sqrt(1.5) times as wide as either. Only the mean and the standard
deviation over both classes are asked for, since those of the events would tell the score of a single one; the distance
between the classes is taken for 1.5 standard deviations, an area of 0.86. Where neither is known (behind noise) the centre
is log(share / (1 - share)) and the scale 1, which suits probabilities that are right.

A cell without events is kept, since a score that tells the classes apart has such cells; a cell with one to nine is not.
Merging is decided from the total over all parties, at the server, and governs what is shown; an area is that of the counts
before. Cells of other edges, such as groups of a calibration beside a ROC curve, are merged so that no difference of both is
small either (`starts_beside`); calls that know nothing of each other cannot see to that. The server itself has seen the counts
of the bins: those of the total where rows are hidden, each party's where they are not. It is therefore the number of bins, not
the merging, that limits what a party with few records tells of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import logit

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

Shown = tuple[Array, Array, Array]
"""Inner edges of the linear predictor of cells that are shown, others and events of each."""

BINS, MOST_BINS, FEW = 20, 100, 3000.0
"""Bins by default up to so many records, and at most."""
APART = 1.5
"""Standard deviations between the mean scores of the two classes, where nobody knows."""
LEAST = 10.0
"""Events that a cell holds at least, or none, and others, of all parties together."""


def number_of_bins(n_records: float | None) -> int:
    """How many bins leave the area of a ROC curve off by much less than its standard error.

    The standard error falls as n^(-1/2), what bins hide as k^(-2), so bins grow as n^(1/4).
    """
    return BINS if not n_records else int(np.clip(np.ceil(BINS * (n_records / FEW) ** 0.25), BINS, MOST_BINS))


def place_of(mean: float, deviation: float, share: float) -> tuple[float, float]:
    """Centre and scale of bins for scores of this mean and standard deviation over both classes.

    Both are rounded, so that the last digits of a sum, which depend on its order, move no edge.
    """
    within = deviation / np.sqrt(1 + share * (1 - share) * APART**2)
    if not (np.isfinite(mean) and within > 1e-6 * max(1.0, abs(mean))):  # all scores are equal, as far as sums can tell
        return (mean, 1.0) if np.isfinite(mean) else (0.0, 1.0)
    scale = float(f"{np.sqrt(1.5) * within * np.sqrt(3) / np.pi:.1e}")
    return float(np.round((mean + APART * within * (0.5 - share)) / scale * 16) * scale / 16), scale


def inner_edges(bins: int | Array, share: float | None = None, place: tuple[float, float] | None = None) -> Array:
    """Inner edges of the linear predictor, shape (k - 1,).

    Parameters
    ----------
    bins : int or array of shape (k + 1,)
        A number, or edges of the probability from 0 to 1.
    share : float, optional
        Of events; one half if not given.
    place : (float, float), optional
        Centre and scale of a number of bins, as `place_of` says; else those of log-odds by the share.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    if not isinstance(bins, int | np.integer):
        edges: Array = logit(declared_edges(bins)[1:-1])
        return edges
    if bins < 2:
        raise SettingsInvalid(f"bins={bins!r} tell no score from another.", remedy="Give two bins or more.")
    centre, scale = place or (0.0 if share is None or not 0 < share < 1 else float(logit(share)), 1.0)
    evenly: Array = centre + scale * logit(np.linspace(0, 1, bins + 1)[1:-1])
    return evenly


def declared_edges(bins: int | Array) -> Array:
    """Edges of bins of the probability, shape (k + 1,): so many of equal width, or those that are given.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    counted = isinstance(bins, int | np.integer)
    edges = np.linspace(0, 1, max(int(bins), 0) + 1) if counted else np.asarray(bins, dtype=np.float64)
    if len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] != 0 or edges[-1] != 1:
        raise SettingsInvalid(f"bins={bins!r} do not cover the probabilities.", remedy="Give a number, or edges from 0 to 1.")
    return edges


def starts_of_cells(others: Array, events: Array, least: float) -> Array:
    """The first bin of each cell, for records of both classes by bin, each (k,); one cell where there is no other way.

    The best partition of the first j bins is a best partition of the first i and a cell of the bins between, so k^2 / 2
    cells are looked at.
    """
    k = len(events)
    if least <= 0:
        return np.arange(k)
    below = np.concatenate([np.zeros((2, 1)), np.cumsum([others, events], axis=1)], axis=1)
    hidden, begins = np.full(k + 1, np.inf), np.zeros(k + 1, dtype=np.intp)
    hidden[0] = 0.0
    for j in range(1, k + 1):
        held = below[:, j : j + 1] - below[:, :j]
        shown = ((held == 0) | (held >= least)).all(0) & (held.sum(0) >= least)
        pairs = np.where(shown, hidden[:j] + held[0] * held[1], np.inf)
        begins[j] = j - 1 - np.argmin(pairs[::-1])  # of equal ones the shortest cell
        hidden[j] = pairs[begins[j]]
    if not np.isfinite(hidden[k]):
        return np.zeros(1, dtype=np.intp)
    starts = [k]
    while starts[-1]:
        starts.append(int(begins[starts[-1]]))
    return np.array(starts[:0:-1])


def starts_beside(edges: Array, others: Array, events: Array, least: float, shown: Sequence[Shown]) -> Array:
    """The first bin of each cell where cells of other edges are shown as well, so that no difference of both is small either.

    Parameters
    ----------
    edges : array of shape (k - 1,)
        Inner edges of the linear predictor, and the counts of their bins, each (k,).
    shown : sequence of (edges, others, events)
        Of the cells that are shown already.
    """
    if not shown or least <= 0:
        return starts_of_cells(others, events, least)
    places = np.concatenate([[-np.inf], *(one[0] for one in shown), edges, [np.inf]])
    same = np.isclose(edges[:, None], np.concatenate([one[0] for one in shown]), rtol=1e-9, atol=1e-9).any(1)
    below = np.concatenate(
        [
            np.zeros((1, 2)),
            *(np.cumsum(one[1:], axis=1).T[:-1] for one in shown),
            np.cumsum([others, events], axis=1).T[:-1],
            [[others.sum(), events.sum()]],
        ]
    )
    own = np.zeros(len(places), dtype=np.intp)  # which of the bins begins at a place
    own[len(places) - 1 - len(edges) : -1] = np.where(same, 0, np.arange(1, len(edges) + 1))
    order = np.argsort(places, kind="stable")
    below, own = np.maximum.accumulate(below[order], axis=0), own[order]
    fixed = np.flatnonzero(own == 0)
    kept = [0, *(np.flatnonzero(same) + 1).tolist()]  # an edge of both parts no more than either
    for a, b in pairwise(fixed):  # within each cell that is shown
        held = np.diff(below[a : b + 1], axis=0).T
        kept += own[a + starts_of_cells(held[0], held[1], least)[1:]].tolist()
    return np.unique(np.array(kept, dtype=np.intp))


def added_up(counts: Array, starts: Array) -> Array:
    """Counts by cell, of counts by bin."""
    found: Array = np.add.reduceat(counts, starts)
    return found
