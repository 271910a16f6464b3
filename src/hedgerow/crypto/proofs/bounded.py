"""Which proof a bound needs.

    l2_proof         Euclidean norm: PINE, or bits of every number where that is shorter
    l1_proof         counts that are each, and in sum, at most a number: what a party with at most so many records holds
    one_hot_proof    zeros and a single one
    range_proof      every number between two ends

All in Field64 with SHAKE128. What has joint randomness has three proofs, since a party can search for lucky ones at home.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import RangeExceeded, SettingsInvalid

from .circuits import Histogram, L1BoundSum, RowCircuit, SumVec
from .field64 import Field64
from .norm_bits import NormBits
from .pine import Pine
from .pine_circuits import PineShape
from .prio3 import Prio3
from .row_proof import RowProof, Verified
from .xof import SHAKE128

PROOFS = 3
_FIELD = Field64()


class Prio3Rows:
    """Prio3 as a `RowProof`: rows of whole numbers, shifted by `low` to what the circuit can express.

    Parameters
    ----------
    circuit : RowCircuit
    shares : int
    proofs : int
        At least 3 where the circuit has joint randomness, for which a party can search at home.
    low : int
        Added to what the circuit says, by the leader.
    """

    def __init__(self, circuit: RowCircuit, shares: int, proofs: int = PROOFS, low: int = 0) -> None:
        if circuit.joint and proofs < PROOFS:
            raise SettingsInvalid(f"{proofs} proofs with joint randomness.", remedy=f"Use {PROOFS} proofs or more.")
        self.prio3, self.low = Prio3(circuit, shares, proofs, SHAKE128), low
        self.circuit, self.size = circuit, circuit.length
        self.seed_bytes, self.own_bytes = self.prio3.seed_bytes, self.prio3.own_bytes
        self.public_bytes, self.leader_bytes, self.told_bytes = (
            self.prio3.public_bytes,
            self.prio3.leader_bytes,
            self.prio3.told_bytes,
        )

    def describe(self) -> bytes:
        """Return every parameter as bytes."""
        return self.prio3.describe() + f"\nlow={self.low}".encode()

    def encode(self, row: Array) -> Array:
        """Return what is shared of a row; `RangeExceeded` if no bits stand for it."""
        encoded = self.circuit.encode(np.asarray(row) - self.low)
        if not np.array_equal(self.circuit.field.centred(self.circuit.truncate(encoded)) + self.low, row):
            raise RangeExceeded("a number of the row is outside its declared range.", remedy="Clip the row first.", asked=False)
        return encoded

    def shard(self, ctx: bytes, row: Array, nonce: bytes, helper_seeds: Sequence[bytes], own: bytes) -> tuple[bytes, bytes]:
        """Return the public part and the leader's letter (`RowProof.shard`); `RangeExceeded` if no bits stand for the row."""
        if np.shape(row) != (self.size,):
            raise SettingsInvalid(f"a row of shape {np.shape(row)}.", remedy=f"Give shape ({self.size},).")
        return self.prio3.share(ctx, self.encode(row), nonce, helper_seeds, own)

    def verify(
        self,
        key: bytes,
        ctxs: Sequence[bytes],
        j: int,
        nonces: Sequence[bytes],
        publics: Sequence[bytes],
        letters: Sequence[bytes],
    ) -> Verified:
        """Return aggregator j's shares of n rows and what it tells the others (`RowProof.verify`)."""
        found = self.prio3.verify_many(key, ctxs, j, nonces, publics, letters)
        if self.low and j == 0:
            kept = np.array([state is not None for state in found.states], np.int64)[:, None]
            found.shares[...] = _FIELD.add(found.shares, _FIELD.of(kept * self.low))
        return found

    def judge(self, ctxs: Sequence[bytes], states: Sequence[bytes | None], tolds: Sequence[Sequence[bytes]]) -> Array:
        """Return which of n rows are accepted (`RowProof.judge`)."""
        return self.prio3.judge(ctxs, states, tolds)


def l2_proof(size: int, bound2: int, aggregators: int) -> RowProof:
    """Return the shortest proof that a row's squared norm is at most `bound2`, a whole number of squared steps.

    Raises `SettingsInvalid` where neither PINE (bound2 <= 2^49.75) nor bits (size * bound2 < 2^64) is sound.
    """
    found: list[RowProof] = []
    refused: SettingsInvalid | None = None
    for make in (_pine, _norm_bits):
        try:
            found.append(make(size, bound2, aggregators))
        except SettingsInvalid as error:
            refused = refused or error
    if refused is not None and not found:
        raise refused
    return min(found, key=lambda proof: proof.leader_bytes)


def _pine(size: int, bound2: int, aggregators: int) -> RowProof:
    return Pine(PineShape(_FIELD, size, bound2), aggregators)


def _norm_bits(size: int, bound2: int, aggregators: int) -> RowProof:
    circuit = NormBits(_FIELD, size, bound2)
    return Prio3Rows(circuit, aggregators, low=-circuit.largest)


def l1_proof(size: int, most: int, aggregators: int) -> RowProof:
    """Return a proof that numbers are each in 0..most and their sum too."""
    return Prio3Rows(L1BoundSum(_FIELD, size, most), aggregators)


def one_hot_proof(size: int, aggregators: int) -> RowProof:
    """Return a proof that one number is 1 and all others 0."""
    return Prio3Rows(Histogram(_FIELD, size), aggregators)


def range_proof(size: int, low: int, high: int, aggregators: int) -> RowProof:
    """Return a proof that every number is in low..high, whole numbers of either sign."""
    if high <= low:
        raise SettingsInvalid(f"a range from {low} to {high}.", remedy="Give a lower end below the upper one.")
    return Prio3Rows(SumVec(_FIELD, size, high - low), aggregators, low=low)
