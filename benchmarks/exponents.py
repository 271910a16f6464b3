"""How the work of training grows: the exponent of processor seconds over rounds, parties, records, numbers and questions.

    python benchmarks/exponents.py [WORD ...]

Words choose lines: `station` is the one about questions at a station.

Seconds are those of the processor, of all threads, so that a busy machine says nearly the same as a quiet one; each is the
least of three, less what the smallest run of the same kind costs to begin with. The exponent is the slope between the two
largest sizes; above 1.2 the line ends with "more than linear", and the script with 1.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import hedgerow as hr
import one_station
from hedgerow.core import Federation, Parties
from hedgerow.core.randomness import Streams
from hedgerow.store import LedgerFile

MEMORY = Path("/dev/shm")
MOST = 1.2
"""An exponent above this is said."""


def federation(parties: int = 20, each: int = 40, width: int = 20) -> Federation:
    """Parties of made-up records."""
    rng, n = np.random.default_rng(0), parties * each
    label = hr.data.Column("y", "category", levels=tuple("0123456789"), role="target")
    schema = hr.data.Schema((hr.data.Column("x", "number", shape=(width,)), label))
    columns = {"x": rng.normal(size=(n, width)).astype(np.float32), "y": rng.integers(0, 10, n).astype(np.int16)}
    held = Parties([str(k) for k in range(parties)], columns, [each] * parties)
    return Federation(hr.InProcess().hosting(held), schema, streams=Streams(0))


def train(fed: Federation, rounds: int = 3, hidden: int = 20, width: int = 20) -> None:
    """FedAvg of a perceptron behind a clip and noise."""
    private = fed.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0))
    for _ in hr.learn.fedavg(private, hr.learn.mlp(width, [hidden], 10), rounds=rounds):
        pass


def asked(questions: int) -> None:
    """So many noisy sums under a budget, each written to a ledger on a disk before it is answered."""
    with tempfile.TemporaryDirectory() as folder:
        fed = federation(5, 10).within(hr.Budget(1e6, 1e-6))
        fed.recorded(LedgerFile(Path(folder) / "ledger.jsonl"))
        train(fed, questions)


def asked_of_a_station(questions: int) -> None:
    """A study of so many questions to one station, which keeps a journal; in memory where the system can, to wait less."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        one_station.asked(Path(folder), questions)


def seconds(work: Callable[[], None]) -> float:
    """Processor seconds, the least of three."""
    found = []
    for _ in range(3):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


LINES: dict[str, tuple[tuple[int, int, int], Callable[[int], Callable[[], None]]]] = {
    "T rounds": ((10, 100, 400), lambda t: partial(train, federation(), t)),
    "K parties": ((20, 1_000, 4_000), lambda k: partial(train, federation(k))),
    "n records of each party": ((40, 16_000, 64_000), lambda n: partial(train, federation(each=n))),
    "d, in hidden units": ((20, 8_000, 32_000), lambda d: partial(train, federation(5), hidden=d)),
    "questions on a ledger": ((10, 200, 800), lambda q: partial(asked, q)),
    "questions at a station": ((10, 100, 400), lambda q: partial(asked_of_a_station, q)),
}


def main(words: list[str]) -> int:
    """Print a line for each."""
    train(federation())  # imports and compiles what all of them need
    worst = 0.0
    for name, (sizes, made) in LINES.items():
        if not any(word in name for word in words or [""]):
            continue
        base, middle, large = (seconds(made(size)) for size in sizes)
        exponent = math.log(max(large - base, 1e-6) / max(middle - base, 1e-6)) / math.log(
            (sizes[2] - sizes[0]) / (sizes[1] - sizes[0])
        )
        worst = max(worst, exponent)
        said = " more than linear" if exponent > MOST else ""
        print(
            f"{name:24s} {sizes[1]:6d}: {middle:6.2f} s, {sizes[2]:6d}: {large:6.2f} s, exponent {exponent:.2f}{said}",
            flush=True,
        )
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
