"""What parties and aggregators derive: digests that are signed, and the keys of an epoch and of a round."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hedgerow.errors import KeyInvalid

from ..keys import Roster, derive
from ..messages import digest


def pinned(publics: Sequence[bytes], n: int, study: bytes = b"") -> bytes:
    """Digest of a study and of its aggregators' public keys in order; refuses another number than `n`, and repeated keys."""
    if len(publics) != n or len(set(publics)) != n or any(len(public) != 32 for public in publics):
        raise KeyInvalid(
            f"{len(publics)} keys of aggregators, where {n} different ones are needed.",
            remedy="Pin one X25519 public key of 32 bytes for each, in the same order everywhere.",
            asked=False,
        )
    return digest("additive aggregators", study, *publics)


def announced(epoch: bytes, aggregators: bytes, id: str, public: bytes, roster: Roster) -> bytes:
    """What a party signs when it joins an epoch."""
    return digest("additive key", epoch, aggregators, id.encode(), public, roster.digest)


def bond(secret: bytes, epoch: bytes, aggregators: bytes, place: int, public: bytes) -> bytes:
    """The key that a party and an aggregator share for an epoch."""
    return derive(secret, "additive epoch", epoch + aggregators + number(place) + public)


@lru_cache(maxsize=64)
def purpose(round: int, terms: bytes, bits: int, size: int, least: int, steady: int = 0) -> bytes:
    """What a round's keys are for: a share read in another ring, for other terms, or for another set is another stream."""
    return digest("additive round", number(round), terms, number(bits), number(size), number(least), number(steady))


def share_key(secret: bytes, purpose: bytes) -> bytes:
    """The key of the stream that is one share of a row."""
    return derive(secret, "additive share", purpose)


def correction_key(secret: bytes, purpose: bytes) -> bytes:
    """The key under which the correction of one round is sealed; it seals nothing else."""
    return derive(secret, "additive correction", purpose)


def agreement(secret: bytes, sender: int, receiver: int, agreed: bytes) -> bytes:
    """What one aggregator tells another: that it agreed on a set."""
    return derive(secret, "additive agreement", number(sender) + number(receiver) + agreed)


def proof_context(epoch: bytes, purpose: bytes, public: bytes) -> bytes:
    """What the proof of one party's row in one round is bound to; `public` is the party's key of the epoch."""
    return digest("additive proof", epoch, purpose, public)


def sealed_about(purpose: bytes, nonce: bytes, public: bytes) -> bytes:
    """What a letter with a proof is sealed with: the nonce and the public part that go beside it."""
    return digest("additive proved row", purpose, nonce, public)


def public_mark(share_key: bytes, purpose: bytes, nonce: bytes, public: bytes) -> bytes:
    """By which an aggregator that opens no letters knows that nonce and public part are its party's; 32 bytes.

    A leader that could give it others would have it look at its shares with other joint randomness, and what it then tells is
    an equation about the row.
    """
    return derive(share_key, "additive public part", sealed_about(purpose, nonce, public))


def offer_key(secret: bytes, epoch: bytes, sender: int, receiver: int, salt: bytes) -> bytes:
    """The key under which one aggregator tells another what it adds to the verification key."""
    return derive(secret, "additive offer", salt + epoch + number(sender) + number(receiver))


def verification_key(epoch: bytes, offers: Sequence[bytes]) -> bytes:
    """The key by which aggregators choose where proofs are looked at; no party and no server knows it."""
    return digest("additive verification", epoch, *offers)


def number(n: int) -> bytes:
    return n.to_bytes(4, "little")
