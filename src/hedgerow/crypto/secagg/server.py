"""The server's side of SecAgg: it relays, adds up what it cannot read, and opens no more than the total needs.

An answer that is malformed, of another round, or wrongly signed counts as none: its sender has dropped out. A total that cannot
be opened, or that fails a check, is not given: `RoundRefused`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.arrays import Array
from hedgerow.crypto import streams
from hedgerow.crypto.cohort import LONGEST_NAME, fits
from hedgerow.crypto.conversation import Conversation, Step, Total
from hedgerow.crypto.fixedpoint import WORDS, RingEncoding
from hedgerow.crypto.graph import Graph
from hedgerow.crypto.keys import SIGNATURE_BYTES, TAG_BYTES, AgreementKey, Roster
from hedgerow.crypto.shamir import SHARE_BYTES
from hedgerow.crypto.standing import ServerStanding
from hedgerow.errors import (
    CohortTooSmall,
    HedgerowError,
    KeyInvalid,
    MessageRefused,
    RoundRefused,
    SettingsInvalid,
)

from . import letters
from .recovery import EpochRecord, recover
from .settings import SecAgg


class Server:
    """The server of a federation, which keeps the epoch from total to total.

    Parameters
    ----------
    settings : SecAgg
    members : iterable of str
        Who can be asked.
    roster : Roster, optional
        Needed when the server may lie; the parties have the same.

    Raises
    ------
    SettingsInvalid (HR-511), CohortTooSmall (HR-240), KeyInvalid (HR-244)
    """

    def __init__(self, settings: SecAgg, members: Iterable[str], roster: Roster | None = None) -> None:
        self.settings, self.roster = settings, roster
        self.members = frozenset(_distinct(tuple(members)))
        if settings.active and roster is None:
            raise SettingsInvalid("a server that may lie is bound by a roster.", remedy="Give the roster that parties have.")
        if roster is not None and not self.members <= set(roster):
            raise KeyInvalid("a member is not on the roster.", remedy="Enrol every member first.", asked=False)
        self._binding = letters.binding(settings.digest, None if roster is None else roster.digest)
        self._standing = ServerStanding(sorted(roster if roster is not None and settings.active else self.members))
        self._book: EpochRecord | None = None

    def serves(self, ids: Iterable[str]) -> bool:
        """Whether all of these are members."""
        return self.members.issuperset(ids)

    # ---- set-up ----------------------------------------------------------------------------------------------------
    def open(self, ids: Iterable[str] | None = None) -> Conversation[tuple[str, ...]]:
        """Set up an epoch among these members, or all; two steps.

        Returns
        -------
        tuple of str
            Who has completed it. Who has not waits for the next epoch.

        Raises
        ------
        CohortTooSmall (HR-240), SettingsInvalid (HR-511)
            Before anybody is asked.
        RoundRefused (HR-241)
            Too few have completed it.
        """
        invited = self._addressed(self.members if ids is None else ids)
        self._degree(len(invited))
        name = streams.fresh(letters.EPOCH_BYTES)
        letter = letters.KEYS_ASKED.pack(epoch=name, binding=self._binding)
        answers = yield Step("keys", dict.fromkeys(invited, letter))
        publics = self._publics(name, invited, answers)
        book = self._draw(name, invited, publics)
        self._standing.hear([letters.KEY.unpack(answers[id])[3] for id in publics])
        self._book = None  # parties leave the epoch before this one
        answers = yield Step("shares", self._introductions(book, publics))
        for place, answer in self._heard(book.places, answers):
            self._enter(book, place, answer)
        ready = tuple(id for id, is_ready in zip(book.ids, book.ready.tolist(), strict=True) if is_ready)
        if len(ready) < self.settings.least:
            raise RoundRefused(f"{len(ready)} parties of {len(invited)} completed a set-up.", remedy="Set up again.")
        self._book = book
        return ready

    def _publics(self, name: bytes, invited: tuple[str, ...], answers: Mapping[str, bytes]) -> dict[str, tuple[bytes, bytes]]:
        """Keys and signatures of those whose key is sound, in the order of ids; of two with one key, neither."""
        probe, found = AgreementKey.fresh(), dict[str, tuple[bytes, bytes]]()
        for id in sorted(invited):
            try:
                epoch, public, signature, _ = letters.KEY.unpack(answers.get(id, b""))
                if epoch != name or len(signature) != (SIGNATURE_BYTES if self.settings.active else 0):
                    continue
                if self.roster is not None and self.settings.active:
                    self.roster.verify(id, signature, letters.key_statement(self._binding, name, id, public))
                probe.agree(public)
            except (MessageRefused, KeyInvalid):
                continue
            found[id] = public, signature
        times: dict[bytes, int] = {}
        for public, _ in found.values():
            times[public] = times.get(public, 0) + 1
        return {id: pair for id, pair in found.items() if times[pair[0]] == 1}

    def _draw(self, name: bytes, invited: tuple[str, ...], publics: Mapping[str, Any]) -> EpochRecord:
        """The members of an epoch, and who is whose neighbour."""
        ids = tuple(publics)
        try:
            k, t = self._degree(len(ids))
        except HedgerowError as error:
            raise RoundRefused(f"{len(ids)} keys came of {len(invited)}: {error.reason}", remedy="Set up again.") from None
        everybody = letters.members_digest(ids)
        if not self.settings.active:
            told = self._standing.set_of(ids)
            everybody = letters.members_told(told.order, told.places)
        bond = letters.bond(name, self._binding, everybody, len(ids))
        graph = Graph(letters.graph_seed(bond), len(ids), k)
        return EpochRecord(name, bond, everybody, ids, frozenset(invited), graph, t, self.settings.rounds_per_epoch)

    def _introductions(self, book: EpochRecord, publics: Mapping[str, tuple[bytes, bytes]]) -> dict[str, bytes]:
        """Tell every member its neighbours and their keys."""
        n, everybody = len(book.ids), self._standing.set_of(book.ids)
        keys = np.frombuffer(b"".join(public for public, _ in publics.values()), np.uint8).reshape(n, -1)
        signatures = np.frombuffer(b"".join(signature for _, signature in publics.values()), np.uint8).reshape(n, -1)
        told = {}
        for place, id in enumerate(book.ids):
            near = book.graph.neighbours[place]
            told[id] = letters.NEIGHBOURS.pack(
                epoch=book.name,
                order=everybody.order,
                members=everybody.places,
                size=n,
                place=place,
                neighbours=near.astype("<u4").tobytes(),
                publics=keys[near].tobytes(),
                signatures=signatures[near].tobytes(),
            )
        return told

    def _enter(self, book: EpochRecord, place: int, answer: bytes) -> None:
        """Take one member's boxes, lists and commitments, if they are what they should be."""
        try:
            name, boxes, lists, commitments = letters.SHARES.unpack(answer)
        except MessageRefused:
            return
        k, rounds = book.graph.k, book.rounds
        if name == book.name and (len(boxes), len(lists), len(commitments)) == (
            k * (2 * rounds * SHARE_BYTES + TAG_BYTES),
            rounds * (32 * k + TAG_BYTES),
            rounds * 32,
        ):
            book.boxes[place], book.lists[place], book.commitments[place] = boxes, lists, commitments
            book.ready[place] = True

    # ---- a total ---------------------------------------------------------------------------------------------------
    def total(
        self, ids: Iterable[str], encoding: RingEncoding, context: bytes = b"", least: int = 0, steady: bool = False
    ) -> Conversation[Total]:
        """Add up what these members contribute; two steps, three when the server may lie, and a set-up before if one is due.

        An epoch serves as long as it has rounds left and those who are asked were invited to it and are neighbours enough
        among each other. Members of it that dropped out of a round can be asked in the next: its secrets are others.

        Parameters
        ----------
        ids : iterable of str
        encoding : RingEncoding
        context : bytes
            Digest of model and question; these two the same at every party.
        least : int
            What the parties want of this total, where it is more than they want of every total.
        steady : bool
            The parties hold such totals to be over one standing set: of those who are asked it alone is.

        Raises
        ------
        CohortTooSmall (HR-240), RangeExceeded (HR-243), SettingsInvalid (HR-511)
            Before anybody is asked.
        RoundRefused (HR-241)
            Too few answered, or a check failed. Masks that were used are never used again.
        """
        asked, least = self._addressed(ids, least), max(self.settings.least, least)
        if encoding.bits != self.settings.bits:
            raise SettingsInvalid(
                f"rows of {encoding.bits} bits, and the parties agreed on {self.settings.bits}.", remedy="Take the same."
            )
        fits(encoding, len(asked))
        self._degree(len(asked))
        if self._book is None or self._cohort(self._book, asked, least, steady) is None:
            yield from self.open(asked)
        book = self._book
        cohort = None if book is None else self._cohort(book, asked, least, steady)
        if book is None or cohort is None:
            raise RoundRefused(
                f"those who completed the set-up are fewer than {least}, or too few neighbours of each other.",
                remedy="Set up again.",
            )
        about = letters.context(context, encoding.digest)
        return (yield from self._round(book, cohort, encoding, about, least, steady))

    def _round(
        self, book: EpochRecord, cohort: NDArray[np.bool_], encoding: RingEncoding, context: bytes, least: int, steady: bool
    ) -> Conversation[Total]:
        if steady:
            cohort = self._standing.settled(book.ids, cohort, least)
        book.used += 1
        number, raw = book.used, letters.write_set(cohort)
        nonce = letters.nonce(book.bond, number, context, letters.read_set(raw, len(book.ids)).digest)
        asked = self._round_letters(book, number, cohort, raw, context)
        answers = yield Step("contribution", asked, contributes=True)
        rows = self._rows(book, number, answers, asked, encoding)
        alive = np.zeros(len(book.ids), bool)
        alive[list(rows)] = True
        if int(book.served.sum()) < least:
            self._book = None  # somebody's boxes do not open, and those whom it sent them will never answer in this epoch
        if steady:
            alive = self._standing.settled(book.ids, alive, least)
            rows = {place: row for place, row in rows.items() if alive[place]}
        self._check_survivors(book, cohort, alive, least)
        if steady:
            self._standing.keep(self._standing.set_of(book.ids, alive))
        total = np.zeros(encoding.size, WORDS[encoding.bits])
        for row in rows.values():
            np.add(total, row, out=total)
        survivors = letters.write_set(alive)
        if self.settings.active:
            opening = yield from self._agree(book, number, raw, survivors, alive)
        else:
            letter = letters.UNMASK.pack(epoch=book.name, round=number, survivors=survivors, signers=b"", signatures=b"")
            opening = {book.ids[place]: letter for place in rows}
        answers = yield Step("unmask", opening)
        shares = self._openings(book, number, answers, cohort, set(opening))
        recover(book, number, cohort, alive, shares, total, nonce)
        counted = tuple(book.ids[place] for place in rows)
        return Total(total, counted, {book.ids[place]: row for place, row in rows.items()})

    def _cohort(self, book: EpochRecord, asked: tuple[str, ...], least: int, steady: bool = False) -> NDArray[np.bool_] | None:
        """Those who can be asked in this epoch, or None if another one is due."""
        if book.used >= book.rounds or not book.invited.issuperset(asked):
            return None
        cohort = np.zeros(len(book.ids), bool)
        cohort[[book.places[id] for id in asked if id in book.places]] = True
        cohort &= book.ready & ~book.doubted
        if steady:
            cohort = self._standing.part(book.ids, cohort)
        near = book.near(cohort)
        if int(cohort.sum()) < least or (cohort & (near < book.threshold)).any():
            return None
        return cohort

    def _round_letters(
        self, book: EpochRecord, number: int, cohort: NDArray[np.bool_], raw: bytes, context: bytes
    ) -> dict[str, bytes]:
        """Ask for rows; who has not answered a round of this epoch yet also gets its neighbours' shares."""
        common = {"epoch": book.name, "round": number, "cohort": raw, "context": context}
        usual = letters.ROUND.pack(**common, present=b"", inbox=b"")
        asked = {}
        for place in np.flatnonzero(cohort).tolist():
            letter = usual
            if not book.served[place]:
                present, inbox = book.inbox(place)
                letter = letters.ROUND.pack(**common, present=letters.write_set(present), inbox=inbox)
            asked[book.ids[place]] = letter
        return asked

    def _rows(
        self, book: EpochRecord, number: int, answers: Mapping[str, bytes], asked: Mapping[str, bytes], encoding: RingEncoding
    ) -> dict[int, Array]:
        """Masked rows by place, of those who were asked and answered in form."""
        kind = np.dtype(WORDS[encoding.bits]).newbyteorder("<")
        rows = {}
        for place, answer in self._heard({id: book.places[id] for id in asked}, answers):
            try:
                name, of, raw = letters.ROW.unpack(answer)
            except MessageRefused:
                continue
            if name == book.name and of == number and len(raw) == encoding.size * kind.itemsize:
                rows[place] = np.frombuffer(raw, kind)
                book.served[place] = True
        return rows

    def _check_survivors(self, book: EpochRecord, cohort: NDArray[np.bool_], alive: NDArray[np.bool_], least: int) -> None:
        """Refuse a round that could not be opened, before any share is asked."""
        few = int((cohort & (book.near(alive) < book.threshold)).sum())
        if int(alive.sum()) < least or few:
            raise RoundRefused(
                f"{int(alive.sum())} rows came of {int(cohort.sum())}, where {least} are needed, and {few} parties have fewer "
                f"than {book.threshold} neighbours left: nothing is released.",
                remedy="Ask again; a total needs more parties that stay.",
            )

    def _agree(
        self, book: EpochRecord, number: int, raw: bytes, survivors: bytes, alive: NDArray[np.bool_]
    ) -> Conversation[dict[str, bytes]]:
        """Have the survivors sign who survived, and write to each the signatures of its neighbours."""
        assert self.roster is not None
        n = len(book.ids)
        letter = letters.SURVIVORS.pack(epoch=book.name, round=number, survivors=survivors)
        asked = {book.ids[place]: place for place in np.flatnonzero(alive).tolist()}
        answers = yield Step("consistency", dict.fromkeys(asked, letter))
        statement = letters.survivors_statement(
            book.bond, number, letters.read_set(raw, n).digest, letters.read_set(survivors, n).digest
        )
        signed: dict[int, bytes] = {}
        for place, answer in self._heard(asked, answers):
            try:
                name, of, signature = letters.AGREED.unpack(answer)
                self.roster.verify(book.ids[place], signature, statement)
            except (MessageRefused, KeyInvalid):
                continue
            if name == book.name and of == number:
                signed[place] = signature
        opening = {}
        for place in signed:
            near = [(j, v) for j, v in enumerate(book.graph.neighbours[place].tolist()) if v in signed][: book.threshold]
            if len(near) < book.threshold:
                continue  # it would refuse
            opening[book.ids[place]] = letters.UNMASK.pack(
                epoch=book.name,
                round=number,
                survivors=survivors,
                signers=np.array([j for j, _ in near], "<u4").tobytes(),
                signatures=b"".join(signed[v] for _, v in near),
            )
        if not opening:
            raise RoundRefused(
                f"{len(signed)} of {len(asked)} parties signed who survived: nothing is released.", remedy="Ask again."
            )
        return opening

    def _openings(
        self, book: EpochRecord, number: int, answers: Mapping[str, bytes], cohort: NDArray[np.bool_], asked: set[str]
    ) -> dict[int, bytes]:
        """Shares by place, of those who were asked and sent one for each neighbour in the cohort."""
        due, shares = book.near(cohort), {}
        for place, answer in self._heard({id: book.places[id] for id in asked}, answers):
            try:
                name, of, raw = letters.OPENING.unpack(answer)
            except MessageRefused:
                continue
            if name == book.name and of == number and len(raw) == SHARE_BYTES * int(due[place]):
                shares[place] = raw
        return shares

    # ---- helpers ---------------------------------------------------------------------------------------------------
    def _degree(self, n: int) -> tuple[int, int]:
        return self.settings.degree(n, len(self.roster or ()))

    @staticmethod
    def _heard(places: Mapping[str, int], answers: Mapping[str, bytes]) -> Iterable[tuple[int, bytes]]:
        """Answers of those who were asked, in the order of places."""
        return sorted((places[id], answer) for id, answer in answers.items() if id in places)

    def _addressed(self, ids: Iterable[str], least: int = 0) -> tuple[str, ...]:
        asked = _distinct(tuple(ids))
        if not self.members.issuperset(asked):
            raise KeyInvalid("a party is asked that is no member.", remedy="Ask members only.", asked=False)
        if len(asked) < max(self.settings.least, least):
            raise CohortTooSmall(
                f"{len(asked)} parties are asked, and totals are of {max(self.settings.least, least)} or more.",
                remedy="Ask more parties at once.",
            )
        return asked


def _distinct(ids: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(ids)) != len(ids) or not all(isinstance(id, str) and 0 < len(id.encode()) <= LONGEST_NAME for id in ids):
        raise KeyInvalid(
            "names of parties repeat, or have no or too many bytes.",
            remedy=f"Distinct names of 1 to {LONGEST_NAME} bytes.",
            asked=False,
        )
    return ids
