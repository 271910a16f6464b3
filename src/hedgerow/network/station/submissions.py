"""Submissions: studies that asked to board, what they will ask, and what was decided.

A submission is the study as it came with its description: coordinator, stations, columns, version. Its digest
stands for all of that, and the station's identity signs digest and decision, so that nobody can say later that something
else was approved. Status:  waiting -> approved -> ended, or refused; an approval can be taken back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hedgerow.crypto.keys import verify
from hedgerow.errors import KeyInvalid, SubmissionRefused, SubmissionUnapproved, UnknownStudy
from hedgerow.wire.boarding import decision
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity

from .base import Base
from .signatures import Announced

Status = Literal["waiting", "approved", "refused", "ended"]


@dataclass(frozen=True)
class Submission:
    """One study at one station.

    Attributes
    ----------
    study : str
        16 bytes in hexadecimal digits, as in letters.
    digest : bytes
        See `hedgerow.wire.boarding.submission_digest`.
    title, summary : str
    rows : tuple of mapping
        What it will ask, in words; see `wording.rows_of`.
    announced : Announced
        What it may ask.
    ready : bool
        Whether it was rehearsed: before that nobody can approve it.
    columns : tuple of str
        Columns that it may touch.
    status, code : str
        A refusal's code; the sentence is in `because`.
    by, at, because : str
        Who decided, when, and why.
    signature : bytes
        Of the decision, by the station's identity; b"" while it waits.
    """

    study: str
    toml: bytes
    description: bytes
    digest: bytes
    came: str
    title: str = ""
    coordinator: str = ""
    program: str = ""
    n_stations: int = 0
    summary: str = ""
    rows: tuple[Mapping[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    announced: Announced = field(default_factory=lambda: Announced({}, {}))
    ready: bool = True
    status: Status = "waiting"
    code: str = ""
    by: str = ""
    at: str = ""
    because: str = ""
    signature: bytes = b""

    @property
    def id(self) -> str:
        """By which a person names it: the first eight digits of the study."""
        return self.study[:8]

    def decided(
        self, key_material: KeyMaterial, status: Status, *, by: str, at: str, because: str = "", code: str = ""
    ) -> Submission:
        """The submission with a decision, signed."""
        signature = key_material.identity.sign(decision(self.digest, status))
        return replace(self, status=status, by=by, at=at, because=because, code=code, signature=signature)

    def check_signature(self, public_identity: PublicIdentity) -> None:
        """Raise KeyInvalid (HR-244) unless the decision was signed by the holder of a public identity."""
        verify(public_identity.identity, self.signature, decision(self.digest, self.status))

    def refuse_unapproved(self) -> None:
        """Refuse questions of a submission that is not approved.

        Raises
        ------
        SubmissionUnapproved (HR-607), SubmissionRefused (HR-608)
        """
        if self.status == "refused":
            raise SubmissionRefused(f"the study {self.title!r} was refused by {self.by}: {self.because or 'without a reason'}.")
        if self.status != "approved":
            raise SubmissionUnapproved(
                f"the study {self.title!r} is {self.status}.", remedy=f"hedgerow station approve {self.id}, if it may ask."
            )

    def told(self, ids: tuple[str, ...]) -> dict[str, Any]:
        """What the coordinator is told, with the parties `ids` where it is approved."""
        status = self.status if self.status != "ended" else "refused"
        return {
            "status": status,
            "code": (self.code or SubmissionRefused.code) if status == "refused" else "",
            "submission": self.digest,
            "parties": ids if status == "approved" else (),
            "signature": self.signature,
        }

    def about(self) -> dict[str, Any]:
        """What a rehearsal found, as plain values."""
        return {name: getattr(self, name) for name in ABOUT} | {"announced": self.announced.to_json()}

    def to_json(self) -> dict[str, Any]:
        """Everything but the study as it came, as plain values."""
        named = {name: getattr(self, name) for name in ("study", "came", "status", *DECISION)}
        return named | self.about() | {"digest": self.digest.hex(), "signature": self.signature.hex()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any], toml: bytes, description: bytes) -> Submission:
        """The submission that was written so, of the study as it came."""
        read = {name: bytes.fromhex(found[name]) for name in ("digest", "signature")}
        return cls(toml=toml, description=description, **(_read_about(found) | read))


ABOUT = ("title", "coordinator", "program", "n_stations", "summary", "rows", "columns", "ready")
DECISION = ("code", "by", "at", "because")


class Submissions:
    """The submissions in a station's database."""

    def __init__(self, base: Base) -> None:
        self.base = base

    def get(self, study: str) -> Submission | None:
        """The submission of a study."""
        found = self.base.rows(f"{_SELECT} WHERE study = ?", (study,))
        return _submission(found[0]) if found else None

    def approved(self, study: str, public_identity: PublicIdentity) -> Submission:
        """The submission of a study, if it is approved by the holder of a public identity.

        Raises
        ------
        SubmissionUnapproved (HR-607), SubmissionRefused (HR-608)
        """
        submission = self.get(study)
        if submission is None:
            raise SubmissionUnapproved(f"the study {study[:8]} never asked to board.", remedy="Board it first.")
        submission.refuse_unapproved()
        try:
            submission.check_signature(public_identity)
        except KeyInvalid as error:
            raise SubmissionUnapproved(
                f"the approval of {submission.title!r} was not signed with the keys that this station has now.",
                remedy=f"If its keys were rotated: hedgerow station approve {submission.id}",
            ) from error
        return submission

    def status(self, study: str) -> str | None:
        """Its status as it is on the disk now; quicker than all of it."""
        found = self.base.rows("SELECT status FROM submissions WHERE study = ?", (study,))
        return str(found[0][0]) if found else None

    def all(self, *statuses: str) -> list[Submission]:
        """Submissions in the order in which they came; of some statuses, where they are given."""
        found = [_submission(row) for row in self.base.rows(f"{_SELECT} ORDER BY came")]
        return [submission for submission in found if not statuses or submission.status in statuses]

    def find(self, name: str) -> Submission:
        """The submission that a person names: by the beginning of its id, or by its title.

        Raises
        ------
        UnknownStudy (HR-102)
            None, or several.
        """
        every = self.all()
        found = [submission for submission in every if submission.study.startswith(name.lower())] if name else []
        found = found or [submission for submission in every if submission.title == name]
        if len(found) != 1:
            known = ", ".join(f"{submission.id} {submission.title}" for submission in every) or "none has come"
            raise UnknownStudy(f"{len(found)} studies here are called {name!r}.", remedy=f"Known: {known}.")
        return found[0]

    def put(self, submission: Submission) -> None:
        """Keep a submission, or its new decision."""
        decision = {name: getattr(submission, name) for name in DECISION}
        row = (submission.study, submission.status, submission.came, submission.toml, submission.description, submission.digest)
        with self.base.transaction() as connection:
            connection.execute(
                "INSERT INTO submissions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (study) DO UPDATE SET "
                "status = excluded.status, decision = excluded.decision, signature = excluded.signature",
                (*row, json.dumps(submission.about()), json.dumps(decision), submission.signature),
            )

    def judged(self, submission: Submission) -> bool:
        """Keep what a rehearsal found, unless somebody has decided meanwhile; returns whether it is kept."""
        decision = json.dumps({name: getattr(submission, name) for name in DECISION})
        values = (json.dumps(submission.about()), submission.status, decision, submission.signature, submission.study)
        with self.base.transaction() as connection:
            kept = connection.execute(
                "UPDATE submissions SET about = ?, status = ?, decision = ?, signature = ? "
                "WHERE study = ? AND status = 'waiting'",
                values,
            )
        return bool(kept.rowcount)

    def forget(self, study: str) -> None:
        """Keep nothing of a study that nobody has decided about: it may come again."""
        with self.base.transaction() as connection:
            connection.execute("DELETE FROM submissions WHERE study = ? AND status = 'waiting'", (study,))


_SELECT = "SELECT study, status, came, toml, description, digest, about, decision, signature FROM submissions"


def _submission(row: Sequence[Any]) -> Submission:
    study, status, came, toml, description, mark, about, decision, signature = row
    found = _read_about(json.loads(about)) | json.loads(decision)
    return Submission(
        study, bytes(toml), bytes(description), bytes(mark), came, status=status, signature=bytes(signature), **found
    )


def _read_about(found: Mapping[str, Any]) -> dict[str, Any]:
    lists = {"rows": tuple(found["rows"]), "columns": tuple(found["columns"])}
    return {**found, **lists, "announced": Announced.from_json(found["announced"])}
