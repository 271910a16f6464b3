"""The server's side of additive shares: epochs of many rounds, with aggregators that it reaches by letters."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import HedgerowError, MessageRefused, RoundRefused

from ..cohort import addressed, bitmap, cut, fits, mask_of
from ..conversation import Conversation, Step, Total
from ..fixedpoint import WORDS, WholeEncoding
from ..keys import TAG_BYTES, Roster
from .derived import announced, pinned
from .given import may_succeed
from .letters import AGREE, AGREED, ASK, COLLECT, COLLECTED, ENROL, ENROLLED, KEY, OPEN, ROW, STANDING, SUM, TOTAL
from .making import aggregators_of
from .round_task import RoundTask
from .settings import AdditiveShares

PART = 1 << 24
"""Bytes of corrections that go to an aggregator in one letter."""

FEW = 20
"""Where `least` parties are so small a part of those of the last exact total, more are left out than are missing."""


class AggregatorLink(Protocol):
    """An aggregator as the server reaches it: bytes in, bytes out."""

    @property
    def public(self) -> bytes: ...

    def answer(self, step: str, letter: bytes) -> bytes: ...


def in_turn(step: str, letters: Sequence[tuple[AggregatorLink, bytes]]) -> list[bytes]:
    """Put a step to aggregators, one after the other."""
    return [one.answer(step, letter) for one, letter in letters]


class AdditiveServer:
    """The server's side: epochs of many rounds, with aggregators that it reaches by letters.

    Parameters
    ----------
    settings : AdditiveShares
    members : collection of str
        Who can be asked.
    aggregators : sequence of AggregatorLink, optional
        In the order in which parties pinned them. By default they are made here: then this process sees every row, and
        the protocol is only rehearsed.
    study : bytes
        Digest of the study as parties and aggregators know it, where they have owners.
    put : callable, optional
        Puts a step to several aggregators, and returns their answers in order; one after the other if not given.
    """

    def __init__(
        self,
        settings: AdditiveShares,
        members: Collection[str],
        aggregators: Sequence[AggregatorLink] | None = None,
        roster: Roster | None = None,
        study: bytes = b"",
        put: Callable[[str, Sequence[tuple[AggregatorLink, bytes]]], list[bytes]] = in_turn,
    ) -> None:
        self.settings, self.members, self.roster = settings, frozenset(members), roster
        self.aggregators = tuple(aggregators_of(settings, roster) if aggregators is None else aggregators)
        self._owned, self._put = bool(study), put
        self.keys = tuple(one.public for one in self.aggregators)
        self._least = max(settings.least, *(getattr(one, "least", 0) for one in self.aggregators))
        self._pinned = pinned(self.keys, settings.aggregators, study)
        self._begin()

    def _begin(self) -> None:
        self._epoch, self._round = secrets.token_bytes(32), 0
        self._places: dict[str, int] = {}
        self._n_places, self._unsound, self._forgotten = 0, set[str](), False
        self._unsigned: tuple[str, ...] = ()
        self._last: frozenset[str] | None = None
        self._knows = not self._owned

    def open(self, ids: Iterable[str] | None = None) -> Conversation[tuple[str, ...]]:
        """Begin a new epoch and enrol parties (all members by default); returns those who are in it."""
        asked = addressed(sorted(self.members) if ids is None else ids, self.members, 0)
        self._begin()
        return (yield from self._enrol(asked))

    def total(
        self,
        ids: Iterable[str],
        encoding: WholeEncoding,
        context: bytes = b"",
        least: int = 0,
        noise: bytes = b"",
        steady: bool = False,
    ) -> Conversation[Total]:
        """Ask parties for one total; who is not in the epoch is enrolled first.

        Parameters
        ----------
        ids : iterable of str
        encoding : RingEncoding or FieldEncoding
            The same at every party.
        context : bytes
            Digest of model and question; the same at every party.
        least : int
            What the parties want of this total; another number than theirs, and their letters do not open.
        noise : bytes
            What each aggregator adds, as the parties were told; other words than theirs, and their letters do not open.
        steady : bool
            Of the parties of the last such total alone, if there was one: aggregators give no other (`given`).

        Raises
        ------
        CohortTooSmall (HR-240), RangeExceeded (HR-243)
            Fewer than `least` parties, or more than fixed point has room for; nobody was asked.
        RoundRefused (HR-241)
            Too few answered, or an aggregator was lost or refused; every row stays hidden.
        """
        needed = max(self._least, least)
        asked = addressed(ids, self.members, needed)
        fits(encoding, len(asked))
        if self._round >= self.settings.rounds or self._forgotten:
            self._begin()
        missing = tuple(id for id in asked if id not in self._places and id not in self._unsound)
        if missing:
            yield from self._enrol(missing)
        if not self._knows:
            self._learn()
        held = self._last if steady else None
        present = [id for id in asked if id in self._places and (held is None or id in held)]
        self._enough(len(present), len(asked), needed)
        self._round += 1
        task = RoundTask(encoding.digest, context, noise, encoding.proof)
        letter = ASK.pack(epoch=self._epoch, round=self._round, terms=task.terms)
        answers = yield Step("contribution", dict.fromkeys(present, letter), contributes=True)
        boxes, steady = self._boxes(present, answers, encoding)
        self._forgotten = self._owned and len(boxes) < len(present)  # one that was restarted waits for another epoch
        if steady:
            boxes = self._succeeding(boxes, needed)
        self._enough(len(boxes), len(asked), needed)
        try:
            return self._sum(boxes, encoding, task, least, steady)
        except MessageRefused as error:
            self._begin()
            raise RoundRefused(f"an aggregator's answer is not what was asked: {error.reason}", remedy=_ALL) from error

    def _enough(self, n: int, asked: int, least: int) -> None:
        if n < least:
            refused = ", ".join(self._unsigned[:5]) + (", …" if len(self._unsigned) > 5 else "")
            raise RoundRefused(
                f"{n} of {asked} parties answered; {least} are needed, and nothing is released."
                + (f" Signatures of {refused} do not hold: by another roster, perhaps an older one." if refused else ""),
                remedy="Ask again, or ask more parties."
                if not refused
                else "Have stations and aggregators take in the latest welcome: `hedgerow keys welcome` writes them, and "
                "`hedgerow keys enrol` reads them.",
            )

    def _enrol(self, ids: tuple[str, ...]) -> Conversation[tuple[str, ...]]:
        letter = OPEN.pack(epoch=self._epoch, aggregators=self._pinned)
        answers = yield Step("enrol", dict.fromkeys(ids, letter))
        found: dict[str, tuple[bytes, bytes]] = {}
        met: set[bytes] = set()
        for id in ids:
            if id in answers:
                try:
                    epoch, public, signature = KEY.unpack(answers[id])
                    if self.roster is not None:
                        self.roster.verify(id, signature, announced(epoch, self._pinned, id, public, self.roster))
                except HedgerowError:
                    continue
                if epoch == self._epoch and public not in met:
                    met.add(public)
                    found[id] = (public, signature)
        if not found:
            self._note_unsigned(ids, answers)
            return ()
        publics, signatures = (b"".join(one[i] for one in found.values()) for i in (0, 1))
        letter = ENROL.pack(epoch=self._epoch, before=self._n_places, ids=list(found), publics=publics, signatures=signatures)
        sound, told = np.ones(len(found), bool), self._all("enrol", [letter] * len(self.aggregators))
        try:
            for answer in told:
                sound &= mask_of(ENROLLED.unpack(answer)[1], len(found))
        except MessageRefused as error:
            self._begin()
            raise RoundRefused(f"an aggregator's answer is not what was asked: {error.reason}", remedy=_ALL) from error
        joined = {id: self._n_places + i for i, id in enumerate(found) if sound[i]}
        self._unsound |= found.keys() - joined.keys()
        if not joined:
            self._begin()
            who = ", ".join(getattr(one, "name", "one") for one in self.aggregators)
            raise RoundRefused(
                f"aggregators ({who}) took the key of none of {len(found)} parties.",
                remedy="Rosters differ, as a rule: take in the latest welcomes, at stations and at aggregators.",
            )
        self._places |= joined
        self._n_places += len(found)
        self._note_unsigned(ids, answers)
        return tuple(joined)

    def _note_unsigned(self, ids: Iterable[str], answers: Mapping[str, bytes]) -> None:
        """Keep who answered and is not in the epoch, since the server or an aggregator did not find its letter signed."""
        if self.roster is not None:
            self._unsigned = tuple(id for id in ids if id in answers and id not in self._places)

    def _learn(self) -> None:
        """Learn from the aggregators of whom the last exact total of the study was: of what they say the parties in common."""
        try:
            told = [frozenset(STANDING.unpack(answer)[0]) for answer in self._all("standing", [b""] * len(self.aggregators))]
        except MessageRefused as error:
            raise RoundRefused(f"an aggregator's answer is not what was asked: {error.reason}", remedy=_ALL) from error
        self._last = frozenset.intersection(*sets) if (sets := [one for one in told if one]) else None
        self._knows = True

    def _succeeding(self, boxes: dict[str, bytes], least: int) -> dict[str, bytes]:
        """Those of whom an exact total may be; of many some more stay out, where fewer than `least` are missing.

        Raises
        ------
        RoundRefused (HR-241)
            Aggregators would refuse them.
        """
        last = self._last
        if last is None:
            return boxes
        found = {id: box for id, box in boxes.items() if id in last}
        lost = len(last) - len(found)
        if 0 < lost < least and FEW * least <= len(last):
            found = dict(list(found.items())[least - lost :])
        if may_succeed(frozenset(found), last, least):
            return found
        raise RoundRefused(
            f"{lost} of the {len(last)} parties of this study's exact totals are missing.",
            remedy=f"Ask again when they are back: the difference of two totals is of {least} parties or more.",
        )

    def _boxes(
        self, present: list[str], answers: Mapping[str, bytes], encoding: WholeEncoding
    ) -> tuple[dict[str, bytes], bool]:
        """Sealed letters in the order of the epoch, and whether they are of an exact total.

        An answer of another round or length counts as lost, and so do those of parties to which the total is another.
        """
        found = dict[int, dict[str, bytes]]({1: {}, 0: {}})
        for id in sorted(present, key=self._places.__getitem__):
            if id in answers:
                try:
                    epoch, round, steady, box = self._read(id, answers[id], encoding)
                except MessageRefused:
                    continue
                if (epoch, round) == (self._epoch, self._round):
                    found[steady][id] = box
        most = max(found, key=lambda steady: len(found[steady]))
        return found[most], bool(most)

    def _read(self, id: str, letter: bytes, encoding: WholeEncoding) -> tuple[bytes, int, int, bytes]:
        """A party's letter: epoch, round, whether its total is exact, and what is sealed; refuses another length."""
        epoch, round, steady, box = ROW.unpack(letter)
        cut(box, 1, encoding.size * encoding.bits // 8 + TAG_BYTES)
        return epoch, round, steady, box

    def _sum(self, boxes: dict[str, bytes], encoding: WholeEncoding, task: RoundTask, least: int, steady: bool) -> Total:
        """Let the aggregators agree on whose corrections are sound, and add up their totals."""
        at = {"epoch": self._epoch, "round": self._round}
        about = {
            **at,
            "task": task.packed(),
            "bits": encoding.bits,
            "size": encoding.size,
            "least": least,
            "steady": int(steady),
        }
        ids, n = list(boxes), len(self.aggregators)
        sound = self._sound(boxes, encoding, about)
        self._left(int(sound.sum()), len(ids), max(self._least, least))
        counted = tuple(id for id in ids if sound[self._places[id]])
        if steady and not may_succeed(frozenset(counted), self._last, max(self._least, least)):
            raise RoundRefused("rows of the parties of this study's exact totals were refused.", remedy="Ask again.")
        letter = AGREE.pack(**about, places=bitmap(sound))
        tags = [cut(AGREED.unpack(answer)[-1], n, 32) for answer in self._all("agree", [letter] * n)]
        total = np.zeros(encoding.size, WORDS[encoding.bits])
        letters = [TOTAL.pack(**at, tags=b"".join(row[i] for row in tags)) for i in range(n)]
        for answer in self._all("total", letters):
            epoch, round, share = SUM.unpack(answer)
            if (epoch, round) != (self._epoch, self._round) or len(share) != total.nbytes:
                raise MessageRefused("a total is of another round or length.", remedy=_ALL)
            total = self._plus(total, share)
        masked = {id: np.frombuffer(box, total.dtype, encoding.size) for id, box in boxes.items()}
        self._last = frozenset(counted) if steady else self._last
        return Total(total, counted, masked, self._refused(len(ids) - len(counted)))

    def _parts(self, boxes: dict[str, bytes]) -> Iterator[tuple[list[str], Array]]:
        """The parties in parts, whose letters an aggregator is sent at a time, with their places."""
        ids = list(boxes)
        step = max(1, PART // len(boxes[ids[0]]))
        for start in range(0, len(ids), step):
            part, places = ids[start : start + step], np.zeros(self._n_places, bool)
            places[[self._places[id] for id in part]] = True
            yield part, places

    def _sound(self, boxes: dict[str, bytes], encoding: WholeEncoding, about: Mapping[str, Any]) -> Array:
        """Places of the parties whose letters are sound."""
        sound = np.zeros(self._n_places, bool)
        for part, places in self._parts(boxes):
            letter = COLLECT.pack(**about, places=bitmap(places), boxes=b"".join(boxes[id] for id in part))
            [answer] = self._asked("collect", [(self.aggregators[-1], letter)])
            *_, opened = COLLECTED.unpack(answer)
            sound |= mask_of(opened, self._n_places) & places
        return sound

    def _plus(self, total: Array, share: bytes) -> Array:
        """A total and one aggregator's share of it."""
        return np.asarray(total + np.frombuffer(share, total.dtype))

    def _left(self, n: int, came: int, least: int) -> None:
        """Refuse a total of those that are left."""
        self._enough(n, came, least)

    def _refused(self, lost: int) -> int:
        """How many of the rows that are not in a total were refused."""
        return 0

    def _all(self, step: str, letters: Sequence[bytes]) -> list[bytes]:
        """Put a step to every aggregator, each with its letter."""
        return self._asked(step, list(zip(self.aggregators, letters, strict=True)))

    def _asked(self, step: str, letters: Sequence[tuple[AggregatorLink, bytes]]) -> list[bytes]:
        try:
            return self._put(step, letters)
        except RoundRefused:
            self._begin()
            raise
        except (HedgerowError, OSError) as error:
            self._begin()  # an aggregator that was restarted has forgotten this epoch
            code = error.code if isinstance(error, HedgerowError) else "no answer"
            raise RoundRefused(f"an aggregator refused or was lost at {step!r}: {code}.", remedy=_ALL) from error


_ALL = "All aggregators are needed, and nothing was revealed. Ask again when they are back."
