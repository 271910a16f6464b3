"""The coordinator: takes studies from one state to the next, a step at a time, and can stop between any two.

    due       studies for which something can be done now
    advance   one step: a round of boarding, a run until it ends or has to wait, or telling stations that it ended

It has no threads and no sleep of its own, and reads the clock of its store; the service calls it from threads, a simulation
in turn. All that it must remember is in the store: after `kill -9`, another one goes on where this one was.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hedgerow.engines.aggregators import AggregatorsAway
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.errors import (
    CannotWrite,
    CheckpointMismatch,
    HedgerowError,
    LimitExceeded,
    NobodyAnswered,
    PartyDeclined,
    RailUnavailable,
    RoundRefused,
)
from hedgerow.store import write_bytes
from hedgerow.study import Result, build_remote, run_study
from hedgerow.study.apart.at_stations import run_at_stations
from hedgerow.study.rounds import Progress
from hedgerow.wire.boarding import known_as, submission_digest
from hedgerow.wire.envelope import PublicIdentity
from hedgerow.wire.values import pack

from .adding_up import adding_up, meet_aggregators
from .boarding import PATIENT, Agreed, Verdict, board, meet, roster_of
from .config import CoordinatorConfig
from .journal import refusal
from .states import Boarded, Kept, State
from .store import Store
from .study_queue import Halted, StudyQueue
from .submission import study_of

log = logging.getLogger("hedgerow")

GUARDS = frozenset({"HR-213", *(f"HR-{number}" for number in range(602, 610))})
"""Codes by which a guard, or a person, says no; waiting does not change them."""

APPROVALS = "approvals.json"
"""In a run folder: what stations signed."""

MINUTE = 60.0
"""In which stations count questions; who asks again at once uses up what the others allow."""

BOARDING_MOST = 60.0
"""Longest pause between two letters to a station where a person has to decide, in seconds."""

KEY = "key"
"""In a run folder: which study it is of, for another one may get its id where the state was lost."""

FAREWELLS = 8
"""How often stations are told that a study ended, before those that take no note of it are left alone."""


@dataclass
class Coordinator:
    """Studies of one store, and the stations of one message queue.

    Parameters
    ----------
    store : Store
        Its clock is the coordinator's.
    queue : MessageQueue
    config : CoordinatorConfig
    public_identities : callable
        Whom the coordinator trusts now, by name.
    jitter : callable
        Numbers from 0 to 1 that spread pauses.
    """

    store: Store
    queue: MessageQueue
    config: CoordinatorConfig
    public_identities: Callable[[], Mapping[str, PublicIdentity]]
    jitter: Callable[[], float] = random.random
    stopping: threading.Event = field(default_factory=threading.Event)
    _missing: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._started = self._latest = self.store.now()

    # ---- what the service calls --------------------------------------------------------------------------------------
    def due(self) -> list[str]:
        """Ids of studies for which something can be done now."""
        now = self.store.now()
        if now < self._latest - 1.0:  # the clock was set back: what was noted in its future counts from now
            self._started = now
            self.store.wake()
        self._latest = now
        return [kept.id for kept in self.store.open() if self._is_due(kept, now)]

    def advance(self, id: str) -> None:
        """Take a study one step further. Whatever goes wrong with it is in its state, not in an exception.

        Raises
        ------
        CannotWrite (HR-104), RailUnavailable (HR-612)
            The store cannot be written, or nobody be reached; the study is where it was.
        """
        kept = self.store.study(id)
        if kept.ended:
            self._tell(kept)
        elif kept.cancelled:
            self._end(kept, "cancelled", "by its researcher")
        elif self._overdue(kept):
            hours = self.config.limits.waiting_hours
            self._end(kept, "failed", f"it came no further in {hours:g} hours; last: {kept.reason}")
        else:
            try:
                (self._board if kept.state in ("submitted", "boarding") else self._run)(kept)
            except (CannotWrite, RailUnavailable):
                raise
            except Exception as error:
                log.exception("%s failed", kept.id)
                self._end(kept, "failed", f"an error of Hedgerow or of a program: {type(error).__name__}: {error}")

    # ---- boarding ----------------------------------------------------------------------------------------------------
    def _board(self, kept: Kept) -> None:
        if kept.state == "submitted":
            kept = self.store.move(kept.id, "boarding", "stations are asked")
        line, limits, now = self._line(kept), self.config.limits, self.store.now()
        if not kept.agreed:
            since, study = max(kept.changed, self._started), study_of(kept)
            adding = meet_aggregators(study, self.config.aggregators, self.public_identities(), line)
            met = meet(study, kept, self._stations(), line, limits, self.config.name, now, since, adding)
            if isinstance(met, Verdict):
                self._after(kept, met)
                return
            self.store.change(kept.id, agreed=met.pack(), pauses=0)
            kept = self.store.study(kept.id)
        agreed = Agreed.unpack(kept.agreed)
        if agreed.at > now:  # the clock was set back
            agreed = replace(agreed, at=kept.changed)
        said, verdict = board(kept, agreed, line, limits, self.public_identities(), self.store.now(), self._started)
        self.store.board(kept.id, said)
        self._after(self.store.study(kept.id), verdict)

    def _after(self, kept: Kept, verdict: Verdict) -> None:
        if verdict.state == "ready":
            now = self.store.now()
            self.store.move(kept.id, "running", verdict.reason, due=now, since=now, pauses=0)
        elif verdict.state == "wait":
            pause = min(self._pause(kept.pauses), BOARDING_MOST)
            self.store.pause(kept.id, verdict.reason, due=self.store.now() + pause, pauses=kept.pauses + 1)
        else:
            self._end(kept, verdict.state, verdict.reason)

    # ---- running -----------------------------------------------------------------------------------------------------
    def _run(self, kept: Kept) -> None:
        if kept.state == "running" and not self._ready(kept, self.store.now()):
            self._wait(kept, f"{', '.join(sorted(aboard(kept) - self.queue.alive()))} away")
            return
        if kept.state == "waiting":
            kept = self.store.move(kept.id, "running", "goes on")
        self._missing.pop(kept.id, None)
        line = self._line(kept)
        try:
            result = self._result(kept, line)
        except Halted as halted:
            if self.store.study(kept.id).cancelled:
                self._end(kept, "cancelled", "by its researcher")
            else:
                self.store.move(kept.id, "waiting", str(halted), due=self.store.now())
        except RoundRefused as error:
            missing = line.absent - line.refused.keys()  # where only those are missing that refused, waiting changes nothing
            if not missing and GUARDS.intersection(line.refused.values()):
                self._declined(kept, PartyDeclined(error.reason, codes=dict(line.refused)))
            else:
                away = f"{', '.join(sorted(missing))} did not answer, and so " if missing else ""
                self._wait(kept, f"{away}{error.code} {type(error).__name__}: {error.reason}", line.hurried)
        except (NobodyAnswered, CannotWrite, RailUnavailable) as error:
            self._wait(kept, f"{error.code} {type(error).__name__}: {error.reason}", line.hurried)
        except OSError as error:  # of the disk, of the limits of this process
            self._wait(kept, f"{type(error).__name__}: {error.strerror or error}")
        except PartyDeclined as error:
            self._declined(kept, error)
        except HedgerowError as error:
            self._end(kept, "failed", f"{error.code} {type(error).__name__}: {error.reason}")
        else:
            run = result.run
            if run.stopped == "budget" and run.state is None:
                self._end(kept, "refused", f"the budget allows no question: {run.reason}")
                return
            words = {"finished": "its program ended", "budget": f"the budget allows no further question: {run.reason}"}
            left_out = f"; at its last question without {', '.join(sorted(line.absent))}" if line.absent else ""
            zeroed = f"; zeros counted for {', '.join(sorted(line.zeroed))}: more than the bound" if line.zeroed else ""
            self._end(kept, "finished", words.get(run.stopped, run.reason) + left_out + zeroed)

    def _result(self, kept: Kept, line: StudyQueue) -> Result:
        agreed, on = Agreed.unpack(kept.agreed), boarded(kept)
        seconds = self.config.limits.question_seconds
        network = Network(
            line,  # type: ignore[arg-type]
            kept.key,
            on,
            seconds=seconds,
            least=line.least,
            life=line.life,
            roster=roster_of(on, self._enrolled()),
            told=line.declined,
            weigh=line.weigh,
            overlong=line.overlong,
            refused=line.refuses,
            aggregators=self._aggregators(kept, agreed, line),
        )
        folder = self.config.runs_folder / kept.id
        _take(folder, kept)
        how: dict[str, Any] = {
            "resume": (folder / "digest").exists(),
            "on_progress": partial(self._progress, kept.id),
            "command": f"hedgerow submit; {kept.id} at the coordinator {self.config.name}",
        }
        if agreed.schemas:
            result = run_at_stations(study_of(kept), folder, schemas=agreed.schemas, engine=network, **how)
        else:
            result = run_study(study_of(kept), folder, make=partial(build_remote, schema=agreed.schema, engine=network), **how)
        write_bytes(folder / APPROVALS, approvals(kept, agreed).encode())
        return result

    def _aggregators(self, kept: Kept, agreed: Agreed, line: StudyQueue) -> AggregatorsAway | None:
        """Who adds up the shares of a study; None where it has none."""
        if not agreed.aggregators:
            return None
        told = known_as(kept.key.hex(), submission_digest(*agreed.parts()))
        seconds = self.config.limits.question_seconds
        return AggregatorsAway(line, kept.key, told, agreed.aggregators, seconds, line.life)  # type: ignore[arg-type]

    def _progress(self, id: str, progress: Progress) -> None:
        now = self.store.now()
        self.store.change(id, lightly=True, round=progress.round, rounds=progress.rounds, pauses=0, since=now)

    def _declined(self, kept: Kept, error: PartyDeclined) -> None:
        """Stations said no: at their opening hours they will say something else, otherwise not."""
        home = {party: station for station, parties in boarded(kept).items() for party in parties}
        codes = {home.get(name, name): code for name, code in sorted(error.codes.items())}
        words = "; ".join(refusal(station, code) for station, code in codes.items()) or error.reason
        if codes and all(code in PATIENT for code in codes.values()):
            self._wait(kept, words, LimitExceeded.code in codes.values())
        else:
            self._end(kept, "refused" if GUARDS.intersection(codes.values()) else "failed", words)

    def _wait(self, kept: Kept, reason: str, hurried: bool = False) -> None:
        """Pause; where a station wanted fewer questions, for as long as rates are counted at least."""
        kept = self.store.study(kept.id)  # pauses start anew after a round
        self._missing[kept.id] = aboard(kept) - self.queue.alive()
        pause = max(self._pause(kept.pauses), MINUTE if hurried else 0.0)
        self.store.move(kept.id, "waiting", reason, due=self.store.now() + pause, pauses=kept.pauses + 1)
        log.info("%s waits: %s", kept.id, reason)

    # ---- the end -----------------------------------------------------------------------------------------------------
    def _end(self, kept: Kept, state: State, reason: str) -> None:
        kept = self.store.study(kept.id)
        agreed = Agreed.unpack(kept.agreed) if kept.agreed else None
        told = () if agreed is None else (*agreed.stations, *agreed.aggregators)
        self._missing.pop(kept.id, None)
        kept = self.store.move(kept.id, state, reason, untold=told, due=self.store.now(), pauses=0)
        log.info("%s %s: %s", kept.id, state, reason)
        self._tell(kept)

    def _tell(self, kept: Kept) -> None:
        """Tell stations that a study ended; who is away is told later."""
        here = [name for name in kept.untold if name in self.queue.alive()]
        letters = self._line(kept).ask("end", {name: [pack({"status": kept.state})] for name in here}) if here else {}
        told = {name for name, letter in letters.items() if letter.kind == "end"}  # a full disk there takes no note of it
        left = tuple(name for name in kept.untold if name not in told and name in self.public_identities())
        tries = kept.pauses + 1
        if tries >= FAREWELLS:  # whoever was here has been told often enough; of the others each has its own tries
            left, tries = tuple(name for name in left if name not in here), 0
        due = self.store.now() + self._pause(tries)
        self.store.change(kept.id, untold=left, due=due, pauses=tries)

    # ---- inside ------------------------------------------------------------------------------------------------------
    def _line(self, kept: Kept) -> StudyQueue:
        """A line in a new life of the study, which is on the disk before any letter of it goes out."""
        n, seconds = len(boarded(kept)), self.config.limits.question_seconds
        life = self.store.new_life(kept.id)
        halt = partial(self._halt, kept.id)
        return StudyQueue(self.queue, self.store, kept.id, kept.key, life, seconds, n, self._least(n), halt)

    def _least(self, n: int) -> int:
        """Stations that must answer, of so many on board."""
        return min(self.config.limits.least_answers or n // 2 + 1, max(n, 1))

    def _halt(self, id: str) -> None:
        if self.store.wants_end(id):
            raise Halted("cancelled")
        if self.stopping.is_set():
            raise Halted("the coordinator was stopped")

    def _is_due(self, kept: Kept, now: float) -> bool:
        if kept.ended:
            return not self._paused(kept, now) and bool(self.queue.alive().intersection(kept.untold))
        if kept.cancelled or kept.state in ("submitted", "boarding"):
            return kept.cancelled or not self._paused(kept, now)
        return kept.state == "running" or self._ready(kept, now) or self._overdue(kept)

    def _ready(self, kept: Kept, now: float) -> bool:
        """Whether all stations of a study are there, or enough of them for long enough, and no pause is left."""
        on, alive = boarded(kept).keys(), self.queue.alive()
        if not alive.issuperset(adding_up(kept)):
            return False
        missing = self._missing.get(kept.id, frozenset())
        back, paused = bool(missing and missing <= alive), self._paused(kept, now)
        if on <= alive:
            return back or not paused
        gathered = now - max(kept.changed, self._started) >= self.config.limits.gather_seconds
        return gathered and not paused and len(alive & on) >= self._least(len(on))

    def _paused(self, kept: Kept, now: float) -> bool:
        """Whether a pause is left; one that is longer than any began before the clock was set back, and is over."""
        return 0 < kept.due - now <= max(self.config.limits.retry_most_seconds, BOARDING_MOST, MINUTE)

    def _overdue(self, kept: Kept) -> bool:
        return kept.state == "waiting" and self.store.now() - kept.since > 3600 * self.config.limits.waiting_hours

    def _pause(self, before: int) -> float:
        """The next pause, after so many: twice as long every time, and spread."""
        limits = self.config.limits
        return min(limits.retry_seconds * 2.0 ** min(before, 40), limits.retry_most_seconds) * (0.5 + 0.5 * self.jitter())

    def _enrolled(self) -> dict[str, PublicIdentity]:
        """Public identities of all on the roster, as stations were told it."""
        return {name: public_identity for name, public_identity in self.public_identities().items() if name != self.config.name}

    def _stations(self) -> dict[str, PublicIdentity]:
        """Public identities of the stations on the roster."""
        return {name: one for name, one in self._enrolled().items() if name not in self.config.aggregators}


def _take(folder: Path, kept: Kept) -> None:
    """Take a run folder for a study.

    Raises
    ------
    CheckpointMismatch (HR-103)
        It holds the run of another one, whose results would be taken for this one's.
    """
    mark = folder / KEY
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = mark.read_text() if mark.exists() else ""
        begun = (folder / "digest").exists()
    except OSError as error:
        raise CannotWrite(f"{folder}: {error.strerror}.", remedy="Make it writable; the study then goes on.") from error
    if known != kept.key.hex() and (known or begun):
        raise CheckpointMismatch(
            f"{folder} holds the run of another study, of a coordinator whose state is not the one here.",
            remedy="Move it away, and submit the study anew.",
        )
    if not known:
        write_bytes(mark, kept.key.hex().encode())


def approvals(kept: Kept, agreed: Agreed) -> str:
    """What stations signed, for whoever asks later: their decisions, and all that they were told."""
    text, about = agreed.parts()
    said = [
        {"station": one.station, "status": one.status, "code": one.code, "signature": one.signature.hex(), "at": one.at}
        for one in kept.boarded
    ]
    told = {"text": text.decode(), "about": about.hex(), "digest": submission_digest(text, about).hex()}
    return json.dumps({"study": kept.key.hex(), "told": told, "stations": said}, indent=1) + "\n"


def boarded(kept: Kept) -> dict[str, tuple[str, ...]]:
    """The stations that approved a study, in the order of what was agreed, with their parties."""
    approved: dict[str, Boarded] = {one.station: one for one in kept.boarded if one.status == "approved" and one.parties}
    return {name: one.parties for name, one in approved.items()}


def aboard(kept: Kept) -> frozenset[str]:
    """The stations and aggregators that approved a study."""
    return frozenset((*boarded(kept), *adding_up(kept)))
