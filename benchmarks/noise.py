"""A million coordinates of integer noise from the operating system's entropy, beside numpy's normal and OpenDP's samplers.

python benchmarks/noise.py [--opendp PYTHON]

PYTHON is an interpreter that has `opendp`, in an environment of its own; without it OpenDP is left out. Its samplers are
exact by construction and draw one coordinate at a time, so it is timed on fewer coordinates. Times are seconds of one
core, so that others at work on the machine do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable

import numpy as np

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l2
from hedgerow.privacy.mechanisms import Gaussian, SimulatedGaussian, Skellam
from hedgerow.privacy.noise import discrete_gaussian, discrete_laplace, polya_difference, skellam

SIZE, REPETITIONS, SCALE, GOAL = 1_000_000, 5, 6000.0, 0.25

OPENDP = """
import json, time, opendp.prelude as dp
dp.enable_features("contrib")
n, scale, found = 50_000, 6000.0, {}
space = dp.vector_domain(dp.atom_domain(T=int), size=n)
for name, measurement in (
    ("discrete Gaussian", dp.m.make_gaussian(space, dp.l2_distance(T=float), scale=scale)),
    ("discrete Laplace", dp.m.make_laplace(space, dp.l1_distance(T=int), scale=scale)),
):
    zeros, times = [0] * n, []
    for _ in range(3):
        began = time.process_time()
        measurement(zeros)
        times.append(time.process_time() - began)
    found[name] = sorted(times)[1] / n
print(json.dumps(found))
"""


def main() -> None:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opendp", metavar="PYTHON", help="an interpreter that has opendp")
    seconds = timed(jobs())
    floor = statistics.median(seconds["entropy alone, 16 bytes each"])
    print(f"{SIZE} coordinates at {SCALE:g} grid steps, seconds of one core, medians of {REPETITIONS}")
    for name, values in seconds.items():
        median = statistics.median(values)
        goal = "" if name not in LAWS else "   goal met" if median <= GOAL else f"   goal of {GOAL} s missed"
        print(f"  {name:34s} {median:.3f} s   {median / floor:5.2f} x the entropy it is drawn from{goal}")
    beside(parser.parse_args().opendp, {name: statistics.median(values) for name, values in seconds.items()})


LAWS: dict[str, Callable[[], object]] = {
    "discrete Gaussian": lambda: discrete_gaussian(SCALE, SIZE, os.urandom),
    "discrete Laplace": lambda: discrete_laplace(SCALE, SIZE, os.urandom),
    "Skellam": lambda: skellam(SCALE, SIZE, os.urandom),
}


def jobs() -> dict[str, Callable[[], object]]:
    """What is timed."""
    rng, bound, layout = np.random.default_rng(0), l2(1.0), Layout((("", (SIZE,)),))
    total = np.zeros(SIZE, np.int64)
    return {
        "numpy normal (leaks low bits)": lambda: rng.normal(size=SIZE),
        "entropy alone, 16 bytes each": lambda: os.urandom(16 * SIZE),
        **LAWS,
        "Polya share of a Laplace": lambda: polya_difference(SCALE, 100, SIZE, os.urandom),
        "a release of Gaussian": lambda: Gaussian(1.0).at_server(total, bound, layout, os.urandom),
        "a release of Skellam": lambda: Skellam(1.0).at_server(total, bound, layout, os.urandom),
        "a release of SimulatedGaussian": lambda: SimulatedGaussian(1.0).at_server(total, bound, layout, rng.bytes),
    }


def timed(what: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds of each job, in turn, so that a slow moment of the machine falls on all; the first turn builds tables."""
    seconds: dict[str, list[float]] = {name: [] for name in what}
    for repetition in range(REPETITIONS + 1):
        for name, job in what.items():
            began = time.process_time()
            job()
            if repetition:
                seconds[name].append(time.process_time() - began)
    return seconds


def beside(python: str | None, ours: dict[str, float]) -> None:
    """Print OpenDP's times."""
    if python is None:
        print("OpenDP was left out: give --opendp an interpreter that has it.")
        return
    answer = subprocess.run([python, "-c", OPENDP], capture_output=True, text=True)
    if answer.returncode:
        print(f"OpenDP was left out, since it failed: {(answer.stderr.strip().splitlines() or ['no message'])[-1]}")
        return
    for name, each in json.loads(answer.stdout).items():
        print(f"  OpenDP, {name:26s} {each * SIZE:.3f} s   {each * SIZE / ours[name]:5.0f} x ours, from 50 000 coordinates")


if __name__ == "__main__":
    main()
