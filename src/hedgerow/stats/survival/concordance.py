"""Concordance of a score with survival: of which pairs of records the one with the higher score had the event first.

    for each event i, over the records j of its stratum that were at risk at its time and had no event then
        concordant  <- those of a lower score      tied  <- of the same score      discordant  <- of a higher one
    C  =  (concordant + tied / 2) / all three

Pairs within a stratum count, so pairs within a site. The error is that of the infinitesimal jackknife: by how much C moves
with each record, squared and added up.

Source : Harrell et al. 1982; Therneau & Watson 2015 (the vignette "Concordance" of R's survival).
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.core.arrays import Array

from .risk_sets import RiskSets

KEYS = 6
"""Numbers that a party adds up: pairs of three kinds, and three sums of squares."""


def concordance_sums(sets: RiskSets) -> Array:
    """Concordant, discordant and tied pairs of a stratum, and sums over records of a², ab and b²; shape (6,).

    `a` is what the pairs of a record count for C, `b` how many they are.
    """
    event, w = sets.event, sets.w
    key = _ranks(sets.time, np.where(event, 0, 1))  # of those with one time, who had the event comes before who was censored
    by_event = _counted(key[event], sets.eta[event], key, sets.eta, w)
    if sets.entry is not None:  # who had not come yet
        both = _ranks(
            np.concatenate([sets.time[event], sets.entry]), np.concatenate([np.ones(event.sum()), np.full(len(w), 2)])
        )
        by_event -= _counted(both[: event.sum()], sets.eta[event], both[event.sum() :], sets.eta, w)
    less, same, all_of_them = by_event
    own = w[event]
    concordant, tied, pairs = float(own @ less), float(own @ same), float(own @ all_of_them)
    # the same pairs as the later record sees them: events before it, since it came
    before = _counted(-key, -sets.eta, -key[event], -sets.eta[event], own)
    if sets.entry is not None:
        back = _ranks(
            np.concatenate([sets.entry, sets.time[event]]), np.concatenate([np.full(len(w), 2), np.ones(event.sum())])
        )
        before -= _counted(-back[: len(w)], -sets.eta, -back[len(w) :], -sets.eta[event], own)
    b = before[2].copy()
    a = before[0] + before[1] / 2
    a[event] += less + same / 2
    b[event] += all_of_them
    return np.array([concordant, pairs - concordant - tied, tied, w @ (a * a), w @ (a * b), w @ (b * b)])


def concordance_of(sums: Array) -> tuple[float, float]:
    """C and its standard error from the sums of all strata; NaN where no pair is comparable."""
    concordant, discordant, tied, aa, ab, bb = map(float, sums)
    pairs = concordant + discordant + tied
    if not pairs > 0.5:
        return math.nan, math.nan
    c = (concordant + tied / 2) / pairs
    return c, math.sqrt(max(aa - 2 * c * ab + c * c * bb, 0.0)) / pairs


def _ranks(first: Array, second: Array) -> Array:
    """Whole numbers in the order of `first` and then `second`; equal ones are equal."""
    order = np.lexsort((second, first))
    a, b = first[order], second[order]
    new = np.concatenate([[False], (np.diff(a) != 0) | (np.diff(b) != 0)]) if len(order) else np.zeros(0, bool)
    found = np.empty(len(order))
    found[order] = np.cumsum(new)
    return found


def _counted(q_key: Array, q_eta: Array, p_key: Array, p_eta: Array, p_w: Array) -> Array:
    """Weights of points beyond each query's key whose score is lower, equal, and any; shape (3, queries).

    Points and queries are put in the order of keys. Blocks of one, two, four and so on are then paired: a query in the left
    one of two sees the points of the right one, in the order of scores. Each pair of query and point meets once.
    """
    n_q = len(q_key)
    key, eta = np.concatenate([q_key, p_key]), np.concatenate([q_eta, p_eta])
    w = np.concatenate([np.zeros(n_q), p_w])
    order = np.lexsort((np.arange(len(key)) < n_q, key))  # at one key points come first: a query is after them
    place = np.empty(len(key), dtype=np.int64)
    place[order] = np.arange(len(key))
    by_eta = np.argsort(eta, kind="stable")
    score = np.concatenate([[0], np.cumsum(np.diff(eta[by_eta]) != 0)]) if len(key) else np.zeros(0)
    place, w, total = place[by_eta], w[by_eta], np.zeros((3, len(key)))
    size = 1
    while size < len(key):
        pair, right = place // (2 * size), (place // size) % 2 == 1
        within = np.argsort(pair, kind="stable")
        p, s = pair[within], score[within]
        added = np.concatenate([[0.0], np.cumsum(np.where(right, w, 0.0)[within])])
        starts = _first(np.diff(p, prepend=-1) != 0)
        tie = _first((np.diff(p, prepend=-1) != 0) | (np.diff(s, prepend=-1) != 0))
        ends = len(p) - 1 - _first(np.diff(p[::-1], prepend=-1) != 0)[::-1]
        tie_ends = len(p) - 1 - _first((np.diff(p[::-1], prepend=-1) != 0) | (np.diff(s[::-1], prepend=-1) != 0))[::-1]
        sees = ~right[within]
        base = added[starts]
        found = np.stack([added[tie] - base, added[tie_ends + 1] - added[tie], added[ends + 1] - base])
        total[:, within] += np.where(sees, found, 0.0)
        size *= 2
    back = np.empty_like(total)
    back[:, by_eta] = total
    return back[:, :n_q]


def _first(new: Array) -> Array:
    """For each place where its run begins, where `new` says that one does."""
    found: Array = np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))
    return found
