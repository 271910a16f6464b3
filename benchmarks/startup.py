"""What starting costs: processor seconds and memory of imports, commands and of a station that waits.

Each line is a process of its own. Seconds are those of the processor, own and the system's, so that a busy machine says nearly
the same as a quiet one; each is the least of three. Memory is the most that was resident, of the station what is resident while
it waits for its coordinator.

    python benchmarks/startup.py [--station]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOALS = {"import hedgerow": (0.35, 70.0), "a station that waits": (None, 110.0)}
"""Seconds and MB, at most."""

MEAN = """
import numpy, hedgerow as hr
column = hr.data.Column("age", "number", low=0.0, high=100.0)
table = hr.data.Table({"age": numpy.arange(100.0)}, hr.data.Schema((column,)))
hr.stats.means(hr.simulate(table, hr.data.iid(parties=5)), ["age"])
"""

CODE = {
    "python itself": "pass",
    "import numpy": "import numpy",
    "import hedgerow": "import hedgerow",
    "all of its public names": "from hedgerow import *",
    "a mean of five parties": MEAN,
    "hedgerow --version": "import sys; sys.argv = ['hedgerow', '--version']; from hedgerow.cli.main import main; main()",
}


def measured(code: str) -> tuple[float, float]:
    """Processor seconds and the most memory in MB of a process that runs some code."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed with {process.returncode}: {code}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def waiting() -> tuple[float, float]:
    """Processor seconds and memory in MB of a pilot's station a while after it has started; no coordinator is there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pilot"
        hedgerow = [sys.executable, "-m", "hedgerow"]
        subprocess.run([*hedgerow, "pilot", str(folder)], check=True, stdout=subprocess.DEVNULL)
        with (folder / "log").open("w+b") as log:
            process = subprocess.Popen([*hedgerow, "station", "start", str(folder / "alpha")], stdout=log, stderr=log)
            try:
                while b" is up: " not in (folder / "log").read_bytes():
                    if process.poll() is not None:
                        raise SystemExit((folder / "log").read_text(encoding="utf-8"))
                    time.sleep(0.05)
                time.sleep(2.0)
                found = subprocess.run(["ps", "-o", "rss=", "-p", str(process.pid)], check=True, capture_output=True, text=True)
            finally:
                process.terminate()
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
        return used.ru_utime + used.ru_stime, float(found.stdout) / 1024


def line(name: str, seconds: float, memory: float) -> None:
    """Print a line, beside its goals where it has some."""
    most = GOALS.get(name, (None, None))
    goals = [f"{goal:g} {unit}" for goal, unit in zip(most, ("s", "MB"), strict=True) if goal is not None]
    beside = "   goal: " + ", ".join(goals) if goals else ""
    print(f"{name:26s} {seconds:6.2f} s {memory:7.0f} MB{beside}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--station", action="store_true", help="only the station that waits")
    if not parser.parse_args().station:
        for name, code in CODE.items():
            line(name, *(min(values) for values in zip(*(measured(code) for _ in range(3)), strict=True)))
    line("a station that waits", *waiting())


if __name__ == "__main__":
    main()
