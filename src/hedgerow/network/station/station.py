"""A station: letters in, letters out, and nothing else. It opens no socket and has no clock of its own.

    hello     who is here: data, columns, parties
    board     a study asks to be approved: judged by the guard, rehearsed, then by a person or at once
    ask       a question, or a step of a conversation about one
    end       a study is over

A question passes, in this order: the envelope, the replay check, the study's approval, the guard, what the study announced,
the budgets; then it is in the journal with what it costs; then it is computed, and the outcome is in the journal as well
before the answer leaves. What cannot be authenticated gets no answer at all. What is refused gets a code: the sentence stays
in this station's log and journal. The same letter again gets the very same answer, while it is remembered; any other letter
whose number is not larger than the study's last gets none.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hedgerow.core.engine import Inbox
from hedgerow.crypto.schemes import Credentials
from hedgerow.errors import (
    CannotWrite,
    HedgerowError,
    KeyInvalid,
    LimitExceeded,
    MessageRefused,
    RangeExceeded,
    SubmissionRefused,
    SubmissionUnapproved,
)
from hedgerow.privacy.guard import GuardedQuestion
from hedgerow.store import Answered
from hedgerow.wire.boarding import submission_digest
from hedgerow.wire.envelope import KeyMaterial, Letter, PublicIdentity, disclose, enclose
from hedgerow.wire.question import Received, answer
from hedgerow.wire.values import pack

from .accounts import Account
from .admitted import AdmittedStudy, boarding, title_of, welcome
from .asking import OUTSIDE, Reply, account_of, bears, only, said, tells
from .base import Base
from .code import installed_version
from .config import StationConfig
from .disclosed import Disclosed
from .journal import PartyCharge, StationEntry, StationJournal, pack_parties, unpack_parties
from .local_data import LocalData
from .policy import admit_question, admit_size, as_forbidden
from .remembered import Remembered
from .submissions import Submission, Submissions
from .wording import plain

log = logging.getLogger("hedgerow")

Charges = tuple[PartyCharge, ...]
Debits = list[tuple[Account, np.ndarray, Any, Any]]
NOBODY = bytes(16)
GUARD = "guard"
"""Who decided, where no person did."""


class Keys(Protocol):
    """Private keys and trusted public identities, as they are now; `hedgerow.network.identity.key_folder.KeyFolder` is one."""

    @property
    def key_material(self) -> KeyMaterial: ...

    @property
    def public_identities(self) -> Mapping[str, PublicIdentity]: ...


class Station:
    """One station.

    Parameters
    ----------
    config : StationConfig
    held : LocalData
    keys : Keys
    base : Base
        Submissions and journal.
    answered : Path, optional
        Folder of what parties have answered within protocols; in memory if not given, for simulations and tests.
    now : callable
        Universal time.
    """

    def __init__(
        self,
        config: StationConfig,
        held: LocalData,
        keys: Keys,
        base: Base,
        *,
        answered: Path | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.config, self.held, self.keys, self.base, self.now = config, held, keys, base, now
        self.journal, self.submissions = StationJournal(base), Submissions(base)
        self.account = account_of(config.guard.budget, held.roll, own=True)
        self._answered = answered
        self._position = {id: i for i, id in enumerate(held.ids)}
        self._admitted: dict[str, AdmittedStudy] = {}
        self._remembered = Remembered()
        self._last = self.journal.last_numbers()
        self._told: dict[str, tuple[str, str]] = {}
        self._minute: deque[datetime] = deque()
        self._all = Disclosed.overall(config.guard, held, self.journal)
        self._lock = threading.Lock()
        for _, charge in self.journal.charges():
            if charge.account == "all":
                self._add(self.account, charge)

    # ---- letters -------------------------------------------------------------------------------------------------------
    def receive(self, raw: bytes) -> bytes | None:
        """Answer a sealed letter by a sealed letter, or by nothing."""
        with self._lock:
            try:
                key_material, public_identities = self.keys.key_material, self.keys.public_identities
                letter = disclose(key_material, public_identities, raw)
            except HedgerowError as error:
                log.warning("a letter of %d bytes gets no answer: %s", len(raw), error.reason)
                return None
            if letter.sender != self.config.coordinator.name or letter.answers:
                log.warning("a letter from %s, who is not the coordinator, or that answers one, gets no answer", letter.sender)
                return None
            study = letter.study.hex()
            if (before := self._remembered.answer(letter.digest)) is not None:
                return before
            if letter.kind != "hello" and letter.number <= self._last.get(study, -1):
                log.warning("letter %d of study %s comes again, or late: no answer", letter.number, study[:8])
                return None
            reply = self._reply(letter, study, len(raw))
            sealed = enclose(
                key_material,
                public_identities[letter.sender],
                reply.kind,
                reply.parts,
                study=letter.study,
                number=letter.number,
                answers=letter.digest,
            )
            if letter.kind != "hello":
                self._last[study] = letter.number
                self._remembered.keep(study, letter.digest, sealed)
            return sealed

    def close(self) -> None:
        """Release the files of studies; the database is its owner's."""
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
            return kinds[letter.kind](letter, study, size)
        except Exception as error:
            return self._refused(letter, study, size, error)

    def _refused(self, letter: Letter, study: str, size: int, error: Exception) -> Reply:
        """Note a refusal, and send its code."""
        code, reason = said(error)
        level = logging.INFO if isinstance(error, HedgerowError) else logging.ERROR
        log.log(level, "refused %s: %s", plain(letter.kind), reason)
        if not isinstance(error, HedgerowError):
            log.error("an error of this station's own", exc_info=error)
        if letter.kind != "hello":
            try:
                self._note(letter, study, code, reason=reason, bytes_in=size)
            except HedgerowError as full:
                log.error("the journal cannot be written: %s", full.reason)
                code = full.code
        return Reply("refused", [code.encode()])

    def _hello(self, letter: Letter, study: str, size: int) -> Reply:
        about = {
            "version": installed_version(),
            "data": self.config.data.name,
            "schema": tuple(self.held.schema.columns),
            "parties": self.held.ids,
            "records": self.held.about if self.config.guard.tell_records else None,
        }
        log.info("said hello to %s", letter.sender)
        return Reply("hello", [pack(about)])

    # ---- boarding ------------------------------------------------------------------------------------------------------
    def _board(self, letter: Letter, study: str, size: int) -> Reply:
        if len(letter.parts) != 2 or letter.study == NOBODY:
            raise MessageRefused("a study came without its text, or without a name.")
        submission = self.submissions.get(study)
        if submission is None:
            submission = self._judged(letter, study)
        elif submission.digest != submission_digest(*letter.parts):
            raise SubmissionRefused(
                f"another study than {submission.title!r} came under its name.", remedy="A changed study is submitted anew."
            )
        if self._told.get(study) != (submission.status, submission.because):  # while a person thinks, it comes every minute
            self._note(letter, study, submission.status, function=submission.title, reason=submission.because, bytes_in=size)
            log.info("study %s, %r, is %s", submission.id, submission.title, submission.status)
            self._told[study] = (submission.status, submission.because)
        status = submission.status if submission.status != "ended" else "refused"
        about = {
            "status": status,
            "code": (submission.code or SubmissionRefused.code) if status == "refused" else "",
            "submission": submission.digest,
            "parties": self.held.ids if status == "approved" else (),
            "signature": submission.signature,
        }
        return Reply("board", [pack(about)])

    def _judged(self, letter: Letter, study: str) -> Submission:
        """Let the guard judge a study that came for the first time, and keep what it said."""
        guard, toml, description = self.config.guard, *letter.parts
        mark, title = submission_digest(toml, description), title_of(toml)
        came = Submission(study, toml, description, mark, self._time(), title=title, coordinator=letter.sender)
        n_open = len(self.submissions.all("waiting", "approved"))
        if n_open >= guard.limits.studies_at_once:
            raise LimitExceeded(
                f"{n_open} studies are here that have not ended, and the guard's limit is {guard.limits.studies_at_once}.",
                remedy="Wait until one has ended.",
            )
        try:
            accounts = [self.account, account_of(guard.study_budget, self.held.roll)]
            submission = boarding(self.config, self.held, self.config.name, came, accounts)
        except (CannotWrite, LimitExceeded):
            raise
        except HedgerowError as error:
            log.info("the guard refused study %s: %s", came.id, error)
            code, reason = said(error)
            submission = came.decided(self.keys.key_material, "refused", by=GUARD, at=self._time(), because=reason, code=code)
        else:
            if guard.approval == "automatic":
                submission = submission.decided(self.keys.key_material, "approved", by=GUARD, at=self._time())
        self.submissions.put(submission)
        return submission

    def _end(self, letter: Letter, study: str, size: int) -> Reply:
        submission = self.submissions.get(study)
        if submission is not None and submission.status in ("waiting", "approved"):
            self.submissions.put(submission.decided(self.keys.key_material, "ended", by=letter.sender, at=self._time()))
        self._note(letter, study, "ended", bytes_in=size)
        if (admitted := self._admitted.pop(study, None)) is not None:
            admitted.close()
        log.info("study %s has ended", study[:8])
        return Reply("end", [])

    # ---- questions -----------------------------------------------------------------------------------------------------
    def _ask(self, letter: Letter, study: str, size: int) -> Reply:
        if len(letter.parts) != 2:
            raise MessageRefused(f"a question of {len(letter.parts)} parts.")
        admitted = self._welcome(study)
        question = admitted.host.question(*letter.parts)
        which = np.array([self._position[id] for id in question.ids])
        self._admit(admitted, question, which)
        left, codes, charges, debits = self._debited(admitted, question, which)
        asked = f"{question.question.verb} of {question.question.name}" + (f", {question.step.name}" if question.step else "")
        number = question.question.number if bears(question) else 0
        about: dict[str, Any] = {"function": asked, "question": number, "n_parties": len(left.ids), "bytes_in": size}
        self._note(letter, study, "asked", charges=charges, **about, **admitted.numbers(left))
        for account, whom, entry, payment in debits:  # they are on the disk now
            account.add(whom, entry, payment)
        inbox = self._computed(admitted, left)
        body = answer(replace(inbox, codes={**inbox.codes, **codes}), question.ids)
        admitted.answered.flush()
        admit_size("an answer", len(body), self.config.guard.limits.bytes_out)
        self._note(letter, study, "answered", bytes_out=len(body), **about, **admitted.numbers(left, inbox))
        if bears(question):
            admitted.memory.take(question.outbox, left.ids)
        log.info("answered %s for %d parties: %d bytes", asked, len(inbox.answered), len(body))
        return Reply("answer", [body])

    def _welcome(self, study: str) -> AdmittedStudy:
        """The study, if it is approved now; it may have been taken back since it was asked last."""
        status = self.submissions.status(study)
        if status != "approved" and (gone := self._admitted.pop(study, None)) is not None:
            gone.close()
        if study in self._admitted:
            return self._admitted[study]
        submission = self.submissions.get(study)
        if submission is None:
            raise SubmissionUnapproved(f"the study {study[:8]} never asked to board.", remedy="Board it first.")
        submission.refuse_unapproved()
        try:
            submission.check_signature(self.keys.key_material.public_identity)
        except KeyInvalid as error:
            raise SubmissionUnapproved(
                f"the approval of {submission.title!r} was not signed with the keys that this station has now.",
                remedy=f"If its keys were rotated: hedgerow station approve {submission.id}",
            ) from error
        account = account_of(self.config.guard.study_budget, self.held.roll)
        for _, charge in self.journal.charges(study):
            if charge.account == "study":
                self._add(account, charge)
        answered = Answered(None if self._answered is None else self._answered / f"{study}.journal", gather=True)
        identity = self.keys.key_material.identity
        own = Credentials(getattr(self.keys, "roster", None), lambda id: identity, answered.of)
        try:
            self._admitted[study] = welcome(self.config, self.held, submission, account, answered, own, self.journal, self._all)
        except BaseException:
            answered.close()
            raise
        return self._admitted[study]

    def _admit(self, admitted: AdmittedStudy, question: Received, which: np.ndarray) -> None:
        """Everything that the guard checks before budgets."""
        guard, now = self.config.guard, self.now()
        admit_question(guard, question, self.held.sizes[which], now)
        admitted.submission.announced.refuse_other(question, len(self.held))
        if bears(question):
            admitted.memory.refuse_lost(question.outbox, question.ids)
        limits = guard.limits
        if limits.questions_per_study is not None and admitted.n_questions >= limits.questions_per_study:
            raise LimitExceeded(f"the study has asked {admitted.n_questions} questions, which is the guard's limit.")
        while self._minute and not 0 <= (now - self._minute[0]).total_seconds() < 60:  # the clock may be set back
            self._minute.popleft()
        if limits.questions_per_minute is not None and len(self._minute) >= limits.questions_per_minute:
            raise LimitExceeded(f"{len(self._minute)} questions came within a minute.", remedy="Ask more slowly.")
        if bears(question):
            self._minute.append(now)
            admitted.n_questions += 1

    def _debited(
        self, admitted: AdmittedStudy, question: Received, which: np.ndarray
    ) -> tuple[Received, dict[str, str], Charges, Debits]:
        """Decide who can pay: the question to those, the codes of the others, and what is charged, for journal and accounts.

        Raises
        ------
        BudgetExhausted (HR-213), ProtectionRequired (HR-606), MixedUnits (HR-215)
            Nobody can.
        """
        if not bears(question):
            return question, {}, (), []
        accounts = {"all": self.account, "study": admitted.account}
        question, outbox = admitted.foreseen(self.config.guard, question, self.held.schema)
        asked = {trust: GuardedQuestion.by(outbox, trust) for trust in {one.trust for one in accounts.values()}}
        decided = {name: account.decide(which, asked[account.trust]) for name, account in accounts.items()}
        paying = decided["all"].admitted & decided["study"].admitted
        errors = decided["all"].codes | decided["study"].codes
        if not paying.any():
            raise next(iter(errors.values()))
        charges, debits = [], []
        for name, decision in decided.items():
            if accounts[name].unlimited:
                continue  # what was asked is in the journal all the same
            for entry, payment, places in decision.entries:
                whom = which[places[paying[places]]]
                if len(whom) and payment is not None:
                    debits.append((accounts[name], whom, entry, payment))
                    charges.append(PartyCharge(name, entry.to_json(), pack_parties(whom, self.held.ids)))
        codes = {question.ids[k]: error.code for k, error in errors.items()}
        for k, error in errors.items():
            log.info("%s: its guard declined %s: %s", question.ids[k], question.question.name, error.reason)
        left = question if not codes else only(question, tuple(id for id in question.ids if id not in codes))
        return left, codes, tuple(charges), debits

    def _computed(self, admitted: AdmittedStudy, question: Received) -> Inbox:
        try:
            inbox = admitted.host.exchange(question)
        except Exception as error:
            self._take_back(admitted.submission, question, [said(error)[0]])
            forbidden = set(self.held.schema.names) - set(admitted.submission.columns)
            raise as_forbidden(error, forbidden) from error.__cause__
        self._take_back(admitted.submission, question, inbox.codes.values())
        return inbox

    def _take_back(self, submission: Submission, question: Received, codes: Iterable[str]) -> None:
        """Answer nothing more of a study whose refusals tell of records; what it asked last it may know."""
        if tells(question, codes):
            how = {"because": OUTSIDE, "code": RangeExceeded.code}
            self.submissions.put(submission.decided(self.keys.key_material, "refused", by=GUARD, at=self._time(), **how))

    # ---- inside --------------------------------------------------------------------------------------------------------
    def _add(self, account: Account, charge: PartyCharge) -> None:
        account.add(unpack_parties(charge.parties, self._position), charge.entry(), None)

    def _note(self, letter: Letter, study: str, code: str, **about: Any) -> None:
        self.journal.write(
            StationEntry(self._time(), plain(letter.kind), study, letter.number, code, digest=letter.digest.hex(), **about)
        )

    def _time(self) -> str:
        return self.now().astimezone(UTC).isoformat(timespec="milliseconds")
