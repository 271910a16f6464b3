"""Keys: agreement (X25519), identities (Ed25519), derivation (HKDF), sealed messages (ChaCha20-Poly1305), rosters.

    pair  = mine.agree(yours.public)                    the same 32 bytes at both ends
    key   = derive(pair, "channel", context)            one key per purpose and context
    boxed = seal(key, message, associated)              one message per key
    boxed = seal_to(yours.public, message, info)        for whoever holds the private half: yours.open(boxed, info)

Every key has one purpose: labels separate what is derived from one secret, and a key seals one message, so that a nonce
cannot be used twice. The arithmetic is OpenSSL's, in constant time. What is left in Python's memory is not wiped.

Source   : RFC 7748, RFC 8032, RFC 5869, RFC 8439, RFC 9180.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Self

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hedgerow.errors import KeyInvalid, MessageRefused

KEY_BYTES = 32
SIGNATURE_BYTES = 64
TAG_BYTES = 16
SEAL_BYTES = KEY_BYTES + TAG_BYTES
"""By so many bytes what `seal_to` gives is longer than what was sealed: an encapsulated key and a tag."""
LONGEST_DERIVED = 255 * 32

_NONCE = bytes(12)
_HPKE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_FIELD = 2**255 - 19
_ORDER_EIGHT = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _ORDER_EIGHT, _FIELD - _ORDER_EIGHT})


def _sized(raw: bytes, what: str, size: int = KEY_BYTES) -> bytes:
    """Return `raw` as bytes if it has `size` of them."""
    if not isinstance(raw, bytes | bytearray | memoryview) or len(raw) != size:
        length = f"{len(raw)} bytes" if isinstance(raw, bytes | bytearray | memoryview) else f"a {type(raw).__name__}"
        raise KeyInvalid(f"{what} of {length}; it has {size} bytes.", remedy="Pass the raw bytes, neither text nor PEM.")
    return bytes(raw)


class AgreementKey:
    """A private X25519 key and its public half.

    Two holders of such keys agree on 32 bytes that nobody else knows. They are input for `derive`, not yet a key.
    """

    __slots__ = ("_key", "public")

    def __init__(self, key: X25519PrivateKey) -> None:
        self._key = key
        self.public: bytes = key.public_key().public_bytes_raw()

    @classmethod
    def fresh(cls) -> Self:
        """Return a key from the operating system's entropy."""
        return cls(X25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Return the key with these 32 private bytes."""
        return cls(X25519PrivateKey.from_private_bytes(_sized(raw, "a private agreement key")))

    @property
    def private(self) -> bytes:
        """The 32 private bytes."""
        return self._key.private_bytes_raw()

    def agree(self, public: bytes) -> bytes:
        """Return the 32 bytes that this key and the holder of `public` have in common.

        Raises
        ------
        KeyInvalid (HR-244)
            `public` has the wrong length, or is a point of low order, whose result would not depend on the private key.
        """
        try:
            return self._key.exchange(_agreement_key(public))
        except ValueError:
            raise _low_order(public) from None

    def open(self, sealed: bytes | memoryview, info: bytes) -> bytes:
        """Return what was sealed to this key by `seal_to`.

        Raises
        ------
        MessageRefused (HR-242)
            A bit of the box or of `info` differs, or it was sealed to another key.
        """
        try:
            return _HPKE.decrypt(sealed, self._key, info)
        except InvalidTag:
            raise MessageRefused(
                f"a box of {len(sealed)} bytes does not open: it was altered, or sealed to another key or for another purpose.",
                remedy="Nothing of it was used.",
            ) from None

    def __repr__(self) -> str:
        return f"AgreementKey(public={self.public.hex()})"


def _agreement_key(public: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(_sized(public, "a public agreement key"))


def _low_order(public: bytes) -> KeyInvalid:
    return KeyInvalid(
        f"the public agreement key {bytes(public).hex()} is a point of low order: the agreement would not be secret.",
        remedy="Ask its owner for a key made by AgreementKey.fresh().",
    )


def seal_to(public: bytes, plaintext: bytes, info: bytes) -> bytes:
    """Return `plaintext` sealed to the holder of a public agreement key, under an ephemeral key that is forgotten at once.

    It is `SEAL_BYTES` longer. It says nothing of who sealed it. HPKE in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256,
    AES-256-GCM.

    Parameters
    ----------
    public : bytes
        The recipient's key, 32 bytes.
    info : bytes
        What the box is bound to; it opens with the same bytes alone.

    Raises
    ------
    KeyInvalid (HR-244)
        `public` has the wrong length, or is a point of low order.
    """
    try:
        return _HPKE.encrypt(plaintext, _agreement_key(public), info)
    except ValueError:
        raise _low_order(public) from None


class Identity:
    """A private Ed25519 key that signs; its public half is what rosters list."""

    __slots__ = ("_key", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public: bytes = key.public_key().public_bytes_raw()

    @classmethod
    def fresh(cls) -> Self:
        """Return an identity from the operating system's entropy."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Return the identity with these 32 private bytes."""
        return cls(Ed25519PrivateKey.from_private_bytes(_sized(raw, "a private identity")))

    @property
    def private(self) -> bytes:
        """The 32 private bytes, for a party's own store."""
        return self._key.private_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of a signature; the same for the same message."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"Identity(public={self.public.hex()})"


def checked_identity(public: bytes) -> bytes:
    """Return a public identity if it can stand in a roster.

    Under a point of small order some signatures verify for every message, and a coordinate beyond the field would give one
    key two spellings; both are refused.
    """
    raw = _sized(public, "a public identity")
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    if y >= _FIELD or y in _SMALL_ORDER:
        raise KeyInvalid(
            f"the public identity {raw.hex()} is a point of small order or not in canonical form.",
            remedy="Use the public half of Identity.fresh().",
        )
    return raw


def verify(public: bytes, signature: bytes, message: bytes) -> None:
    """Return if `signature` is the signature of `message` by the holder of `public`; raise KeyInvalid (HR-244) otherwise."""
    key = Ed25519PublicKey.from_public_bytes(checked_identity(public))
    try:
        key.verify(_sized(signature, "a signature", SIGNATURE_BYTES), message)
    except InvalidSignature:
        raise KeyInvalid(
            f"a signature does not belong to this message and the identity {bytes(public).hex()}.",
            remedy="The message was altered on its way, or somebody else wrote it.",
        ) from None


def expand(secret: bytes, salt: bytes | None, info: bytes, length: int) -> bytes:
    """Return `length` bytes of HKDF-SHA256; `derive` is what protocols call."""
    if not 1 <= length <= LONGEST_DERIVED:
        raise KeyInvalid(f"{length} derived bytes; HKDF gives 1 to {LONGEST_DERIVED}.", remedy="Derive a key for `keystream`.")
    return HKDF(SHA256(), length, salt, info).derive(secret)


def derive(secret: bytes, label: str, context: bytes = b"", length: int = KEY_BYTES) -> bytes:
    """Return the key that `secret` gives for one purpose in one context: HKDF-SHA256 with info `label | 0 | context`.

    Parameters
    ----------
    secret : bytes
        What was agreed, or another derived key.
    label : str
        The purpose. Without a zero byte, so that no label with its context equals another label with another context.
    context : bytes
        What else the key stands for: epoch, round, parties, digests; in a form that cannot be read in two ways.
    """
    purpose = label.encode()
    if not purpose or 0 in purpose:
        raise KeyInvalid(f"the label {label!r} is empty or has a zero byte.", remedy="Name the purpose of the key.")
    return expand(secret, None, purpose + b"\0" + context, length)


def seal(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """Return `plaintext` encrypted, with a tag over it and `associated`: 16 bytes longer than it was.

    The nonce is zero. A key therefore seals ONE message; derive a new key for the next one.
    """
    return _seal(_sized(key, "a sealing key"), _NONCE, plaintext, associated)


def unseal(key: bytes, sealed: bytes, associated: bytes) -> bytes:
    """Return what was sealed; raise MessageRefused (HR-242) if a bit of the box or of `associated` differs."""
    return _unseal(_sized(key, "a sealing key"), _NONCE, sealed, associated)


def _seal(key: bytes, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """Seal with any nonce: what the published vectors test."""
    return ChaCha20Poly1305(key).encrypt(nonce, plaintext, associated)


def _unseal(key: bytes, nonce: bytes, sealed: bytes, associated: bytes) -> bytes:
    """Open with any nonce: what the published vectors test."""
    try:
        return ChaCha20Poly1305(key).decrypt(nonce, sealed, associated)
    except InvalidTag:
        raise MessageRefused(
            f"a sealed message of {len(sealed)} bytes does not open: it was altered, or sealed under another key or context.",
            remedy="Nothing of it was used.",
        ) from None


class Roster(Mapping[str, bytes]):
    """Who takes part: public identities by party id. It does not change once made.

    Parameters
    ----------
    identities : mapping
        Party id (text, not empty) -> 32 bytes. Two ids with one key are refused: one holder would count twice.

    Attributes
    ----------
    digest : bytes
        32 bytes that stand for the whole roster, the same in whatever order it was listed.
    """

    def __init__(self, identities: Mapping[str, bytes]) -> None:
        self._identities = {id: checked_identity(public) for id, public in identities.items()}
        if not all(isinstance(id, str) and id for id in self._identities):
            raise KeyInvalid("a roster has an id that is empty or not text.", remedy="Give every party an id.")
        if len(set(self._identities.values())) < len(self._identities):
            raise KeyInvalid("a roster lists one identity under two ids.", remedy="Each party has an Identity of its own.")

    def __getitem__(self, id: str) -> bytes:
        return self._identities[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._identities)

    def __len__(self) -> int:
        return len(self._identities)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the ids, in order of their bytes, each with its length and its key."""
        running = hashlib.sha256(b"hedgerow roster\0")
        for raw, public in sorted((id.encode(), public) for id, public in self._identities.items()):
            running.update(len(raw).to_bytes(4, "little") + raw + public)
        return running.digest()

    def verify(self, id: str, signature: bytes, message: bytes) -> None:
        """Return if party `id` signed `message`; raise KeyInvalid (HR-244) if it did not or is not on the roster."""
        if id not in self._identities:
            raise KeyInvalid(f"{id!r} is not on the roster of {len(self)} parties.", remedy="Ask the roster's keeper.")
        verify(self._identities[id], signature, message)

    def __repr__(self) -> str:
        return f"Roster({len(self)} parties, digest={self.digest.hex()[:16]})"
