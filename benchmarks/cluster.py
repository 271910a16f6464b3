"""Parties spread over processes and over a Ray cluster, beside one thread of one process, on this machine.

    python benchmarks/cluster.py                       (with the extra `ray` installed, or --skip ray)
    python benchmarks/cluster.py --rounds 10 --turns 40

Two measurements. Engines take turns, a round each, so that a neighbour that uses the machine for a while slows all of them,
and a ratio is taken within a turn. All engines have one thread to a process.

    W2           the training workload of `training/compare.py`: 500 of 10 000 parties a round, 60 images each, a perceptron
                 784-200-200-10 (PyTorch's initial weights), clip 1 and Gaussian noise at the server. Ideal is half of the
                 seconds of one thread.
    a vector     2 000 parties of one record each: a vector goes to every shard, and a total of its size comes back.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import numpy as np

import hedgerow as hr
from hedgerow.core import Federation, Parties
from hedgerow.core.question import local
from hedgerow.core.randomness import Streams
from hedgerow.engines.processes import Processes
from hedgerow.engines.ray import Ray

sys.path.append(str(Path(__file__).parent / "training"))

from workloads import PIXELS, SYNTHETIC, WORKLOADS, Clock, images, party_rows

from compare import machine

ENGINES: dict[str, Callable[[], Any]] = {
    "one thread": partial(hr.InProcess, threads=1),
    "processes": partial(Processes, 2),
    "ray": partial(Ray, 2),
}
NOTED = {"one thread": (0.53, 3.1), "processes": (4.4, 60.0), "ray": (11.7, 17.0)}
"""Milliseconds of bare scripts for 1 MB and 10 MB on this kind of machine: no engine at all, stdlib pipes, Ray's own calls."""
PARTIES, NUMBERS = 2_000, 64
SIZES = {"1 kB": 128, "1 MB": 131_072, "10 MB": 1_310_720}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of W2 that each engine is timed for, after two")
    parser.add_argument("--turns", type=int, default=20, help="vectors of each size that each engine carries, after two")
    parser.add_argument("--skip", nargs="+", default=[], choices=ENGINES)
    parser.add_argument("--only", choices=("W2", "vector"), help="one of the two measurements")
    options = parser.parse_args()
    engines = {name: make() for name, make in ENGINES.items() if name not in options.skip}
    clock = Clock()
    clock.mark()
    print(f"{machine()}; load {os.getloadavg()[0]:.1f} before")
    if options.only != "vector":
        training(engines, options.rounds)
    clock.mark()
    if options.only != "W2":
        vectors(engines, options.turns)
    clock.mark()
    print(f"load {os.getloadavg()[0]:.1f} after")
    for engine in engines.values():
        if hasattr(engine, "close"):
            engine.close()


# ---- W2 -----------------------------------------------------------------------------------------------------------------
def training(engines: dict[str, Any], rounds: int) -> None:
    """Rounds of W2, in turns."""
    workload = WORKLOADS["W2"]
    x, y = images(SYNTHETIC)
    rows = party_rows(workload).ravel()
    columns = {"image": x[rows], "label": y[rows].astype(np.int16)}
    schema = hr.data.Schema(
        (
            hr.data.Column("image", "number", shape=(PIXELS,), low=0, high=255),
            hr.data.Column("label", "category", levels=tuple("0123456789"), role="target"),
        )
    )
    held = Parties([f"party {k + 1}" for k in range(workload.parties)], columns, [workload.records] * workload.parties)

    def run(engine: Any) -> Iterator[Any]:
        federation = Federation(engine.hosting(held), schema, streams=Streams(0))
        federation = federation.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0))
        settings = {"size": workload.cohort, "batch_size": workload.batch, "learning_rate": workload.learning_rate}
        return hr.learn.fedavg(federation, hr.learn.zoo.two_nn((PIXELS,), 10), rounds=rounds + 2, **settings)

    begun = {name: run(engine) for name, engine in engines.items()}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    weights = {}
    for _ in range(rounds + 2):
        for name, states in begun.items():
            began = time.perf_counter()
            state = next(states)
            seconds[name].append(time.perf_counter() - began)
            weights[name] = np.concatenate([value.ravel() for value in state.weights.values()])
    print(f"\nW2, {rounds} rounds in turns     s/round   best   to ideal   first round   weights as one thread's")
    alone = seconds["one thread"][2:] if "one thread" in seconds else None
    for name, found in seconds.items():
        timed = found[2:]
        ideal = "-" if alone is None else f"{statistics.median(2 * t / a for t, a in zip(timed, alone, strict=True)):.2f}"
        apart = np.abs(weights[name] - next(iter(weights.values()))).max()
        print(f"{name:28s} {statistics.median(timed):8.3f} {min(timed):6.3f} {ideal:>10s} {found[0]:13.1f}   {apart:.1e} apart")


# ---- a vector to every shard, and back -----------------------------------------------------------------------------------
@local(additive=True)
def product(broadcast: Any, party: Any, rng: Any) -> Any:
    """The sum over records of x (x . w), in a vector of the size of w."""
    found = np.zeros_like(broadcast)
    found[:NUMBERS] = party["x"].T @ (party["x"] @ broadcast[:NUMBERS])
    return found


def vectors(engines: dict[str, Any], turns: int) -> None:
    """Vectors of each size, in turns."""
    held = Parties(
        [f"party {k + 1}" for k in range(PARTIES)],
        {"x": np.random.default_rng(0).normal(size=(PARTIES, NUMBERS))},
        [1] * PARTIES,
    )
    federations = {name: Federation(engine.hosting(held), streams=Streams(0)) for name, engine in engines.items()}
    print(f"\na vector and back, {turns} turns   ms: median, highest    of a bare script")
    for size, numbers in SIZES.items():
        seconds: dict[str, list[float]] = {name: [] for name in engines}
        for turn in range(turns + 2):
            sent, totals = np.full(numbers, 1.0 + turn), []
            for name, federation in federations.items():
                began = time.perf_counter()
                totals.append(federation.sum(product, sent)[:NUMBERS])
                seconds[name].append(1e3 * (time.perf_counter() - began))
            assert all(np.allclose(total, totals[0]) for total in totals)
        for name, found in seconds.items():
            bare = {"1 MB": f"{NOTED[name][0]:.1f}", "10 MB": f"{NOTED[name][1]:.1f}"}.get(size, "-")
            print(f"{size:6s} {name:20s} {statistics.median(found[2:]):12.2f} {max(found[2:]):9.1f} {bare:>18s}")


if __name__ == "__main__":
    from cluster import main as imported  # so that other processes can import what they are asked

    imported()
