import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.data import Column, Schema, Table

schema = Schema(
    (
        Column("age", "integer", low=18, high=110, unit="a"),
        Column("pressure", "number", low=60, high=260, unit="mmHg"),
    )
)


def frames(rng):
    """What a reader of a large file gives: one part after the other."""
    for _ in range(10):
        age = rng.integers(18, 90, 20_000)
        yield pd.DataFrame({"age": age, "pressure": (100 + 0.5 * age + rng.normal(0, 10, len(age))).clip(60, 260)})


hr.data.convert(frames(np.random.default_rng(3)), "visits", schema)
visits = Table.from_files("visits")
print(visits)

hospitals = hr.simulate(visits, hr.data.in_order(parties=20))
print(hr.stats.moments(hospitals).to_frame().round(2)[["n", "mean", "sd"]])
print(hr.stats.linear_regression(hospitals, "pressure ~ age").coef_.round(2))
