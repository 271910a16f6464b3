"""Mode-specific normalisation: records as networks read and make them, and back.

    category, binary    one-hot of the level; a value that may be missing has one level more
    number, integer     a mode k of the column, drawn by responsibility    rho_k ~ weight_k N(value; mu_k, phi_k)
                        alpha = (value - mu_k) / (4 phi_k), cut to [-1, 1], and one-hot beta of k; where a value may be
                        missing, one place of beta more

Each number has the same number of modes, so that shapes are public; a mode of weight zero is never used.

Source : Xu, Skoularidou, Cuesta-Infante & Veeramachaneni, NeurIPS 2019, section 4.2. Differs: modes come from a histogram over
         public bins, or are public themselves (`modes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels

from ..codes import Codes

WIDE = 4.0
"""Alpha is one at so many deviations from the middle of a mode."""
NUMBERS = ("number", "integer")


@dataclass(frozen=True)
class ColumnBlock:
    """The places of one column in a row that networks read.

    Attributes
    ----------
    column : int
        Its place among the columns.
    start, size : int
        Of its one-hot part.
    alpha : int
        The place of alpha, before the one-hot part; -1 of a category.
    condition : int
        Where its levels start in a vector of conditions; -1 of a number.
    mode : int
        Which row of the modes is its own; -1 of a category.
    """

    column: int
    start: int
    size: int
    alpha: int = -1
    condition: int = -1
    mode: int = -1

    @property
    def hot(self) -> slice:
        """The one-hot part."""
        return slice(self.start, self.start + self.size)

    @property
    def levels(self) -> slice:
        """Its levels in a vector of conditions."""
        return slice(self.condition, self.condition + self.size)


@travels
@dataclass(frozen=True)
class RowEncoding:
    """How records become rows of numbers.

    Attributes
    ----------
    codes : Codes
        The columns. Bins of its numbers are those of the histograms from which modes are found.
    n_modes : int
        Of each number.
    """

    codes: Codes
    n_modes: int = 10

    @cached_property
    def blocks(self) -> tuple[ColumnBlock, ...]:
        """One for each column, in their order."""
        found, at, condition, mode = [], 0, 0, 0
        for j, column in enumerate(self.codes.columns):
            if column.kind in NUMBERS:
                block = ColumnBlock(j, at + 1, self.n_modes + column.optional, alpha=at, mode=mode)
                at, mode = at + 1 + block.size, mode + 1
            else:
                block = ColumnBlock(j, at, self.codes.sizes[j], condition=condition)
                at, condition = at + block.size, condition + block.size
            found.append(block)
        return tuple(found)

    @cached_property
    def numbers(self) -> tuple[ColumnBlock, ...]:
        """Blocks of numbers."""
        return tuple(block for block in self.blocks if block.mode >= 0)

    @cached_property
    def discrete(self) -> tuple[ColumnBlock, ...]:
        """Blocks of columns with levels, on which records are conditioned."""
        return tuple(block for block in self.blocks if block.mode < 0)

    @cached_property
    def width(self) -> int:
        """Numbers of a row."""
        return sum(block.size + (block.mode >= 0) for block in self.blocks)

    @cached_property
    def conditions(self) -> int:
        """Numbers of a vector of conditions."""
        return sum(block.size for block in self.discrete)

    def levels(self, columns: Mapping[str, Any]) -> Array:
        """Codes of the columns with levels: shape (n, discrete columns)."""
        places = [block.column for block in self.discrete]
        if not places:
            return np.zeros((len(next(iter(columns.values()))), 0), np.int16)
        kept = [self.codes.columns[j] for j in places]
        cuts, widths = tuple(self.codes.cuts[j] for j in places), tuple(self.codes.widths[j] for j in places)
        return Codes(tuple(kept), cuts, widths).number(columns)

    def encode(self, columns: Mapping[str, Any], modes: Array, rng: Any = None) -> Array:
        """Return rows of shape (n, width), float32.

        Parameters
        ----------
        columns : mapping
            Admitted columns, by name.
        modes : array of shape (numbers, n_modes, 3)
            Weight, mean and deviation of each mode.
        rng : numpy.random.Generator, optional
            Draws the mode of each number; without it the likeliest one is taken.
        """
        levels = self.levels(columns)
        rows = np.zeros((len(levels), self.width), np.float32)
        each = np.arange(len(levels))
        for block, codes in zip(self.discrete, levels.T, strict=True):
            rows[each, block.start + codes] = 1.0
        for block in self.numbers:
            column = self.codes.columns[block.column]
            values = np.asarray(columns[column.name], np.float64)
            absent = column.lacks(values) if column.optional else np.zeros(len(values), bool)
            values = np.where(absent, 0.0, values)
            k = chosen(values, modes[block.mode], rng)
            _, mean, deviation = modes[block.mode].T
            alpha = np.clip((values - mean[k]) / (WIDE * deviation[k]), -1.0, 1.0)
            rows[:, block.alpha] = np.where(absent, 0.0, alpha)
            rows[each, block.start + np.where(absent, self.n_modes, k)] = 1.0
        return rows

    def decode(self, rows: Array, modes: Array) -> dict[str, Array]:
        """Return lawful columns of rows whose one-hot parts may be any numbers, of which the largest counts."""
        found = {}
        for block in self.blocks:
            column = self.codes.columns[block.column]
            k = rows[:, block.hot].argmax(1)
            if block.mode < 0:
                levels = len(self.codes.cuts[block.column]) + 1
                absent = k >= levels
                lack, kind = (-1, np.int16) if column.kind == "category" else (np.nan, np.float64)
                found[column.name] = np.where(absent, lack, k).astype(kind)
                continue
            absent = k >= self.n_modes
            _, mean, deviation = modes[block.mode][np.minimum(k, self.n_modes - 1)].T
            values = mean + WIDE * deviation * rows[:, block.alpha].astype(np.float64)
            low, high = cast(float, column.low), cast(float, column.high)
            if column.kind == "integer":
                values, low, high = np.rint(values), np.ceil(low), np.floor(high)
            found[column.name] = np.where(absent, np.nan, np.clip(values, low, high))
        return found


def chosen(values: Array, modes: Array, rng: Any = None) -> Array:
    """The mode of each value (n,): drawn by responsibility, or the likeliest; modes have shape (n_modes, 3)."""
    weight, mean, deviation = modes.T
    with np.errstate(divide="ignore"):
        constant = np.log(weight) - np.log(deviation)
    best, most = np.zeros(len(values), np.intp), np.full(len(values), -np.inf)
    for k in np.flatnonzero(weight > 0):
        z = (values - mean[k]) / deviation[k]
        score = constant[k] - 0.5 * (z * z)
        if rng is not None:
            score = score + rng.gumbel(size=len(values))
        best, most = np.where(score > most, k, best), np.maximum(most, score)
    return best
