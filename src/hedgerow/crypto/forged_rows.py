"""Rows that are not what their proof says: what a party that lies can do best, for simulations and tests.

It claims to be within the bound, by bits that are as an honest party's; or, where numbers are nothing but bits, by a first
bit that is no bit but all that is beyond the range. Everything else of its proof is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array

from .proofs.bounded import Prio3Rows
from .proofs.row_proof import RowProof
from .proved_rows import FIELD


def forged(proof: RowProof) -> Callable[..., tuple[bytes, bytes]]:
    """How a party that lies shares a row, of any length, with a proof."""
    return _Fat(proof) if isinstance(proof, Prio3Rows) else proof.shard


class _Fat:
    """Sharing of rows that no bits stand for."""

    def __init__(self, proof: Prio3Rows) -> None:
        self.proof = proof

    def __call__(self, ctx: bytes, row: Array, nonce: bytes, helper_seeds: Sequence[bytes], own: bytes) -> tuple[bytes, bytes]:
        circuit: Any = self.proof.circuit
        zeros = np.zeros(circuit.length, np.int64)
        encoded = circuit.encode(zeros - self.proof.low)
        encoded[self._first_bits(circuit)] = FIELD.add(encoded[self._first_bits(circuit)], FIELD.of(row))
        return self.proof.prio3.share(ctx, encoded, nonce, helper_seeds, own)

    def _first_bits(self, circuit: Any) -> Array:
        """Where each number has the bit that stands for one."""
        width = 2 * circuit.largest if hasattr(circuit, "largest") else circuit.most
        found: Array = np.arange(circuit.length) * int(width).bit_length()
        return found
