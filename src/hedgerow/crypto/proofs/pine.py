"""PINE: sharing a row with a proof that its Euclidean norm is within a bound, without bits for every number.

    head          x | bits of v | bits of u, v = |x|^2 and u = B - v
    wr part_j     XOF(wr blind_j; j | nonce | share_j of the head)
    signs         from XOF(0; wr parts): fixed only after the head, so that a row cannot be fitted to them but by trying
    part_j        XOF(blind_j; j | nonce | share_j of all that is shared)
    joint seed    XOF(0; parts): joint randomness of the second circuit
    points        XOF(verification key; proofs | nonce)

Errors for one false row, in Field64 with 128 checks and 3 proofs of the second circuit: wrong bits or sums 2^-156, wrap-around
2^-128, for both of which a party can search at home; the norm 2^-54 and less, for which it cannot. An honest row is refused
with 2^-101.

What a party says of its row comes from the methods `claim`, `head`, `wrap_results` and `wrap_bits`.
Bits come from shifts without branches on values; Python does not run in constant time.

Source   : PINE (Rothblum, Omri, Chen, Talwar 2023); draft-chen-cfrg-vdaf-pine. Differs: the rule for the field (`PineShape`),
           and outside the published vectors a context in every domain, as in VDAF.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import MessageRefused, SettingsInvalid

from .field import Field
from .flp import Basis, Flp
from .letters import NONCE_BYTES, agreed, complete, counted, cut, described, expected, keyed, seeded, summed
from .pine_circuits import NormCircuit, PineShape, RestCircuit, binary
from .prio3 import AT_ONCE
from .row_proof import Verified
from .signs import dots, squared_norm
from .xof import SHAKE128, ByteStream, Domain, Xof

SHARE, PROOF, JOINT, PROVE, QUERY, SEED, PART, SIGNS, WRAP_SEED, WRAP_PART = range(1, 11)


class Pine:
    """PINE of a shape.

    Parameters
    ----------
    shape : PineShape
    shares : int
        Aggregators, 2 to 255.
    proofs, proofs_norm : int
        Proofs of the second circuit, and of the norm.
    xof : Xof
    basis : "values" or "coefficients"
    id, version : int
        Algorithm and version, part of every domain.
    drafted : bool
        Domains as in the published vectors: without class and context.
    """

    def __init__(
        self,
        shape: PineShape,
        shares: int = 2,
        proofs: int = 3,
        proofs_norm: int = 1,
        xof: Xof = SHAKE128,
        basis: Basis = "values",
        id: int = 0xFFFF0001,
        version: int = 18,
        drafted: bool = False,
    ) -> None:
        counted(shares, proofs)
        counted(shares, proofs_norm)
        self.shape, self.shares, self.proofs, self.proofs_norm, self.xof, self.basis = (
            shape,
            shares,
            proofs,
            proofs_norm,
            xof,
            basis,
        )
        self.field: Field = shape.field
        self.norm, self.rest = Flp(NormCircuit(shape), basis), Flp(RestCircuit(shape), basis)
        self.drafted, self.id, self.version = drafted, id, version
        self.domain = Domain(xof, bytes([version] if drafted else [version, 0]) + id.to_bytes(4, "big"))
        self.size = shape.length
        self.proofs_size = self._sizes("proof_size")
        length = xof.seed_bytes
        self.seed_bytes, self.own_bytes, self.public_bytes = 4 * length, 3 * length, 2 * length * shares
        self.leader_bytes = self.field.size * (shape.shared + self.proofs_size) + 2 * length
        self.told_bytes = self.field.size * self._sizes("verifier_size") + 2 * length

    def _sizes(self, name: str) -> int:
        return int(self.proofs_norm * getattr(self.norm, name) + self.proofs * getattr(self.rest, name))

    def _split(self, a: Array, name: str) -> tuple[Array, Array]:
        """Return what belongs to proofs of the norm, and to those of the rest: (..., proofs, size) each."""
        norm, rest = getattr(self.norm, name), getattr(self.rest, name)
        at = self.proofs_norm * norm
        return (
            a[..., :at].reshape(*a.shape[:-1], self.proofs_norm, norm),
            a[..., at:].reshape(*a.shape[:-1], self.proofs, rest),
        )

    @property
    def _counts(self) -> bytes:
        return bytes([self.proofs_norm, self.proofs])

    # what a party says

    def claim(self, row: Array) -> int:
        """Return v, the squared norm that a party claims."""
        return squared_norm(row)

    def head(self, row: Array) -> Array:
        """Return the row, the bits of v, and those of u."""
        s, v = self.shape, self.claim(row)
        u = (s.bound2 - v) % self.field.modulus
        return np.concatenate([self.field.of(row), binary(self.field, v, s.norm_bits), binary(self.field, u, s.norm_bits)])

    def wrap_results(self, results: Array) -> Array:
        """Return the dot products, centred whole numbers, that a party claims."""
        return results

    def wrap_bits(self, results: Array) -> Array:
        """Return bits of claimed dot products, and whether each counts as passed: numbers of the field, flat."""
        s = self.shape
        shifted = results + (s.reach - 1)
        within = (shifted >= 0) & (shifted <= 2 * s.reach - 1)
        passed = within & (np.cumsum(within) <= s.passes)
        low = (shifted[:, None] >> np.arange(s.check_bits)) & 1
        return self.field.of(np.concatenate([low, passed[:, None]], axis=1).astype(np.int64)).reshape(-1)

    # a party

    def shard_all(self, ctx: bytes, row: Array, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
        """Return the public share and all input shares; `rand` is cut into seeds as in the draft."""
        at = self.seed_bytes * (self.shares - 1)
        seeds = cut(rand[:at], self.seed_bytes)
        public, letter = self.shard(ctx, row, nonce, seeds, rand[at:])
        return public, [letter, *seeds]

    def shard(self, ctx: bytes, row: Array, nonce: bytes, helper_seeds: Sequence[bytes], own: bytes) -> tuple[bytes, bytes]:
        """Return the public part and the leader's letter of a row (`RowProof.shard`)."""
        s, field, length = self.shape, self.field, self.xof.seed_bytes
        seeded(nonce, helper_seeds, own, (self.shares - 1, self.seed_bytes, self.own_bytes))
        if np.shape(row) != (s.length,):
            raise SettingsInvalid(f"a row of shape {np.shape(row)}.", remedy=f"Give shape ({s.length},).")
        seeds = [cut(seed, length) for seed in helper_seeds]
        wrap_blind, blind, prove = cut(own, length)
        helpers = [self._helper(ctx, j + 1, seed[0], seed[1]) for j, seed in enumerate(seeds)]
        head = self.head(np.asarray(row))
        leader = head
        for share, _ in helpers:
            leader = field.sub(leader, share[: s.head])
        wrap_parts = [self._part(WRAP_PART, ctx, 0, wrap_blind, nonce, field.encode(leader))]
        for j, (seed, (share, _)) in enumerate(zip(seeds, helpers, strict=True)):
            wrap_parts.append(self._part(WRAP_PART, ctx, j + 1, seed[2], nonce, field.encode(share[: s.head])))
        reader = self._signs(ctx, self.domain.joint(WRAP_SEED, ctx, wrap_parts))
        results = self.wrap_results(field.centred(dots(field, reader, s.checks, head[: s.length])))
        bits = self.wrap_bits(results)
        rest = bits
        for share, _ in helpers:
            rest = field.sub(rest, share[s.head :])
        leader = np.concatenate([leader, rest])
        parts = [self._part(PART, ctx, 0, blind, nonce, field.encode(leader))]
        for j, (seed, (share, _)) in enumerate(zip(seeds, helpers, strict=True)):
            parts.append(self._part(PART, ctx, j + 1, seed[3], nonce, field.encode(share)))
        joint = self._joint(ctx, self.domain.joint(SEED, ctx, parts))
        proof = self._prove(ctx, prove, np.concatenate([head, bits, field.of(results)]), joint)
        for _, share in helpers:
            proof = field.sub(proof, share)
        return b"".join(wrap_parts + parts), field.encode(leader) + field.encode(proof) + wrap_blind + blind

    def _prove(self, ctx: bytes, seed: bytes, row: Array, joint: Array) -> Array:
        """Return all proofs, one after the other."""
        random = self.domain.numbers(self.field, self._sizes("prove_size"), PROVE, ctx, seed, self._counts)
        of_norm, of_rest = self._split(random, "prove_size")
        nothing = self.field.zeros((self.proofs_norm, 0))
        norm = self.norm.prove(row[None], of_norm, nothing)
        return np.concatenate([norm.reshape(-1), self.rest.prove(row[None], of_rest, joint).reshape(-1)])

    # an aggregator

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
        keyed(key, self.xof.seed_bytes)
        n = len(letters)
        step = max(1, AT_ONCE // (self.shape.shared + self.proofs_size))
        found = Verified(self.field.zeros((n, self.size)), [b""] * n, [None] * n)
        for first in range(0, n, step):
            s = slice(first, first + step)
            self._verify(key, ctxs[s], j, nonces[s], publics[s], letters[s], first, found)
        return found

    def _verify(
        self,
        key: bytes,
        ctxs: Sequence[bytes],
        j: int,
        nonces: Sequence[bytes],
        publics: Sequence[bytes],
        letters: Sequence[bytes],
        first: int,
        found: Verified,
    ) -> None:
        """Verify a few reports and write what follows into `found`, from `first` on."""
        s, field, n = self.shape, self.field, len(letters)
        rows, proofs = field.zeros((n, s.shared + s.checks)), field.zeros((n, self.proofs_size))
        joint, query = field.zeros((n, self.proofs, 3)), field.zeros((n, self._sizes("query_size")))
        own: list[bytes] = [b""] * n
        seeds: list[tuple[bytes, bytes] | None] = [None] * n
        for i, (ctx, nonce, public, letter) in enumerate(zip(ctxs, nonces, publics, letters, strict=True)):
            try:
                rows[i, : s.shared], proofs[i], blinds, raw = self._read(ctx, j, letter)
                own[i], seeds[i] = self._seeds(ctx, j, nonce, public, blinds, raw)
            except MessageRefused:
                continue
            wrap_seed, seed = seeds[i] or (b"", b"")
            rows[i, s.shared :] = dots(field, self._signs(ctx, wrap_seed), s.checks, rows[i, : s.length])
            joint[i] = self._joint(ctx, seed)
            query[i] = self.domain.numbers(field, query.shape[1], QUERY, ctx, key, self._counts, nonce)
        random, proof = self._split(query, "query_size"), self._split(proofs, "proof_size")
        lawful = np.asarray(self.norm.lawful(random[0]).all(axis=-1) & self.rest.lawful(random[1]).all(axis=-1))
        nothing = field.zeros((n, self.proofs_norm, 0))
        of_norm = self.norm.query(rows[:, None], proof[0], random[0], nothing, self.shares)
        of_rest = self.rest.query(rows[:, None], proof[1], random[1], joint, self.shares)
        for i, pair in enumerate(seeds):
            if pair is not None and lawful[i]:
                found.shares[first + i], found.states[first + i] = rows[i, : s.length], b"".join(pair)
                verifier = np.concatenate([of_norm[i].reshape(-1), of_rest[i].reshape(-1)])
                found.told[first + i] = field.encode(verifier) + own[i]

    def _read(self, ctx: bytes, j: int, letter: bytes) -> tuple[Array, Array, bytes, bytes]:
        """Return what is shared, proofs, both blinds and the share's bytes of a letter; refused unless well formed."""
        field, length, shared = self.field, self.xof.seed_bytes, self.shape.shared
        due = self.seed_bytes if j else self.leader_bytes
        expected("an input share", letter, due)
        if j:
            row, proofs = self._helper(ctx, j, letter[:length], letter[length : 2 * length])
            return row, proofs, letter[2 * length :], field.encode(row)
        view, at, end = memoryview(letter), field.size * shared, due - 2 * length
        return field.decode(view[:at], shared), field.decode(view[at:end], self.proofs_size), letter[end:], letter[:at]

    def _seeds(
        self, ctx: bytes, j: int, nonce: bytes, public: bytes, blinds: bytes, raw: bytes
    ) -> tuple[bytes, tuple[bytes, bytes]]:
        """Return an aggregator's own two parts, and the two joint seeds with them in their places."""
        expected("a nonce", nonce, NONCE_BYTES)
        expected("a public share", public, self.public_bytes)
        length = self.xof.seed_bytes
        parts = cut(public, length)
        wrap_parts, parts = parts[: self.shares], parts[self.shares :]
        head = memoryview(raw)[: self.field.size * self.shape.head]
        wrap_parts[j] = self._part(WRAP_PART, ctx, j, blinds[:length], nonce, head)
        parts[j] = self._part(PART, ctx, j, blinds[length:], nonce, raw)
        seeds = self.domain.joint(WRAP_SEED, ctx, wrap_parts), self.domain.joint(SEED, ctx, parts)
        return wrap_parts[j] + parts[j], seeds

    def decide(self, ctxs: Sequence[bytes], tolds: Sequence[Sequence[bytes]]) -> tuple[Array, list[bytes]]:
        """Return which proofs hold, and both joint seeds that follow from what all aggregators told of each report."""
        length = self.xof.seed_bytes
        end = self.told_bytes - 2 * length
        total, sound = summed(self.field, tolds, len(ctxs), end // self.field.size, self.told_bytes)
        of_norm, of_rest = self._split(total, "verifier_size")
        sound = sound & self.norm.decide(of_norm).all(axis=-1) & self.rest.decide(of_rest).all(axis=-1)
        seeds = [b""] * len(ctxs)
        for i in map(int, np.flatnonzero(sound)):
            letters = [told[i] for told in tolds]
            seeds[i] = self.domain.joint(WRAP_SEED, ctxs[i], [letter[end : end + length] for letter in letters])
            seeds[i] += self.domain.joint(SEED, ctxs[i], [letter[end + length :] for letter in letters])
        return sound, seeds

    def judge(self, ctxs: Sequence[bytes], states: Sequence[bytes | None], tolds: Sequence[Sequence[bytes]]) -> Array:
        """Return which of n rows are accepted (`RowProof.judge`)."""
        complete(tolds, self.shares, len(ctxs))
        sound, seeds = self.decide(ctxs, tolds)
        return agreed(seeds, states, sound)

    def describe(self) -> bytes:
        """Return every parameter as bytes."""
        s = self.shape
        return described(
            "pine",
            field=repr(s.field),
            length=s.length,
            bound2=s.bound2,
            checks=s.checks,
            passes=s.passes,
            alpha=s.alpha,
            chunk=s.chunk,
            chunk_norm=s.chunk_norm,
            shares=self.shares,
            proofs=self.proofs,
            proofs_norm=self.proofs_norm,
            xof=self.xof.name,
            basis=self.basis,
            id=self.id,
            version=self.version,
        )

    # both

    def _helper(self, ctx: bytes, j: int, seed: bytes, proof_seed: bytes) -> tuple[Array, Array]:
        """Return a helper's shares of the row and its bits, and of the proofs."""
        row = self.domain.numbers(self.field, self.shape.shared, SHARE, ctx, seed, bytes([j]))
        return row, self.domain.numbers(self.field, self.proofs_size, PROOF, ctx, proof_seed, self._counts + bytes([j]))

    def _part(self, usage: int, ctx: bytes, j: int, blind: bytes, nonce: bytes, share: bytes | memoryview) -> bytes:
        return self.domain.seed(usage, ctx, blind, bytes([j]), nonce, share)

    def _signs(self, ctx: bytes, seed: bytes) -> ByteStream:
        return self.domain.open(SIGNS, ctx, seed, b"")

    def _joint(self, ctx: bytes, seed: bytes) -> Array:
        return self.domain.numbers(self.field, 3 * self.proofs, JOINT, ctx, seed, bytes([self.proofs])).reshape(self.proofs, 3)
