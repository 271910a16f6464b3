"""Letters of additive shares: between server and parties, and between server and aggregators."""

from __future__ import annotations

from ..cohort import LONGEST_NAME
from ..keys import TAG_BYTES
from ..messages import FieldKind, MessageForm, Octets, Several, Whole, Words, exactly
from ..proofs.letters import NONCE_BYTES

LARGEST = 1 << 22
"""Parties of an epoch."""

LONGEST = 1 << 28
"""Numbers of a row."""

LONGEST_TASK = 1 << 20
"""Bytes of a task."""

LONGEST_PROOF = 1 << 24
"""Bytes of the public part of a proof."""

SALT_BYTES = 16
MARK_BYTES = 32
"""Bytes by which an aggregator knows a party's public part."""

OFFER_BYTES = SALT_BYTES + 32 + TAG_BYTES
"""Bytes of a salt, and of what one aggregator adds to the verification key, sealed for another."""

_PLACES = Octets(0, LARGEST // 8)
_BOXES = Octets(0, 64 * OFFER_BYTES)
_ROUND: dict[str, FieldKind] = {"epoch": exactly(32), "round": Whole(1, 2**32 - 1)}
_SET: dict[str, FieldKind] = {
    **_ROUND,
    "task": Octets(0, LONGEST_TASK),
    "bits": Whole(16, 64),
    "size": Whole(0, LONGEST),
    "least": Whole(0, LARGEST),
    "steady": Whole(0, 1),
    "places": _PLACES,
}
OPEN = MessageForm("additive enrol", epoch=exactly(32), aggregators=exactly(32))
KEY = MessageForm("additive key", epoch=exactly(32), public=exactly(32), signature=Octets(0, 64))
ASK = MessageForm("additive contribution", **_ROUND, terms=exactly(32))
ROW = MessageForm("additive row", **_ROUND, steady=Whole(0, 1), box=Octets(TAG_BYTES, 8 * LONGEST + TAG_BYTES))

ENROL = MessageForm(
    "additive members",
    epoch=exactly(32),
    before=Whole(0, LARGEST),
    ids=Several(Words(LONGEST_NAME), LARGEST),
    publics=Octets(0, 32 * LARGEST),
    signatures=Octets(0, 64 * LARGEST),
)
ENROLLED = MessageForm("additive enrolled", epoch=exactly(32), places=_PLACES)
COLLECT = MessageForm("additive collect", **_SET, boxes=Octets(0, 1 << 32))
COLLECTED = MessageForm("additive collected", **_ROUND, places=_PLACES)
AGREE = MessageForm("additive agree", **_SET)
AGREED = MessageForm("additive agreed", **_ROUND, tags=Octets(0, 64 * 32))
TOTAL = MessageForm("additive total", **_ROUND, tags=Octets(0, 64 * 32))
PROVED = MessageForm(
    "additive proved row",
    **_ROUND,
    steady=Whole(0, 1),
    nonce=exactly(NONCE_BYTES),
    public=Octets(0, LONGEST_PROOF),
    marks=Octets(0, 64 * MARK_BYTES),
    box=Octets(TAG_BYTES, 1 << 32),
)
OFFER = MessageForm("additive offer", epoch=exactly(32))
OFFERED = MessageForm("additive offered", epoch=exactly(32), boxes=_BOXES)
SETTLE = MessageForm("additive settle", epoch=exactly(32), boxes=_BOXES)
SETTLED = MessageForm("additive settled", epoch=exactly(32))
TELL = MessageForm(
    "additive tell",
    **_SET,
    nonces=Octets(0, NONCE_BYTES * LARGEST),
    publics=Octets(0, 1 << 32),
    marks=Octets(0, MARK_BYTES * LARGEST),
    boxes=Octets(0, 1 << 32),
)
TOLD = MessageForm("additive told", **_ROUND, places=_PLACES, told=Octets(0, 1 << 32), tags=Octets(0, 64 * 32))
JUDGE = MessageForm(
    "additive judge", **_ROUND, places=Several(_PLACES, 64), tolds=Several(Octets(0, 1 << 32), 64), tags=Octets(0, 64 * 32)
)
JUDGED = MessageForm("additive judged", **_ROUND, places=_PLACES)
STANDING = MessageForm("additive standing", ids=Several(Words(LONGEST_NAME), LARGEST))
SUM = MessageForm("additive sum", **_ROUND, total=Octets(0, 8 * LONGEST))
