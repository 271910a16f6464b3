"""Rules of rows beside the plain mean of the same rows, beside naive NumPy, and beside ByzFL where it is installed.

python benchmarks/robust_rules.py [--parties 20 100] [--numbers 100000 1000000] [--repetitions 3] [--peer FOLDER]

Rows are float32; a fifth of the parties may lie, Bulyan takes the most that it can. Milliseconds of this process, the shortest
of the repetitions, which take turns; ratios are to the mean of all rows by NumPy (`rows.mean(0)`), within this run. "Naive" is
the rule in a line or two of NumPy over all coordinates at once. `--peer` is a folder with the package byzfl, of which the
aggregators alone are imported; they are given the same array.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hedgerow.learn import robust

Job = Callable[[np.ndarray], Any]


def rules(n: int) -> dict[str, robust.Rule]:
    f = n // 5
    return {
        "median": robust.Median(),
        "trimmed": robust.TrimmedMean(f),
        "krum": robust.Krum(f),
        "multi-krum": robust.MultiKrum(f),
        "bulyan": robust.Bulyan((n - 3) // 4),
        "geometric-median": robust.GeometricMedian(),
        "centred-clip": robust.CentredClip(1.0),
        "bucketing": robust.Bucketing(2),
        "norm": robust.NormBound(1.0),
        "norm-noise": robust.NormNoise(1.0, 0.5),
        "foolsgold": robust.FoolsGold(),
    }


def distances(rows: np.ndarray) -> np.ndarray:
    squares = (rows * rows).sum(1)
    return np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0)


def weiszfeld(rows: np.ndarray) -> np.ndarray:
    centre = rows.mean(0)
    for _ in range(8):  # the geometric median of hedgerow goes on until the point stays, from the median
        near = 1 / np.maximum(np.linalg.norm(rows - centre, axis=1), 1e-6)
        centre = (near[:, None] * rows).sum(0) / near.sum()
    return centre


def naive(n: int) -> dict[str, Job]:
    f = n // 5
    return {
        "median": lambda rows: np.median(rows, 0),
        "trimmed": lambda rows: np.sort(rows, 0)[f : n - f].mean(0),
        "krum": lambda rows: rows[np.sort(distances(rows), 1)[:, 1 : n - f - 1].sum(1).argmin()],
        "multi-krum": lambda rows: rows[np.sort(distances(rows), 1)[:, 1 : n - f - 1].sum(1).argsort()[: n - f]].mean(0),
        "geometric-median": weiszfeld,
        "centred-clip": lambda rows: (rows * np.minimum(1, 1 / np.linalg.norm(rows, axis=1))[:, None]).mean(0),
        "norm": lambda rows: (rows * np.minimum(1, 1 / np.linalg.norm(rows, axis=1))[:, None]).mean(0),
    }


def aggregators(folder: str) -> ModuleType:
    """The aggregators of byzfl, without its benchmark, which needs more packages."""
    sys.path.append(folder)
    package = ModuleType("byzfl")
    package.__path__ = [str(Path(folder) / "byzfl")]
    sys.modules["byzfl"] = package
    return importlib.import_module("byzfl.aggregators")


def peers(folder: str | None, n: int) -> dict[str, Job]:
    if folder is None:
        return {}
    found, f = aggregators(folder), n // 5
    return {
        "median": found.Median(),
        "trimmed": found.TrMean(f=f),
        "krum": found.Krum(f=f),
        "multi-krum": found.MultiKrum(f=f),
        "geometric-median": found.GeometricMedian(nu=1e-6, T=8),
        "centred-clip": found.CenteredClipping(m=None, L=1, tau=1.0),
    }


def shortest(jobs: dict[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Milliseconds of each job; a round takes all of them in turn."""
    found = dict.fromkeys(jobs, np.inf)
    for _ in range(repetitions):
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            found[name] = min(found[name], 1e3 * (time.perf_counter() - started))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--numbers", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--peer")
    given = parser.parse_args()
    for n in given.parties:
        for d in given.numbers:
            rows = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32) / np.float32(np.sqrt(d))
            jobs: dict[str, Callable[[], Any]] = {"mean": lambda rows=rows: rows.mean(0)}
            for kind, made in (("", rules(n)), ("naive ", naive(n)), ("byzfl ", peers(given.peer, n))):
                jobs |= {kind + name: lambda job=job, rows=rows: job(rows) for name, job in made.items()}
            took = shortest(jobs, given.repetitions)
            print(f"\n{n} parties, {d:,} numbers: mean {took['mean']:.1f} ms")
            print(f"{'rule':18}{'times the mean':>16}{'naive':>10}{'byzfl':>10}")
            for name in rules(n):
                ratios = [took.get(kind + name, np.nan) / took["mean"] for kind in ("", "naive ", "byzfl ")]
                print(f"{name:18}{ratios[0]:16.1f}" + "".join(f"{x:10.1f}" if np.isfinite(x) else " " * 10 for x in ratios[1:]))


if __name__ == "__main__":
    main()
