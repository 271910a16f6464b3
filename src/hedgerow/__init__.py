"""Hedgerow: learning from data that must stay where it is.

A server asks parties for bounded sums; what leaves a party is clipped, noised, masked, accounted and recorded.

    import hedgerow as hr
    hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=0)
    fit = hr.stats.logistic_regression(hospitals, "malignant ~ mean_radius + mean_texture + mean_smoothness")
    print(fit.summary())
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow import (
        attacks,
        compression,
        crypto,
        data,
        engines,
        errors,
        learn,
        loggers,
        market,
        privacy,
        stats,
        synth,
        trees,
        vertical,
    )
    from hedgerow.core import Case, Declaration, Federation, Key, Party, l1, l2, linf, local, program, travels
    from hedgerow.crypto import AdditiveShares, PairwiseMasks, PrivFL, SecAgg
    from hedgerow.engines import InProcess, Loop, Processes, simulate
    from hedgerow.market import plan
    from hedgerow.privacy import Budget, Gaussian, Laplace
    from hedgerow.store import drive, last

__version__ = "0.1.0"

__all__ = [
    "AdditiveShares",
    "Budget",
    "Case",
    "Declaration",
    "Federation",
    "Gaussian",
    "InProcess",
    "Key",
    "Laplace",
    "Loop",
    "PairwiseMasks",
    "Party",
    "PrivFL",
    "Processes",
    "SecAgg",
    "attacks",
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
    "loggers",
    "market",
    "plan",
    "privacy",
    "program",
    "simulate",
    "stats",
    "synth",
    "travels",
    "trees",
    "vertical",
]

lazily(__name__, checks=True)
