"""Settings of a hidden model, and what its letters have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.conversation import Contribution
from hedgerow.crypto.fixedpoint import RingEncoding
from hedgerow.crypto.messages import MessageForm, Octets, digest, exactly
from hedgerow.errors import RangeExceeded, SettingsInvalid

from ..cohort import lawful_least, whole
from .grid import GradientGrid
from .masks import Limbs, Slots

LONGEST = 1 << 26
"""Bytes of ciphertexts in one letter."""

_CIPHERTEXTS = Octets(0, LONGEST)
MODEL = MessageForm("privfl model", key=exactly(32), model=_CIPHERTEXTS, powers=_CIPHERTEXTS, inner=Octets(0, LONGEST))
PREDICTORS = MessageForm("privfl predictors", key=exactly(32), model=_CIPHERTEXTS)
REPLY = MessageForm("privfl reply", reply=_CIPHERTEXTS, inner=Octets(0, LONGEST))


@dataclass(frozen=True)
class PrivFL:
    """Gradients of a model that parties do not see, from terms that the server does not see.

    Attributes
    ----------
    bits : int
        Length of the server's Paillier key, and the least that a party accepts; 2048 is half as strong as it is short.
    most_rounds : int
        Rounds that a party answers under one key. Totals at as many known models as there are coefficients, and one
        more, are solved for the sums of all `A` and `b`: those are what a cohort gives away in the end. A server that
        encrypts numbers of its own making has them after one round.
    least : int
        Smallest cohort; what adds up the masks must refuse smaller ones, at the parties.
    insecure : bool
        Allows short keys, for tests.
    """

    bits: int = 3072
    most_rounds: int = 1000
    least: int = 3
    insecure: bool = False

    def __post_init__(self) -> None:
        whole(bits=self.bits, most_rounds=self.most_rounds, least=self.least)
        lawful_least(self.least)
        if (self.bits < 2048 and not self.insecure) or self.bits < 256 or self.most_rounds < 1:
            raise SettingsInvalid(
                f"bits is {self.bits}, most_rounds is {self.most_rounds}.",
                remedy="Keys have at least 2048 bits, and there is at least one round.",
            )


class Residues(RingEncoding):
    """Limbs of masks as they are: whole numbers whose total over all parties fits 64 bits."""

    @cached_property
    def digest(self) -> bytes:
        """Identifies the encoding, 32 bytes."""
        return digest("privfl residues", f"{self.parties}/{self.size}".encode())

    def encode(self, row: Array) -> Array:
        """Turn int64 of shape (size,) into the ring."""
        if row.dtype != np.int64 or row.shape != (self.size,):
            raise RangeExceeded(f"masks of shape {row.shape} and type {row.dtype}, where {self.size} of int64 belong.")
        return row.view(np.uint64)


def limbs_of(grid: GradientGrid, n: int) -> Limbs:
    """How masks below a modulus are written down."""
    return Limbs(n, grid.parties)


def residues(grid: GradientGrid, n: int) -> Residues:
    """How the masks of a gradient are added up, under a key of modulus n."""
    return Residues(64, grid.parties, ((len(Slots(n).parts(grid.size)) * limbs_of(grid, n).count, 1.0),), whole=True)


def masks_context(context: bytes, grid: GradientGrid, key: bytes, model: bytes) -> bytes:
    """What the sum of masks is bound to: its masks cancel only among parties that were sent the same ciphertexts."""
    return digest("privfl masks", context, grid.digest, key, model)


def masks_contribution(limbs: Array, grid: GradientGrid, n: int, context: bytes, steady: bool = False) -> Contribution:
    """A party's masks for the sum, from their limbs."""
    return Contribution(Layout((("", limbs.shape),)), limbs.view(np.int64), residues(grid, n), context, steady=steady)
