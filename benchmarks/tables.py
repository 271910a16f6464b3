"""A table in files: how long sums over many records take, and how much memory beside the files.

The workload: columns x0, ..., x8 from N(0, 1) and a target, in 32 bits; ten parties in order. Seconds are of the processor,
memory is what the process holds beside the pages of files (`RssAnon`), above what it held after the same on 1000 records.

    python benchmarks/tables.py [records] [folder]      10 million by default: 400 MB of files; 1e8: 4 GB
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.data.files import write_files

FEATURES, PARTIES, PART = 9, 10, 1 << 18
SCHEMA = Schema(
    (
        *(Column(f"x{i}", "number", low=-8, high=8) for i in range(FEATURES)),
        Column("y", "number", low=-100, high=100, role="target"),
    )
)


def parts(n: int) -> Iterator[dict[str, np.ndarray]]:
    """The records, from a fixed seed, some at a time."""
    rng = np.random.default_rng(0)
    for start in range(0, n, PART):
        x = rng.standard_normal((min(PART, n - start), FEATURES), dtype=np.float32).astype(float)
        y = x @ np.arange(FEATURES) / 10 + rng.standard_normal(len(x), dtype=np.float32)
        yield {**{f"x{i}": x[:, i] for i in range(FEATURES)}, "y": y}


def held() -> float:
    """Megabytes of this process beside pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


@contextmanager
def measured(what: str, base: float) -> Iterator[None]:
    """Print the seconds of what is done here, and the most memory above a base."""
    over, most = threading.Event(), [held()]

    def watch() -> None:
        while not over.wait(0.02):
            most[0] = max(most[0], held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    processor, wall = time.process_time(), time.perf_counter()
    yield
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    over.set()
    watcher.join()
    print(f"{what:24} {processor:8.2f} s of the processor {wall:8.2f} s {most[0] - base:8.1f} MB more")


QUESTIONS: dict[str, Callable[[hr.Federation], object]] = {
    "moments": hr.stats.moments,
    "correlation": hr.stats.correlation,
    "linear regression": lambda parties: hr.stats.linear_regression(parties, "y ~ ."),
    "moments behind noise": lambda parties: hr.stats.moments(parties.protect(mechanism=hr.Gaussian(1.0))),
}


def asked(table: Table) -> hr.Federation:
    """The parties of a table."""
    return hr.simulate(table, hr.data.in_order(parties=PARTIES), disclosure=float("inf"))


def main(n: int, folder: Path) -> None:
    with measured(f"write {n:.0e} records", held()):
        write_files(folder, parts(n), SCHEMA, single=True)
    with measured("open and check", held()):
        table = Table.from_files(folder)
    few = asked(table.take(slice(0, 1000)))
    for ask in QUESTIONS.values():  # what is imported and made once
        ask(few)
    base = held()
    for what, ask in QUESTIONS.items():
        with measured(what, base):
            ask(asked(table))


if __name__ == "__main__":
    place = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(dir=place) as temporary:
        main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000, Path(temporary) / "table")
