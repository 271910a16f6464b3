"""Made-up visits to a clinic with every kind of column, and federations of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core import Federation
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import InProcess, Loop, simulate

SCHEMA = Schema(
    (
        Column("age", "number", unit="years", low=18, high=90),
        Column("dose", "number", unit="mg", low=0.5, high=10),
        Column("visits", "integer", low=0, high=12),
        Column("smoker", "binary"),
        Column("stage", "category", levels=("I", "II", "III")),
        Column("ill", "binary", role="target"),
        Column("arm", "category", role="ignore", levels=("placebo", "drug")),
        Column("pain", "number", role="ignore", low=-20, high=40),
        Column("copies", "integer", role="ignore", low=0, high=4),
        Column("exposure", "number", role="ignore", low=-1, high=1),
        Column("open", "number", role="ignore"),
    )
)

ENGINES = [Loop(), InProcess(threads=1), InProcess(threads=2, collapse=False)]
ENGINE_NAMES = ["loop", "collapse", "stack"]


def clinic(n: int = 300, seed: int = 0) -> Table:
    """Visits whose illness depends on age, dose and stage."""
    rng = np.random.default_rng(seed)
    columns = SCHEMA.synthetic(n, rng)
    eta = 0.05 * (columns["age"] - 54) - 0.2 * (columns["dose"] - 5) + 0.6 * (columns["stage"] == 2)
    columns["ill"] = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    columns["pain"] = np.clip(8 + 0.1 * columns["age"] - columns["dose"] + 3 * rng.normal(size=n), -20, 40)
    return Table(SCHEMA.admit(columns), SCHEMA, name="clinic")


def federation(table: Table | None = None, engine: Any = None, n_parties: int = 8, seed: int = 1) -> Federation:
    """The clinic's visits at some parties."""
    return simulate(clinic() if table is None else table, iid(n_parties), seed=seed, engine=engine or InProcess(threads=1))
