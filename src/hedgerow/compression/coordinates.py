"""Sparsification: a few coordinates travel, the largest or random ones; what did not may wait for the next round.

    party:   p = x + lost                       what was left out before; only with error feedback
             code = p on k of d coordinates
             lost = p - code                    kept at the party, committed when the round was counted

Error feedback makes a biased choice converge: nothing is lost, it arrives later, and the sum of what was sent and what is
kept is the sum of the contributions. Where a clip or a mechanism shortens the code, what it cut off waits too.

Top k reveals, by its positions, which coordinates are large: fine for a server that sees rows, refused where rows are
hidden. Positions of random k are public and the same for all parties of a round, so codes are short vectors that add up.
Noise at the server falls on every coordinate of the release, also where nobody sent anything.

Source : Stich, Cordonnier and Jaggi, NeurIPS 2018 (top k and random k with memory, Algorithm 1); Karimireddy et al., ICML
         2019 (error feedback, Algorithm 2). Differs: what is compressed is a party's weighted change of the model, not one
         gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.mechanism import Compression
from hedgerow.core.randomness import Stream

from .keys import SMALLEST, bits_of, by_key, check_smallest, code_of, generator, of_keys, refuse_unless, seed_of

NUMBER_BITS = 32


@dataclass(frozen=True)
class TopK(Compression):
    """The coordinates of each large key that are largest in absolute value, by party.

    Parameters
    ----------
    share : float
        Of a key's numbers, in (0, 1]; at least one is sent.
    error_feedback : bool
        Keep what was left out, and add it in the next round.
    smallest : int
        Keys with fewer numbers pass as they are.

    Source
    ------
    Stich et al. 2018; Karimireddy et al. 2019 for error feedback.
    """

    share: float = 0.01
    error_feedback: bool = True
    smallest: int = SMALLEST
    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self.share, self.smallest)

    @property
    def remembers(self) -> bool:
        """Whether there is error feedback."""
        return self.error_feedback

    def code(self, layout: Layout) -> Layout:
        """Return the layout itself: zeros stand where nothing is sent."""
        return layout

    def wire_bits(self, layout: Layout) -> float:
        """Return, for each number that is sent, 32 bits and those of its position."""
        return bits_of(layout, self.smallest, lambda size: sent(size, self.share) * (NUMBER_BITS + position_bits(size)))

    def encode(self, rows: Array, layout: Layout, public: Stream, own: Sequence[Stream]) -> Array:
        """Set all but the largest coordinates to zero; of equal ones the first are taken."""
        return by_key(rows, layout, layout, self.smallest, lambda part, size: largest(part, sent(size, self.share)))

    def decode(self, total: Array, layout: Layout, public: Stream) -> Array:
        """Return the total as it is."""
        return total

    def __str__(self) -> str:
        return f"top {_words(self.share, self.error_feedback)}{of_keys(self.smallest)}"


@dataclass(frozen=True)
class RandomK(Compression):
    """Random coordinates of each large key, the same for all parties of a round.

    Parameters
    ----------
    share : float
        Of a key's numbers, in (0, 1]; at least one is sent.
    error_feedback : bool
        Keep what was left out, and add it in the next round. Without, the total is multiplied by d / k, which makes it
        unbiased; so is its noise, if there is any.
    smallest : int
        Keys with fewer numbers pass as they are.

    Source
    ------
    Stich et al. 2018; Karimireddy et al. 2019 for error feedback.
    """

    share: float = 0.01
    error_feedback: bool = False
    smallest: int = SMALLEST
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.share, self.smallest)

    @property
    def remembers(self) -> bool:
        """Whether there is error feedback."""
        return self.error_feedback

    def code(self, layout: Layout) -> Layout:
        """Return large keys with as many numbers as are sent."""
        return code_of(layout, self.smallest, lambda size: (sent(size, self.share),))

    def wire_bits(self, layout: Layout) -> float:
        """Return 32 bits for each number that is sent; positions are public."""
        return bits_of(layout, self.smallest, lambda size: NUMBER_BITS * sent(size, self.share))

    def encode(self, rows: Array, layout: Layout, public: Stream, own: Sequence[Stream]) -> Array:
        """Take the round's coordinates."""

        def change(part: Array, size: int) -> Array:
            return part[..., chosen(seed_of(public), size, sent(size, self.share))]

        return by_key(rows, layout, layout, self.smallest, change)

    def decode(self, total: Array, layout: Layout, public: Stream) -> Array:
        """Put the numbers where they belong, and zeros elsewhere."""

        def change(part: Array, size: int) -> Array:
            k = part.shape[-1]
            found = np.zeros((*part.shape[:-1], size), part.dtype)
            found[..., chosen(seed_of(public), size, k)] = part if self.error_feedback else part * part.dtype.type(size / k)
            return found

        return by_key(total, self.code(layout), layout, self.smallest, change)

    def __str__(self) -> str:
        return f"random {_words(self.share, self.error_feedback)}{of_keys(self.smallest)}"


def sent(size: int, share: float) -> int:
    """How many of a key's numbers are sent."""
    return min(size, max(1, math.ceil(share * size - 1e-9)))


def position_bits(size: int) -> int:
    """Bits that number the coordinates of a key."""
    return max(size - 1, 0).bit_length()


def largest(rows: Array, k: int) -> Array:
    """Keep the k largest absolute values of each row of shape (parties, size), the first of equal ones; zeros elsewhere."""
    size = np.abs(rows)
    least = np.partition(size, rows.shape[-1] - k, axis=-1)[:, rows.shape[-1] - k, None]
    keep = size >= least
    too_many = keep.sum(-1) > k
    if (too_many & (least[:, 0] > 0)).any():
        tied = size == least
        room = k - (keep & ~tied).sum(-1, keepdims=True)
        keep &= ~tied | (tied.cumsum(-1) <= room)
    return np.where(keep, rows, rows.dtype.type(0))


@lru_cache(maxsize=4)
def chosen(seed: int, size: int, k: int) -> Array:
    """The round's k of `size` coordinates, in ascending order."""
    found: Array = np.sort(generator(seed).choice(size, k, replace=False, shuffle=False))
    return found


def _check(share: float, smallest: int) -> None:
    refuse_unless(
        isinstance(share, (int, float)) and 0 < share <= 1,
        f"a share of {share!r} of the numbers.",
        "It lies in (0, 1], e.g. 0.01.",
    )
    check_smallest(smallest)


def _words(share: float, error_feedback: bool) -> str:
    return f"{100 * share:g}%" + (" with error feedback" if error_feedback else "")
