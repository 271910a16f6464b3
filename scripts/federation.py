"""A federation of real processes on one machine, with people pulling plugs: what `scripts/federation` runs.

1  keys are made and enrolled, configurations written (`hedgerow pilot`)
2  a coordinator and three stations start as processes, mutual TLS on the loopback
3  a logistic regression with secure aggregation is submitted
4  a station is stopped in the middle of a question and killed with -9: that round is void, the study waits
5  the station starts again: the study goes on
6  the coordinator is killed with -9 in the middle of a question, and starts again
7  the study ends; its coefficients are those of the pooled records
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.cli.pilot import FORMULA, HUB, free_port, lay_out
from hedgerow.network.coordinator.config import load_config
from hedgerow.network.coordinator.store import Store

NAMES = ("alpha", "beta", "gamma")
STILL, MOST = 180.0, 5_000
"""Seconds without any event after which nothing will happen, however busy the machine is; and events in which a study ends."""

LIMITS = {"question_seconds": 20.0, "retry_seconds": 0.5, "retry_most_seconds": 2.0, "least_answers": 3}


class Federation:
    """The processes of a pilot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.store: Store | None = None

    def lay_out(self) -> None:
        lay_out(self.folder, NAMES, port=free_port(), limits=LIMITS)
        self.store = Store(load_config(self.folder / HUB).state_folder)

    def start(self, name: str) -> None:
        kind = "coordinator" if name == HUB else "station"
        log = (self.folder / f"{name}.log").open("ab")
        command = [sys.executable, "-m", "hedgerow", kind, "start", str(self.folder / name)]
        self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, name: str) -> None:
        """Kill -9, whatever it is doing."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def halt(self, name: str) -> None:
        """Let a process do nothing more, but stay."""
        os.kill(self.running[name].pid, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        os.kill(self.running[name].pid, signal.SIGCONT)

    def stop(self) -> None:
        for process in self.running.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def submit(self) -> str:
        command = [sys.executable, "-m", "hedgerow", "submit", str(self.folder / "study.toml"), "--at", str(self.folder / HUB)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0]

    def state(self, study: str) -> str:
        assert self.store is not None
        return self.store.study(study).state

    def said(self, study: str) -> list[str]:
        """The history of a study, in words."""
        assert self.store is not None
        return [entry.sentence for entry in self.store.history(study)]

    def questions(self, study: str) -> int:
        """Letters of the study that went out."""
        assert self.store is not None
        return sum(entry.event == "asked" for entry in self.store.history(study))

    def events(self, study: str) -> int:
        """What has happened so far: in the history of the study, and lines in the logs of all processes."""
        assert self.store is not None
        return len(self.store.history(study)) + sum(log.read_bytes().count(b"\n") for log in self.folder.glob("*.log"))

    def until(self, study: str, holds: Callable[[], bool], what: str) -> None:
        """Wait for something while anything happens, and fail where a process has ended or nothing happens any more."""
        events, looks, end = self.events(study), 0, time.monotonic() + STILL
        while not holds():
            time.sleep(0.005)
            looks += 1
            if looks % 100:
                continue
            if gone := [name for name, process in self.running.items() if process.poll() is not None]:
                raise SystemExit(f"{what} cannot come: {' and '.join(gone)} ended by itself, see {self.folder}/*.log")
            if (now := self.events(study)) != events:
                events, end = now, time.monotonic() + STILL
            if time.monotonic() > end or events > MOST:
                raise SystemExit(f"waited in vain for {what}: {events} events, and the last one {STILL:g} s ago, or too many")


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


def main(folder: Path) -> int:
    federation = Federation(folder)
    federation.lay_out()
    say(f"keys enrolled, configurations written: {folder}")
    try:
        for name in (HUB, *NAMES):
            federation.start(name)
        study = federation.submit()
        say(f"{study} submitted: logistic regression, rows hidden by SecAgg")
        plug(federation, study)
        ends = ("finished", "refused", "failed", "cancelled")
        federation.until(study, lambda: federation.state(study) in ends, "the study's end")
    finally:
        federation.stop()
    for sentence in federation.said(study):
        print(f"          {sentence}")
    return compare(federation, study)


def plug(federation: Federation, study: str) -> None:
    """Pull the plugs of a station and of the coordinator, each in the middle of a question."""

    def until(holds: Callable[[], bool], what: str) -> None:
        federation.until(study, holds, what)

    def runs() -> bool:
        return federation.state(study) == "running"

    def asked(before: int) -> bool:
        return federation.questions(study) > before or not runs()

    until(lambda: runs() and federation.questions(study) > 6, "the first questions")
    federation.halt("beta")
    before = federation.questions(study)
    until(lambda: asked(before), "a question to halted beta")
    federation.kill("beta")
    say("beta killed with -9 in the middle of a question")
    until(lambda: not runs(), "a pause of the study")
    say(f"the study is {federation.state(study)}: two rows would not hide each other")
    federation.start("beta")
    until(runs, "beta's return")
    say("beta is back, the study goes on")
    federation.halt("gamma")
    before = federation.questions(study)
    until(lambda: asked(before), "a question to halted gamma")
    federation.kill(HUB)
    say("coordinator killed with -9 in the middle of a question")
    federation.go_on("gamma")
    federation.start(HUB)


def compare(federation: Federation, study: str) -> int:
    """The coefficients beside those of the pooled records, which only a pilot has."""
    state = federation.state(study)
    if state != "finished":
        say(f"the study {state}")
        return 1
    folder = load_config(federation.folder / HUB).runs_folder / study
    found = pd.read_csv(folder / "coefficients.csv", index_col=0)["coef"]
    table = hr.data.read(federation.folder / "records.csv", target="malignant")
    pooled = hr.stats.logistic_regression(hr.simulate(table, hr.data.iid(parties=1)), FORMULA)
    apart = float(np.abs(found.to_numpy() - pooled.coef_).max())
    say(f"finished: {folder / 'report.html'}")
    print(
        pd.DataFrame({"between organisations": found.to_numpy(), "pooled records": pooled.coef_}, index=found.index).to_string()
    )
    say(f"largest difference {apart:.1e}")
    return 0 if apart < 1e-8 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    given = parser.parse_args().folder
    sys.exit(main(given or Path(tempfile.mkdtemp(prefix="hedgerow-")) / "federation"))
