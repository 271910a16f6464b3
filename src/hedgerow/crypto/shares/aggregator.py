"""One of the few aggregators of additive shares: bytes in, bytes out; it never sees a row.

It gives one total for each round of an epoch, of a set of parties that all aggregators agreed on, and of no set below
its minimum.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.mechanism import NoiseRuns
from hedgerow.errors import HedgerowError, KeyInvalid, LimitExceeded, MessageRefused
from hedgerow.store import Answered

from ..cohort import bitmap, cut, lawful_least, mask_of
from ..fixedpoint import WORDS
from ..keys import TAG_BYTES, AgreementKey, Roster, unseal
from ..messages import digest
from ..streams import ZERO_NONCE, add_streams
from .aggregator_noise import Drawing, add_noise, noise_told
from .derived import agreement, announced, bond, correction_key, pinned, purpose, share_key
from .given import TotalsGiven, WrittenOnce
from .letters import AGREE, AGREED, COLLECT, COLLECTED, ENROL, ENROLLED, LARGEST, LONGEST, STANDING, SUM, TOTAL
from .round_task import RoundTask

TOGETHER = 1024
"""Streams whose keys are held at a time."""


@dataclass
class _Round:
    """What an aggregator keeps of the round at hand: whose rows are sound, whose letters it has `seen`, and their total.

    `agreed` is empty until the set is final.
    """

    number: int
    task: RoundTask
    noise: NoiseRuns | None
    bits: int
    size: int
    least: int
    steady: int
    sound: Array
    total: Array
    seen: Array
    agreed: bytes = b""

    @property
    def purpose(self) -> bytes:
        return purpose(*self.head)

    @property
    def head(self) -> tuple[int, bytes, int, int, int, int]:
        return self.number, self.task.terms, self.bits, self.size, self.least, self.steady


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
    journal : WrittenOnce, optional
        Keeps the epochs that it served across restarts, of all studies: the same keys never serve an epoch again.
    drawing : Drawing, optional
        How it draws noise that it is to add to its total; without it a round with noise is refused.
    study : bytes
        Digest of the study whose parties it serves; shares for another study are other streams.
    given : TotalsGiven, optional
        Of which parties the totals of this study were, across restarts.
    longest : int
        Most numbers of a total.
    """

    def __init__(
        self,
        key: AgreementKey,
        aggregators: Sequence[bytes],
        *,
        least: int = 3,
        roster: Roster | None = None,
        journal: WrittenOnce | None = None,
        drawing: Drawing | None = None,
        study: bytes = b"",
        given: TotalsGiven | None = None,
        longest: int = LONGEST,
    ) -> None:
        lawful_least(least)
        self._pinned = pinned(aggregators, len(aggregators), study)
        if key.public not in aggregators:
            raise KeyInvalid("this aggregator's key is not among those of all.", remedy="Give all keys in order.", asked=False)
        self.public, self.place, self.least, self.roster = key.public, list(aggregators).index(key.public), least, roster
        self._key, self._longest, self.drawing = key, longest, drawing
        self._journal: WrittenOnce = Answered(None) if journal is None else journal
        self._given = TotalsGiven() if given is None else given
        self._opens = self.place == len(aggregators) - 1
        self._among = [None if public == key.public else key.agree(public) for public in aggregators]
        self._epoch, self._last, self._members = b"", 0, b""
        self._ids: list[str] = []
        self._publics: list[bytes] = []
        self._bonds: list[bytes | None] = []
        self._round: _Round | None = None

    def answer(self, step: str, letter: bytes) -> bytes:
        """Answer "standing", "enrol", "collect", "agree" or "total", or refuse it; a refusal changes nothing."""
        steps = self._steps()
        if step not in steps:
            raise MessageRefused(f"step {step!r} cannot be answered.", remedy="Steps are " + ", ".join(steps) + ".")
        return steps[step](letter)

    def _steps(self) -> dict[str, Callable[[bytes], bytes]]:
        return {
            "standing": self._standing,
            "enrol": self._enrol,
            "collect": self._collect,
            "agree": self._agree,
            "total": self._total,
        }

    def _standing(self, letter: bytes) -> bytes:
        """Over which parties the last exact total of the study was, for a server that has to ask them again."""
        return STANDING.pack(ids=sorted(self._given.last or ()))

    def _enrol(self, letter: bytes) -> bytes:
        epoch, before, ids, joined, signed = ENROL.unpack(letter)
        publics = cut(joined, len(ids), 32)
        signatures = cut(signed, len(ids), 64) if self.roster is not None else [b""] * len(ids)
        fresh = epoch != self._epoch
        if fresh and self._journal.seen(f"epoch {epoch.hex()}") is not None:
            raise MessageRefused("this epoch was served before.", remedy="Begin a new epoch.")
        twice = len(set(ids)) < len(ids) or (not fresh and not set(self._ids).isdisjoint(ids))
        if twice or before != (0 if fresh else len(self._bonds)) or len(ids) + before > LARGEST:
            raise MessageRefused("parties are enrolled twice, out of order, or too many.", remedy="Begin a new epoch.")
        bonds = [self._bond(epoch, *one) for one in zip(ids, publics, signatures, strict=True)]
        known = set() if fresh else set(self._publics)
        for i, public in enumerate(publics):  # a key under two names would count one row twice
            if public in known:
                bonds[i] = None
            known.add(public)
        if fresh:
            self._journal.write(f"epoch {epoch.hex()}", digest("additive epoch", letter))
            self._anew(epoch)
        self._round = None
        self._ids += ids
        self._publics += publics
        self._bonds += bonds
        self._members = digest("additive members", self._members, letter)
        return ENROLLED.pack(epoch=epoch, places=bitmap(np.array([one is not None for one in bonds], bool)))

    def _anew(self, epoch: bytes) -> None:
        """Forget the epoch before."""
        self._epoch, self._last, self._members, self._ids = epoch, 0, b"", []
        self._publics, self._bonds = [], []

    def _bond(self, epoch: bytes, id: str, public: bytes, signature: bytes) -> bytes | None:
        """The key shared with a party; None where its key or signature is refused."""
        try:
            if self.roster is not None:
                self.roster.verify(id, signature, announced(epoch, self._pinned, id, public, self.roster))
            return bond(self._key.agree(public), epoch, self._pinned, self.place, public)
        except HedgerowError:
            return None

    def _begun(
        self, epoch: bytes, round: int, task: bytes, bits: int, size: int, least: int, steady: int, places: bytes
    ) -> tuple[_Round, Array]:
        """A round as a letter names it, with nothing in it, and the parties that the letter is about."""
        if not self._epoch or epoch != self._epoch or bits not in WORDS:
            raise MessageRefused("this epoch is not open here.", remedy="Begin a new epoch.")
        if round <= self._last:
            raise MessageRefused(f"round {round} of the epoch is over here.", remedy="Every round has a new number.")
        if size > self._longest:
            raise LimitExceeded(
                f"a total of {size:,} numbers; most here are {self._longest:,}.", remedy="Ask for fewer numbers."
            )
        about, told = mask_of(places, len(self._bonds)), RoundTask.unpacked(task)
        noise = noise_told(told.noise, size)
        if noise is not None and self.drawing is None:
            raise MessageRefused(
                f"{noise.law} noise is asked for, and this aggregator draws none.",
                remedy="Give it a sampler: drawing=Drawing(...).",
            )
        nobody, zeros = np.zeros(len(about), bool), np.zeros(size, WORDS[bits])
        return _Round(round, told, noise, bits, size, least, steady, nobody, zeros, nobody.copy()), about

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

    @property
    def _judges(self) -> bool:
        """Whether it is this aggregator that knows whose rows are sound."""
        return self._opens

    def _agree(self, letter: bytes) -> bytes:
        found, about = self._begun(*AGREE.unpack(letter))
        which, held, least = np.flatnonzero(about).tolist(), self._round, max(self.least, found.least)
        if len(which) < least:
            raise MessageRefused(
                f"a total of {len(which)} parties is asked for; this aggregator needs {least}.", remedy="Ask more parties."
            )
        if any(self._bonds[i] is None for i in which):
            raise MessageRefused("a party in the set was never enrolled.", remedy="Start a new round.")
        if found.steady:
            self._given.refuse_other([self._ids[i] for i in which], least)
        if self._judges:
            if held is None or held.head != found.head or not np.array_equal(held.sound, about):
                raise MessageRefused("the set is not that whose rows are sound here.", remedy="Start a new round.")
            found.total = held.total
        found.sound, found.agreed = about, digest("additive set", self._members, letter)
        self._round, self._last = found, found.number
        tags = [
            bytes(32) if secret is None else agreement(secret, self.place, j, found.agreed)
            for j, secret in enumerate(self._among)
        ]
        return AGREED.pack(epoch=self._epoch, round=found.number, tags=b"".join(tags))

    def _total(self, letter: bytes) -> bytes:
        epoch, round, joined = TOTAL.unpack(letter)
        tags, held = cut(joined, len(self._among), 32), self._round
        if held is None or (epoch, round) != (self._epoch, held.number) or not held.agreed:
            raise MessageRefused("a total was asked of a set that was not agreed on, or again.", remedy="Start a new round.")
        for j, secret in enumerate(self._among):
            if secret is not None and not hmac.compare_digest(tags[j], agreement(secret, j, self.place, held.agreed)):
                raise MessageRefused("another aggregator agreed on another set.", remedy="Start a new round.")
        which = np.flatnonzero(held.sound).tolist()
        ids = [self._ids[i] for i in which] if held.steady else []
        noise, drawing = held.noise, self.drawing
        added = None if noise is None or drawing is None else drawing.draw(noise)  # it may be refused: nothing is written yet
        self._given.keep(held.number, len(which), held.size, ids, max(self.least, held.least), noise.law if noise else "")
        if not self._judges:
            for start in range(0, len(which), TOGETHER):
                secrets = [self._bonds[i] for i in which[start : start + TOGETHER]]
                keys = [share_key(secret, held.purpose) for secret in secrets if secret is not None]
                add_streams(held.total, keys, [1] * len(keys), ZERO_NONCE)
        if added is not None:
            self._add_noise(held.total, added, self._modulus(held.bits))
        self._round = None
        return SUM.pack(epoch=epoch, round=round, total=held.total.tobytes())

    def _modulus(self, bits: int) -> int:
        return 1 << bits

    def _add_noise(self, total: Array, drawn: Array, modulus: int) -> None:
        add_noise(total, drawn, modulus)
