"""Prio3: sharing a row with a fully linear proof, and verifying many of them at once.

    share_j      aggregator j > 0: stream of its seed; aggregator 0: what is left of row and proofs
    part_j       XOF(blind_j; j | nonce | share_j): each aggregator computes its own and puts it in place of the public one
    joint seed   XOF(0; parts): joint randomness of the proofs, fixed only after all that is shared
    points       XOF(verification key; proofs | nonce)

With joint randomness a party can try blinds at home until a false row passes one proof, so that the proofs' error is a work
factor: Field128 with one proof, or Field64 with three.

Source   : VDAF (draft-irtf-cfrg-vdaf-20), section 7.2, version byte 18; batches and the ways of refusal are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import MessageRefused

from .circuits import RowCircuit
from .flp import Flp
from .letters import NONCE_BYTES, agreed, complete, counted, cut, described, expected, keyed, seeded, summed
from .row_proof import Verified
from .xof import TURBO_SHAKE128, Domain, Xof

SHARE, PROOF, JOINT, PROVE, QUERY, SEED, PART = range(1, 8)

AT_ONCE = 1 << 17
"""Numbers of shares and proofs that go through the arithmetic together."""


class Prio3:
    """Prio3 of a circuit.

    Parameters
    ----------
    circuit : RowCircuit
    shares : int
        Aggregators, 2 to 255.
    proofs : int
    xof : Xof
    id, version : int
        Algorithm and version of VDAF, part of every domain.
    """

    def __init__(
        self,
        circuit: RowCircuit,
        shares: int,
        proofs: int = 1,
        xof: Xof = TURBO_SHAKE128,
        id: int = 0xFFFFFFFF,
        version: int = 18,
    ) -> None:
        counted(shares, proofs)
        self.circuit, self.shares, self.proofs, self.xof, self.id, self.version = circuit, shares, proofs, xof, id, version
        self.flp, self.field = Flp(circuit), circuit.field
        self.domain = Domain(xof, bytes([version, 0]) + id.to_bytes(4, "big"))
        self.blinded = circuit.joint > 0
        length = xof.seed_bytes
        self.seed_bytes = length * (2 if self.blinded else 1)
        self.own_bytes = length * (2 if self.blinded else 1)
        self.public_bytes = length * shares if self.blinded else 0
        self.proofs_size = self.flp.proof_size * proofs
        blind = length if self.blinded else 0
        self.leader_bytes = self.field.size * (circuit.size + self.proofs_size) + blind
        self.told_bytes = self.field.size * self.flp.verifier_size * proofs + blind

    # a party

    def shard(self, ctx: bytes, row: Any, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
        """Return the public share and all input shares of a row; `rand` is cut into seeds as in VDAF."""
        at = self.seed_bytes * (self.shares - 1)
        seeds = cut(rand[:at], self.seed_bytes)
        public, letter = self.share(ctx, self.circuit.encode(row), nonce, seeds, rand[at:])
        return public, [letter, *seeds]

    def share(self, ctx: bytes, encoded: Array, nonce: bytes, seeds: Sequence[bytes], own: bytes) -> tuple[bytes, bytes]:
        """Return the public share and the leader's input share of an encoded row, given all seeds."""
        field, length = self.field, self.xof.seed_bytes
        seeded(nonce, seeds, own, (self.shares - 1, self.seed_bytes, self.own_bytes))
        helpers = [self._helper(ctx, j + 1, seed[:length]) for j, seed in enumerate(seeds)]
        leader = encoded
        for share, _ in helpers:
            leader = field.sub(leader, share)
        parts: list[bytes] = []
        joint = field.zeros((self.proofs, 0))
        blind, prove = own[:-length], own[-length:]
        if self.blinded:
            parts = [self._part(ctx, 0, blind, nonce, field.encode(leader))]
            for j, (seed, (share, _)) in enumerate(zip(seeds, helpers, strict=True)):
                parts.append(self._part(ctx, j + 1, seed[length:], nonce, field.encode(share)))
            joint = self._joint(ctx, self.domain.joint(SEED, ctx, parts))
        count = bytes([self.proofs])
        random = self.domain.numbers(field, self.flp.prove_size * self.proofs, PROVE, ctx, prove, count)
        proof = self.flp.prove(encoded[None], random.reshape(self.proofs, -1), joint).reshape(-1)
        for _, share in helpers:
            proof = field.sub(proof, share)
        return b"".join(parts), field.encode(leader) + field.encode(proof) + blind

    # an aggregator

    def verify_many(
        self,
        key: bytes,
        ctxs: Sequence[bytes],
        j: int,
        nonces: Sequence[bytes],
        publics: Sequence[bytes],
        letters: Sequence[bytes],
    ) -> Verified:
        """Return aggregator j's shares of the rows, what it tells the others, and the joint seeds it used, report by report."""
        keyed(key, self.xof.seed_bytes)
        n, field = len(letters), self.field
        step = max(1, AT_ONCE // (self.circuit.size + self.proofs_size))
        shares = field.zeros((n, self.circuit.length))
        told: list[bytes] = [b""] * n
        states: list[bytes | None] = [None] * n
        for first in range(0, n, step):
            s = slice(first, first + step)
            self._verify(key, ctxs[s], j, nonces[s], publics[s], letters[s], first, shares, told, states)
        return Verified(shares, told, states)

    def _verify(
        self,
        key: bytes,
        ctxs: Sequence[bytes],
        j: int,
        nonces: Sequence[bytes],
        publics: Sequence[bytes],
        letters: Sequence[bytes],
        first: int,
        shares: Array,
        told: list[bytes],
        states: list[bytes | None],
    ) -> None:
        """Verify a few reports, and write what follows into the last three, from `first` on."""
        n, field, size = len(letters), self.field, self.circuit.size
        rows, proofs = field.zeros((n, size)), field.zeros((n, self.proofs_size))
        joint, query = field.zeros((n, self.proofs, self.circuit.joint)), field.zeros((n, self.proofs * self.flp.query_size))
        parts: list[bytes] = [b""] * n
        seeds: list[bytes | None] = [None] * n
        for i, (ctx, nonce, public, letter) in enumerate(zip(ctxs, nonces, publics, letters, strict=True)):
            try:
                rows[i], proofs[i], blind, raw = self._read(ctx, j, letter)
                parts[i], seeds[i] = self._seeds(ctx, j, nonce, public, blind, raw)
            except MessageRefused:
                continue
            if self.blinded:
                joint[i] = self._joint(ctx, seeds[i] or b"")
            query[i] = self.domain.numbers(field, query.shape[1], QUERY, ctx, key, bytes([self.proofs]), nonce)
        random = query.reshape(n, self.proofs, -1)
        lawful = np.asarray(self.flp.lawful(random).all(axis=-1))
        verifiers = self.flp.query(rows[:, None], proofs.reshape(n, self.proofs, -1), random, joint, self.shares)
        truncated = self.circuit.truncate(rows)
        for i, seed in enumerate(seeds):
            if seed is not None and lawful[i]:
                shares[first + i], states[first + i] = truncated[i], seed
                told[first + i] = field.encode(verifiers[i].reshape(-1)) + parts[i]

    def _read(self, ctx: bytes, j: int, letter: bytes) -> tuple[Array, Array, bytes, bytes]:
        """Return row, proofs, blind and the row's bytes of a letter, which is refused unless it is well formed."""
        field, length = self.field, self.xof.seed_bytes
        due = self.seed_bytes if j else self.leader_bytes
        expected("an input share", letter, due)
        if j:
            row, proofs = self._helper(ctx, j, letter[:length])
            return row, proofs, letter[length:], field.encode(row)
        view, at, end = memoryview(letter), field.size * self.circuit.size, due - (length if self.blinded else 0)
        return (
            field.decode(view[:at], self.circuit.size),
            field.decode(view[at:end], self.proofs_size),
            letter[end:],
            letter[:at],
        )

    def _seeds(self, ctx: bytes, j: int, nonce: bytes, public: bytes, blind: bytes, raw: bytes) -> tuple[bytes, bytes]:
        """Return an aggregator's own part, and the joint seed with it in its place; both empty without joint randomness."""
        expected("a nonce", nonce, NONCE_BYTES)
        expected("a public share", public, self.public_bytes)
        if not self.blinded:
            return b"", b""
        parts = cut(public, self.xof.seed_bytes)
        parts[j] = self._part(ctx, j, blind, nonce, raw)
        return parts[j], self.domain.joint(SEED, ctx, parts)

    def verify(self, key: bytes, ctx: bytes, j: int, nonce: bytes, public: bytes, share: bytes) -> tuple[bytes, Array, bytes]:
        """Return the joint seed, the share of the row, and the verifier share of one report; `MessageRefused` if malformed."""
        found = self.verify_many(key, [ctx], j, [nonce], [public], [share])
        state = found.states[0]
        if state is None:
            raise MessageRefused("an input share is malformed.", remedy="Name the same proof at both ends.")
        return state, found.shares[0], found.told[0]

    def decide_many(self, ctxs: Sequence[bytes], tolds: Sequence[Sequence[bytes]]) -> tuple[Array, list[bytes]]:
        """Return which proofs hold, and the joint seeds that follow from what all aggregators told of each report."""
        end = self.told_bytes - (self.xof.seed_bytes if self.blinded else 0)
        total, sound = summed(self.field, tolds, len(ctxs), end // self.field.size, self.told_bytes)
        sound = sound & self.flp.decide(total.reshape(len(ctxs), self.proofs, self.flp.verifier_size)).all(axis=-1)
        seeds = [
            self.domain.joint(SEED, ctx, [told[i][end:] for told in tolds]) if self.blinded and sound[i] else b""
            for i, ctx in enumerate(ctxs)
        ]
        return sound, seeds

    def combine(self, ctx: bytes, tolds: Sequence[bytes]) -> bytes:
        """Return the verifier message of one report: the joint seed; `MessageRefused` if the proof does not hold."""
        complete([[told] for told in tolds], self.shares, 1)
        sound, seeds = self.decide_many([ctx], [[told] for told in tolds])
        if not sound[0]:
            raise MessageRefused("a proof does not hold.", remedy="Leave the report out.")
        return seeds[0]

    def judge(self, ctxs: Sequence[bytes], states: Sequence[bytes | None], tolds: Sequence[Sequence[bytes]]) -> Array:
        """Return which reports are accepted: the proof holds, and the joint seed is the one that was used."""
        complete(tolds, self.shares, len(ctxs))
        sound, seeds = self.decide_many(ctxs, tolds)
        return agreed(seeds, states, sound)

    def describe(self) -> bytes:
        """Return every parameter as bytes."""
        return described(
            "prio3",
            circuit=repr(self.circuit),
            shares=self.shares,
            proofs=self.proofs,
            xof=self.xof.name,
            id=self.id,
            version=self.version,
        )

    # both

    def _helper(self, ctx: bytes, j: int, seed: bytes) -> tuple[Array, Array]:
        """Return a helper's shares of row and proofs."""
        row = self.domain.numbers(self.field, self.circuit.size, SHARE, ctx, seed, bytes([j]))
        proofs = self.domain.numbers(self.field, self.proofs_size, PROOF, ctx, seed, bytes([self.proofs, j]))
        return row, proofs

    def _part(self, ctx: bytes, j: int, blind: bytes, nonce: bytes, share: bytes) -> bytes:
        return self.domain.seed(PART, ctx, blind, bytes([j]), nonce, share)

    def _joint(self, ctx: bytes, seed: bytes) -> Array:
        n = self.circuit.joint * self.proofs
        return self.domain.numbers(self.field, n, JOINT, ctx, seed, bytes([self.proofs])).reshape(self.proofs, -1)
