"""A coordinator, stations and aggregators of a pilot's folder, each a process that can be killed with -9."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from hedgerow.cli.pilot import HUB
from hedgerow.network.coordinator.config import load_config
from hedgerow.network.coordinator.store import Store
from patience import until


class Running:
    """The processes of a folder that is laid out; nothing is started yet.

    `adding` names the aggregators among them.
    """

    def __init__(self, folder: Path, adding: Collection[str] = ()) -> None:
        self.folder, self.adding, self.running = folder, tuple(adding), dict[str, subprocess.Popen[bytes]]()
        self.config = load_config(folder / HUB)
        self.store = Store(self.config.state_folder)

    def start(self, name: str) -> None:
        """Start one of them, or start it again."""
        kind = "coordinator" if name == HUB else "aggregator" if name in self.adding else "station"
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [sys.executable, "-m", "hedgerow", kind, "start", str(self.folder / name)]
            self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, name: str) -> None:
        """Kill -9, whatever it is doing."""
        process = self.running.pop(name)
        assert process.poll() is None, f"{name} ended by itself"
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End all of them."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.store.close()

    def events(self) -> int:
        """How many letters and changes the coordinator has noted."""
        return len(self.store.history())

    def questions(self) -> int:
        """How many questions went out, those included that were put again."""
        return sum(one.event == "asked" and one.about["kind"] == "ask" for one in self.store.history())

    def until(self, holds: Callable[[], Any], what: str) -> None:
        """Wait until something holds, while anybody works."""
        until(holds, what, moved=self._moved, ended=self._ended, pause=0.05)

    def _moved(self) -> tuple[int, int]:
        return self.events(), sum(log.stat().st_size for log in self.folder.glob("*.log"))

    def _ended(self) -> list[str]:
        return [name for name, process in self.running.items() if process.poll() is not None]
