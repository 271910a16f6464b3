"""A station: letters in, letters out, and nothing else. It opens no socket and has no clock of its own.

    hello     who is here: data, columns, parties
    board     a study asks to be approved: judged by the guard, rehearsed, then by a person or at once
    ask       a question, or a step of a conversation about one
    end       a study is over

A question passes, in this order: the envelope, the replay check, the study's approval, the guard, what the study announced,
the budgets; then it is in the journal with what it costs; then it is computed, and the outcome is in the journal as well
before the answer leaves. What cannot be authenticated gets no answer at all. What is refused gets a code: the sentence stays
in this station's log and journal. The same letter again gets the very same answer, while it is remembered, and none while it
is being answered; any other letter whose number is not larger than the study's last gets none.

This is the gate: it holds no records and runs no program. What does is a `Runner`'s. Several threads may bring letters: one
lock guards journal, accounts and submissions, and a hello needs it not; each study has a lock around its questions, which are
answered one after the other, whatever other studies ask meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.engines.party_states import StateFiles
from hedgerow.errors import (
    HedgerowError,
    LimitExceeded,
    MessageRefused,
    RangeExceeded,
    SubmissionRefused,
    SubmissionUnapproved,
)
from hedgerow.wire.boarding import submission_digest
from hedgerow.wire.envelope import Letter, disclose, enclose
from hedgerow.wire.values import pack

from .admitted import AdmittedStudy, title_of
from .alignments import Alignments
from .answered_files import refuse_forgotten
from .asking import GUARD, OUTSIDE, Keys, Reply, account_of, charge_all, said, tells
from .base import Base
from .children.facts import AskedQuestion, Computed, Uncomputed
from .children.runner import Inline, OwnKeys, Runner, ToOpen
from .closed import admit_open, greeting
from .config import StationConfig
from .counts import AskedBefore
from .debits import Debits, debited
from .disclosed import Disclosures
from .heads import JournalHeads
from .journal import PartyCharge, StationEntry, StationJournal
from .local_data import Held, LocalData
from .policy import admit_hours, admit_size
from .rehearsals import Rehearsals
from .remembered import Remembered
from .rules import OF_CHILDREN, RulesFile
from .submissions import Submission, Submissions
from .wording import plain

log = logging.getLogger("hedgerow")

NOBODY = bytes(16)


class Station:
    """One station.

    Parameters
    ----------
    config : StationConfig
    held : Held
        Columns, parties and sizes; and the records, where no runner has them.
    keys : Keys
    base : Base
        Submissions and journal.
    answered : Path, optional
        Folder of what parties have answered within protocols, beside that of what they keep; in memory if not given, for tests.
    now : callable
        Universal time.
    runner : Runner, optional
        Who rehearses and answers; this process if not given, which then needs the records.
    file : Path, optional
        The configuration's, or its folder: its guard is in force as soon as it is changed. Nothing changes if not given.
    closed : int
        Values that were refused, where that closed the table: nothing is answered but a hello, which tells about how many.
    """

    def __init__(
        self,
        config: StationConfig,
        held: Held,
        keys: Keys,
        base: Base,
        *,
        answered: Path | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        runner: Runner | None = None,
        file: Path | None = None,
        closed: int = 0,
    ) -> None:
        self.closed = closed
        self.config, self.held, self.keys, self.base, self.now = config, held, keys, base, now
        self.journal, self.submissions = StationJournal(base), Submissions(base)
        self.heads = JournalHeads(self.journal, keys, config.coordinator.name)
        self.disclosures, self.alignments = Disclosures(held, self.journal), Alignments(self.journal)
        self.account = account_of(config.guard.budget, held.roll, own=True)
        if runner is None:
            assert isinstance(held, LocalData), "who runs nothing elsewhere holds the records"
            runner = Inline(held)
        self.runner: Runner = runner
        self._answered, self._closed = answered, False
        self._states = StateFiles(None if answered is None else answered.with_name("states"))
        self._position = {id: i for i, id in enumerate(held.ids)}
        self._admitted: dict[str, AdmittedStudy] = {}
        self._remembered = Remembered()
        self._last = self.journal.last_numbers()
        self._at_work: set[bytes] = set()
        self._told: dict[str, tuple[str, str]] = {}
        self._minute: deque[datetime] = deque()
        self._lock, self._desk = threading.RLock(), threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        charge_all(self.account, self._charges(), self._position)
        own: dict[str, Any] = {"config": lambda: self.config, "charges": self._charges, "time": self._time, "lock": self._lock}
        self.rules = None if file is None else RulesFile(file, config, base, self.journal, at=self._time)
        self.rehearsals = Rehearsals(self.submissions, keys, runner, **own)

    # ---- letters -------------------------------------------------------------------------------------------------------
    def receive(self, raw: bytes) -> bytes | None:
        """Answer a sealed letter by a sealed letter, or by nothing. Any thread may call it."""
        self.refresh(wait=False)
        try:
            key_material, public_identities = self.keys.key_material, self.keys.public_identities
            letter = disclose(key_material, public_identities, raw)
        except HedgerowError as error:
            log.warning("a letter of %d bytes gets no answer: %s", len(raw), error.reason)
            return None
        if letter.sender != self.config.coordinator.name or letter.answers:
            log.warning("a letter from %s, who is not the coordinator, or that answers one, gets no answer", letter.sender)
            return None
        study, (letter, closed) = letter.study.hex(), self.heads.opened(letter)
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
            sealed = enclose(key_material, public_identities[letter.sender], reply.kind, closed(reply.parts), **about)
            with self._desk:
                if letter.kind != "hello":
                    self._remembered.keep(study, letter.digest, sealed)
                return None if self._closed else sealed
        finally:
            with self._desk:
                self._at_work.discard(letter.digest)

    def refresh(self, wait: bool = True) -> None:
        """Keep from now on to the guard of the file, where that was changed; at once, or when nobody is in the way."""
        if self.rules is None or not self._lock.acquire(blocking=wait):
            return
        try:
            if self._closed or not (changed := self.rules.look()):
                return
            self.config = self.rules.config
            if any(key.startswith("guard.budget") for key in changed):
                self.account = account_of(self.config.guard.budget, self.held.roll, own=True)
                charge_all(self.account, self._charges(), self._position)
            if any(key.startswith(("guard.study_budget", *OF_CHILDREN)) for key in changed):
                while self._admitted:  # made ready anew with the next question
                    self._admitted.popitem()[1].close()
        finally:
            self._lock.release()

    def close(self) -> None:
        """End what runs and release the files of studies; the database is its owner's. Nothing is answered from then on.

        A question that is being computed has been charged, and gets no answer.
        """
        self._closed = True  # without the lock, which somebody may hold who waits for the disk
        self.rehearsals.close()
        self.runner.close()
        with self._lock:
            while self._admitted:
                self._admitted.popitem()[1].close()

    def _reply(self, letter: Letter, study: str, size: int) -> Reply:
        kinds: dict[str, Callable[[Letter, str, int], Reply]] = {
            "hello": self._hello,
            "board": self._board,
            "ask": self._ask,
            "end": self._end,
        }
        try:
            if letter.kind not in kinds:
                raise MessageRefused(f"a letter of kind {letter.kind!r}.", remedy="Both ends run the same version.")
            admit_size("a letter", size, self.config.guard.limits.bytes_in)
            self.heads.admit(letter.kind)
            admit_open(letter.kind, self.closed)
            return kinds[letter.kind](letter, study, size)
        except Exception as error:
            return self._refused(letter, study, size, error)

    def _refused(self, letter: Letter, study: str, size: int, error: Exception) -> Reply:
        """Note a refusal, and send its code."""
        code, reason = said(error)
        log.log(
            logging.INFO if isinstance(error, HedgerowError) else logging.ERROR, "refused %s: %s", plain(letter.kind), reason
        )
        if not isinstance(error, HedgerowError):
            log.error("an error of this station's own", exc_info=error)
        if letter.kind != "hello" and not self._closed:
            try:
                self._note(letter, study, code, reason=reason, bytes_in=size)
            except HedgerowError as full:
                log.error("the journal cannot be written: %s", full.reason)
                code = full.code
        return Reply("refused", [code.encode()])

    def _hello(self, letter: Letter, study: str, size: int) -> Reply:
        log.info("said hello to %s", letter.sender)
        return Reply("hello", [pack(greeting(self.config, self.held, self.closed))])

    # ---- boarding ------------------------------------------------------------------------------------------------------
    def _board(self, letter: Letter, study: str, size: int) -> Reply:
        if len(letter.parts) != 2 or letter.study == NOBODY:
            raise MessageRefused("a study came without its text, or without a name.")
        digest, title = submission_digest(*letter.parts), title_of(letter.parts[0])
        with self._lock:
            submission = self.submissions.get(study)
            if submission is None:
                came = Submission(
                    study, *letter.parts, digest, self._time(), title=title, coordinator=letter.sender, ready=False
                )
                submission = self._judged(came)
            elif submission.digest != digest:
                raise SubmissionRefused(
                    f"another study than {submission.title!r} came under its name.", remedy="A changed study is submitted anew."
                )
            elif submission.status == "waiting" and not submission.ready:  # the station was stopped while it was rehearsed
                submission = self._judged(submission)
            if self._told.get(study) != (submission.status, submission.because):  # while a person thinks, it comes every minute
                self._note(
                    letter, study, submission.status, function=submission.title, reason=submission.because, bytes_in=size
                )
                log.info("study %s, %r, is %s", submission.id, submission.title, submission.status)
                self._told[study] = (submission.status, submission.because)
        return Reply("board", [pack(submission.told(self.held.ids))])

    def _judged(self, came: Submission) -> Submission:
        """Let the guard judge a study that is not rehearsed, and return what is known of it by then."""
        return self.rehearsals.begin(came)

    def _end(self, letter: Letter, study: str, size: int) -> Reply:
        self.runner.stop(study)
        with self._lock:
            submission = self.submissions.get(study)
            if submission is not None and submission.status in ("waiting", "approved"):
                self.submissions.put(submission.decided(self.keys.key_material, "ended", by=letter.sender, at=self._time()))
            self._note(letter, study, "ended", bytes_in=size)
            self.rehearsals.drop(study)
            if (admitted := self._admitted.pop(study, None)) is not None:
                admitted.close()
            self._states.erase(study)
            self.disclosures.drop(study)
        log.info("study %s has ended", study[:8])
        return Reply("end", [])

    # ---- questions -----------------------------------------------------------------------------------------------------
    def _ask(self, letter: Letter, study: str, size: int) -> Reply:
        if len(letter.parts) != 2:
            raise MessageRefused(f"a question of {len(letter.parts)} parts.")
        with self._turns[study]:
            while True:
                admitted, guard = self._welcome(study), self.config.guard
                admit_hours(guard, self.now())
                question = admitted.parties.foresee(guard, self.now(), *letter.parts)
                which = np.array([self._position[id] for id in question.ids])
                with self._lock:
                    if guard is not self.config.guard or self._admitted.get(study) is not admitted:
                        continue  # rules have changed, or the study was taken back, since it was judged
                    self._admit(admitted, question, which)
                    left, debits = self._debited(admitted, question, which)
                    about: dict[str, Any] = {
                        "function": question.words,
                        "question": question.number,
                        "n_parties": len(left.ids),
                    }
                    counted = question.counted_by | self.disclosures.noted(guard, study, left.ids, left)
                    self.alignments.begin(guard.vertical, study, letter.number, question.alignment, self.now())
                    self._note(letter, study, "asked", charges=debits.charges, bytes_in=size, **about, **counted)
                    debits.enter()  # they are on the disk now
                    admitted.asked.take(question)
                    break
            found = self._computed(admitted, left)
            with self._lock:
                admit_size("an answer", len(found.body), guard.limits.bytes_out)
                about |= self.disclosures.counted(study, left.ids, found.came)
                self._note(letter, study, "answered", bytes_in=size, bytes_out=len(found.body), cohort=found.cohort, **about)
            log.info("answered %s for %d parties: %d bytes", question.words, found.n_answered, len(found.body))
            return Reply("answer", [found.body])

    def _welcome(self, study: str) -> AdmittedStudy:
        """The study, if it is approved now; it may have been taken back since it was asked last."""
        with self._lock:
            status = self.submissions.status(study)
            if status != "approved" and (gone := self._admitted.pop(study, None)) is not None:
                gone.close()
            if study in self._admitted:
                return self._admitted[study]
            submission = self.submissions.approved(study, self.keys.key_material.public_identity)
            account = account_of(self.config.guard.study_budget, self.held.roll)
            charges = (charge for _, charge in self.journal.charges(study) if charge.account == "study")
            charge_all(account, charges, self._position)
            n_questions, asked = (
                self.journal.n_questions(study),
                AskedBefore.of(submission.announced, self.journal.questions(study)),
            )
            own = OwnKeys(self.keys.key_material.identity, getattr(self.keys, "roster", None))
            answered = None if self._answered is None else self._answered / f"{study}.journal"
            if answered is not None:
                refuse_forgotten(answered, submission.announced, self.journal.entries(study=study))
            task = ToOpen(self.config, submission, own, answered, self._states, begun=n_questions > 0)
        parties = self.runner.open(task, lambda: self._off(study))  # it may take a while: no lock is held
        with self._lock:
            if self._closed or self.submissions.status(study) != "approved":
                parties.close()
                raise SubmissionUnapproved(f"the study {study[:8]} was taken back.")
            if task.config is not self.config:
                parties.close()
                return self._welcome(study)
            self._admitted[study] = AdmittedStudy(submission, parties, account, asked, n_questions)
            return self._admitted[study]

    def _admit(self, admitted: AdmittedStudy, question: AskedQuestion, which: np.ndarray) -> None:
        """What the guard checks of several questions together, before budgets."""
        admitted.asked.refuse_further(question)
        limits, now = self.config.guard.limits, self.now()
        if limits.questions_per_study is not None and admitted.n_questions >= limits.questions_per_study:
            raise LimitExceeded(f"the study has asked {admitted.n_questions} questions, which is the guard's limit.")
        while self._minute and not 0 <= (now - self._minute[0]).total_seconds() < 60:  # the clock may be set back
            self._minute.popleft()
        if limits.questions_per_minute is not None and len(self._minute) >= limits.questions_per_minute:
            raise LimitExceeded(f"{len(self._minute)} questions came within a minute.", remedy="Ask more slowly.")
        if question.bears:
            self._minute.append(now)
            admitted.n_questions += 1

    def _debited(self, admitted: AdmittedStudy, question: AskedQuestion, which: np.ndarray) -> tuple[AskedQuestion, Debits]:
        """Decide who can pay; see `debits.debited`."""
        return debited({"all": self.account, "study": admitted.account}, question, which, self.held.ids)

    def _computed(self, admitted: AdmittedStudy, question: AskedQuestion) -> Computed:
        try:
            found = admitted.parties.compute(question)
        except Uncomputed as failed:
            self._take_back(admitted.submission, question, [failed.code])
            raise failed.error from failed.__cause__
        self._take_back(admitted.submission, question, found.codes.values())
        return found

    def _take_back(self, submission: Submission, question: AskedQuestion, codes: Iterable[str]) -> None:
        """Answer nothing more of a study whose refusals tell of records; what it asked last it may know."""
        if tells(question.protected, codes):
            how = {"because": OUTSIDE, "code": RangeExceeded.code}
            with self._lock:
                self.submissions.put(submission.decided(self.keys.key_material, "refused", by=GUARD, at=self._time(), **how))

    # ---- inside --------------------------------------------------------------------------------------------------------
    def _off(self, study: str) -> bool:
        """Whether a study may ask no more."""
        return self._closed or self.submissions.status(study) != "approved"

    def _charges(self) -> Iterable[PartyCharge]:
        return (charge for _, charge in self.journal.charges() if charge.account == "all")

    def _note(self, letter: Letter, study: str, code: str, **about: Any) -> None:
        digest = letter.digest.hex()
        self.journal.write(StationEntry(self._time(), plain(letter.kind), study, letter.number, code, digest=digest, **about))

    def _time(self) -> str:
        return self.now().astimezone(UTC).isoformat(timespec="milliseconds")
