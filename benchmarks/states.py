"""SCAFFOLD of 10 000 stateful parties: what their control variates cost in memory and on disk.

Each party has two records of 784 numbers and keeps 199 210 (the "2NN"); 100 parties a round. Every line is a process of its
own, which ends with a checkpoint and prints its peak memory, its seconds for the rounds and for the checkpoint, what the
checkpoint and the states take on disk, and a hash of the weights, which must not depend on where states are.

    python benchmarks/states.py [rounds ...]
"""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.learn.zoo import two_nn
from hedgerow.store import save_checkpoint

PARTIES, RECORDS, COHORT, ROUNDS = 10_000, 2, 100, (3, 30)


def measure(where: str, rounds: int) -> None:
    """Train, save, print a line."""
    rng, n = np.random.default_rng(0), PARTIES * RECORDS
    columns = {"x": rng.normal(size=(n, 784)).astype(np.float32), "label": rng.integers(0, 10, n).astype(str)}
    label = hr.data.Column("label", "category", levels=tuple("0123456789"), role="target")
    schema = hr.data.Schema((hr.data.Column("x", "number", shape=(784,)), label))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = hr.InProcess(state_folder=folder / "states" if where == "disk" else None)
        table = hr.data.Table(schema.admit(columns), schema)
        del columns
        fed = hr.simulate(table, hr.data.iid(parties=PARTIES), seed=0, engine=engine)
        before, began = peak(), time.perf_counter()
        settings = {"size": COHORT, "batch_size": 2, "learning_rate": 0.05}
        state = hr.last(hr.learn.scaffold(fed, two_nn((784,), 10), rounds=rounds, **settings))
        trained = time.perf_counter()
        training = peak()
        save_checkpoint(folder / "checkpoint", state, fed, "")
        saved = time.perf_counter()
        on_disk = sum(path.stat().st_blocks * 512 for path in folder.glob("states/*"))
        weights = hashlib.sha256(b"".join(value.tobytes() for value in state.weights.values())).hexdigest()[:8]
        written = (folder / "checkpoint").stat().st_size
        print(
            f"{where:6s} {rounds:3d} rounds   peak {before:6.0f} MB before, {training:6.0f} training, {peak():6.0f} saving   "
            f"{trained - began:6.1f} s training, {saved - trained:5.2f} s saving   "
            f"checkpoint {written / 1e6:7.1f} MB, states {on_disk / 1e6:6.0f} MB   weights {weights}",
            flush=True,
        )


def peak() -> float:
    """Most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure each place in a process of its own."""
    if sys.argv[1:2] in (["memory"], ["disk"]):
        return measure(sys.argv[1], int(sys.argv[2]))
    for rounds in [int(text) for text in sys.argv[1:]] or ROUNDS:
        for where in ("memory", "disk"):
            subprocess.run([sys.executable, __file__, where, str(rounds)], check=True)
    return None


if __name__ == "__main__":
    main()
