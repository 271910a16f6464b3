"""The server's side of the relay: an NVIDIA FLARE controller that carries sealed bodies to one site and back.

One relay job serves one site, so a site that fails ends nobody else's job. The controller connects to the coordinator's
socket in the name of that site, and only while the station behind the site is there: to the coordinator, the site's
connection is the station's.

    coordinator -> controller -> one task, to this site only -> executor -> station
                <-            <- its result                  <-          <-

A task carries at most one body and waits at the site for an answer, at most `WAIT` seconds; a slow answer comes with a
later task, an answer that never comes holds nothing up. Tasks without a body ask whether the station is there.

A site that asks for work and finds none is held for a moment (`HOLD`) and gets a body the instant that one comes: polls cost
little and add no delay. That is possible because the job has no other site that could want the same lock.

FLARE keeps nothing: a body that is under way when a job ends is lost, as any rail may lose it.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from nvflare.apis.controller_spec import Task
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable

from hedgerow.engines.rails.nvflare import settings
from hedgerow.errors import ConfigInvalid

from .connection import FlareConnection

HOLD = 0.4  # seconds that a site without work is held at the server
WAIT = 2.0  # seconds that a task waits at the site for an answer
PATIENCE = 60.0  # seconds after a body in which tasks go on asking for its answer without a pause
PROBE = 10.0  # seconds between tasks that only ask whether the station is there
AWAY = 1.0  # the same, while it is not
ALONE = 600.0  # seconds without a coordinator until the job ends
SILENT = 15.0  # seconds without a sign of life from the site's job process until the job ends; it beats every 3


class RelayController(Controller):
    """Carries bodies between a coordinator's socket and one site."""

    def __init__(self) -> None:
        super().__init__()
        self._standing = threading.Event()  # a task stands ready for the site
        self._heard = time.monotonic()
        self._connection: FlareConnection | None = None

    def set_communicator(self, communicator: Any) -> None:
        """Listen to every sign of life that FLARE sees, its heartbeats included."""
        super().set_communicator(communicator)
        told = communicator.client_is_active

        def client_is_active(name: str, reason: str, fl_ctx: Any) -> Any:
            self._heard = time.monotonic()
            return told(name, reason, fl_ctx)

        communicator.client_is_active = client_is_active

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """Hold a site that asks for work until there is some."""
        if event_type == EventType.BEFORE_PROCESS_TASK_REQUEST:
            self._standing.wait(HOLD)
        super().handle_event(event_type, fl_ctx)

    def start_controller(self, fl_ctx: Any) -> None:
        """Nothing to prepare: no state lives here."""

    def stop_controller(self, fl_ctx: Any) -> None:
        """Leave the coordinator, which takes the station for gone."""
        self._leave()

    def process_result_of_unknown_task(self, *args: Any, **named: Any) -> None:
        """Drop what belongs to an earlier life of this job."""

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Carry bodies until the job is aborted or the site falls silent."""
        sites = [client.name for client in self._engine.get_clients()]
        try:
            if len(sites) != 1:
                raise ConfigInvalid(f"a relay job serves one site, but this one has {len(sites)}.")
            path = settings.read(Path(fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT).get_site_config_dir()))
        except ConfigInvalid as error:
            self.system_panic(str(error), fl_ctx)
            return
        self._heard = time.monotonic()
        try:
            self._carry(sites[0], path, abort_signal, fl_ctx)
        finally:
            self._leave()

    def _carry(self, site: str, path: Path, abort_signal: Any, fl_ctx: Any) -> None:
        here, unanswered, since, next_probe, pause, met = False, 0, 0.0, 0.0, 0.1, time.monotonic()
        while not abort_signal.triggered and time.monotonic() - met < ALONE:
            if self._connection is not None:
                met = time.monotonic()
                if not self._connection.alive:
                    self._leave()
            if here and self._connection is None:
                try:
                    self._connection = FlareConnection(path, site)
                    pause = 0.1
                except OSError:  # no coordinator listens; it may come back
                    time.sleep(pause)
                    pause = min(2 * pause, 1.0)
            if not here:
                met = time.monotonic()  # the station's absence is not the coordinator's
            now = time.monotonic()
            asking = unanswered > 0 and now - since < PATIENCE
            body = self._connection.get(0.0 if asking else min(0.25, max(0.0, next_probe - now))) if self._connection else None
            now = time.monotonic()
            if body is None and not asking and now < next_probe:
                if self._connection is None:
                    time.sleep(min(0.1, next_probe - now))
                if self._is_silent(site, fl_ctx):
                    return
                continue
            reply = self._ask(site, body, WAIT if body is not None or asking else 0.0, abort_signal, fl_ctx)
            if reply is None:
                return
            here, answers = reply
            if body is not None:
                unanswered, since = unanswered + 1, now
            for answer in answers:
                unanswered = max(0, unanswered - 1)
                if self._connection is not None:
                    self._connection.put(answer)
            if not here:
                self._leave()
                unanswered = 0
            next_probe = time.monotonic() + (PROBE if here else AWAY)

    def _ask(
        self, site: str, body: bytes | None, wait: float, abort_signal: Any, fl_ctx: Any
    ) -> tuple[bool, list[bytes]] | None:
        """Send one task and return whether the station is there, and its answers; None where the site is gone."""
        came: list[Any] = []
        done = threading.Event()

        def received(client_task: Any, fl_ctx: Any) -> None:
            came.append(client_task.result)
            done.set()

        task = Task("carry", Shareable({"body": body, "wait": wait}), result_received_cb=received)
        self.send(task, fl_ctx, targets=[site])
        self._standing.set()
        try:
            while not done.wait(0.25):
                if abort_signal.triggered or self._is_silent(site, fl_ctx):
                    return None
        finally:
            self._standing.clear()
        result = came[0]
        if result is None or result.get_return_code() != ReturnCode.OK:
            return False, []
        return bool(result.get("here")), [bytes(answer) for answer in result.get("answers", [])]

    def _is_silent(self, site: str, fl_ctx: Any) -> bool:
        if time.monotonic() - self._heard < SILENT:
            return False
        self.log_warning(fl_ctx, f"{site} has been silent for {SILENT:g} seconds; this relay job ends")
        return True

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
