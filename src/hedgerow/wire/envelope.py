"""Envelopes: a letter that only its recipient can open, signed by its sender.

    4 bytes   length of the header
    header    kind, sender, recipient, study, number, answers, size of each part, SHA-256 of the box
    64 bytes  the sender's Ed25519 signature of the header, and of both holders' keys
    box       the parts, one after the other, sealed by HPKE to the recipient's agreement key

    info      = everything in the header but the digest, both holders' keys

The box is bound to the header and the header is signed, so no sealed byte is accepted in another letter: not for another
recipient, kind, study or number, not from another sender, not in another place. The box's ephemeral key is forgotten when it
is sealed: what a sender's keys alone, stolen later, open is nothing. A recipient's agreement key opens every letter that was
sealed to it, until it is rotated.

In clear, for whoever carries it: names, kind, study (16 bytes without meaning), number, sizes. They are there so that a
repeated letter is known before it is opened. What a study asks and answers is inside.

Source   : RFC 9180 (`seal_to` of `crypto.keys`), RFC 8032.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NoReturn

from hedgerow.crypto.keys import (
    KEY_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
    AgreementKey,
    Identity,
    checked_identity,
    seal_to,
    verify,
)
from hedgerow.crypto.messages import MessageForm, Octets, Several, Whole, Words, digest, exactly
from hedgerow.errors import KeyInvalid, MessageRefused, StationUnknown

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
"""What a coordinator or a station may be called: fit for a file, a certificate and a terminal."""

MOST_PARTS = 64
MOST_BYTES = 1 << 30
"""Of all parts of a letter together: no rail carries more."""

STUDY_BYTES = 16
DIGEST_BYTES = 32
LEAD_BYTES = 4

HEADER = MessageForm(
    "letter",
    kind=Words(16),
    sender=Words(63),
    recipient=Words(63),
    study=exactly(STUDY_BYTES),
    number=Whole(0, 2**63 - 1),
    answers=Octets(0, DIGEST_BYTES),
    sizes=Several(Whole(0, MOST_BYTES), MOST_PARTS),
    digest=exactly(DIGEST_BYTES),
)


def checked_name(name: str) -> str:
    """Return a name that a coordinator or a station may have; raise KeyInvalid (HR-244) for another."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise KeyInvalid(
            f"the name {name!r} is not 1 to 63 letters, digits, '.', '_' or '-', the first a letter or a digit.",
            remedy="Choose a name like hospital-north.",
            asked=False,
        )
    return name


@dataclass(frozen=True)
class PublicIdentity:
    """What others know of a coordinator or a station: its name and the public halves of its keys.

    Parameters
    ----------
    name : str
    identity : bytes
        Public Ed25519 key, 32 bytes: its letters are signed with it.
    agreement : bytes
        Public X25519 key, 32 bytes: letters to it are sealed to it.
    certificate : bytes
        SHA-256 of its TLS certificate (DER), 32 bytes; empty where no certificate was issued.
    """

    name: str
    identity: bytes
    agreement: bytes
    certificate: bytes = b""

    def __post_init__(self) -> None:
        checked_name(self.name)
        checked_identity(self.identity)
        if len(self.agreement) != KEY_BYTES or len(self.certificate) not in (0, DIGEST_BYTES):
            raise KeyInvalid(
                f"the public identity of {self.name!r} has an agreement key of {len(self.agreement)} bytes and a certificate "
                f"fingerprint of {len(self.certificate)}; they have 32, the fingerprint may be empty.",
                remedy="Pass the public half of AgreementKey.fresh(), and the SHA-256 of the certificate.",
            )


@dataclass(frozen=True)
class KeyMaterial:
    """One holder's public identity and the private keys that belong to it."""

    public_identity: PublicIdentity
    identity: Identity = field(repr=False)
    agreement: AgreementKey = field(repr=False)

    def __post_init__(self) -> None:
        if (self.identity.public, self.agreement.public) != (self.public_identity.identity, self.public_identity.agreement):
            raise KeyInvalid(
                f"the private keys are not those of the public identity of {self.public_identity.name!r}.",
                remedy="Take public identity and keys from one key folder.",
            )


@dataclass(frozen=True)
class Letter:
    """An opened letter. `digest` stands for all its sealed bytes; an answer names it in `answers`."""

    sender: str
    recipient: str
    kind: str
    study: bytes
    number: int
    answers: bytes
    parts: tuple[bytes, ...]
    digest: bytes


def enclose(
    mine: KeyMaterial,
    theirs: PublicIdentity,
    kind: str,
    parts: Sequence[bytes],
    *,
    study: bytes = bytes(STUDY_BYTES),
    number: int = 0,
    answers: bytes = b"",
) -> bytes:
    """Seal parts for the holder of a public identity, and sign them.

    Parameters
    ----------
    kind : str
        What the letter is; 1 to 16 bytes.
    parts : sequence of bytes
        At most 64, of at most 1 GiB together. They are sealed as one: an agreement of keys takes longer than what is small.
    study : bytes
        16 bytes that name the study, in clear.
    number : int
        Of the letter in its study, in clear.
    answers : bytes
        The digest of the letter that this one answers, or nothing.

    Raises
    ------
    MessageRefused (HR-242)
        A value is not what a header may hold.
    KeyInvalid (HR-244)
        The recipient's agreement key is of low order.
    """
    if answers and len(answers) != DIGEST_BYTES:
        _refuse(f"answers a digest of {len(answers)} bytes, not {DIGEST_BYTES}")
    fields: dict[str, Any] = {
        "kind": kind,
        "sender": mine.public_identity.name,
        "recipient": theirs.name,
        "study": study,
        "number": number,
        "answers": answers,
        "sizes": [len(part) for part in parts],
    }
    _check_sizes(fields)
    box = seal_to(theirs.agreement, b"".join(parts), _context(fields, mine.public_identity, theirs))
    header = HEADER.pack(**fields, digest=_digest(box))
    signature = mine.identity.sign(_statement(header, mine.public_identity, theirs))
    return b"".join([len(header).to_bytes(LEAD_BYTES, "big"), header, signature, box])


def disclose(mine: KeyMaterial, public_identities: Mapping[str, PublicIdentity], raw: bytes) -> Letter:
    """Open a letter that was sealed for me.

    Checked in this order: the form, that the recipient is me, that the sender is trusted, the signature, that the box
    is the one that was signed; then it is opened. Whoever sent what fails here should get no answer: it is not known
    who that was.

    Parameters
    ----------
    public_identities : mapping
        Name -> public identity of those whose letters are taken.
    raw : bytes

    Raises
    ------
    MessageRefused (HR-242)
        The bytes are not a letter, it is for somebody else, or its box was altered.
    StationUnknown (HR-613)
        The sender's public identity is not among them.
    KeyInvalid (HR-244)
        The sender did not sign it.
    """
    fields, header, signature, box = _read(raw)
    _check_recipient(fields, mine.public_identity)
    theirs = _sender(fields, public_identities)
    _check_signature(header, signature, theirs, mine.public_identity)
    _check_digest(fields, box)
    opened = mine.agreement.open(box, _context(fields, theirs, mine.public_identity))
    ends = list(accumulate(fields["sizes"]))
    parts = tuple(opened[end - size : end] for end, size in zip(ends, fields["sizes"], strict=True))
    told = {name: fields[name] for name in ("sender", "recipient", "kind", "study", "number", "answers")}
    return Letter(**told, parts=parts, digest=digest("letter", header, signature))


def digest_of(raw: bytes) -> bytes:
    """The digest of a letter that one has sealed oneself, by which its answer names it; 32 bytes."""
    start = LEAD_BYTES + int.from_bytes(raw[:LEAD_BYTES], "big")
    return digest("letter", raw[LEAD_BYTES:start], raw[start : start + SIGNATURE_BYTES])


def _read(raw: bytes) -> tuple[dict[str, Any], bytes, bytes, memoryview]:
    """Take a letter apart: header as a dict and as bytes, signature, box. Its length is exactly what it says."""
    if not isinstance(raw, bytes | bytearray | memoryview):
        _refuse(f"is not bytes but {type(raw).__name__}")
    view = memoryview(raw)
    start = LEAD_BYTES + int.from_bytes(view[:LEAD_BYTES], "big")
    if start > LEAD_BYTES + HEADER.most or len(view) < start + SIGNATURE_BYTES:
        _refuse(f"of {len(view)} bytes has no whole header")
    header = bytes(view[LEAD_BYTES:start])
    fields = dict(zip(HEADER.kinds, HEADER.unpack(header), strict=True))
    if len(fields["answers"]) not in (0, DIGEST_BYTES):
        _refuse(f"answers a digest of {len(fields['answers'])} bytes, not {DIGEST_BYTES}")
    _check_sizes(fields)
    at = start + SIGNATURE_BYTES
    if (length := at + sum(fields["sizes"]) + SEAL_BYTES) != len(view):
        _refuse(f"has {len(view)} bytes, and its header says {length}")
    return fields, header, bytes(view[start:at]), view[at:]


def _check_sizes(fields: Mapping[str, Any]) -> None:
    if (total := sum(fields["sizes"])) > MOST_BYTES:
        _refuse(f"has {total} bytes in its parts; it may have {MOST_BYTES}")


def _check_recipient(fields: Mapping[str, Any], mine: PublicIdentity) -> None:
    if fields["recipient"] != mine.name:
        _refuse(f"is for {fields['recipient']!r}, not for {mine.name!r}")


def _sender(fields: Mapping[str, Any], public_identities: Mapping[str, PublicIdentity]) -> PublicIdentity:
    public_identity = public_identities.get(fields["sender"])
    if public_identity is None or public_identity.name != fields["sender"]:
        raise StationUnknown(
            f"a letter says that it is from {fields['sender']!r}, who is not on the roster, or was taken off it.",
            remedy="Nothing of it was used. Enrol the sender: hedgerow keys enrol.",
        )
    return public_identity


def _check_signature(header: bytes, signature: bytes, sender: PublicIdentity, recipient: PublicIdentity) -> None:
    verify(sender.identity, signature, _statement(header, sender, recipient))


def _check_digest(fields: Mapping[str, Any], box: memoryview) -> None:
    if _digest(box) != fields["digest"]:
        _refuse("has a box that is not the one that was signed")


def _statement(header: bytes, sender: PublicIdentity, recipient: PublicIdentity) -> bytes:
    """What is signed: the header for two holders with these very keys."""
    return digest("letter signature", header, sender.identity, recipient.identity, recipient.agreement)


def _context(fields: Mapping[str, Any], sender: PublicIdentity, recipient: PublicIdentity) -> bytes:
    """32 bytes that stand for everything that the box is bound to."""
    frame = HEADER.pack(**{**fields, "digest": bytes(DIGEST_BYTES)})
    return digest("letter context", frame, sender.identity, recipient.identity, recipient.agreement)


def _digest(box: bytes | memoryview) -> bytes:
    return hashlib.sha256(box).digest()


def _refuse(why: str) -> NoReturn:
    raise MessageRefused(f"a letter {why}.", remedy="Nothing of it was used.")
