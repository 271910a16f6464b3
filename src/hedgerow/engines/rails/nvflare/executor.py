"""The site's side of the relay: an NVIDIA FLARE executor that hands sealed bodies to the station and brings its answers.

It connects to the one socket that the site's own kit names (`local/hedgerow.json`) and does nothing else: no body is
opened, nothing of a job chooses a path, a class or a command.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.shareable import make_reply

from hedgerow.engines.rails.nvflare import settings
from hedgerow.errors import ConfigInvalid

from .connection import FlareConnection

LONGEST_WAIT = 5.0  # seconds that a task may keep this process from asking for the next one


class RelayExecutor(Executor):
    """Carries bodies between tasks and the socket of this site's station."""

    def __init__(self) -> None:
        super().__init__()
        self._connection: FlareConnection | None = None

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """Leave the station when the job ends."""
        if event_type == EventType.END_RUN:
            self._leave()

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """Hand the task's body over, wait for an answer, and return every answer that is there."""
        body, wait = shareable.get("body"), min(float(shareable.get("wait", 0.0)), LONGEST_WAIT)
        answers: list[bytes] = []
        connection = self._reach(fl_ctx)
        if connection is not None:
            if isinstance(body, bytes | bytearray | memoryview):
                connection.put(bytes(body))
            until = time.monotonic() + wait
            while not answers and connection.alive and not abort_signal.triggered and (left := until - time.monotonic()) > 0:
                if (answer := connection.get(min(0.5, left))) is not None:
                    answers.append(answer)
            while (answer := connection.get()) is not None:
                answers.append(answer)
        reply = make_reply(ReturnCode.OK)
        reply["here"] = connection is not None and connection.alive
        reply["answers"] = answers
        return reply

    def _reach(self, fl_ctx: Any) -> FlareConnection | None:
        if self._connection is not None and not self._connection.alive:
            self._leave()
        if self._connection is None:
            try:
                path = settings.read(Path(fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT).get_site_config_dir()))
                self._connection = FlareConnection(path, fl_ctx.get_identity_name())
            except ConfigInvalid as error:
                self.log_error(fl_ctx, str(error))
            except OSError as error:
                self.log_debug(fl_ctx, f"no station listens on {path}: {error.strerror}")
        return self._connection

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
