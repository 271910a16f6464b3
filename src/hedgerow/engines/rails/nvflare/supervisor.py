"""Keeps a relay job running for every site that is there.

FLARE ends a whole job when one site's job process dies, never starts that process again, and leaves jobs of a killed server
behind as running. So jobs are thrown away: each site has one of its own, and whenever it is over or carries nothing, another
is submitted. Nothing of a study lives in a job, and jobs outlive this process: the next one adopts them.

    site is registered, has no job                     submit
    job is over                                        forget it; submit after a pause that doubles up to LONGEST_PAUSE
    job runs, station does not appear                  after STALE seconds abort it (STALE doubles, up to LONGEST_STALE)
    site comes back after it was gone                  no pause
    this is the start, or the server started again     adopt what really runs, one job for each site; abort the rest

`Supervisor.step` does one turn and is given the time; `Supervisor.run` turns until it is told to stop.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hedgerow.engines.rails.nvflare.kit import JOB, write_job
from hedgerow.engines.rails.nvflare.provision import SUBMITTER

EVERY, AT_REST = 0.5, 10.0  # seconds between turns; FLARE writes a line in its audit log for each
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # before a job is submitted again
SOUND = 30.0  # seconds that a job must have carried for its end to count as a first failure
STALE, LONGEST_STALE = 90.0, 1800.0  # seconds until a job whose station does not appear is thrown away
log = logging.getLogger("hedgerow")


class Flare(Protocol):
    """What the supervisor needs of FLARE."""

    def begun(self) -> Any:
        """Return when the server started; raise where it cannot be reached."""

    def sites(self) -> frozenset[str]:
        """Return the names of the sites that are registered now."""

    def running(self) -> dict[str, str]:
        """Return the relay jobs that run or will run: job to site."""

    def submit(self, site: str) -> str:
        """Submit one site's relay job and return its name."""

    def is_over(self, job: str) -> bool:
        """Return whether a job has ended, for whatever reason."""

    def abort(self, job: str) -> None:
        """End a job; one that is over already is left as it is."""

    def forget(self, job: str) -> None:
        """Delete what the server keeps of a job that is over."""

    def close(self) -> None:
        """Leave the server."""


@dataclass
class SupervisedSite:
    """One site in the supervisor's care."""

    job: str | None = None
    submitted: float = 0.0
    carried: float | None = None  # since when the station has been connected through this job
    pause: float = FIRST_PAUSE
    not_before: float = 0.0
    stale: float = STALE


class Supervisor:
    """Submits relay jobs and submits them again.

    Parameters
    ----------
    open_flare : callable
        Opens a session with FLARE's server; raises whatever it likes while the server is away.
    connected : callable
        The stations that the coordinator's socket sees now.
    sites : collection of str, optional
        Whom to relay for; everybody who registers when it is left out.
    """

    def __init__(
        self,
        open_flare: Callable[[], Flare],
        connected: Callable[[], frozenset[str]],
        sites: frozenset[str] | None = None,
    ) -> None:
        self._open_flare, self._connected, self._sites = open_flare, connected, sites
        self._flare: Flare | None = None
        self._begun: Any = None
        self._charges: dict[str, SupervisedSite] = {}
        self._there: frozenset[str] = frozenset()
        self._retry, self._reach_pause = 0.0, FIRST_PAUSE
        self._rested: tuple[float, frozenset[str]] | None = None  # since when all was well, and who was connected

    def run(self, stop: threading.Event) -> None:
        """Turn until `stop` is set. What FLARE raises is logged and tried again."""
        while not stop.wait(EVERY):
            self.step(time.monotonic())
        self.close()

    def step(self, now: float) -> None:
        """Do one turn at time `now`."""
        if self._flare is None and now < self._retry:
            return
        if self._rested is not None and now - self._rested[0] < AT_REST and self._connected() == self._rested[1]:
            return
        try:
            if self._flare is None:
                self._flare = self._open_flare()
            self._turn(self._flare, now)
            self._reach_pause = FIRST_PAUSE
        except Exception as error:  # its session raises many classes, plain Exception among them
            log.warning("NVIDIA FLARE's server cannot be reached (%s); trying again in %.1f s", error, self._reach_pause)
            self._drop()
            self._retry, self._reach_pause = now + self._reach_pause, min(2 * self._reach_pause, 10.0)

    def close(self) -> None:
        """Leave the server. Jobs run on, for a coordinator that comes back; without one they end by themselves."""
        self._drop()

    def _turn(self, flare: Flare, now: float) -> None:
        begun = flare.begun()
        if begun != self._begun:
            self._adopt(flare, now)
            self._begun = begun
        sites, connected = flare.sites(), self._connected()
        mine = sites if self._sites is None else sites & self._sites
        for site in sorted(mine):
            charge = self._charges.setdefault(site, SupervisedSite())
            if site not in self._there:
                charge.not_before = now
            self._look_after(flare, site, charge, site in connected, now)
        self._there = sites
        self._rested = (now, connected) if mine and connected >= mine else None

    def _adopt(self, flare: Flare, now: float) -> None:
        self._charges, self._there = {}, frozenset()
        for job, site in flare.running().items():
            if site in self._charges:
                flare.abort(job)
            else:
                self._charges[site] = SupervisedSite(job, submitted=now)
                log.info("relay job %s of %s runs already", job, site)

    def _look_after(self, flare: Flare, site: str, charge: SupervisedSite, connected: bool, now: float) -> None:
        if charge.job is None:
            if now >= charge.not_before:
                charge.job, charge.submitted, charge.carried = flare.submit(site), now, None
                log.info("relay job %s submitted for %s", charge.job, site)
        elif not connected and flare.is_over(charge.job):
            log.warning("relay job %s of %s is over; it will be submitted again", charge.job, site)
            sound = charge.carried is not None and now - charge.carried > SOUND
            charge.pause = FIRST_PAUSE if sound else min(2 * charge.pause, LONGEST_PAUSE)
            charge.not_before = now + charge.pause
            over, charge.job = charge.job, None
            flare.forget(over)
        elif connected:
            charge.carried = now if charge.carried is None else charge.carried
            charge.submitted, charge.stale = now, STALE
        elif now - charge.submitted > charge.stale:
            log.warning("relay job %s of %s carries nothing; it is aborted", charge.job, site)
            flare.abort(charge.job)
            charge.submitted, charge.stale = now, min(2 * charge.stale, LONGEST_STALE)

    def _drop(self) -> None:
        if self._flare is not None:
            with contextlib.suppress(Exception):
                self._flare.close()
            self._flare, self._rested = None, None


class FlareSession:
    """A submitter's session with FLARE's server.

    Parameters
    ----------
    kit : Path
        The submitter's kit.
    """

    def __init__(self, kit: Path, submitter: str = SUBMITTER) -> None:
        from nvflare.fuel.flare_api.flare_api import new_secure_session

        with contextlib.redirect_stdout(io.StringIO()):
            self._session = new_secure_session(submitter, str(kit), timeout=5.0)
        self._info: Any = None

    def begun(self) -> Any:
        self._info = self._session.get_system_info()
        return self._info.server_info.start_time

    def sites(self) -> frozenset[str]:
        return frozenset(client.name for client in self._info.client_info)

    def running(self) -> dict[str, str]:
        known = self._session.list_jobs(name_prefix=JOB)
        really = {job.job_id for job in self._info.job_info}  # a killed server leaves jobs as running that nobody runs
        waiting = ("SUBMITTED", "APPROVED", "DISPATCHED")
        return {
            job["job_id"]: job["job_name"].removeprefix(JOB)
            for job in known
            if job["status"] in waiting or (job["status"] == "RUNNING" and job["job_id"] in really)
        }

    def submit(self, site: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            return str(self._session.submit_job(str(write_job(Path(folder), site))))

    def is_over(self, job: str) -> bool:
        return str(self._session.get_job_meta(job).get("status", "")).startswith("FINISHED")

    def abort(self, job: str) -> None:
        with contextlib.suppress(Exception):  # it may be over already
            self._session.abort_job(job)

    def forget(self, job: str) -> None:
        with contextlib.suppress(Exception):  # it stays in the list, which harms nobody
            self._session.delete_job(job)

    def close(self) -> None:
        self._session.close()
