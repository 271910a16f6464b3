"""Studies that are being rehearsed, and what is kept of it: what they will ask, or the guard's refusal.

A study is in the database as one that waits and is not ready, before its rehearsal begins: its owner sees it, and may refuse
it, which ends the rehearsal. Where the station stops meanwhile, the next letter about the study begins the rehearsal anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from hedgerow.errors import CannotWrite, HedgerowError, LimitExceeded

from .admitted import MOST_STUDY
from .asking import GUARD, Keys, said
from .children.runner import Runner, ToRehearse
from .config import StationConfig
from .journal import PartyCharge
from .policy import admit_size
from .submissions import Submission, Submissions

log = logging.getLogger("hedgerow")


class Rehearsals:
    """Rehearsals of one station.

    Parameters
    ----------
    submissions, keys, runner
        The station's.
    config : callable
        The configuration, with the guard that is in force now.
    charges : callable
        Everything that was charged over all studies.
    time : callable
        Universal time, as text.
    lock : lock
        Of the station; held while something is kept.
    """

    def __init__(
        self,
        submissions: Submissions,
        keys: Keys,
        runner: Runner,
        *,
        config: Callable[[], StationConfig],
        charges: Callable[[], Iterable[PartyCharge]],
        time: Callable[[], str],
        lock: threading.RLock,
    ) -> None:
        self.submissions, self.keys, self.runner = submissions, keys, runner
        self._config, self._charges, self._time, self._lock = config, charges, time, lock
        self._going: set[str] = set()
        self._failed: dict[str, Exception] = {}
        self._closed = False

    def going(self, study: str) -> bool:
        """Whether a study is being rehearsed now."""
        return study in self._going

    def begin(self, came: Submission) -> Submission:
        """Rehearse a study, and return what is known of it by then.

        Raises
        ------
        CannotWrite (HR-104), LimitExceeded (HR-611)
            Nothing is kept: the study may come again.
        """
        study = came.study
        if (failed := self._failed.pop(study, None)) is not None:
            raise failed
        if study in self._going:
            return came
        most = self._config().guard.limits.studies_at_once
        others = [one for one in self.submissions.all("waiting", "approved") if one.study != study]
        if len(others) >= most:
            raise LimitExceeded(
                f"{len(others)} studies are here that have not ended, and the guard's limit is {most}.",
                remedy="Wait until one has ended.",
            )
        admit_size("a study", len(came.toml) + len(came.description), MOST_STUDY)
        self.submissions.put(came)
        self._going.add(study)
        try:
            roster = getattr(self.keys, "roster", None)
            task = ToRehearse(self._config(), came, self._charges, None if roster is None else tuple(roster))
            self.runner.rehearse(task, lambda found: self._done(came, found), lambda: self._off(study))
        except BaseException:
            self._going.discard(study)
            raise
        if (failed := self._failed.pop(study, None)) is not None:
            raise failed
        return self.submissions.get(study) or came

    def drop(self, study: str) -> None:
        """Know nothing more of a study."""
        self._going.discard(study)
        self._failed.pop(study, None)

    def close(self) -> None:
        """Keep nothing more."""
        self._closed = True

    def _off(self, study: str) -> bool:
        return self._closed or self.submissions.status(study) != "waiting"

    def _done(self, came: Submission, found: Submission | Exception) -> None:
        with self._lock:
            self._going.discard(came.study)
            if self._closed:
                return
            decided: dict[str, Any] = {"by": GUARD, "at": self._time()}
            if isinstance(found, Submission):
                if self._config().guard.approval == "automatic":
                    found = found.decided(self.keys.key_material, "approved", **decided)
            elif isinstance(found, HedgerowError) and not isinstance(found, CannotWrite | LimitExceeded):
                log.info("the guard refused study %s: %s", came.id, found)
                code, reason = said(found)
                found = came.decided(self.keys.key_material, "refused", because=reason, code=code, **decided)
            else:  # it may come again
                self.submissions.forget(came.study)
                self._failed[came.study] = found
                return
            self.submissions.judged(found)
