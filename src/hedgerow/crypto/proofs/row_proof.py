"""What a protocol asks of a proof about rows that are shared among aggregators.

    party           shard     public part for all, a letter for aggregator 0; the others' shares are streams of seeds
    aggregator j    verify    its shares of the rows, and what it tells the other aggregators, for many parties at once
    aggregator j    judge     from what all told: which rows are accepted

Aggregator 0 opens letters (VDAF's leader); aggregators 1 .. k - 1 hold seeds (helpers). Everything is bound to `ctx`: the same
bytes at the party and at every aggregator, different for every party, round and setting. A letter that is malformed refuses
its own row only.

Assumes  : that the key of `verify` is unknown to parties and chosen before letters are seen, that no nonce serves twice, and
           that aggregators follow the protocol. One that does not can let rows through, or refuse them. For a row to stay
           hidden from a leader that does not, each helper must have the nonce and the public part from the party itself, with
           a tag under a key that only they share: shown another one, what a helper tells is about other joint randomness than
           the proof, and the leader can tell from it which of a few rows it is.
Source   : VDAF (draft-irtf-cfrg-vdaf-20), sections 5 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hedgerow.core.arrays import Array


@dataclass(frozen=True)
class Verified:
    """What an aggregator has after `verify`, for n reports.

    shares    uint64 of shape (n, size): its shares of the rows; zeros where the letter was refused
    told      n strings of bytes for the other aggregators; empty where the letter was refused
    states    n states for `judge`, or None where the letter was refused
    """

    shares: Array
    told: list[bytes]
    states: list[bytes | None]


class RowProof(Protocol):
    """A proof about a row of `size` whole numbers.

    size              numbers of the row
    seed_bytes        of the seed that a party shares with each helper
    own_bytes         of a party's own randomness
    public_bytes, leader_bytes, told_bytes     of what travels
    """

    @property
    def size(self) -> int: ...
    @property
    def seed_bytes(self) -> int: ...
    @property
    def own_bytes(self) -> int: ...
    @property
    def public_bytes(self) -> int: ...
    @property
    def leader_bytes(self) -> int: ...
    @property
    def told_bytes(self) -> int: ...

    def describe(self) -> bytes:
        """Return every parameter of the circuit, fields and XOF included, for what binds a round."""
        ...

    def shard(self, ctx: bytes, row: Array, nonce: bytes, helper_seeds: Sequence[bytes], own: bytes) -> tuple[bytes, bytes]:
        """Return the public part and the leader's letter of a row, int64 of shape (size,).

        Parameters
        ----------
        ctx : bytes
            What the proof is bound to.
        row : array of shape (size,)
            Whole numbers. Nothing is checked: a row that breaks its bound gives a proof that is refused.
        nonce : bytes
            16 uniform bytes, never used before.
        helper_seeds : sequence of bytes
            For every aggregator but the leader `seed_bytes`, uniform, known to it alone, never used before.
        own : bytes
            `own_bytes` uniform bytes that nobody else knows.
        """
        ...

    def verify(
        self,
        key: bytes,
        ctxs: Sequence[bytes],
        j: int,
        nonces: Sequence[bytes],
        publics: Sequence[bytes],
        letters: Sequence[bytes],
    ) -> Verified:
        """Return aggregator j's shares of n rows and what it tells the others.

        `letters` are the leader's for j = 0, and helpers' seeds otherwise.
        """
        ...

    def judge(self, ctxs: Sequence[bytes], states: Sequence[bytes | None], tolds: Sequence[Sequence[bytes]]) -> Array:
        """Return which of n rows are accepted, given what every aggregator told, in order, of each; bool, shape (n,).

        Honest aggregators agree on rows of honest parties. A party can have them disagree about its own, with a public part
        that is wrong in one place: a protocol must compare the parts that were told with the public ones, or add up only
        rows that all aggregators accept.
        """
        ...
