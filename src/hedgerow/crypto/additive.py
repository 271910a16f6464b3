"""Additive shares: a row is split among a few aggregators that do not collude; each sees noise, together they give the total.

All shares but one are streams that a party and an aggregator both make from a key they agreed on, so they are not sent;
the last is the correction that makes the shares add up to the row, sealed for the last aggregator. No party needs to know
of another, and any party may be lost at any step.

    once in an epoch of many rounds:
        enrol         a party makes one X25519 key, agrees on a key with each aggregator (theirs are pinned), forgets its
                      own half, and sends the public half; the server passes it on to the aggregators
    for each round:
        contribution  c_u = encode(x_u) - sum over a < k of PRG(s_ua)   mod 2^bits, sealed for aggregator k
                      s_ua = HKDF(key_ua, "additive share", digest of round, ring, encoding, model and question, and of
                             the smallest set that the party will be part of)
        collect       aggregator k opens the corrections and says whose are sound: the set U
        agree         each aggregator checks U, binds itself to it, and signs it for each of the others
        total         each checks that all others agreed on the same U, and gives sum over U of its shares
                      the server adds the k totals

The sealed letters are checked by the aggregator that opens them: one that was altered, repeated, or made for another
round, model or question is left out of U.

The server sees     : sealed corrections, k totals of which any k - 1 are uniform, and the total.
A party sees        : nothing of the others.
An aggregator sees  : who took part, its own shares (uniform), and nothing of rows or total.
Colluders see       : k - 1 aggregators, the server and all other parties see nothing of a row beyond the total; all k
                      aggregators together see every row.
Assumes             : one honest aggregator, that refuses sets below its `least`; parties that pinned the aggregators' keys.
                      A server that makes up parties fills U with them, unless aggregators have a roster.
Source              : additive sharing as in PriMIA's sums (Kaissis et al. 2021, described by Haug 2022, section 5.1). Differs:
                      streams in place of k - 1 shares of full size, and aggregators agree on U before they sum.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import HedgerowError, KeyInvalid, MessageRefused, RoundRefused, SettingsInvalid
from hedgerow.store import Answered

from .aggregator import (
    AGREE,
    AGREED,
    COLLECT,
    COLLECTED,
    ENROL,
    ENROLLED,
    LONGEST,
    SUM,
    TOTAL,
    ZERO,
    Aggregator,
    announced,
    bond,
    correction_key,
    pinned,
    purpose,
    share_key,
)
from .cohort import addressed, bitmap, cut, fits, lawful_least, mask_of, whole
from .conversation import Contribution, Conversation, Step, Total
from .fixedpoint import WORDS, RingEncoding
from .keys import TAG_BYTES, AgreementKey, Identity, Roster, seal
from .messages import FieldKind, MessageForm, Octets, Whole, digest, exactly
from .streams import add_streams

PART = 1 << 24
"""Bytes of corrections that go to an aggregator in one letter."""

_ROUND: dict[str, FieldKind] = {"epoch": exactly(32), "round": Whole(1, 2**32 - 1)}
OPEN = MessageForm("additive enrol", epoch=exactly(32), aggregators=exactly(32))
KEY = MessageForm("additive key", epoch=exactly(32), public=exactly(32), signature=Octets(0, 64))
ASK = MessageForm("additive contribution", **_ROUND, terms=exactly(32))
ROW = MessageForm("additive row", **_ROUND, box=Octets(TAG_BYTES, 8 * LONGEST + TAG_BYTES))


@dataclass(frozen=True)
class AdditiveShares:
    """Settings of additive shares.

    Parameters
    ----------
    aggregators : int
        Among how many a row is split; one of them must be honest.
    least : int
        The smallest set of which an aggregator gives its total; at least 3.
    rounds : int
        Rounds of an epoch; then every party takes a fresh key.
    """

    aggregators: int = 3
    least: int = 3
    rounds: int = 1024

    def __post_init__(self) -> None:
        whole(aggregators=self.aggregators, least=self.least, rounds=self.rounds)
        lawful_least(self.least)
        if not 2 <= self.aggregators <= 64 or not 1 <= self.rounds < 2**32:
            raise SettingsInvalid(
                f"aggregators={self.aggregators}, rounds={self.rounds}.", remedy="2 to 64 aggregators, 1 round or more."
            )


class AggregatorLink(Protocol):
    """An aggregator as the server reaches it: bytes in, bytes out."""

    @property
    def public(self) -> bytes: ...

    def answer(self, step: str, letter: bytes) -> bytes: ...


def terms(encoding: RingEncoding, context: bytes) -> bytes:
    """What all shares of a round must have been made for, 32 bytes."""
    return digest("additive terms", encoding.digest, context)


class AdditiveParty:
    """A party's side. It makes one key for an epoch, and answers each of its rounds at most once, in order.

    Keys are kept in memory alone: a party that was restarted waits for the next epoch.

    Parameters
    ----------
    id : str
    settings : AdditiveShares
    aggregators : sequence of bytes
        Their public keys, pinned: whoever could replace all of them would see the rows.
    roster, identity : Roster, Identity, optional
        With them the party signs its key, for aggregators that hold the same roster.
    journal : Answered, optional
        Keeps the epochs that were joined across restarts.
    """

    def __init__(
        self,
        id: str,
        settings: AdditiveShares,
        aggregators: Sequence[bytes],
        *,
        roster: Roster | None = None,
        identity: Identity | None = None,
        journal: Answered | None = None,
    ) -> None:
        if (roster is None) != (identity is None):
            raise KeyInvalid("a roster and an identity go together.", remedy="Give both or neither.", asked=False)
        self.id, self.settings, self.aggregators = id, settings, tuple(aggregators)
        self.roster, self.identity, self.journal = roster, identity, journal
        self._pinned = pinned(self.aggregators, settings.aggregators)
        self._left: set[bytes] = set()
        self._epoch, self._last, self._joined_by = b"", 0, b""
        self._bonds: tuple[bytes, ...] = ()

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        """Answer "enrol" or "contribution", or refuse it; a refusal changes nothing."""
        if step == "enrol":
            return self._enrol(letter)
        if step == "contribution" and contribution is not None:
            return self._contribution(letter, contribution)
        raise MessageRefused(f"step {step!r} cannot be answered.", remedy="Steps are 'enrol' and 'contribution'.")

    def _enrol(self, letter: bytes) -> bytes:
        epoch, aggregators = OPEN.unpack(letter)
        if aggregators != self._pinned:
            raise KeyInvalid("the server names other aggregators than are pinned here.", remedy="Pin the same everywhere.")
        if epoch == self._epoch:
            return self._joined_by  # the first answer may have been lost
        if epoch in self._left:
            raise MessageRefused("this party has left that epoch.", remedy="Begin a new epoch.")
        key = AgreementKey.fresh()
        bonds = tuple(bond(key.agree(public), epoch, self._pinned, i, key.public) for i, public in enumerate(self.aggregators))
        signature = b""
        if self.identity is not None and self.roster is not None:
            signature = self.identity.sign(announced(epoch, self._pinned, self.id, key.public, self.roster))
        if self.journal is not None:
            self.journal.write(f"additive {epoch.hex()}", key.public)
        self._left.add(self._epoch)
        self._epoch, self._last, self._bonds = epoch, 0, bonds
        self._joined_by = KEY.pack(epoch=epoch, public=key.public, signature=signature)
        return self._joined_by

    def _contribution(self, letter: bytes, contribution: Contribution) -> bytes:
        epoch, round, agreed = ASK.unpack(letter)
        if not self._epoch or epoch != self._epoch:
            raise MessageRefused("this party is not in the epoch that is asked for.", remedy="Begin a new epoch.")
        if not self._last < round <= self.settings.rounds:
            raise MessageRefused(
                f"round {round} of the epoch is over here, or beyond its end.", remedy="Every round has a new number."
            )
        encoding: RingEncoding = contribution.encoding
        if agreed != terms(encoding, contribution.context):
            raise MessageRefused(
                "the server announced other terms than this party received.",
                remedy="All parties of a round need the same model, question, settings and encoding.",
            )
        row = encoding.encode(contribution.row)
        made_for = purpose(round, agreed, encoding.bits, encoding.size, contribution.least)
        self._split(row, [share_key(secret, made_for) for secret in self._bonds[:-1]])
        box = seal(correction_key(self._bonds[-1], made_for), row.tobytes(), made_for)
        self._last = round
        return ROW.pack(epoch=epoch, round=round, box=box)

    def _split(self, row: Array, shares: list[bytes]) -> None:
        add_streams(row, shares, [-1] * len(shares), ZERO)


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
    """

    def __init__(
        self,
        settings: AdditiveShares,
        members: Collection[str],
        aggregators: Sequence[AggregatorLink] | None = None,
        roster: Roster | None = None,
    ) -> None:
        self.settings, self.members, self.roster = settings, frozenset(members), roster
        if aggregators is None:
            keys = [AgreementKey.fresh() for _ in range(settings.aggregators)]
            publics = [key.public for key in keys]
            aggregators = [Aggregator(key, publics, least=settings.least, roster=roster) for key in keys]
        self.aggregators = tuple(aggregators)
        self.keys = tuple(one.public for one in self.aggregators)
        self._pinned = pinned(self.keys, settings.aggregators)
        self._begin()

    def _begin(self) -> None:
        self._epoch, self._round = secrets.token_bytes(32), 0
        self._places: dict[str, int] = {}
        self._n_places = 0

    def open(self, ids: Iterable[str] | None = None) -> Conversation[tuple[str, ...]]:
        """Begin a new epoch and enrol parties (all members by default); returns those who are in it."""
        asked = addressed(sorted(self.members) if ids is None else ids, self.members, 0)
        self._begin()
        return (yield from self._enrol(asked))

    def total(self, ids: Iterable[str], encoding: RingEncoding, context: bytes = b"", least: int = 0) -> Conversation[Total]:
        """Ask parties for one total; who is not in the epoch is enrolled first.

        Parameters
        ----------
        ids : iterable of str
        encoding : RingEncoding
            The same at every party.
        context : bytes
            Digest of model and question; the same at every party.
        least : int
            What the parties want of this total; another number than theirs, and their letters do not open.

        Raises
        ------
        CohortTooSmall (HR-240), RangeExceeded (HR-243)
            Fewer than `least` parties, or more than fixed point has room for; nobody was asked.
        RoundRefused (HR-241)
            Too few answered, or an aggregator was lost or refused; every row stays hidden.
        """
        needed = max(self.settings.least, least)
        asked = addressed(ids, self.members, needed)
        fits(encoding, len(asked))
        if self._round >= self.settings.rounds:
            self._begin()
        missing = tuple(id for id in asked if id not in self._places)
        if missing:
            yield from self._enrol(missing)
        present = [id for id in asked if id in self._places]
        self._enough(len(present), len(asked), needed)
        self._round += 1
        agreed = terms(encoding, context)
        letter = ASK.pack(epoch=self._epoch, round=self._round, terms=agreed)
        answers = yield Step("contribution", dict.fromkeys(present, letter), contributes=True)
        boxes = self._boxes(present, answers, encoding)
        self._enough(len(boxes), len(asked), needed)
        try:
            return self._sum(boxes, encoding, agreed, least)
        except MessageRefused as error:
            self._begin()
            raise RoundRefused(f"an aggregator's answer is not what was asked: {error.reason}", remedy=_ALL) from error

    def _enough(self, n: int, asked: int, least: int) -> None:
        if n < least:
            raise RoundRefused(
                f"{n} of {asked} parties answered; {least} are needed, and nothing is released.",
                remedy="Ask again, or ask more parties.",
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
            return ()
        publics, signatures = (b"".join(one[i] for one in found.values()) for i in (0, 1))
        letter = ENROL.pack(epoch=self._epoch, before=self._n_places, ids=list(found), publics=publics, signatures=signatures)
        sound = np.ones(len(found), bool)
        for one in self.aggregators:
            answer = self._ask(one, "enrol", letter)
            try:
                sound &= mask_of(ENROLLED.unpack(answer)[1], len(found))
            except MessageRefused as error:
                self._begin()
                raise RoundRefused(f"an aggregator's answer is not what was asked: {error.reason}", remedy=_ALL) from error
        joined = {id: self._n_places + i for i, id in enumerate(found) if sound[i]}
        self._places |= joined
        self._n_places += len(found)
        return tuple(joined)

    def _boxes(self, present: list[str], answers: Mapping[str, bytes], encoding: RingEncoding) -> dict[str, bytes]:
        """Sealed corrections in the order of the epoch; an answer of another round or length counts as lost."""
        length, found = encoding.size * encoding.bits // 8 + TAG_BYTES, {}
        for id in sorted(present, key=self._places.__getitem__):
            if id in answers:
                try:
                    epoch, round, box = ROW.unpack(answers[id])
                except MessageRefused:
                    continue
                if (epoch, round) == (self._epoch, self._round) and len(box) == length:
                    found[id] = box
        return found

    def _sum(self, boxes: dict[str, bytes], encoding: RingEncoding, agreed: bytes, least: int) -> Total:
        """Let the aggregators agree on whose corrections are sound, and add up their totals."""
        at = {"epoch": self._epoch, "round": self._round}
        about = {**at, "terms": agreed, "bits": encoding.bits, "size": encoding.size, "least": least}
        ids, n = list(boxes), len(self.aggregators)
        step, sound = max(1, PART // len(boxes[ids[0]])), np.zeros(self._n_places, bool)
        for start in range(0, len(ids), step):
            part, places = ids[start : start + step], np.zeros(self._n_places, bool)
            places[[self._places[id] for id in part]] = True
            letter = COLLECT.pack(**about, places=bitmap(places), boxes=b"".join(boxes[id] for id in part))
            *_, opened = COLLECTED.unpack(self._ask(self.aggregators[-1], "collect", letter))
            sound |= mask_of(opened, self._n_places) & places
        self._enough(int(sound.sum()), len(ids), max(self.settings.least, least))
        letter = AGREE.pack(**about, places=bitmap(sound))
        tags = [cut(AGREED.unpack(self._ask(one, "agree", letter))[-1], n, 32) for one in self.aggregators]
        total = np.zeros(encoding.size, WORDS[encoding.bits])
        for i, one in enumerate(self.aggregators):
            letter = TOTAL.pack(**at, tags=b"".join(row[i] for row in tags))
            epoch, round, share = SUM.unpack(self._ask(one, "total", letter))
            if (epoch, round) != (self._epoch, self._round) or len(share) != total.nbytes:
                raise MessageRefused("a total is of another round or length.", remedy=_ALL)
            total += np.frombuffer(share, total.dtype)
        masked = {id: np.frombuffer(box, total.dtype, encoding.size) for id, box in boxes.items()}
        return Total(total, tuple(id for id in ids if sound[self._places[id]]), masked)

    def _ask(self, one: AggregatorLink, step: str, letter: bytes) -> bytes:
        try:
            return one.answer(step, letter)
        except (HedgerowError, OSError) as error:
            self._begin()  # an aggregator that was restarted has forgotten this epoch
            code = error.code if isinstance(error, HedgerowError) else "no answer"
            raise RoundRefused(f"an aggregator refused or was lost at {step!r}: {code}.", remedy=_ALL) from error


_ALL = "All aggregators are needed, and nothing was revealed. Ask again when they are back."
