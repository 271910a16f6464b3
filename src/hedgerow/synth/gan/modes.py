"""Modes of numbers and frequencies of levels, from one histogram over public bins, or from the schema alone.

    "mixture"   h       <- how many records lie in each bin of each number, and have each level     sum, once
                modes   <- a Gaussian mixture of h, by expectation and maximisation                  post-processing
                           of K modes; those below a weight of .005 are dropped
    "equal"     K modes of equal widths over the declared range                                      asks nothing

Bins count as their middles, and no deviation is below half of a bin, since inside bins nothing is known. A number that is
declared to be constant has no bins and takes equal modes; no deviation is below `TINY` times the scale of the range.

Releases : the counts, one number for each bin and level, at most once.
Unit     : record. A record lies in one cell of each column: l2 sqrt(f), l1 f, times its largest weight.
Source   : Xu et al. 2019, section 4.2, where a variational mixture is fitted to the values themselves
         and switches modes off by its prior.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held
from hedgerow.stats.counts import tally
from hedgerow.trees.noise import ball, deviation

from ..codes import Codes, coded
from .encoding import RowEncoding

if TYPE_CHECKING:
    import pandas

Modes = Literal["mixture", "equal"]
ROUNDS = 100
"""Of a mixture's fit."""
LEAST = 0.005
"""Weight of a mode, below which it is dropped."""
SHARE = 1 / 6
"""Deviation of a public mode over its width: alpha is 3/4 at its ends."""
TINY = 1e-12
"""Deviation of a mode over the largest number of the range, at least: a declared range may be a single number."""


@local(additive=True, stackable=True, holds=True)
def marginal_counts(broadcast: None, party: Party, rng: Any, *, sizes: tuple[int, ...], bounds: Bounds | None = None) -> Array:
    """Count how many records have each value of each column.

    Codes side by side: shape (sum(sizes),), with a leading axis where parties are stacked.
    """
    codes, w = party["codes"], held(party.w, bounds, times=len(sizes))
    found = [tally(codes[..., j].astype(np.intp), w, size) for j, size in enumerate(sizes)]
    return np.concatenate(found, axis=-1)


def asked_counts(federation: Federation, encoding: RowEncoding) -> Array:
    """Counts of all bins and levels, side by side: the one question of this module."""
    codes, bound = encoding.codes, bound_of_counts(federation, encoding)
    counts: Array = federation.prepare(coded, codes=codes).sum(partial(marginal_counts, sizes=codes.sizes), bound=bound)
    return counts


def bound_of_counts(federation: Federation, encoding: RowEncoding) -> Bound | None:
    """How far a record moves them: one cell of each column."""
    codes = encoding.codes
    return None if codes.heaviest is None else ball(federation, len(codes.columns), codes.heaviest)


def found_behind_noise(federation: Federation, encoding: RowEncoding) -> Array:
    """The same, of which those below two deviations of their noise, which is public, are zero."""
    counts = asked_counts(federation, encoding)
    return np.where(counts < 2 * deviation(federation, bound_of_counts(federation, encoding), len(counts)), 0.0, counts)


def split(counts: Array, codes: Codes) -> list[Array]:
    """Counts of each column."""
    return np.split(counts, np.cumsum(codes.sizes)[:-1])


def modes_table(encoding: RowEncoding, modes: Array) -> pandas.DataFrame:
    """Modes that have weight, for people."""
    import pandas

    names = [encoding.codes.columns[block.column].name for block in encoding.numbers]
    rows = [(name, *mode) for name, own in zip(names, modes, strict=True) for mode in own if mode[0] > 0]
    return pandas.DataFrame(rows, columns=["column", "weight", "mean", "deviation"])


def modes_of(encoding: RowEncoding, counts: Array | None) -> Array:
    """Weight, mean and deviation of each mode of each number: shape (numbers, n_modes, 3); public ones without counts."""
    found = np.zeros((len(encoding.numbers), encoding.n_modes, 3))
    tables = None if counts is None else split(counts, encoding.codes)
    for block in encoding.numbers:
        column = encoding.codes.columns[block.column]
        low, high = cast(float, column.low), cast(float, column.high)
        found[block.mode] = equal_modes(low, high, encoding.n_modes)
        if tables is not None and high > low:
            ends = encoding.codes.ends(block.column)
            h = np.maximum(tables[block.column][: len(ends) - 1], 0.0)
            if h.sum() > 0:
                found[block.mode] = mixture(ends, h, encoding.n_modes)
    return found


def equal_modes(low: float, high: float, n_modes: int) -> Array:
    """Modes of equal widths over a range."""
    width = max(high - low, floor_of(low, high) / SHARE * n_modes) / n_modes
    middles = low + width * (np.arange(n_modes) + 0.5)
    return np.column_stack([np.full(n_modes, 1 / n_modes), middles, np.full(n_modes, SHARE * width)])


def floor_of(low: float, high: float) -> float:
    """The least deviation of a mode in this range."""
    return TINY * (max(abs(low), abs(high)) or 1.0)


def mixture(ends: Array, counts: Array, n_modes: int) -> Array:
    """A Gaussian mixture of a histogram with ends (b + 1,) and counts (b,), none below zero: shape (n_modes, 3)."""
    middles, widths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    below = (np.cumsum(counts) - counts / 2) / counts.sum()
    mean = np.interp((np.arange(n_modes) + 0.5) / n_modes, below, middles)
    spread = np.sqrt(np.average((middles - np.average(middles, weights=counts)) ** 2, weights=counts))
    least = floor_of(ends[0], ends[-1])
    weight, deviation = np.full(n_modes, 1 / n_modes), np.maximum(spread / n_modes, np.interp(mean, middles, widths) / 2)
    deviation = np.maximum(deviation, least)
    for _ in range(ROUNDS):
        z = (middles[:, None] - mean) / deviation
        r = special.softmax(np.log(weight) - np.log(deviation) - 0.5 * z * z, axis=1) * counts[:, None]
        share = np.maximum(r.sum(0), 1e-9)
        mean = (r * middles[:, None]).sum(0) / share
        variance = (r * (middles[:, None] - mean) ** 2).sum(0) / share
        deviation = np.maximum(np.sqrt(variance), np.maximum(np.interp(mean, middles, widths) / 2, least))
        weight = share / share.sum()
    weight = np.where(weight < min(LEAST, weight.max()), 0.0, weight)
    return np.column_stack([weight / weight.sum(), mean, deviation])


def level_counts_of(encoding: RowEncoding, counts: Array | None) -> Array:
    """How often each level of each column occurs, side by side as in a vector of conditions; ones without counts."""
    found = np.ones(encoding.conditions)
    if counts is not None:
        tables = split(counts, encoding.codes)
        for block in encoding.discrete:
            own = np.maximum(tables[block.column], 0.0)
            found[block.levels] = own if own.sum() > 0 else 1.0
    return found
