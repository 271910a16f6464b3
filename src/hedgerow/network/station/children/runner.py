"""Who runs rehearsals and answers: one protocol, by which a gate knows no difference.

rehearse   a study that asks to board: what it will ask, as the fields of its submission, or a reason against it
open       an approved study, made ready to be answered
stop       end what runs for a study
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from hedgerow.crypto.keys import Identity, Roster
from hedgerow.crypto.schemes import Credentials
from hedgerow.crypto.standing import StandingSets
from hedgerow.engines.party_states import StateFiles
from hedgerow.network.station.asking import accounts_of
from hedgerow.network.station.config import GuardSection, StationConfig
from hedgerow.network.station.journal import PartyCharge
from hedgerow.network.station.local_data import LocalData
from hedgerow.network.station.submissions import Submission
from hedgerow.store import Answered

from .facts import AskedQuestion, Computed

Done = Callable[[Submission | Exception], None]


@dataclass(frozen=True)
class OwnKeys:
    """With which the parties' sides of protocols sign, and whom they trust.

    Attributes
    ----------
    identity : Identity
        Of the station, and of each of its parties.
    roster : Roster or None
    """

    identity: Identity
    roster: Roster | None = None

    def credentials(self, answered: Answered) -> Credentials:
        """What the sides need, with the list of what was answered."""
        return Credentials(self.roster, lambda id: self.identity, answered.of, StandingSets(answered))


@dataclass(frozen=True)
class ToRehearse:
    """A study that asks to board.

    Attributes
    ----------
    config : StationConfig
        With the guard in force.
    submission : Submission
        As it came.
    charges : callable
        Everything that was ever charged over all studies, in order: a study must have room beside it.
    roster : tuple of str, optional
        Names of all stations that are trusted to take part.
    """

    config: StationConfig
    submission: Submission
    charges: Callable[[], Iterable[PartyCharge]]
    roster: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ToOpen:
    """An approved study.

    Attributes
    ----------
    answered : Path or None
        File of what its parties have answered within protocols; in memory where None.
    states : StateFiles
        Where its parties keep what they need for later questions.
    begun : bool
        Whether it has asked questions before.
    """

    config: StationConfig
    submission: Submission
    keys: OwnKeys
    answered: Path | None
    states: StateFiles
    begun: bool


class StudyChild(Protocol):
    """An admitted study's parties, wherever they are. One question at a time: foreseen, then computed or forgotten."""

    def foresee(self, guard: GuardSection, at: datetime, common: bytes, own: bytes) -> AskedQuestion:
        """Read and judge a question; see `StudyHost.foresee`."""

    def compute(self, question: AskedQuestion) -> Computed:
        """Answer it; see `StudyHost.compute`."""

    def close(self) -> None:
        """End it; from any thread."""


class Runner(Protocol):
    """Runs what reads records and programs."""

    def rehearse(self, task: ToRehearse, done: Done, off: Callable[[], bool]) -> None:
        """Rehearse a study, and hand `done` its submission or the reason against it, at once or later.

        Nothing is handed over where `off` said meanwhile that nobody waits for it, or the study was stopped.
        """

    def open(self, task: ToOpen, off: Callable[[], bool]) -> StudyChild:
        """Make an approved study ready; `off` says, whenever it is asked, whether the study may ask no more."""

    def stop(self, study: str) -> None:
        """End what runs for a study."""

    def close(self) -> None:
        """End everything that runs."""


class Inline:
    """Runs everything in this process, at once."""

    def __init__(self, held: LocalData) -> None:
        self.held = held

    def rehearse(self, task: ToRehearse, done: Done, off: Callable[[], bool]) -> None:
        """Rehearse a study now."""
        done(judged(task, self.held))

    def open(self, task: ToOpen, off: Callable[[], bool]) -> StudyChild:
        """Make an approved study ready."""
        return opened(task, self.held)

    def stop(self, study: str) -> None:
        """Nothing runs between two calls."""

    def close(self) -> None:
        """Nothing is left."""


def judged(task: ToRehearse, held: LocalData) -> Submission | Exception:
    """A study as the guard and its rehearsal judge it."""
    from hedgerow.network.station.admitted import boarding

    accounts = accounts_of(task.config.guard, held.roll, task.charges())
    try:
        return boarding(task.config, held, task.config.name, task.submission, accounts, task.roster)
    except Exception as error:
        return error


def opened(task: ToOpen, held: LocalData) -> StudyChild:
    """The parties of a study, in this process."""
    from hedgerow.network.station.admitted import read_description

    from .study_host import StudyHost

    answered, study = Answered(task.answered, gather=True), task.submission.study
    with ExitStack() as opened_so_far:
        opened_so_far.callback(answered.close)
        states = task.states.of(study, begun=task.begun)
        opened_so_far.callback(states.close)
        given = (task.config, held, task.submission, task.keys, answered, states)
        found: StudyChild
        if read_description(task.submission.description).apart:
            from .apart_host import ApartHost

            desk = task.states.desk(study)
            opened_so_far.callback(desk.close)
            found = ApartHost(*given, desk)
        else:
            found = StudyHost(*given)
        opened_so_far.pop_all()
    return found
