"""10 000 stores of one record each: logistic regression by 800 rounds of FedSGD, and by Newton's method.

The workload: 10 features from N(0, 1), an intercept, full participation, learning rate 1, the mean of the stores' updates.
Four ways, interleaved, medians of a few repetitions, in one process on one machine:

    naive loop      what a straightforward simulator does: one torch module, one optimiser step for each store in turn
    distinct        Hedgerow, FedSGD, every store's own contribution made and added
    collapsed       Hedgerow, FedSGD, pooled records where that is the same sum
    newton          Hedgerow, logistic regression to convergence, with standard errors

    python benchmarks/stores.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

import hedgerow as hr

STORES, FEATURES, ROUNDS, REPETITIONS = 10_000, 10, 800, 3
NAIVE_STORES = 2_000
"""The naive loop is timed on so many stores of one round and extrapolated."""


def records() -> pd.DataFrame:
    """The stores' records, from a fixed seed."""
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, (STORES, FEATURES))
    y = rng.random(STORES) < 1 / (1 + np.exp(-(x @ rng.normal(0, 1, FEATURES) + 0.3)))
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(FEATURES)]).assign(y=y.astype(int))


def naive(frame: pd.DataFrame) -> float:
    """Seconds for 800 rounds, extrapolated from part of one."""
    x, y = torch.tensor(frame.drop(columns="y").to_numpy(np.float32)), torch.tensor(frame["y"].to_numpy(np.float32))
    net = nn.Linear(FEATURES, 1)
    weights = {key: torch.zeros_like(value) for key, value in net.state_dict().items()}
    total = {key: torch.zeros_like(value) for key, value in weights.items()}
    began = time.perf_counter()
    for k in range(NAIVE_STORES):
        net.load_state_dict(weights)
        optimiser = torch.optim.SGD(net.parameters(), lr=1.0)
        optimiser.zero_grad()
        F.binary_cross_entropy_with_logits(net(x[k : k + 1]).squeeze(-1), y[k : k + 1]).backward()
        optimiser.step()
        for key, value in net.state_dict().items():
            total[key] += value - weights[key]
    return (time.perf_counter() - began) / NAIVE_STORES * STORES * ROUNDS


def timed(job: Callable[[], object]) -> tuple[float, object]:
    """Seconds and result of a call."""
    began = time.perf_counter()
    result = job()
    return time.perf_counter() - began, result


def main() -> None:
    """Print seconds and ratios."""
    frame = records()
    table = hr.data.Table.from_pandas(frame, target="y")
    stores = hr.simulate(table, hr.data.stores(), seed=0)
    net = hr.learn.linear(FEATURES, 1)
    formula = "y ~ " + " + ".join(f"x{j}" for j in range(FEATURES))

    def fedsgd(collapse: bool) -> object:
        fed = hr.engines.on(stores, hr.InProcess(collapse=collapse))
        return hr.last(hr.learn.fedsgd(fed, net, rounds=ROUNDS, learning_rate=1.0))

    jobs: dict[str, Callable[[], object]] = {
        "distinct": lambda: fedsgd(False),
        "collapsed": lambda: fedsgd(True),
        "newton": lambda: hr.stats.logistic_regression(hr.engines.on(stores, hr.InProcess()), formula),
    }
    for job in jobs.values():
        job()  # the first call compiles and fills caches
    seconds: dict[str, list[float]] = {name: [] for name in ("naive loop", *jobs)}
    results = {}
    for _ in range(REPETITIONS):
        seconds["naive loop"].append(naive(frame))
        for name, job in jobs.items():
            took, results[name] = timed(job)
            seconds[name].append(took)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    exact = results["newton"].coef_  # type: ignore[attr-defined]
    print(f"{STORES} stores of one record, {ROUNDS} rounds, {torch.get_num_threads()} threads, medians of {REPETITIONS}")
    for name, value in median.items():
        gap = ""
        if name in ("distinct", "collapsed"):
            weights = results[name].weights  # type: ignore[attr-defined]
            found = np.concatenate([weights["1.bias"], weights["1.weight"].ravel()])
            gap = f"largest distance to the maximum-likelihood estimate {np.abs(found - exact).max():.1e}"
        extrapolated = " (extrapolated)" if name == "naive loop" else ""
        print(f"  {name:12s} {value:10.3f} s   {median['naive loop'] / value:10,.0f} x the naive loop{extrapolated}   {gap}")


if __name__ == "__main__":
    main()
