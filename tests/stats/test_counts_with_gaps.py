"""Counts of levels leave out records without a weight."""

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.data import Table


def test_a_record_without_a_weight_counts_for_nothing():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"g": rng.choice(list("abc"), 200), "w": rng.integers(1, 4, 200).astype(float)})
    frame.loc[:9, "w"] = np.nan
    frame.loc[5:19, "g"] = None
    declared = {"g": {"levels": ["a", "b", "c"]}, "w": {"kind": "integer", "low": 1, "high": 3, "role": "weight"}}
    table = Table.from_pandas(frame, declared=declared, missing="drop")
    federation = hr.simulate(table, hr.data.iid(parties=3), seed=1)
    found = hr.stats.counts(federation, ["g"])["count"].to_numpy()
    np.testing.assert_array_equal(found, frame.dropna().groupby("g")["w"].sum())
    assert len(federation.ledger) == 1
