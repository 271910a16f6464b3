"""Integer noise: the discrete Gaussian at scales from 2^12 to 2^40, all laws beside numpy's normal, and OpenDP's samplers.

python benchmarks/noise.py [--opendp PYTHON]

The first table has the 199 210 numbers of a step of a perceptron 784-200-200-10, compiled and by numpy alone, from the bytes of
a deployment (AES-256-CTR under a fresh key of the operating system). The second has a million coordinates.

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
from functools import partial

import numpy as np

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l2
from hedgerow.core.randomness import Streams
from hedgerow.privacy import coarse, noise
from hedgerow.privacy.mechanisms import Gaussian, Skellam
from hedgerow.privacy.noise import discrete_gaussian, discrete_laplace, polya_difference, skellam
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian

SIZE, REPETITIONS, SCALE, GOAL = 1_000_000, 5, 6000.0, 0.25
STEP, TURNS, GOALS = 199_210, 15, {"compiled": 4.0, "numpy": 12.0}
SCALES = {"4096": 4096.0, "2^17": 2.0**17, "1.1 * 2^24": 1.1 * 2.0**24, "1.1 * 2^40": 1.1 * 2.0**40}

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
    of_a_step()
    seconds = timed(jobs())
    floor = statistics.median(seconds["entropy alone, 16 bytes each"])
    print(f"{SIZE} coordinates at {SCALE:g} grid steps, seconds of one core, medians of {REPETITIONS}")
    for name, values in seconds.items():
        median = statistics.median(values)
        goal = "" if name not in LAWS else "   goal met" if median <= GOAL else f"   goal of {GOAL} s missed"
        print(f"  {name:34s} {median:.3f} s   {median / floor:5.2f} x the entropy it is drawn from{goal}")
    beside(parser.parse_args().opendp, {name: statistics.median(values) for name, values in seconds.items()})


def of_a_step() -> None:
    """Print milliseconds of the Gaussian at several scales."""
    loops = {"compiled": coarse._coarse, "numpy": None}
    print(f"{STEP} numbers, milliseconds of one core, medians of {TURNS} (least)")
    print(f"  {'bytes alone, os.urandom':34s} {spread(lambda: read(os.urandom))}")
    print(f"  {'bytes alone, AES-256-CTR':34s} {spread(lambda: read(Streams().entropy(1, 'server', 'noise')))}")
    for name, sigma in SCALES.items():
        noise._gaussian_law.cache_clear()
        began = time.process_time()
        noise._gaussian_law(sigma)
        built = 1e3 * (time.process_time() - began)
        for loop, extension in loops.items():
            if extension is None and loop == "compiled":
                print("  the compiled loop was left out: it was installed without a compiler.")
                continue
            coarse._coarse = extension
            found = spread(partial(discrete_gaussian_of_a_release, sigma))
            print(f"  {f'sigma {name}, {loop}':34s} {found}   goal {GOALS[loop]:g}   table built in {built:.1f}")
        coarse._coarse = loops["compiled"]


def discrete_gaussian_of_a_release(sigma: float) -> None:
    """Draw under a key of its own."""
    discrete_gaussian(sigma, STEP, Streams().entropy(1, "server", "noise"))


def read(entropy: Callable[[int], bytes]) -> None:
    """Draw the bytes of as many candidates, a block at a time."""
    for start in range(0, STEP, coarse.BLOCK):
        entropy(16 * min(coarse.BLOCK, STEP - start))


def spread(job: Callable[[], object]) -> str:
    """Median and least milliseconds of a job."""
    times = []
    for _ in range(TURNS):
        began = time.process_time()
        job()
        times.append(1e3 * (time.process_time() - began))
    return f"{statistics.median(times):6.2f} ({min(times):.2f})"


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
