"""What the owner of the data does at a station: looks at studies, approves or refuses them, reads journal and budgets.

It works while the service runs and while it does not: both write to one database, one at a time. The command and the console
page use it. No record is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from hedgerow.errors import ConfigInvalid, MixedUnits, SubmissionRefused
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.privacy import Budget

from .accounts import Account
from .asking import GUARD, Keys, account_of
from .base import Base
from .closed import ROLL
from .config import StationConfig, read_config
from .disclosed import counts_of
from .heads import refuse_missing
from .journal import StationEntry, StationJournal, unpack_parties
from .local_data import Roll
from .rules import kept_in, kept_rules, notes_of
from .submissions import Status, Submission, Submissions

DATABASE = Path("state") / "station.sqlite"


@dataclass(frozen=True)
class Spent:
    """A budget, what was spent of it, and by how many parties."""

    whose: str
    budget: Budget
    epsilon: float
    n_parties: int

    @property
    def left(self) -> float:
        """What is left of epsilon."""
        return max(0.0, self.budget.epsilon - self.epsilon)


class Review:
    """Decisions and views of one station.

    Parameters
    ----------
    config : StationConfig
        That of the file; what is shown are the rules in force, where the station has ever started.
    keys : Keys
    base : Base
    now : callable
        Universal time.
    file : Path, optional
        Of the configuration, or its folder.
    """

    def __init__(
        self,
        config: StationConfig,
        keys: Keys,
        base: Base,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        file: Path | None = None,
    ) -> None:
        self._config, self.keys, self.base, self.now, self.file = config, keys, base, now, file
        self._closed = False
        self.submissions, self.journal = Submissions(base), StationJournal(base)
        self._by_then: dict[tuple[str, int], float | None] = {}

    @classmethod
    def at(cls, path: Path | str) -> Review:
        """The inbox of a station's folder.

        Raises
        ------
        ConfigInvalid (HR-601), KeyInvalid (HR-244), CannotWrite (HR-104), JournalLost (HR-618)
        """
        try:
            config, folder = read_config(path)
        except ConfigInvalid:
            folder = Path(path) if Path(path).is_dir() else Path(path).parent
            rules = kept_in(folder / DATABASE)
            if rules is None:
                raise
            config = rules.config
        keys = keys_of(config, folder)
        refuse_missing(keys.path, folder / DATABASE)
        return cls(config, keys, Base(folder / DATABASE), file=Path(path))

    @property
    def config(self) -> StationConfig:
        """The configuration, with the guard that is in force; after `close` that of then."""
        rules = None if self._closed else kept_rules(self.base)
        return self._config if rules is None else rules.config

    def notes(self) -> list[str]:
        """Where the file is not what is in force, in sentences; none as a rule."""
        return [] if self.file is None else notes_of(kept_rules(self.base), self.file)

    def approve(self, name: str, by: str, because: str = "") -> Submission:
        """Let a study ask what it announced.

        Raises
        ------
        UnknownStudy (HR-102)
        SubmissionRefused (HR-608)
            The guard refused it, which no person can change here, or it has ended.
        """
        return self._decide(name, "approved", by, because)

    def refuse(self, name: str, by: str, because: str) -> Submission:
        """Refuse a study, also one that was approved: from now on nothing of it is answered."""
        return self._decide(name, "refused", by, because, SubmissionRefused.code)

    def spent(self) -> list[Spent]:
        """What was spent of the budgets: over everything, and of each study that has not ended."""
        guard, raw = self.config.guard, self.base.found(ROLL)
        if raw is None:
            return []
        roll = Roll.unpack(raw)
        position = {id: i for i, id in enumerate(roll.ids)}
        submissions = {submission.study: submission for submission in self.submissions.all("approved")}
        accounts: dict[str, Account] = {study: account_of(guard.study_budget, roll) for study in submissions}
        everything = account_of(guard.budget, roll, own=True)
        for study, charge in self.journal.charges():
            account = everything if charge.account == "all" else accounts.get(study)
            if account is not None and not account.unlimited:
                account.add(unpack_parties(charge.parties, position), charge.entry(), None)
        found = [Spent("everything", *one) for one in everything.spent()]
        for study, account in accounts.items():
            found += [Spent(submissions[study].title, *one) for one in account.spent()]
        return found

    def told(self) -> list[tuple[str, float]]:
        """Exact numbers told by the party that told most: over everything, and in each approved study.

        Of totals that hide rows each party counts for its share; what is from before a new beginning is not among them.
        """
        raw = self.base.found(ROLL)
        if raw is None:
            return []
        position = {id: i for i, id in enumerate(Roll.unpack(raw).ids)}
        titles = [(None, "everything"), *((one.study, one.title) for one in self.submissions.all("approved"))]
        counts = [(title, counts_of(self.journal.told(study), position, np.zeros(len(position)))) for study, title in titles]
        return [(title, float(found[:2].sum(0).max(initial=0))) for title, found in counts]

    def priced(self, entries: Sequence[StationEntry]) -> list[StationEntry]:
        """Return entries of the journal, where an answer that was charged has the epsilon that was spent by then.

        All charges are gone through again for that, and only the answers among `entries` are priced, once.
        """
        answers = {(entry.study, entry.letter) for entry in entries if entry.code == "answered"}
        if answers - self._by_then.keys():
            self._price(answers - self._by_then.keys())
        told = [self._by_then[entry.study, entry.letter] if entry.code == "answered" else None for entry in entries]
        return [replace(entry, epsilon=epsilon) for entry, epsilon in zip(entries, told, strict=True)]

    def _price(self, answers: set[tuple[str, int]]) -> None:
        """Remember the epsilon by then of the answers to some letters; None where nothing was charged, or has no price."""
        self._by_then |= dict.fromkeys(answers)
        limit, raw = self.config.guard.budget, self.base.found(ROLL)
        if limit is None or raw is None:
            return
        roll = Roll.unpack(raw)
        account, position = account_of(limit, roll, own=True), {id: i for i, id in enumerate(roll.ids)}
        for entry in self.journal.charged():
            charged = [(unpack_parties(one.parties, position), one) for one in entry.charges if one.account == "all"]
            for which, charge in charged:
                account.add(which, charge.entry(), None)
            if charged and (entry.study, entry.letter) in answers:
                with suppress(MixedUnits):  # the budget is for another unit now
                    self._by_then[entry.study, entry.letter] = account.worst(np.concatenate([which for which, _ in charged]))

    def close(self) -> None:
        """Close the database."""
        self._config, self._closed = self.config, True
        self.base.close()

    def _decide(self, name: str, status: Status, by: str, because: str, code: str = "") -> Submission:
        submission = self.submissions.find(name)
        if submission.status == "ended" or (submission.status == "refused" and submission.by == GUARD):
            why = "has ended" if submission.status == "ended" else f"was refused by the guard ({submission.code})"
            raise SubmissionRefused(
                f"the study {submission.title!r} {why}: there is nothing to decide.",
                remedy=what_to_do("" if submission.status == "ended" else submission.code),
                asked=False,
            )
        if status == "approved" and not submission.ready:
            raise SubmissionRefused(
                f"the study {submission.title!r} is still being rehearsed: nobody knows yet what it will ask.",
                remedy="Look again in a while: hedgerow station inbox. To end the rehearsal, refuse the study.",
                asked=False,
            )
        at = self.now().astimezone(UTC).isoformat(timespec="milliseconds")
        decided = submission.decided(self.keys.key_material, status, by=by, at=at, because=because, code=code)
        said = f"by {by}" + (f": {because}" if because else "")
        with self.base.transaction():
            self.journal.write(
                StationEntry(at, "decision", submission.study, 0, status, function=submission.title, reason=said)
            )
            self.submissions.put(decided)
        return decided


def keys_of(config: StationConfig, folder: Path) -> KeyFolder:
    """Open a station's keys.

    Raises
    ------
    KeyInvalid (HR-244)
        There are none, or others may read them.
    ConfigInvalid (HR-601)
        They are another's.
    """
    keys = KeyFolder(folder / config.keys.folder)
    if keys.name != config.name:
        raise ConfigInvalid(
            f"the keys in {folder / config.keys.folder} are those of {keys.name!r}, and the station is {config.name!r}.",
            remedy="Name the station as its keys do, or name their folder in keys.folder.",
        )
    return keys


def what_to_do(code: str) -> str:
    """What to do about a study of which there is nothing to decide: which side has to change, by the guard's code."""
    if not code:
        return "The study is submitted anew."
    if code in ALLOWED or code.startswith("HR-6"):
        return "Change [guard] of station.toml if you want to allow it; the study is then submitted anew."
    return (
        "No [guard] allows it: its researcher changes the study, or you change what your columns declare. "
        f"`hedgerow explain {code}` says how. The study is then submitted anew."
    )


ALLOWED = frozenset({"HR-213", "HR-215", "HR-216", "HR-240", "HR-245"})
"""Codes beside those of stations by which a guard refuses what another [guard] would allow: budget, exact numbers, cohorts."""
