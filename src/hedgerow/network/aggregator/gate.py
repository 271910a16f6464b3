"""An aggregator: letters in, letters out, and nothing else. It opens no socket and has no clock of its own.

    hello        who is here: its key for shares, and of how few parties it gives a total
    board        a study, as stations are told it: the guard decides
    aggregate    a step of the protocol and its letter, for the study's `Aggregator`
    end          a study is over

What cannot be authenticated gets no answer. What is refused gets a code; the sentence stays in the log and the journal. The
same letter again gets the very same answer while that is remembered, and none while it is being made; any other letter whose
number is not larger than the study's last in this life gets none. Before an epoch is opened, and before a total is given, it
is on the disk that it was: after a restart all epochs are over, none is served twice, and letters of before are refused, so
that nobody waits for an answer that cannot come.

Several threads may bring letters: letters of one study are answered one after the other, whatever others ask meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from hedgerow.crypto.keys import AgreementKey, Roster
from hedgerow.crypto.schemes import shares_of
from hedgerow.crypto.shares import Aggregator, Drawing, TotalsGiven
from hedgerow.crypto.shares.making import aggregator_of
from hedgerow.errors import HedgerowError, LimitExceeded, MessageRefused, SubmissionRefused, SubmissionUnapproved
from hedgerow.network.station.asking import Reply, said
from hedgerow.network.station.code import installed_version
from hedgerow.network.station.policy import admit_size
from hedgerow.network.station.remembered import Remembered
from hedgerow.network.station.wording import plain
from hedgerow.privacy.mechanisms import drawn
from hedgerow.wire.boarding import decision, known_as, submission_digest
from hedgerow.wire.envelope import Letter, disclose, enclose
from hedgerow.wire.values import pack

from .config import AggregatorConfig
from .heads import AggregatorHeads
from .journal import AddedUpStudies, AddedUpStudy, AggregatorBase, AggregatorEntry, AggregatorJournal, Served

log = logging.getLogger("hedgerow")

NOBODY = bytes(16)


@dataclass
class Session:
    """A study's aggregator in this life of the process; `letter` is the one that is being answered."""

    roster: Roster | None
    letter: int = 0
    aggregator: Aggregator = field(init=False)


class AggregatorGate:
    """One aggregator.

    Parameters
    ----------
    config : AggregatorConfig
    shares : AgreementKey
        Its key for shares.
    keys : Keys
        By which letters are sealed and signed; with a `roster` of everybody.
    base : AggregatorBase
    now : callable
        Universal time.
    """

    def __init__(
        self,
        config: AggregatorConfig,
        shares: AgreementKey,
        keys: Any,
        base: AggregatorBase,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.config, self.shares, self.keys, self.base, self.now = config, shares, keys, base, now
        self.journal, self.studies, self.served = AggregatorJournal(base), AddedUpStudies(base), Served(base)
        self.heads = AggregatorHeads(self.journal, keys, config.coordinator.name)
        self._sessions: dict[str, Session] = {}
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._desk = threading.Lock()
        self._remembered, self._last = Remembered(), dict[str, int]()
        self._at_work: set[bytes] = set()
        self._closed = False

    def receive(self, raw: bytes) -> bytes | None:
        """Answer a sealed letter by a sealed letter, or by nothing. Any thread may call it."""
        try:
            mine, others = self.keys.key_material, self.keys.public_identities
            letter = disclose(mine, others, raw)
        except HedgerowError as error:
            log.warning("a letter of %d bytes gets no answer: %s", len(raw), error.reason)
            return None
        if letter.sender != self.config.coordinator.name or letter.answers:
            log.warning("a letter from %s, who is not the coordinator, or that answers one, gets no answer", letter.sender)
            return None
        letter, closed = self.heads.opened(letter)
        study = letter.study.hex()
        with self._desk:
            if self._closed or letter.digest in self._at_work:
                return None
            if (before := self._remembered.answer(letter.digest)) is not None:
                return before
            if letter.kind != "hello":
                if letter.number <= self._last.get(study, -1):
                    log.warning("letter %d of study %s comes again, or late: no answer", letter.number, study[:8])
                    return None
                self._last[study] = letter.number
            self._at_work.add(letter.digest)
        try:
            reply = self._reply(letter, study, len(raw))
            about: dict[str, Any] = {"study": letter.study, "number": letter.number, "answers": letter.digest}
            sealed = enclose(mine, others[letter.sender], reply.kind, closed(reply.parts), **about)
            with self._desk:
                if letter.kind != "hello":
                    self._remembered.keep(study, letter.digest, sealed)
                return None if self._closed else sealed
        finally:
            with self._desk:
                self._at_work.discard(letter.digest)

    def close(self) -> None:
        """Answer nothing from now on; the database is its owner's."""
        with self._desk:
            self._closed = True
        self._sessions.clear()

    # ---- letters -----------------------------------------------------------------------------------------------------
    def _reply(self, letter: Letter, study: str, size: int) -> Reply:
        kinds: dict[str, Callable[[Letter, str], Reply]] = {
            "hello": self._hello,
            "board": self._board,
            "aggregate": self._aggregate,
            "end": self._end,
        }
        try:
            if letter.kind not in kinds:
                raise MessageRefused(f"a letter of kind {letter.kind!r}.", remedy="Both ends run the same version.")
            admit_size("a letter", size, self.config.guard.bytes_in)
            self.heads.admit(letter.kind)
            with self._turns[study]:
                return kinds[letter.kind](letter, study)
        except Exception as error:
            return self._refused(letter, study, error)

    def _refused(self, letter: Letter, study: str, error: Exception) -> Reply:
        """Note a refusal, and send its code."""
        code, reason = said(error)
        own = not isinstance(error, HedgerowError)
        log.log(logging.ERROR if own else logging.INFO, "refused %s: %s", plain(letter.kind), reason, exc_info=own)
        if letter.kind != "hello" and not self._closed:
            try:
                self._note(letter.kind, study, letter.number, code, reason)
            except HedgerowError as full:
                log.error("the journal cannot be written: %s", full.reason)
                code = full.code
        return Reply("refused", [code.encode()])

    def _hello(self, letter: Letter, study: str) -> Reply:
        log.info("said hello to %s", letter.sender)
        told = {"adds up by": self.shares.public, "least": self.config.guard.least, "version": installed_version()}
        return Reply("hello", [pack(told)])

    def _board(self, letter: Letter, study: str) -> Reply:
        if len(letter.parts) != 2 or letter.study == NOBODY:
            raise MessageRefused("a study came without its text, or without a name.")
        digest, known = submission_digest(*letter.parts), self.studies.get(study)
        if known is None:
            from .admitting import admit_study

            if len(going := self.studies.all("approved")) >= (most := self.config.guard.studies_at_once):
                raise LimitExceeded(f"{len(going)} studies have not ended, and the guard's limit is {most}.", remedy="Wait.")
            words = admit_study(self.config, self.shares.public, self.keys.roster, *letter.parts)
            signature = self.keys.key_material.identity.sign(decision(digest, "approved"))
            known = AddedUpStudy(study, "approved", words, *letter.parts, digest, signature)
            with self.base.transaction():
                self.studies.put(known)
                self._note(letter.kind, study, letter.number, "approved", words)
            log.info("study %s is added up: %s", known.id, words)
        elif known.digest != digest:
            raise SubmissionRefused(f"another study than {known.title!r} came under its name.", remedy="Submit it anew.")
        elif known.status != "approved":
            raise SubmissionRefused(f"the study {known.title!r} has ended.", remedy="Submit it anew.")
        told = {"status": "approved", "code": "", "submission": digest, "parties": (), "signature": known.signature}
        return Reply("board", [pack(told)])

    def _aggregate(self, letter: Letter, study: str) -> Reply:
        if len(letter.parts) != 2 or len(letter.parts[0]) > 16:
            raise MessageRefused("a step came without its letter.")
        session = self._session(study)
        session.letter = letter.number
        return Reply("aggregated", [session.aggregator.answer(letter.parts[0].decode("ascii", "replace"), letter.parts[1])])

    def _end(self, letter: Letter, study: str) -> Reply:
        known = self.studies.get(study)
        with self.base.transaction():
            if known is not None and known.status == "approved":
                self.studies.put(replace(known, status="ended"))
            self._note(letter.kind, study, letter.number, "ended")
        self._sessions.pop(study, None)
        log.info("study %s has ended", study[:8])
        return Reply("end", [])

    # ---- inside ------------------------------------------------------------------------------------------------------
    def _session(self, study: str) -> Session:
        """The study's aggregator: made anew after a restart, and where the roster has changed."""
        roster = self.keys.roster if self.config.guard.signed else None
        if (found := self._sessions.get(study)) is not None and (roster is None or found.roster == roster):
            return found
        known = self.studies.get(study)
        if known is None or known.status != "approved":
            raise SubmissionUnapproved(f"the study {study[:8]} is not added up here, or has ended.", remedy="Board it first.")
        from hedgerow.network.station.admitted import read_description, read_study

        publics = [key for _, key in read_description(known.description).aggregators]
        guard, session = self.config.guard, Session(roster)
        given = TotalsGiven(self.served.of(study), lambda *total: self._given(study, session.letter, *total))
        epochs = Epochs(self.served, lambda key: self._begun(study, session.letter, key))
        settings = shares_of(read_study(known.toml).protection.slots()["aggregation"])
        assert settings is not None  # `admit_study` refused it
        session.aggregator = aggregator_of(
            settings,
            self.shares,
            publics,
            least=guard.least,
            roster=roster,
            journal=epochs,
            study=known_as(study, known.digest),
            given=given,
            drawing=Drawing(drawn),
            longest=guard.numbers,
        )
        self._sessions[study] = session
        return session

    def _begun(self, study: str, letter: int, key: str) -> None:
        """Note an epoch, here and outside the database: whoever has an older copy of it finds out."""
        self._note("aggregate", study, letter, "epoch", f"{key[:22]} begins")
        self.heads.note()

    def _given(self, study: str, letter: int, round: int, parties: int, numbers: int, exact: bool, noise: str) -> None:
        """Note a total that is given next."""
        kind = f"a total with {noise} noise of this aggregator's own" if noise else "an exact total" if exact else "a total"
        words = f"{kind} of {parties} parties, {numbers:,} numbers, in round {round} of the epoch"
        self._note("aggregate", study, letter, "total", words, parties=parties, numbers=numbers)
        log.info("study %s: %s", study[:8], words)

    def _note(self, kind: str, study: str, letter: int, code: str, words: str = "", **about: Any) -> None:
        at = self.now().astimezone(UTC).isoformat(timespec="milliseconds")
        self.journal.write(AggregatorEntry(at, plain(kind), study, letter, code, words, **about))


class Epochs:
    """Epochs of all studies, each of which is served once; `begun` is told of one before it is opened."""

    def __init__(self, served: Served, begun: Callable[[str], object]) -> None:
        self._served, self._begun, self.seen = served, begun, served.seen

    def write(self, key: str, digest: bytes) -> None:
        """Keep an epoch, or refuse one that was kept before."""
        self._served.write(key, digest)
        self._begun(key)
