"""One of the few aggregators of additive shares: bytes in, bytes out; it never sees a row.

It gives one total for each round of an epoch, of a set of parties that all aggregators agreed on, and of no set below
its minimum. See `additive` for the protocol.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import HedgerowError, KeyInvalid, MessageRefused
from hedgerow.store import Answered

from .cohort import LONGEST_NAME, bitmap, cut, lawful_least, mask_of
from .fixedpoint import WORDS
from .keys import TAG_BYTES, AgreementKey, Roster, derive, unseal
from .messages import FieldKind, MessageForm, Octets, Several, Whole, Words, digest, exactly
from .streams import NONCE_BYTES, add_streams

LARGEST = 1 << 22
"""Parties of an epoch."""

LONGEST = 1 << 28
"""Numbers of a row."""

TOGETHER = 1024
"""Streams whose keys are held at a time."""

ZERO = bytes(NONCE_BYTES)

_PLACES = Octets(0, LARGEST // 8)
_ROUND: dict[str, FieldKind] = {"epoch": exactly(32), "round": Whole(1, 2**32 - 1)}
_SET: dict[str, FieldKind] = {
    **_ROUND,
    "terms": exactly(32),
    "bits": Whole(16, 64),
    "size": Whole(0, LONGEST),
    "least": Whole(0, LARGEST),
    "places": _PLACES,
}
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
SUM = MessageForm("additive sum", **_ROUND, total=Octets(0, 8 * LONGEST))


def pinned(publics: Sequence[bytes], n: int) -> bytes:
    """Digest of the aggregators' public keys in their order; refuses another number than `n` and repeated keys."""
    if len(publics) != n or len(set(publics)) != n or any(len(public) != 32 for public in publics):
        raise KeyInvalid(
            f"{len(publics)} keys of aggregators, where {n} different ones are needed.",
            remedy="Pin one X25519 public key of 32 bytes for each, in the same order everywhere.",
            asked=False,
        )
    return digest("additive aggregators", *publics)


def announced(epoch: bytes, aggregators: bytes, id: str, public: bytes, roster: Roster) -> bytes:
    """What a party signs when it joins an epoch."""
    return digest("additive key", epoch, aggregators, id.encode(), public, roster.digest)


def bond(secret: bytes, epoch: bytes, aggregators: bytes, place: int, public: bytes) -> bytes:
    """The key that a party and an aggregator share for an epoch."""
    return derive(secret, "additive epoch", epoch + aggregators + _number(place) + public)


@lru_cache(maxsize=64)
def purpose(round: int, terms: bytes, bits: int, size: int, least: int) -> bytes:
    """What a round's keys are for: a share read in another ring, for other terms or for a smaller set is another stream."""
    return digest("additive round", _number(round), terms, _number(bits), _number(size), _number(least))


def share_key(secret: bytes, purpose: bytes) -> bytes:
    """The key of the stream that is one share of a row."""
    return derive(secret, "additive share", purpose)


def correction_key(secret: bytes, purpose: bytes) -> bytes:
    """The key under which the correction of one round is sealed; it seals nothing else."""
    return derive(secret, "additive correction", purpose)


def _agreement(secret: bytes, sender: int, receiver: int, agreed: bytes) -> bytes:
    """What one aggregator tells another: that it agreed on a set."""
    return derive(secret, "additive agreement", _number(sender) + _number(receiver) + agreed)


def _number(n: int) -> bytes:
    return n.to_bytes(4, "little")


@dataclass
class _Round:
    """What an aggregator keeps of the round at hand; `agreed` is empty until the set is final."""

    number: int
    terms: bytes
    bits: int
    size: int
    least: int
    sound: Array
    total: Array
    agreed: bytes = b""

    @property
    def purpose(self) -> bytes:
        return purpose(*self.head)

    @property
    def head(self) -> tuple[int, bytes, int, int, int]:
        return self.number, self.terms, self.bits, self.size, self.least


class Aggregator:
    """One aggregator.

    Parameters
    ----------
    key : AgreementKey
        Its lasting key, whose public half parties pin.
    aggregators : sequence of bytes
        Public keys of all aggregators in order, its own among them. The last one opens corrections.
    least : int
        Of fewer parties it gives no total.
    roster : Roster, optional
        Whoever did not sign its key is not enrolled.
    journal : Answered, optional
        Keeps the epochs that it served across restarts; the same keys never serve an epoch again.
    """

    def __init__(
        self,
        key: AgreementKey,
        aggregators: Sequence[bytes],
        *,
        least: int = 3,
        roster: Roster | None = None,
        journal: Answered | None = None,
    ) -> None:
        lawful_least(least)
        self._pinned = pinned(aggregators, len(aggregators))
        if key.public not in aggregators:
            raise KeyInvalid("this aggregator's key is not among those of all.", remedy="Give all keys in order.", asked=False)
        self.public, self.place, self.least, self.roster = key.public, list(aggregators).index(key.public), least, roster
        self._key, self._journal = key, Answered(None) if journal is None else journal
        self._opens = self.place == len(aggregators) - 1
        self._among = [None if public == key.public else key.agree(public) for public in aggregators]
        self._epoch, self._last, self._members = b"", 0, b""
        self._ids: set[str] = set()
        self._bonds: list[bytes | None] = []
        self._round: _Round | None = None

    def answer(self, step: str, letter: bytes) -> bytes:
        """Answer "enrol", "collect", "agree" or "total", or refuse it; a refusal changes nothing."""
        steps = {"enrol": self._enrol, "collect": self._collect, "agree": self._agree, "total": self._total}
        if step not in steps:
            raise MessageRefused(f"step {step!r} cannot be answered.", remedy="Steps are " + ", ".join(steps) + ".")
        return steps[step](letter)

    def _enrol(self, letter: bytes) -> bytes:
        epoch, before, ids, joined, signed = ENROL.unpack(letter)
        publics = cut(joined, len(ids), 32)
        signatures = cut(signed, len(ids), 64) if self.roster is not None else [b""] * len(ids)
        fresh = epoch != self._epoch
        if fresh and self._journal.seen(f"aggregated {epoch.hex()}") is not None:
            raise MessageRefused("this epoch was served before.", remedy="Begin a new epoch.")
        twice = len(set(ids)) < len(ids) or (not fresh and not self._ids.isdisjoint(ids))
        if twice or before != (0 if fresh else len(self._bonds)) or len(ids) + before > LARGEST:
            raise MessageRefused("parties are enrolled twice, out of order, or too many.", remedy="Begin a new epoch.")
        bonds = [self._bond(epoch, *one) for one in zip(ids, publics, signatures, strict=True)]
        if fresh:
            self._journal.write(f"aggregated {epoch.hex()}", digest("additive epoch", letter))
            self._epoch, self._last, self._members, self._ids, self._bonds = epoch, 0, b"", set(), []
        self._round = None
        self._ids.update(ids)
        self._bonds += bonds
        self._members = digest("additive members", self._members, letter)
        return ENROLLED.pack(epoch=epoch, places=bitmap(np.array([one is not None for one in bonds], bool)))

    def _bond(self, epoch: bytes, id: str, public: bytes, signature: bytes) -> bytes | None:
        """The key shared with a party; None where its key or signature is refused."""
        try:
            if self.roster is not None:
                self.roster.verify(id, signature, announced(epoch, self._pinned, id, public, self.roster))
            return bond(self._key.agree(public), epoch, self._pinned, self.place, public)
        except HedgerowError:
            return None

    def _begun(
        self, epoch: bytes, round: int, terms: bytes, bits: int, size: int, least: int, places: bytes
    ) -> tuple[_Round, Array]:
        """A round as a letter names it, with nothing in it, and the parties that the letter is about."""
        if not self._epoch or epoch != self._epoch or bits not in WORDS:
            raise MessageRefused("this epoch is not open here.", remedy="Begin a new epoch.")
        if round <= self._last:
            raise MessageRefused(f"round {round} of the epoch is over here.", remedy="Every round has a new number.")
        about = mask_of(places, len(self._bonds))
        return _Round(round, terms, bits, size, least, np.zeros(len(about), bool), np.zeros(size, WORDS[bits])), about

    def _collect(self, letter: bytes) -> bytes:
        *head, joined = COLLECT.unpack(letter)
        found, about = self._begun(*head)
        which = np.flatnonzero(about).tolist()
        boxes = cut(joined, len(which), found.total.nbytes + TAG_BYTES)
        held = self._round
        if held is not None and held.number == found.number:
            if held.head != found.head or (held.sound & about).any():
                raise MessageRefused("corrections came twice, or for different terms.", remedy="Start a new round.")
            found.sound, found.total = held.sound.copy(), held.total.copy()
        if not self._opens:
            raise MessageRefused("corrections came to an aggregator that opens none.", remedy="They go to the last one.")
        sound, rows = np.zeros(len(about), bool), []
        for i, box in zip(which, boxes, strict=True):
            row = self._opened(self._bonds[i], box, found)
            if row is not None:
                rows.append(row)
                sound[i] = True
        if rows:
            table = np.frombuffer(b"".join(rows), found.total.dtype).reshape(len(rows), found.size)
            found.total += table.sum(0, dtype=table.dtype)
        found.sound |= sound
        self._round = found
        return COLLECTED.pack(epoch=self._epoch, round=found.number, places=bitmap(sound))

    def _opened(self, secret: bytes | None, box: bytes, found: _Round) -> bytes | None:
        """A correction; None where it was altered, or made for another round or other terms."""
        try:
            return None if secret is None else unseal(correction_key(secret, found.purpose), box, found.purpose)
        except MessageRefused:
            return None

    def _agree(self, letter: bytes) -> bytes:
        found, about = self._begun(*AGREE.unpack(letter))
        which, held, least = np.flatnonzero(about).tolist(), self._round, max(self.least, found.least)
        if len(which) < least:
            raise MessageRefused(
                f"a total of {len(which)} parties is asked for; this aggregator needs {least}.", remedy="Ask more parties."
            )
        if any(self._bonds[i] is None for i in which):
            raise MessageRefused("a party in the set was never enrolled.", remedy="Start a new round.")
        if self._opens:
            if held is None or held.head != found.head or not np.array_equal(held.sound, about):
                raise MessageRefused("the set is not that whose corrections are sound.", remedy="Start a new round.")
            found.total = held.total
        found.sound, found.agreed = about, digest("additive set", self._members, letter)
        self._round, self._last = found, found.number
        tags = [
            bytes(32) if secret is None else _agreement(secret, self.place, j, found.agreed)
            for j, secret in enumerate(self._among)
        ]
        return AGREED.pack(epoch=self._epoch, round=found.number, tags=b"".join(tags))

    def _total(self, letter: bytes) -> bytes:
        epoch, round, joined = TOTAL.unpack(letter)
        tags, held = cut(joined, len(self._among), 32), self._round
        if held is None or (epoch, round) != (self._epoch, held.number) or not held.agreed:
            raise MessageRefused("a total was asked of a set that was not agreed on, or again.", remedy="Start a new round.")
        for j, secret in enumerate(self._among):
            if secret is not None and not hmac.compare_digest(tags[j], _agreement(secret, j, self.place, held.agreed)):
                raise MessageRefused("another aggregator agreed on another set.", remedy="Start a new round.")
        if not self._opens:
            which = np.flatnonzero(held.sound).tolist()
            for start in range(0, len(which), TOGETHER):
                secrets = [self._bonds[i] for i in which[start : start + TOGETHER]]
                keys = [share_key(secret, held.purpose) for secret in secrets if secret is not None]
                add_streams(held.total, keys, [1] * len(keys), ZERO)
        self._round = None
        return SUM.pack(epoch=epoch, round=round, total=held.total.tobytes())
