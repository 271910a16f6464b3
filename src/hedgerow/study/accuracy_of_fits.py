"""What an epsilon costs means and linear or logistic regressions: by how much the noise makes standard errors larger.

    regression    `hedgerow.market.forecasts.noisy_fit`
    mean S / n    error ~ (e_S - mean e_n) / n          in units of half a column's range, about its middle

The noise is that with which the study keeps the budget; the information of a record, and the coefficients, are those of the
records that the server holds out. How many records the parties have follows from the share that is held out: their table is
not counted.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.market.forecasts.noisy_fit import NoisyFit
from hedgerow.privacy.level import noise_level
from hedgerow.stats.columns import NUMERIC, chosen, heaviest, range_of
from hedgerow.stats.design import Design, design, design_of
from hedgerow.stats.linear.asking import ask_for
from hedgerow.stats.linear.losses import FamilyName
from hedgerow.stats.moments import mean_bounds
from hedgerow.stats.noisy import BOUNDED

from .build import Built, build
from .quiet import quiet
from .study import Study

MEANS = "means"
FAMILIES: dict[str, FamilyName] = {"linear_regression": "gaussian", "logistic_regression": "binomial"}
FORECAST = (MEANS, *FAMILIES)
"""Programs of which `errors_of` knows something."""


def errors_of(study: Study, data_dir: str | Path | None) -> tuple[NoisyFit, int] | None:
    """Errors of means or a regression whose mechanism has its noise, and from how many records of the server they are known.

    None where the study is of another program, where records have weights or offsets, or where nobody knows the information.
    """
    share = study.evaluation.holdout
    if not share or study.program.name not in FORECAST:
        return None
    with quiet():
        built = build(study, data_dir=data_dir)
        grows = (1 - share) / share  # records of the parties, for each of the server
        return _of_means(built, grows) if study.program.name == MEANS else _of_regression(built, grows)


def _of_regression(built: Built, grows: float) -> tuple[NoisyFit, int] | None:
    family = FAMILIES[built.study.program.name]
    spec = design_of(built.schema, built.settings["formula"], family)
    if spec.weights is not None or spec.offset is not None or built.settings["offset"] or built.settings["weights"]:
        return None
    asked = ask_for(built.federation, spec, scaled=True)
    x, y = _rows(built, asked.spec)
    beta, information, dispersion = _fit(x, y, family)
    bounds = asked.bounds_at(family, beta, BOUNDED[family], slack=1.0)
    sizes = {"score": spec.size, "information": spec.size**2}
    score, curved = (noise_level(asked.federation, bounds, key, size) for key, size in sizes.items())
    left = beta if family == "gaussian" else None
    return NoisyFit.of(grows * len(y) * information, score, curved, left, dispersion), len(y)


def _of_means(built: Built, grows: float) -> tuple[NoisyFit, int] | None:
    read = chosen(built.schema, built.settings["columns"], NUMERIC)
    ranges, bounds = [range_of(column) for column in read], mean_bounds(read, heaviest(built.schema))
    if bounds is None or built.schema.weight is not None or built.test is None:
        return None
    low, high = np.array(ranges, dtype=float).T
    half = np.where(high > low, (high - low) / 2, 1.0)
    found = (np.stack([np.asarray(built.test[column.name], float) for column in read], axis=1) - (low + high) / 2) / half
    found = found[np.isfinite(found).all(axis=1)]
    n, mean = grows * len(found), found.mean(axis=0)
    each, counted = (noise_level(built.federation, bounds, key, size) for key, size in (("sum", len(read)), ("n", 1)))
    noise = np.sqrt(each**2 + np.square(mean * counted)) / n
    return NoisyFit(found.std(axis=0) / math.sqrt(n), noise, counted > n / 4), len(found)


def _rows(built: Built, spec: Design) -> tuple[Array, Array]:
    """The server's records as rows and targets of a design."""
    assert built.test is not None
    made = design(built.complete(built.test).columns, spec=spec)
    whole = np.isfinite(made["X"]).all(axis=1) & np.isfinite(made["y"])
    return made["X"][whole], made["y"][whole]


def _fit(x: Array, y: Array, family: FamilyName) -> tuple[Array, Array, float]:
    """Coefficients, information of one record without the dispersion, and the dispersion."""
    if family == "gaussian":
        beta = np.linalg.lstsq(x, y, rcond=None)[0]
        return beta, x.T @ x / len(y), float(np.square(y - x @ beta).sum() / max(1, len(y) - x.shape[1]))
    beta = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        means = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        information = (x.T * (means * (1 - means))) @ x / len(y)
        beta = beta + np.linalg.solve(information + 1e-9 * np.eye(len(beta)), x.T @ (y - means) / len(y))
    return beta, information, 1.0


_STEPS = 25
