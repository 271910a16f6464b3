"""Oblivious transfers of seeds: one peer makes pairs, the other gets one of each pair and hides which.

    offerer   a random;                    A = a G                       ->
    chooser   r_i random, c_i its choice;  R_i = r_i G + c_i A           ->
    offerer   k_i0 = H(i, A, R_i, a R_i)   k_i1 = H(i, A, R_i, a (R_i - A))
    chooser   k_i  = H(i, A, R_i, r_i A)   which is k_i0 or k_i1, by its choice

The group is that of Ed25519 without its cofactor; a point that is not canonical, not on the curve or not of the prime order
is refused. Beside the transfers both agree on one key, by Diffie and Hellman, from a point of the chooser's of its own.

Assumes  : peers that follow the protocol (semi-honest); the gap Diffie-Hellman problem; SHA-256 as a random function.
Source   : T. Chou and C. Orlandi, The Simplest Protocol for Oblivious Transfer, LATINCRYPT 2015, Figure 1. The hash takes the
           session, the index and both letters, which separates runs and transfers.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.errors import MessageRefused, MissingExtra

POINT_BYTES = 32
SEED_BYTES = 32

_ORDER = 2**252 + 27742317777372353535851937790883648493
_LABEL = b"hedgerow oblivious transfer\0"


def group() -> Any:
    """Return PyNaCl's operations on points of Ed25519.

    Raises
    ------
    MissingExtra (HR-105)
        PyNaCl is not installed, or its libsodium was built without these operations.
    """
    try:
        sodium: Any = import_module("nacl.bindings")
    except ImportError:
        sodium = None
    if sodium is None or not (sodium.has_crypto_core_ed25519 and sodium.has_crypto_scalarmult_ed25519):
        raise MissingExtra(
            "KKRT's oblivious transfers compute with points of Ed25519, and PyNaCl, which does it, is not installed.",
            remedy="pip install 'hedgerow[hidden]', or align by X25519, which needs no PyNaCl.",
        )
    return sodium


class SeedOffer:
    """The offerer's side.

    Attributes
    ----------
    letter : bytes
        The point A, 32 bytes.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._scalar = _scalar(entropy)
        self.letter: bytes = group().crypto_scalarmult_ed25519_base_noclamp(self._scalar)

    def seeds(self, points: bytes, n: int, session: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return n pairs of seeds of 32 bytes, and the common key, from the chooser's n + 1 points.

        Raises
        ------
        MessageRefused (HR-242)
            There is another number of points, or one of them is not of the group.
        """
        sodium = group()
        *chosen, own = points_in(points, n + 1)
        shared = sodium.crypto_scalarmult_ed25519_noclamp(self._scalar, self.letter)
        pairs = []
        for i, point in enumerate(chosen):
            first = sodium.crypto_scalarmult_ed25519_noclamp(self._scalar, point)
            second = sodium.crypto_core_ed25519_sub(first, shared)
            prefix = _prefix(session, i, self.letter, point)
            pairs.append((_hash(prefix + first), _hash(prefix + second)))
        common = sodium.crypto_scalarmult_ed25519_noclamp(self._scalar, own)
        return pairs, _hash(_prefix(session, n, self.letter, own) + common)


class SeedChoice:
    """The chooser's side.

    Parameters
    ----------
    choices : array of shape (n,)
        Zeros and ones.
    """

    def __init__(self, choices: Array, entropy: Entropy) -> None:
        self._choices, self._entropy = np.asarray(choices), entropy

    def seeds(self, offer: bytes, session: bytes) -> tuple[bytes, list[bytes], bytes]:
        """Return the letter of n + 1 points, the n seeds that were chosen, and the common key.

        Raises
        ------
        MessageRefused (HR-242)
            The offer is not a point of the group.
        """
        sodium = group()
        (base,) = points_in(offer, 1)
        letter, seeds = [], []
        for i, chosen in enumerate([*self._choices.tolist(), 0]):
            scalar = _scalar(self._entropy)
            point = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar)
            # Both sums are computed and one is taken, so that the time does not tell the choice.
            point = (point, sodium.crypto_core_ed25519_add(point, base))[chosen]
            shared = sodium.crypto_scalarmult_ed25519_noclamp(scalar, base)
            seeds.append(_hash(_prefix(session, i, base, point) + shared))
            letter.append(point)
        return b"".join(letter), seeds[:-1], seeds[-1]


def points_in(letter: bytes, n: int) -> list[bytes]:
    """Return n points, each of them canonical, on the curve, of the prime order, and not its neutral element."""
    if len(letter) != n * POINT_BYTES:
        raise MessageRefused(f"a letter of {len(letter)} bytes for {n} points of {POINT_BYTES} bytes.")
    points = [bytes(letter[i : i + POINT_BYTES]) for i in range(0, len(letter), POINT_BYTES)]
    valid = group().crypto_core_ed25519_is_valid_point
    if not all(valid(point) for point in points):
        raise MessageRefused("a letter of oblivious transfers holds what is not a point of the group.")
    return points


def _scalar(entropy: Entropy) -> bytes:
    """A scalar in [1, order), from 64 bytes: reducing them leaves a bias below 2^-259."""
    number = 1 + int.from_bytes(entropy(64), "little") % (_ORDER - 1)
    return number.to_bytes(32, "little")


def _prefix(session: bytes, i: int, offer: bytes, point: bytes) -> bytes:
    return _LABEL + session + i.to_bytes(4, "little") + offer + point


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
