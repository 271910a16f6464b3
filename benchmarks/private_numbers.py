"""Private models of numbers on insurance and CASP: least squares, Huber's loss and the median, at equal budgets.

    python benchmarks/private_numbers.py [--seeds 5] [--parties 10]

A quarter of the records is held back by a public coin, and shown once for each seed. R2 is what it is worth to predict by the
model and not by the mean; the error is the mean absolute one, in the target's own units. All settings are defaults.
"""

from __future__ import annotations

import argparse
import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when numpy is imported

import numpy as np

import hedgerow as hr

FORMULAS = {"insurance": "charges ~ age + bmi + children + smoker", "casp": "rmsd ~ f1 + f2 + f3 + f4"}
EPSILONS = (0.1, 1.0, 8.0, None)
private = hr.stats.private
WAYS = {
    "linear": lambda f, formula, **budget: private.linear(f, formula, **budget),
    "linear, rows='unit'": lambda f, formula, **budget: private.linear(f, formula, rows="unit", **budget),
    "huber": lambda f, formula, **budget: private.huber(f, formula, **budget),
    "huber, rows='fixed'": lambda f, formula, **budget: private.huber(f, formula, rows="fixed", **budget),
    "quantile, share .5": lambda f, formula, **budget: private.quantile(f, formula, **budget),
}


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--parties", type=int, default=10)
    given = parser.parse_args()
    for name, formula in FORMULAS.items():
        table = hr.data.load(name)
        chosen = np.random.default_rng(0).random(len(table)) < 0.25
        train, test = table.take(~chosen), table.take(chosen)
        print(f"\n{formula}: {len(train)} records to learn from, {len(test)} to test on; R2, and mean absolute error")
        print(" " * 22 + "".join(f"{f'epsilon {e:g}' if e else 'no noise':>24}" for e in EPSILONS))
        for way, call in WAYS.items():
            line = f"{way:22}"
            for epsilon in EPSILONS:
                budget = {"epsilon": epsilon, "delta": 1e-5} if epsilon else {}
                found = []
                for seed in range(given.seeds if epsilon else 1):
                    fit = call(hr.simulate(train, hr.data.iid(given.parties), seed=seed), formula, **budget)
                    found.append(list(fit.metrics(test).values()))
                (r2, error), (spread, _) = np.mean(found, 0), np.std(found, 0)
                line += f"{r2:9.3f} +-{spread:5.3f}{error:8.4g}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
