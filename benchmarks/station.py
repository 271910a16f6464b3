"""A station under load: is it there while a study of a million parameters and a thousand rounds is rehearsed?

    python benchmarks/station.py [--hidden 1000] [--rounds 1000] [--hellos 40]

One station process on a socket rail, one coordinator here. Goals: hello answered in under 0.5 s, the gate below 120 MB, another
study's questions answered meanwhile, and SIGTERM obeyed in two seconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.toml import to_toml
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.engines.rails.socket_rail import SocketRail
from hedgerow.network.identity.enrolment import accept, ask, enrol
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.config import read_config
from hedgerow.store import last
from hedgerow.study import build_remote, parse
from hedgerow.wire.values import pack, unpack

HELLO, GATE, SIGTERM = 0.5, 120.0, 2.0
STATION = """
name = "alpha"
[coordinator]
name = "hub"
rail = "socket"
path = "../hub/rail.sock"
[data]
name = "heart"
source = "csv"
path = "heart.csv"
[data.columns]
age = { range = [20, 90] }
dose = { range = [0, 1] }
sick = { kind = "binary" }
[guard]
approval = "automatic"
programs = [{ name = "moments" }, { name = "fedavg" }]
[guard.budget]
epsilon = 50.0
delta = 1e-6
trust = "server"
"""
NOISE = {"mechanism": {"law": "gaussian", "noise_multiplier": 5.0, "at": "party"}}
SMALL = {"name": "means", "data": {"name": "heart", "features": ["age", "dose"]}, "protection": NOISE}
SMALL["program"] = {"name": "moments", "columns": ["age", "dose"]}
COLUMNS = ("age", "dose", "sick")


def large(hidden: int, rounds: int) -> dict[str, Any]:
    """A network with two hidden layers."""
    program = {"name": "fedavg", "model": "mlp", "hidden": [hidden, hidden], "rounds": rounds, "epochs": 1}
    data = {"name": "heart", "target": "sick", "features": ["age", "dose"]}
    return {"name": "large", "data": data, "program": program}


class Hub:
    """A coordinator of one station."""

    def __init__(self, folder: Path) -> None:
        (folder / "hub").mkdir(mode=0o700)
        self.keys = KeyFolder.make(folder / "hub" / "keys", "hub", True, hosts=["localhost"])
        self.rail = SocketRail(folder / "hub" / "rail.sock")
        self.queue = MessageQueue(lambda: self.keys.key_material, lambda: self.keys.public_identities, self.rail)
        self.number = 0

    def ask(self, kind: str, parts: list[bytes], study: bytes = bytes(16)) -> Any:
        """One letter, and what came back."""
        self.number += 1
        about: dict[str, Any] = {} if kind == "hello" else {"study": study, "number": self.number}
        return self.queue.ask(kind, {"alpha": parts}, seconds=120.0, **about)["alpha"]

    def board(self, study: dict[str, Any], schema: Any, key: bytes) -> str:
        """Let a study board."""
        told = {"coordinator": "hub", "stations": {"alpha": 1}, "schema": schema.columns, "version": "0.1.0"}
        text = to_toml(parse(study).model_dump(mode="json")).encode()
        letter = self.ask("board", [text, pack(told)], key)
        return str(unpack(letter.parts[0])["status"]) if letter.kind == "board" else letter.parts[0].decode()


def made(folder: Path) -> Path:
    """A station's folder."""
    mine = folder / "alpha"
    mine.mkdir()
    (mine / "station.toml").write_text(STATION)
    rng = np.random.default_rng(0)
    rows = zip(rng.uniform(20, 90, 5000), rng.uniform(0, 1, 5000), rng.integers(0, 2, 5000), strict=True)
    (mine / "heart.csv").write_text("age,dose,sick\n" + "".join(f"{a},{d},{s}\n" for a, d, s in rows))
    return mine


def megabytes(pid: int) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError):  # a thread that has just ended
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def line(what: str, value: float, unit: str, goal: float) -> None:
    """One line of the table."""
    print(f"{what:<44} {value:8.3f} {unit:<3} goal {goal:g}" + ("" if value <= goal else "  ABOVE THE GOAL"), flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--hellos", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        mine, hub = made(folder), Hub(folder)
        keys = KeyFolder.make(mine / "keys", "alpha")
        accept(keys, Welcome.from_bytes(enrol(hub.keys, Request.from_bytes(ask(keys)))))
        command = [sys.executable, "-c", "from hedgerow.cli.station import app; app()", "start", str(mine)]
        station = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            measure(hub, station, mine, options)
        finally:
            station.kill()
            station.wait()
            hub.rail.close()


def measure(hub: Hub, station: subprocess.Popen[bytes], mine: Path, options: Any) -> None:
    """Print the table."""
    hub.queue.wait(120.0, lambda: "alpha" in hub.queue.alive())
    print(f"gate, idle: {megabytes(station.pid):.0f} MB")
    schema = read_config(mine)[0].declared.select(["age", "dose"])
    key = b"the small study."
    while hub.board(SMALL, schema, key) == "waiting":
        hub.queue.wait(0.2)
    network = Network(hub.queue, key, {"alpha": ("alpha",)}, seconds=120.0, life=1 << 20)
    last_of = build_remote(parse(SMALL), schema, network)
    last(last_of.listing.program(last_of.settings)(last_of.federation))
    whole = read_config(mine)[0].declared.select(list(COLUMNS))
    study = large(options.hidden, options.rounds)
    began = time.perf_counter()
    print("the large study is", hub.board(study, whole, b"the large study."), f"after {time.perf_counter() - began:.2f} s")
    hub.queue.wait(15.0)  # it trains by now
    seconds, gate = [], []
    for _ in range(options.hellos):
        began = time.perf_counter()
        assert hub.ask("hello", []).kind == "hello"
        seconds.append(time.perf_counter() - began)
        gate.append(megabytes(station.pid))
        hub.queue.wait(0.25)
    line("hello, the slowest", max(seconds), "s", HELLO)
    line("hello, the median", statistics.median(seconds), "s", HELLO)
    network = Network(hub.queue, key, {"alpha": ("alpha",)}, seconds=120.0, life=1 << 21)
    again = build_remote(parse(SMALL), schema, network)
    began = time.perf_counter()
    last(again.listing.program(again.settings)(again.federation))
    print(f"another study, two questions: {time.perf_counter() - began:.2f} s")
    line("the gate, a rehearsal running", max(*gate, megabytes(station.pid)), "MB", GATE)
    below = children(station.pid)
    print("children:", ", ".join(f"{megabytes(pid):.0f} MB" for pid in below))
    print("the large study is", hub.board(study, whole, b"the large study."))
    began = time.perf_counter()
    station.send_signal(signal.SIGTERM)
    status = station.wait(60)
    line(f"SIGTERM, status {status}", time.perf_counter() - began, "s", SIGTERM)
    left = [pid for pid in below if Path(f"/proc/{pid}").exists()]
    print("children left:", left or "none")


if __name__ == "__main__":
    main()
