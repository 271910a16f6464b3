"""Heads of journals: how far a station's journal went, signed by the station, seen and signed by its coordinator.

    station       appends to each answer    its head        generation, journal, number, hash; signature
    coordinator   appends to each letter    what it saw     the newest head that the station signed; when; signature

A head that comes back and is not in the station's journal tells it that entries were lost: its database was deleted, emptied,
replaced or restored. The coordinator cannot make one up, for the station has signed it. What the station keeps of it outside
its database is signed by both: neither can say later that the journal was shorter then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from hedgerow.crypto.keys import SIGNATURE_BYTES, verify
from hedgerow.crypto.messages import MessageForm, Octets, Whole, Words, digest, exactly

from .envelope import KeyMaterial, PublicIdentity

MARK = b"HGJH"
"""With which the part of a letter begins that carries a head; no other part begins with it."""

HASH_BYTES = 16
HEAD = MessageForm(
    "journal head",
    generation=Whole(0, 2**31 - 1),
    journal=exactly(HASH_BYTES),
    number=Whole(0, 2**63 - 1),
    hash=exactly(HASH_BYTES),
    signature=exactly(SIGNATURE_BYTES),
)
SEEN = MessageForm("seen head", head=Octets(0, HEAD.most), at=Words(40), signature=exactly(SIGNATURE_BYTES))


@dataclass(frozen=True)
class Head:
    """How far a journal went.

    Attributes
    ----------
    generation : int
        How often the station's owner began anew after a loss: heads of earlier generations are settled.
    journal : bytes
        16 bytes that name the journal: the hash of its first row, which is random.
    number, hash : int, bytes
        Of its last entry.
    """

    generation: int
    journal: bytes
    number: int
    hash: bytes

    @property
    def place(self) -> tuple[int, int]:
        """By which one head is newer than another of the same station."""
        return self.generation, self.number

    def signed(self, mine: KeyMaterial) -> bytes:
        """The head, signed by the station."""
        signature = mine.identity.sign(self._statement(mine.public_identity))
        return HEAD.pack(**vars(self), signature=signature)

    @classmethod
    def read(cls, raw: bytes, by: PublicIdentity) -> Self:
        """Read a head that a station signed.

        Raises
        ------
        MessageRefused (HR-242), KeyInvalid (HR-244)
        """
        *told, signature = HEAD.unpack(raw)
        head = cls(*told)
        verify(by.identity, signature, head._statement(by))
        return head

    def _statement(self, by: PublicIdentity) -> bytes:
        numbers = f"{self.generation} {self.number}".encode()
        return digest("journal head", by.name.encode(), by.identity, numbers, self.journal, self.hash)


def seen(head: bytes, at: str, by: KeyMaterial, of: PublicIdentity) -> bytes:
    """What a coordinator says of a station's newest head; b"" where it knows none."""
    return SEEN.pack(head=head, at=at, signature=by.identity.sign(_seen(head, at, of)))


def read_seen(raw: bytes, by: PublicIdentity, of: PublicIdentity) -> tuple[Head | None, str]:
    """Read which head of a station a coordinator has seen, and when.

    Raises
    ------
    MessageRefused (HR-242), KeyInvalid (HR-244)
        One of them did not sign it.
    """
    head, at, signature = SEEN.unpack(raw)
    verify(by.identity, signature, _seen(head, at, of))
    return (Head.read(head, of) if head else None), at


def attached(parts: Sequence[bytes], raw: bytes) -> list[bytes]:
    """The parts of a letter with one that carries a head."""
    return [*parts, MARK + raw]


def detached(parts: tuple[bytes, ...]) -> tuple[tuple[bytes, ...], bytes | None]:
    """The parts of a letter without the one that carries a head, and what that holds."""
    if parts and parts[-1].startswith(MARK):
        return parts[:-1], parts[-1][len(MARK) :]
    return parts, None


def _seen(head: bytes, at: str, of: PublicIdentity) -> bytes:
    return digest("seen head", head, at.encode(), of.name.encode(), of.identity)
