"""Trees whose splits are drawn from a public seed, before anybody is asked, and which leaf of them a record reaches.

All nodes of a level ask the same, so that a tree of depth d is d questions and 2^d leaves: of a number, whether its bin is
above a cut that is drawn; of a category, whether its level is in a set to which each level belongs by a coin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array

from .bins import Bins

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class RandomStructure:
    """Splits of some trees.

    Attributes
    ----------
    feature : array of int16, shape (trees, depth)
        Position of the feature that a level asks about.
    right : array of bool, shape (trees, depth, largest number of bins)
        Whether a bin of that feature goes right.
    """

    feature: Array
    right: Array

    @classmethod
    def draw(cls, bins: Bins, *, trees: int, depth: int, seed: int) -> RandomStructure:
        """Draw trees from a public seed."""
        rng, sizes = np.random.default_rng(seed), np.array(bins.sizes)
        useful = np.flatnonzero(sizes > 1)  # a feature with one bin splits nothing
        feature = rng.choice(useful if len(useful) else np.arange(len(sizes)), (trees, depth)).astype(np.int16)
        size = sizes[feature]
        number = np.arange(max(2, sizes.max()))
        above = number >= np.floor(1 + rng.random((trees, depth)) * np.maximum(size - 1, 1))[..., None]
        among = rng.random((trees, depth, len(number))) < 0.5
        category = np.array([column.kind == "category" for column in bins.features])
        return cls(feature, np.where(category[feature][..., None], among, above))

    def some(self, part: slice) -> RandomStructure:
        """Some of the trees."""
        return RandomStructure(self.feature[part], self.right[part])

    @property
    def leaves(self) -> int:
        """Leaves of each tree."""
        return int(2 ** self.feature.shape[1])

    def leaves_of(self, tree: int, bins: Array) -> Array:
        """The leaf of one tree that records with bin numbers (..., n, f) reach: shape (..., n)."""
        columns = [bins[..., j].astype(np.int64) for j in range(bins.shape[-1])]
        return reached(self.feature[tree], self.right[tree], columns)

    @property
    def broadcast(self) -> dict[str, Array]:
        """The arrays, as parties are told them."""
        return {"feature": self.feature, "right": self.right.astype(np.uint8)}


def reached(feature: Array, right: Array, columns: Sequence[Array]) -> Array:
    """The leaf of one tree that each record reaches.

    Parameters
    ----------
    feature : array of int, shape (depth,)
    right : array, shape (depth, bins)
    columns : sequence of arrays of int, each of shape (..., n)
        Bin numbers, by feature.
    """
    leaf = np.zeros(columns[0].shape, np.int64)
    for j, goes in zip(feature, right.astype(np.int64), strict=True):
        leaf = 2 * leaf + goes[columns[j]]
    return leaf


def part_of(bins: Array, parts: int, seed: int) -> Array:
    """The part of the records to which each belongs, of some: a hash of its bins (..., n, f), so that it follows from it alone.

    A number that counts records would not do: it changes when one joins that stands before. Records of the same bins are in the
    same part.
    """
    found = np.full(bins.shape[:-1], np.uint64(seed % 2**63) * np.uint64(2) + np.uint64(1), np.uint64)
    for j in range(bins.shape[-1]):
        found = (found ^ bins[..., j].astype(np.uint64)) * _MIX
        found ^= found >> np.uint64(29)
    return ((found >> np.uint64(33)) % np.uint64(parts)).astype(np.int64)
