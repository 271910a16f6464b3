"""A million coordinates of integer noise from the operating system's entropy, beside numpy's floating-point normal.

python benchmarks/noise.py
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np

from hedgerow.privacy.noise import discrete_gaussian, discrete_laplace

SIZE, REPETITIONS = 1_000_000, 5


def main() -> None:
    """Print seconds and ratios."""
    rng = np.random.default_rng(0)
    jobs: dict[str, Callable[[], object]] = {
        "numpy normal (leaks low bits)": lambda: rng.normal(size=SIZE),
        "entropy alone, 16 bytes each": lambda: os.urandom(16 * SIZE),
        "discrete Gaussian": lambda: discrete_gaussian(6000.0, SIZE, os.urandom),
        "discrete Laplace": lambda: discrete_laplace(6000.0, SIZE, os.urandom),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for repetition in range(REPETITIONS + 1):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            if repetition:  # the first builds tables
                seconds[name].append(time.perf_counter() - began)
    floor = statistics.median(seconds["entropy alone, 16 bytes each"])
    print(f"{SIZE} coordinates, medians of {REPETITIONS}")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"  {name:32s} {median:.3f} s   {median / floor:5.2f} x the entropy it is drawn from")


if __name__ == "__main__":
    main()
