"""Products and sums in which no record knows of another, beside those of torch.

python benchmarks/rows.py [--repetitions N]

Products of DP-SGD's perceptron (784-200-200-10, 600 records) and of the convolutions and the wide layer of McMahan's network;
clipped gradients of the perceptron as whole numbers, and their sum. Milliseconds of one core, the shortest of the repetitions,
which take turns; ratios are to torch in float32, within this run. Torch's products, in float32 and in float64, change with the
batch; the others do not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

from hedgerow.core.bound import whole_step
from hedgerow.learn.rowwise import kernels

RECORDS = 600
PERCEPTRON = {
    "W5 forward 600 x 784 x 200": (600, 784, 200),
    "W5 forward 600 x 200 x 200": (600, 200, 200),
    "W5 forward 600 x 200 x 10": (600, 200, 10),
    "W5 backward 600 x 10 x 200": (600, 10, 200),
    "W5 backward 600 x 200 x 200": (600, 200, 200),
}
OTHERS = {
    "600 x 200 x 784": (600, 200, 784),
    "9800 x 800 x 64, places of 50 records": (9800, 800, 64),
    "100 x 3136 x 512": (100, 3136, 512),
}
ROUND = ("torch float32", "torch float64")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def product(m: int, k: int, n: int) -> dict[str, Callable[[], object]]:
    """One product in all ways; the right operand is packed beforehand."""
    a, b = numbers(m, k), numbers(k, n)
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    jobs: dict[str, Callable[[], object]] = {
        "torch float32": lambda: left @ right,
        "torch float64": lambda: left.double() @ right.double(),
    }
    for path in paths():
        with kernels.using(path):
            ready = kernels.packed(b)
        jobs[path] = lambda ready=ready: kernels.multiply(a, ready)
    return jobs


def paths() -> list[str]:
    """Without "scalar", which is there to be compared with."""
    return [path for path in kernels.paths if path != "scalar"]


def parts(path: str) -> dict[str, Callable[[], object]]:
    """Passes, clipping and exact sum of the perceptron's clipped gradients, one after the other."""
    widths, rng = (784, 200, 200, 10), np.random.default_rng(1)
    layers = [(numbers(o, i) / np.float32(i**0.5), numbers(o) * np.float32(0.1)) for i, o in pairwise(widths)]
    x, y, weight = numbers(RECORDS, 784), rng.integers(0, 10, RECORDS), np.ones(RECORDS, np.float32)
    step, held = whole_step(1.0), {}

    def passes() -> None:
        with kernels.using(path):
            read = [x]
            for i, (w, b) in enumerate(layers):
                read.append(kernels.multiply(read[-1], kernels.packed(w, transposed=True), b, relu=i < 2))
            slopes = [kernels.softmax_slopes(read.pop(), y)]
            for (w, _), h in zip(layers[:0:-1], read[:0:-1], strict=True):
                slopes.insert(0, kernels.relu_slopes(kernels.multiply(slopes[0], kernels.packed(w)), h))
            held["read"], held["slopes"] = read, slopes

    def clipping() -> None:
        with kernels.using(path):
            wholes = [kernels.whole(a, True) for a in held["read"]]
            squared = sum(kernels.lengths(g, *w[1:]) for g, w in zip(held["slopes"], wholes, strict=True))
            factor = kernels.factors(squared, weight, 1.0)
            short = [kernels.shorten(g, factor, *w[1:], step) for g, w in zip(held["slopes"], wholes, strict=True)]
            inside = kernels.within([used for _, used in short], 1.0, step)
            if not inside.all():
                short = [kernels.shorten(g, factor, *w[1:], step, ~inside) for g, w in zip(held["slopes"], wholes, strict=True)]
            held["u"], held["a"] = [u for u, _ in short], [w[0] for w in wholes]

    def sums() -> None:
        with kernels.using(path):
            for u, a in zip(held["u"], held["a"], strict=True):
                kernels.add_outer(u, a, np.zeros((u.shape[1], a.shape[1]), np.int64))

    return {"passes": passes, "clipping": clipping, "exact sum": sums}


def shortest(jobs: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Milliseconds of each job; the jobs take turns, so that a busy moment meets all of them."""
    found = dict.fromkeys(jobs, float("inf"))
    for _ in range(repetitions + 1):
        for name, job in jobs.items():
            began = time.process_time()
            job()
            found[name] = min(found[name], 1e3 * (time.process_time() - began))
    return found


def main() -> None:
    """Print milliseconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=9)
    n = parser.parse_args().repetitions
    torch.set_num_threads(1)
    names = [*ROUND, *paths()]
    print(f"{'milliseconds, and times torch float32':40s}" + "".join(f"{name:>16s}" for name in names))
    total = dict.fromkeys(names, 0.0)
    for title, shape in (PERCEPTRON | OTHERS).items():
        found = shortest(product(*shape), n)
        if title in PERCEPTRON:
            total = {name: total[name] + found[name] for name in names}
        line(title, found)
    line("W5, five products", total)
    print(f"\n{f'clipped sum of {RECORDS} records, milliseconds':40s}" + "".join(f"{path:>16s}" for path in paths()))
    columns = {path: shortest(parts(path), n) for path in paths()}
    for part in ("passes", "clipping", "exact sum"):
        print(f"{part:40s}" + "".join(f"{columns[path][part]:16.2f}" for path in paths()))
    print(f"{'together':40s}" + "".join(f"{sum(columns[path].values()):16.2f}" for path in paths()))


def line(title: str, found: dict[str, float]) -> None:
    """One row of the table."""
    print(f"{title:40s}" + "".join(f"{t:9.2f} {t / found['torch float32']:5.2f}x" for t in found.values()))


if __name__ == "__main__":
    main()
