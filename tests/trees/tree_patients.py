"""Made-up patients with every kind of column."""

from __future__ import annotations

import numpy as np

from hedgerow.data import Column, Schema, Table

SCHEMA = Schema(
    (
        Column("age", "number", unit="years", low=18, high=90),
        Column("dose", "number", unit="mg", low=0, high=10),
        Column("visits", "integer", low=0, high=6),
        Column("smoker", "binary"),
        Column("stage", "category", levels=("I", "II", "III", "IV")),
        Column("ill", "binary", role="target"),
        Column("arm", "category", role="ignore", levels=("placebo", "low", "high")),
        Column("days", "number", role="ignore", unit="days", low=-30, high=60),
    )
)


def patients(n: int = 400, seed: int = 0) -> Table:
    """Draw records whose targets depend on the features, with noise."""
    rng = np.random.default_rng(seed)
    columns = SCHEMA.synthetic(n, rng)
    risk = (columns["age"] - 54) / 12 + columns["stage"] - 1.5 + 1.5 * columns["smoker"] * (columns["dose"] > 4)
    columns["ill"] = (risk + rng.normal(size=n) > 0.7).astype(float)
    columns["arm"] = np.clip(np.rint(columns["dose"] / 4 + rng.normal(0, 0.4, n)), 0, 2).astype(np.int16)
    columns["days"] = np.clip(8 * risk + rng.normal(0, 4, n), -30, 60)
    return Table(SCHEMA.admit(columns), SCHEMA)
