"""Hedgerow: learning from data that must stay where it is.

A server asks parties for bounded sums; what leaves a party is clipped, noised, masked, accounted and recorded.

    import hedgerow as hr
    hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=0)
    fit = hr.stats.logistic_regression(hospitals, "malignant ~ mean_radius + mean_texture + mean_smoothness")
    print(fit.summary())
"""

from __future__ import annotations

import importlib
from typing import Any

from hedgerow import compression, crypto, data, engines, errors, privacy, stats, trees
from hedgerow.core import Federation, Party, l1, l2, linf, local, travels
from hedgerow.crypto import AdditiveShares, PairwiseMasks, PrivFL, SecAgg
from hedgerow.engines import InProcess, Loop, Processes, simulate
from hedgerow.privacy import Budget, Gaussian, Laplace
from hedgerow.store import drive, last

__version__ = "0.1.0"

__all__ = [
    "AdditiveShares",
    "Budget",
    "Federation",
    "Gaussian",
    "InProcess",
    "Laplace",
    "Loop",
    "PairwiseMasks",
    "Party",
    "PrivFL",
    "Processes",
    "SecAgg",
    "compression",
    "crypto",
    "data",
    "drive",
    "engines",
    "errors",
    "l1",
    "l2",
    "last",
    "learn",
    "linf",
    "local",
    "privacy",
    "simulate",
    "stats",
    "travels",
    "trees",
]


def __getattr__(name: str) -> Any:
    if name == "learn":  # needs PyTorch, which is an extra
        return importlib.import_module("hedgerow.learn")
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
