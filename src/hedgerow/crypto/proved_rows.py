"""Rows of whole numbers with a proof for every part that has a bound of its own, as one proof.

    l2      squares add up to at most `most`
    l1      positive and negative parts, apart, add up to at most `most`: the row is their difference
    linf    numbers are from -most to most

A part is proved by itself, in a context of its own; a row is accepted where all of its parts are. `words` has all that both
ends must agree on: an aggregator builds the proofs from it, and refuses words that were made for other circuits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import HedgerowError, MessageRefused, RangeExceeded

from .messages import MessageForm, Several, Whole, Words, digest, exactly
from .proofs.bounded import l1_proof, l2_proof, range_proof
from .proofs.field64 import Field64
from .proofs.row_proof import RowProof
from .proofs.xof import SHAKE128

ClaimNorm = Literal["l2", "l1", "linf"]

FIELD = Field64()
"""Shares are numbers of this field."""

MOST_CLAIMS = 1 << 14
"""Parts of a row."""

_WORDS = MessageForm(
    "proved rows",
    aggregators=Whole(2, 255),
    norms=Several(Words(4), MOST_CLAIMS),
    sizes=Several(Whole(1, 1 << 28), MOST_CLAIMS),
    mosts=Several(Whole(1, 2**62), MOST_CLAIMS),
    circuits=exactly(32),
)


@dataclass(frozen=True)
class RowClaim:
    """What is proved of a part of a row.

    Attributes
    ----------
    norm : {"l2", "l1", "linf"}
    size : int
        Numbers of the part.
    most : int
        The largest length in steps; for l2 its square.
    """

    norm: ClaimNorm
    size: int
    most: int


@dataclass(frozen=True)
class VerifiedRows:
    """What an aggregator has of n rows before the others have told it theirs.

    Attributes
    ----------
    shares : array of shape (n, size), uint64
        Its shares of the rows; zeros where a letter was malformed.
    told : list of n bytes
        For the other aggregators; empty where a letter was malformed.
    states : list of n lists, one state for each part
        For `judge`.
    """

    shares: Array
    told: list[bytes]
    states: list[list[bytes | None]]


class ProvedRows:
    """The proofs of all parts of a row.

    Parameters
    ----------
    claims : sequence of RowClaim
        In the order of the row's numbers.
    aggregators : int
        Among how many a row is shared.
    """

    def __init__(self, claims: Sequence[RowClaim], aggregators: int) -> None:
        self.claims, self.aggregators = tuple(claims), aggregators
        self.proofs = tuple(_proof(claim, aggregators) for claim in self.claims)
        self.size = sum(claim.size for claim in self.claims)
        self.seed_bytes = sum(proof.seed_bytes for proof in self.proofs)
        self.own_bytes = sum(proof.own_bytes for proof in self.proofs)
        self.public_bytes = sum(proof.public_bytes for proof in self.proofs)
        self.leader_bytes = sum(proof.leader_bytes for proof in self.proofs)
        self.told_bytes = sum(proof.told_bytes for proof in self.proofs)

    @cached_property
    def words(self) -> bytes:
        """All claims, and a digest of the circuits that prove them: part of what a round's shares are made for."""
        return _WORDS.pack(
            aggregators=self.aggregators,
            norms=[claim.norm for claim in self.claims],
            sizes=[claim.size for claim in self.claims],
            mosts=[claim.most for claim in self.claims],
            circuits=digest("circuits", *(proof.describe() for proof in self.proofs)),
        )

    # ---- a party --------------------------------------------------------------------------------------------------------
    def shard(
        self,
        ctx: bytes,
        row: Array,
        nonce: bytes,
        helper_seeds: Sequence[bytes],
        own: bytes,
        shard: Callable[[RowProof], Any] = attrgetter("shard"),
    ) -> tuple[bytes, bytes]:
        """Return the public part and the letter for the aggregator that opens letters, of a row (size,) of int64.

        Parameters
        ----------
        ctx : bytes
            What shares and proofs are bound to.
        nonce : bytes
            16 fresh bytes.
        helper_seeds : sequence of bytes
            `seed_bytes` for each of the other aggregators.
        own : bytes
            `own_bytes` of fresh randomness.
        shard : callable
            From the proof of a part to how it is shared: as an honest party does.
        """
        publics, letters = list[bytes](), list[bytes]()
        seeds = [list(_cut(seed, [proof.seed_bytes for proof in self.proofs])) for seed in helper_seeds]
        randomness = list(_cut(own, [proof.own_bytes for proof in self.proofs]))
        for i, (claim, proof, part) in enumerate(self._parts()):
            made = shared_numbers(row[part], claim)
            public, letter = shard(proof)(_inner(ctx, i), made, nonce, [seed[i] for seed in seeds], randomness[i])
            publics.append(public)
            letters.append(letter)
        return b"".join(publics), b"".join(letters)

    # ---- an aggregator --------------------------------------------------------------------------------------------------
    def verify(
        self,
        key: bytes,
        ctxs: Sequence[bytes],
        j: int,
        nonces: Sequence[bytes],
        publics: Sequence[bytes],
        letters: Sequence[bytes],
    ) -> VerifiedRows:
        """Return aggregator j's shares of n rows, and what it tells the others; letters for j = 0 are as `shard` made them.

        For j > 0 they are `seed_bytes` each. A letter of another length is malformed.
        """
        n, length = len(letters), self.leader_bytes if j == 0 else self.seed_bytes
        sound = np.array([len(letter) == length for letter in letters], bool)
        letters = [letter if fits else bytes(length) for letter, fits in zip(letters, sound, strict=True)]
        cuts = [list(_cut(one, self._lengths(j))) for one in letters]
        outer = [list(_cut(one, [proof.public_bytes for proof in self.proofs])) for one in publics]
        shares, told = np.zeros((n, self.size), np.uint64), [list[bytes]() for _ in range(n)]
        states: list[list[bytes | None]] = [[] for _ in range(n)]
        for i, (claim, proof, part) in enumerate(self._parts()):
            inner = [_inner(ctx, i) for ctx in ctxs]
            found = proof.verify(key, inner, j, nonces, [one[i] for one in outer], [one[i] for one in cuts])
            shares[:, part] = _row_shares(found.shares, claim)
            for k in range(n):
                told[k].append(found.told[k])
                states[k].append(found.states[k])
                sound[k] &= found.states[k] is not None
        shares[~sound] = 0
        return VerifiedRows(shares, [b"".join(one) if fits else b"" for one, fits in zip(told, sound, strict=True)], states)

    def judge(
        self,
        ctxs: Sequence[bytes],
        publics: Sequence[bytes],
        states: Sequence[Sequence[bytes | None]],
        tolds: Sequence[Sequence[bytes]],
    ) -> Array:
        """Return which of n rows are accepted, shape (n,), of what each aggregator told of each, `told_bytes` each."""
        n = len(ctxs)
        accepted = np.ones(n, bool)
        pieces = [[list(_cut(one, [proof.told_bytes for proof in self.proofs])) for one in told] for told in tolds]
        outer = [list(_cut(one, [proof.public_bytes for proof in self.proofs])) for one in publics]
        for i, (_, proof, _) in enumerate(self._parts()):
            inner = [_inner(ctx, i) for ctx in ctxs]
            told = [[one[i] for one in aggregator] for aggregator in pieces]
            accepted &= proof.judge(inner, [state[i] for state in states], told)
            for k in range(n):
                accepted[k] &= parts_agree(proof, self.aggregators, outer[k][i], [one[k] for one in told])
        return accepted

    def _lengths(self, j: int) -> list[int]:
        return [proof.seed_bytes if j else proof.leader_bytes for proof in self.proofs]

    def _parts(self) -> Iterator[tuple[RowClaim, RowProof, slice]]:
        at = 0
        for claim, proof in zip(self.claims, self.proofs, strict=True):
            yield claim, proof, slice(at, at + claim.size)
            at += claim.size


@lru_cache(maxsize=64)
def proved_rows(claims: tuple[RowClaim, ...], aggregators: int) -> ProvedRows:
    """The proofs of these claims, made once."""
    return ProvedRows(claims, aggregators)


@lru_cache(maxsize=64)
def proofs_in(words: bytes, aggregators: int, size: int) -> ProvedRows:
    """The proofs that words name.

    Raises
    ------
    MessageRefused (HR-242)
        They name none, or circuits that are not those of this version, other aggregators or another length of a row.
    """
    named, norms, sizes, mosts, _ = _WORDS.unpack(words)
    lawful = len(norms) == len(sizes) == len(mosts) and set(norms) <= set(get_args(ClaimNorm))
    if not lawful or named != aggregators or sum(sizes) != size:
        raise MessageRefused("what rows are proved to be does not fit this round.", remedy=_SAME)
    try:
        found = proved_rows(tuple(RowClaim(*one) for one in zip(norms, sizes, mosts, strict=True)), aggregators)
    except HedgerowError as error:
        raise MessageRefused(f"rows cannot be proved as they are to be: {error.reason}", remedy=_SAME) from error
    if found.words != words:
        raise MessageRefused("the circuits of a proof are not those of this version.", remedy=_SAME)
    return found


@lru_cache(maxsize=256)
def proved_bytes(size: int, aggregators: int) -> int:
    """Bytes of a row and its proof where one l2 bound of 2^20 steps holds for all of it."""
    proof = l2_proof(size, 2**40, aggregators)
    return proof.leader_bytes + proof.public_bytes


def _proof(claim: RowClaim, aggregators: int) -> RowProof:
    if claim.norm == "l1" and 2 * claim.size * claim.most >= FIELD.modulus:
        raise RangeExceeded(
            f"{claim.size} numbers of up to {claim.most:.3g} steps: their sum could wrap around the field.",
            remedy="Declare narrower ranges, or fewer records to a party: records=... of the aggregation.",
            asked=False,
        )
    if claim.norm == "l2":
        return l2_proof(claim.size, claim.most, aggregators)
    if claim.norm == "l1":
        return l1_proof(2 * claim.size, claim.most, aggregators)
    return range_proof(claim.size, -claim.most, claim.most, aggregators)


def shared_numbers(row: Array, claim: RowClaim) -> Array:
    """What is shared of a part of a row, int64: of l1 its positive and its negative part."""
    steps = row.astype(np.int64, copy=False)
    return np.concatenate([np.maximum(steps, 0), np.maximum(-steps, 0)]) if claim.norm == "l1" else steps


def _row_shares(shares: Array, claim: RowClaim) -> Array:
    """Shares of a part of the rows, of shares of what is shared of it."""
    return FIELD.sub(shares[:, : claim.size], shares[:, claim.size :]) if claim.norm == "l1" else shares


def parts_agree(proof: RowProof, aggregators: int, public: bytes, tolds: Sequence[bytes]) -> bool:
    """Whether the parts of joint randomness that aggregators told of a row are those that its party gave to all.

    Without this a party could give a false part for one aggregator, which replaces it by its own and would accept what all
    others refuse. Parts end what is told, and are the public part in the order of the aggregators.
    """
    length = SHAKE128.seed_bytes
    kinds = proof.public_bytes // (length * aggregators)
    tails = [told[len(told) - kinds * length :] for told in tolds]
    return public == b"".join(tail[i * length : (i + 1) * length] for i in range(kinds) for tail in tails)


def _inner(ctx: bytes, i: int) -> bytes:
    """The context of one part."""
    return digest("part of a row", ctx, i.to_bytes(4, "little"))


def _cut(raw: bytes, lengths: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for length in lengths:
        yield raw[at : at + length]
        at += length


_SAME = "All ends need the same version, bounds and numbers of aggregators."
