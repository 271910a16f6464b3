"""A kernel machine from sums: random Fourier features with a public seed, then least squares on noisy second moments.

    omega_k <- normal, scale 1 / width; by a public seed            k = 1 .. m
    z       <- (cos omega_k'x, sin omega_k'x) / sqrt(m)             |z| = 1 for every record
    M       <- sum of z z' and z t, behind Gaussian noise           one question; t = 2 y - 1
    theta   <- least squares, ridge of the size of the noise

z'z' comes close to the Gaussian kernel exp(-|x - x'|^2 / (2 width^2)) as m grows, and no record has to leave its party, where a
kernel machine ships its support vectors. Features have length one whatever the records are, so that bounds follow from nothing.

Releases : M, once: 4 m^2 + 2 m numbers.
Unit     : record.
Source   : Rahimi & Recht 2007 (features); Haug 2022, section 4.4, whose machine has no private kernel (`dual_svm`).
           Differs: squared errors of labels instead of a hinge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.question import elementwise, travels
from hedgerow.core.whole import by_column
from hedgerow.data import Schema, Table, load
from hedgerow.errors import BudgetInvalid, NotBinary, SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.stats.columns import schema_of
from hedgerow.stats.private import UnitRows
from hedgerow.stats.private.solving import parts_of, solve_moments
from hedgerow.stats.private.sufficient import ask_moments, norm_of, prepared

MOST = 1000
STEPS = 1 << 13
COSINES: Array = np.cos((np.arange(STEPS) + 0.5) * (2 * math.pi / STEPS))
"""Of the middles of steps; a sine is the cosine of a quarter of a turn before."""


@dataclass(frozen=True)
class FourierState:
    """A fitted machine: coefficients of shape (2 m,), of cosines and then of sines."""

    round: int
    coef: Array


@dataclass(frozen=True)
class FourierRows:
    """What a question of second moments has to know of these rows.

    Attributes
    ----------
    size : int
        Columns, 2 m.
    heaviest : float
        Largest weight of a record.
    """

    size: int
    heaviest: float = 1.0
    numeric: bool = False
    blocks: tuple[()] = ()


@lru_cache(maxsize=8)
def frequencies(d: int, m: int, width: float, seed: int) -> Array:
    """Omega (m, d), by a public seed."""
    return np.random.default_rng([seed, d, m]).normal(scale=1 / width, size=(m, d))


def waves(X: Array, m: int, width: float, seed: int) -> Array:
    """Rows z (..., n, 2 m) of rows X (..., n, d); each follows from its record alone, to the last bit.

    Cosines are looked up among those of `STEPS` equal steps of a turn, since a library's may depend on a number's neighbours.
    """
    columns = np.moveaxis(X, -1, 0)
    turns = [by_column(columns, omega / (2 * math.pi)) for omega in frequencies(X.shape[-1], m, width, seed)]
    steps = np.floor(np.stack(turns, axis=-1) * STEPS).astype(np.int64) % STEPS
    found: Array = np.concatenate([COSINES[steps], COSINES[(steps - STEPS // 4) % STEPS]], axis=-1) / math.sqrt(m)
    return found


@travels
@elementwise
def fourier_rows(columns: Mapping[str, Array], *, m: int, width: float, seed: int) -> dict[str, Array]:
    """Prepare `X` (n, 2 m) of the unit rows `X` (n, d)."""
    return {"X": waves(np.asarray(columns["X"]), m, width, seed)}


def score(settings: Mapping[str, Any], state: FourierState, schema: Schema, table: Table) -> float:
    """Share of a table's records on the right side."""
    rows = _rows(schema, settings)
    X = rows.rows(table.columns, len(table))
    said = waves(X, len(state.coef) // 2, settings["width"], settings["seed"]) @ state.coef > 0
    return float(np.mean(said == (rows.targets(table.columns) > 0.5)))


def watch(settings: Mapping[str, Any], state: Any, schema: Schema, test: Table | None) -> dict[str, float]:
    """Accuracy on the server's table."""
    return {} if test is None else {"test accuracy": score(settings, state, schema, test)}


def _rows(schema: Schema, settings: Mapping[str, Any]) -> UnitRows:
    found = UnitRows.of(settings["formula"], schema)
    if found.numeric:
        raise NotBinary("a machine decides between two classes, and the target is a number.", remedy="Name a binary target.")
    return found


@program(
    "A kernel machine by random Fourier features and noisy second moments (Rahimi & Recht 2007).",
    score=score,
    watch=watch,
    metric=lambda schema: ("accuracy", True),
    case=lambda: Case(
        load("breast_cancer").take(range(150)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "epsilon": 2.0, "delta": 1e-5, "features": 4},
    ),
)
def fourier_machine(
    federation: Federation,
    *,
    formula: str,
    epsilon: float | None = None,
    delta: float | None = None,
    features: int = 100,
    width: float = 0.7,
    seed: int = 0,
    start: FourierState | None = None,
) -> Iterator[FourierState]:
    """Fit a machine in one question.

    Parameters
    ----------
    formula : str
        Of a binary target; every column declares its range.
    epsilon, delta : float, optional
        The budget, with a delta; without it the channel's mechanism is used as it is.
    features : int
        Frequencies m; each is two columns.
    width : float
        Of the Gaussian kernel, in lengths of unit rows.
    seed : int
        Of the frequencies, in public.

    Yields
    ------
    FourierState
        Once.

    Raises
    ------
    SettingsInvalid (HR-511), NotBinary (HR-311), BudgetInvalid (HR-214)
        Before any party is asked.
    """
    if not 1 <= features <= MOST or not width > 0:
        raise SettingsInvalid(f"{features=}, {width=}.", remedy=f"1 to {MOST} features, and a width above zero.")
    unit = _rows(schema_of(federation), {"formula": formula})
    if (epsilon is not None and not delta) or norm_of(federation) == 1:
        raise BudgetInvalid(
            f"epsilon={epsilon!r} and delta={delta!r}, of Laplace noise: rows have a length in l2, which it does not count.",
            remedy="Give a delta: epsilon=1.0, delta=1e-5; a channel's noise is Gaussian.",
        )
    if start is not None:
        return
    records = prepared(federation, unit, planned=epsilon is not None)
    records = records.prepare(fourier_rows, m=features, width=width, seed=seed)
    asked = BudgetShares(epsilon, delta).handles(records, {"moments": Share(1.0)}, begins=True)["moments"]
    parts = parts_of("ssp", labels=True, pure=False)
    rows: Any = FourierRows(2 * features, unit.heaviest)
    moments, level = ask_moments(asked, rows, parts)
    yield FourierState(1, solve_moments("ssp", moments, level / parts.gram))
