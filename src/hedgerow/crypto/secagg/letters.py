"""What SecAgg's two sides send each other: forms of messages, and the digests that bind them to each other.

    binding    settings and roster                      mixed settings are refused at the first letter
    bond       epoch, binding, its ordered members      in every key of the epoch
    nonce      bond, round, context, cohort             masks cancel only among those who see the same

Sets of members are bitmaps: no member can be twice in one, and none is in a set and its complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.conversation import Contribution
from hedgerow.crypto.graph import LARGEST_DEGREE
from hedgerow.crypto.keys import KEY_BYTES, SIGNATURE_BYTES, TAG_BYTES
from hedgerow.crypto.messages import MessageForm, Octets, Whole, digest, exactly
from hedgerow.crypto.shamir import SHARE_BYTES
from hedgerow.crypto.standing import REPORT_BYTES
from hedgerow.errors import MessageRefused

from .settings import MOST_PARTIES, MOST_ROUNDS

EPOCH_BYTES = 32
LARGEST_ROW = 1 << 30

_epoch, _digest = exactly(EPOCH_BYTES), exactly(32)
_round = Whole(1, MOST_ROUNDS)
_set = Octets(1, MOST_PARTIES // 8)
_signature = Octets(0, SIGNATURE_BYTES)
_boxes = Octets(0, LARGEST_DEGREE * (2 * MOST_ROUNDS * SHARE_BYTES + TAG_BYTES))

KEYS_ASKED = MessageForm("secagg keys asked", epoch=_epoch, binding=_digest)
KEY = MessageForm("secagg key", epoch=_epoch, public=exactly(KEY_BYTES), signature=_signature, standing=Octets(0, REPORT_BYTES))
NEIGHBOURS = MessageForm(
    "secagg neighbours",
    epoch=_epoch,
    order=_digest,
    members=Octets(1, MOST_PARTIES // 8),
    size=Whole(1, MOST_PARTIES),
    place=Whole(0, MOST_PARTIES),
    neighbours=Octets(4, 4 * LARGEST_DEGREE),
    publics=Octets(KEY_BYTES, KEY_BYTES * LARGEST_DEGREE),
    signatures=Octets(0, SIGNATURE_BYTES * LARGEST_DEGREE),
)
SHARES = MessageForm(
    "secagg shares",
    epoch=_epoch,
    boxes=_boxes,
    lists=Octets(1, MOST_ROUNDS * (LARGEST_DEGREE * KEY_BYTES + TAG_BYTES)),
    commitments=Octets(32, 32 * MOST_ROUNDS),
)
ROUND = MessageForm(
    "secagg round",
    epoch=_epoch,
    round=_round,
    cohort=_set,
    context=_digest,
    present=Octets(0, LARGEST_DEGREE // 8),
    inbox=_boxes,
)
ROW = MessageForm("secagg row", epoch=_epoch, round=_round, row=Octets(1, LARGEST_ROW))
SURVIVORS = MessageForm("secagg survivors", epoch=_epoch, round=_round, survivors=_set)
AGREED = MessageForm("secagg agreed", epoch=_epoch, round=_round, signature=exactly(SIGNATURE_BYTES))
UNMASK = MessageForm(
    "secagg unmask",
    epoch=_epoch,
    round=_round,
    survivors=_set,
    signers=Octets(0, 4 * LARGEST_DEGREE),
    signatures=Octets(0, SIGNATURE_BYTES * LARGEST_DEGREE),
)
OPENING = MessageForm("secagg opening", epoch=_epoch, round=_round, shares=Octets(1, SHARE_BYTES * LARGEST_DEGREE))


@dataclass(frozen=True)
class Members:
    """A set of members of an epoch.

    Attributes
    ----------
    flags : bool array of shape (n,)
    count : int
    digest : bytes
    """

    flags: NDArray[np.bool_]
    count: int
    digest: bytes


@lru_cache(maxsize=64)
def read_set(raw: bytes, n: int) -> Members:
    """Read a bitmap of n members; read once for all parties of a process that are sent the same.

    Raises
    ------
    MessageRefused (HR-242)
        It has another length, or bits beyond the last member.
    """
    if len(raw) != -(-n // 8) or (n % 8 and raw[-1] >> (n % 8)):
        raise MessageRefused(f"a set of members in {len(raw)} bytes is none of {n} members.", remedy="One bit for each member.")
    flags = np.unpackbits(np.frombuffer(raw, np.uint8), count=n, bitorder="little").astype(bool)
    flags.flags.writeable = False
    return Members(flags, int(flags.sum()), digest("secagg set", raw))


def write_set(flags: NDArray[np.bool_]) -> bytes:
    """Write a set of members as a bitmap."""
    return np.packbits(flags, bitorder="little").tobytes()


def places(raw: bytes, most: int) -> NDArray[np.int64]:
    """Read places of members, four bytes each: ascending, so distinct, and below `most`."""
    if len(raw) % 4:
        raise MessageRefused(f"places in {len(raw)} bytes.", remedy="Four bytes for each.")
    found = np.frombuffer(raw, "<u4").astype(np.int64)
    if len(found) and (found[-1] >= most or (found[1:] <= found[:-1]).any()):
        raise MessageRefused("places that repeat, or are out of order or range.", remedy="Ascending places of members.")
    return found


def binding(settings: bytes, roster: bytes | None) -> bytes:
    """What both sides must have in common before anything: settings, and the roster if there is one."""
    return digest("secagg binding", settings, roster or b"")


def bond(epoch: bytes, bound: bytes, members: bytes, size: int) -> bytes:
    """Identifies an epoch with its ordered members; in all its keys."""
    return digest("secagg epoch", epoch, bound, members, size.to_bytes(4, "little"))


def members_digest(ids: tuple[str, ...]) -> bytes:
    """Identifies ordered members."""
    return digest("secagg members", *(id.encode() for id in ids))


def members_told(order: bytes, members: bytes) -> bytes:
    """Identifies the members of an epoch to parties that have no roster: a set, and the digest of the names that it is over."""
    return digest("secagg members told", order, members)


def graph_seed(bond: bytes) -> bytes:
    """From which the order of an epoch's ring follows."""
    return digest("secagg graph", bond)


def context_of(contribution: Contribution) -> bytes:
    """What a party's row is about, as that party sees it: model, question, settings, fixed point."""
    return context(contribution.context, contribution.encoding.digest)


def context(given: bytes, encoding: bytes) -> bytes:
    """What rows are about."""
    return digest("secagg context", given, encoding)


def nonce(bond: bytes, number: int, context: bytes, cohort: bytes) -> bytes:
    """Where the masks of a round begin: another place for another round, context or cohort; 16 bytes."""
    return digest("secagg round", bond, number.to_bytes(4, "little"), context, cohort)[:16]


def key_statement(bound: bytes, epoch: bytes, id: str, public: bytes) -> bytes:
    """What a party signs about its key."""
    return digest("secagg key", bound, epoch, id.encode(), public)


def survivors_statement(bond: bytes, number: int, cohort: bytes, survivors: bytes) -> bytes:
    """What a party signs about who survived a round."""
    return digest("secagg survivors", bond, number.to_bytes(4, "little"), cohort, survivors)


def commitment(bond: bytes, place: int, number: int, secret: bytes) -> bytes:
    """Hides a self-mask's seed and tells whether it was put together rightly."""
    return digest("secagg self mask", bond, _pair(place, number), secret)


def box_label(bond: bytes, sender: int, receiver: int) -> bytes:
    """What a sealed box of shares is bound to."""
    return bond + _pair(sender, receiver)


def list_label(bond: bytes, place: int, number: int) -> bytes:
    """What a sealed list of seeds is bound to."""
    return bond + _pair(place, number)


def _pair(a: int, b: int) -> bytes:
    return a.to_bytes(4, "little") + b.to_bytes(4, "little")
