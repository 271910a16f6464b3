"""Draws from a Gaussian copula of codes, as they are and under conditions.

    without conditions   Z = L e, e ~ N(0, 1), R = L L';  each column's order is kept and its places are spread evenly
    with conditions      rejection, of which the first condition never costs a draw:
                         1  class     by  share x weight x P(first | class)
                         2  z_1       from its law among the codes that the first condition allows, by their weights
                         3  z_k       the same, given z_1 .. z_(k-1); the draw is kept with probability P(k-th | these)
                         4  the rest  given all of them

Draws that are kept have exactly the law of independent draws which satisfy the conditions, but for the rounding of a normal
distribution function. Of those that are begun, P(all | first) are kept. A budget bounds how many are begun, and beyond it
nothing is returned: draws that were made to fit would have another law.

Without conditions the columns are spread (Stein 1987): the share of every code is that of the model to within one record. A
record follows the model's law to order 1 / rows, and records are not independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .conditions import Conditions
from .latent import cut_scale
from .synthesizer import Synthesizer

BEGUN = 2_000
"""Draws that are begun for each one that is wanted, and for a hundred more, at most."""
AT_ONCE = 1 << 13


@dataclass(frozen=True, eq=False, repr=False)
class CopulaSynthesizer(Synthesizer):
    """A Gaussian copula of codes, or one inside each class of a column.

    Attributes
    ----------
    by : int or None
        Place of the column of classes.
    classes : array of shape (classes,)
        Their shares; of one class without such a column.
    shares : array of shape (classes, sum of the other columns' codes)
        Of each code of each other column, one column after the other; of a column they add up to 1.
    correlation : array of shape (classes, d, d)
        Of the d other columns on the latent scale.
    """

    by: int | None
    classes: Array
    shares: Array
    correlation: Array

    @property
    def others(self) -> tuple[int, ...]:
        """Places of the columns that are not of classes."""
        return tuple(j for j in range(len(self.codes.columns)) if j != self.by)

    def draw(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return the codes of made-up records: shape (rows, f).

        Raises
        ------
        SettingsInvalid (HR-511)
            The conditions have no probability, or so little after the first of them that the budget of draws is spent.
        """
        if conditions.weights:
            return self._conditioned(rows, conditions.weights, rng)
        at = (rng.permutation(rows) + rng.random(rows)) / rows
        which = np.minimum(np.searchsorted(np.cumsum(self.classes), at, side="right"), len(self.classes) - 1)
        found = np.empty((rows, len(self.codes.columns)), np.int64)
        for k in np.unique(which):
            mine = np.flatnonzero(which == k)
            Z = rng.standard_normal((len(mine), len(self.others))) @ np.linalg.cholesky(self.correlation[k]).T
            Z = ndtri(_spread(ndtr(Z)))
            found[mine[:, None], self.others] = self._codes_at(k, Z)
        return self._with_class(found, which)

    def _conditioned(self, rows: int, weights: Mapping[int, Array], rng: np.random.Generator) -> Array:
        of_class = np.ones(len(self.classes)) if self.by is None else weights.get(self.by, np.ones(len(self.classes)))
        conditions = [(i, weights[j]) for i, j in enumerate(self.others) if j in weights]
        odds = self.classes * of_class
        by_condition = [np.array([self._shares(k)[i] @ w for k in range(len(odds))]) for i, w in conditions]
        if conditions:  # the rarest one is first
            order = np.argsort([float(odds @ part) for part in by_condition], kind="stable")
            conditions = [conditions[i] for i in order]
            odds = odds * by_condition[order[0]]
        if not odds.sum() > 0:
            raise SettingsInvalid("the conditions have no probability at all.", remedy="Loosen them: where={...}.")
        kept: list[Array] = []
        begun, done, most = 0, 0, BEGUN * (rows + 100)
        while done < rows:
            if begun >= most:
                raise SettingsInvalid(
                    f"of {begun} draws that satisfy the rarest condition, {done} satisfy all of them; {rows} are wanted.",
                    remedy="Loosen the conditions, or take hr.synth.tan, which draws under conditions without rejection.",
                )
            some = int(min(AT_ONCE, most - begun, max(256, 2 * (rows - done) * (begun + 1) / (done + 1))))
            which = rng.choice(len(odds), some, p=odds / odds.sum())
            found = [self._begun(int(k), int(n), conditions, rng) for k, n in zip(*_counted(which), strict=True)]
            made = np.concatenate(found)
            kept.append(made[rng.permutation(len(made))])
            begun, done = begun + some, done + len(made)
        return np.concatenate(kept)[:rows]

    def _begun(self, k: int, n: int, conditions: list[tuple[int, Array]], rng: np.random.Generator) -> Array:
        """Codes of those of `n` draws of class `k` that satisfy the conditions."""
        first = [i for i, _ in conditions]
        order = [*first, *(i for i in range(len(self.others)) if i not in first)]
        L = np.linalg.cholesky(self.correlation[k][np.ix_(order, order)])
        e = rng.standard_normal((n, len(order)))
        chosen: list[Array] = []
        for step, (i, w) in enumerate(conditions):
            cuts = cut_scale(self._shares(k)[i])
            centre, width = e[:, :step] @ L[step, :step], L[step, step]
            below = ndtr((cuts - centre[:, None]) / width)
            masses = np.diff(below, axis=1) * w
            reached = np.cumsum(masses, axis=1)
            kept = np.ones(len(e), bool) if step == 0 else rng.random(len(e)) < reached[:, -1]
            e, below, reached, chosen = e[kept], below[kept], reached[kept], [one[kept] for one in chosen]
            code = (rng.random(len(e))[:, None] * reached[:, -1:] >= reached).sum(1)
            code = np.minimum(code, np.flatnonzero(w)[-1])
            low, high = (below[np.arange(len(e)), code + side] for side in (0, 1))
            e[:, step] = ndtri(np.clip(low + rng.random(len(e)) * (high - low), 1e-16, 1 - 1e-16))
            chosen.append(code)
        Z = np.empty((len(e), len(order)))
        Z[:, order] = e @ L.T
        codes = self._codes_at(k, Z)
        for i, code in zip(first, chosen, strict=True):
            codes[:, i] = code
        found = np.empty((len(e), len(self.codes.columns)), np.int64)
        found[:, self.others] = codes
        return self._with_class(found, np.full(len(e), k))

    def _shares(self, k: int) -> list[Array]:
        """Shares of a class's codes, column by column."""
        ends = np.cumsum([self.codes.sizes[j] for j in self.others])
        return np.split(self.shares[k], ends[:-1])

    def _codes_at(self, k: int, Z: Array) -> Array:
        """Codes at points of the latent scale: both (n, d)."""
        found = np.empty(Z.shape, np.int64)
        for i, p in enumerate(self._shares(k)):
            possible = np.flatnonzero(p)
            cuts = cut_scale(p)[possible + 1]
            found[:, i] = possible[np.searchsorted(cuts[:-1], Z[:, i])]
        return found

    def _with_class(self, found: Array, which: Array) -> Array:
        if self.by is not None:
            found[:, self.by] = which
        return found


def _spread(U: Array) -> Array:
    """Move each column of numbers in (0, 1) to one in each of n equal parts, in its order; a single one stays."""
    n = len(U)
    ranks = np.argsort(np.argsort(U, axis=0), axis=0)
    tiny = math.ulp(0.5)
    return np.clip((ranks + U) / n, tiny, 1 - tiny)


def _counted(which: Array) -> tuple[Array, Array]:
    found: tuple[Array, Array] = np.unique(which, return_counts=True)
    return found
