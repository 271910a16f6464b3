"""What public records tell counts them by their weights, and leaves out those that lack a value."""

import numpy as np

import hedgerow as hr
from hedgerow.learn.queries import Inputs, QueryLoss
from hedgerow.market import PilotEstimate


def test_records_count_by_their_weights_and_not_where_a_value_is_missing():
    rng = np.random.default_rng(0)
    a, t, w = rng.uniform(-1, 1, 60), rng.uniform(-1, 1, 60), rng.integers(1, 4, 60).astype(float)
    lacking = np.arange(60) % 5 == 0
    columns = {"a": np.where(lacking, np.nan, a), "t": t, "w": w}
    column = hr.data.Column
    schema = hr.data.Schema(
        (
            column("a", "number", low=-1, high=1, optional=True),
            column("t", "number", "target", low=-1, high=1),
            column("w", "number", "weight", low=0, high=3),
        )
    )
    loss, spec = QueryLoss("squared", 0.1), Inputs(("a",), "t", (0.0,), (1.0,), constant=0.5)
    found = PilotEstimate.of_table(loss, spec, hr.data.Table(schema.admit(columns), schema), 1.0, "public records")
    times = w[~lacking].astype(int)
    x = np.column_stack([np.repeat(a[~lacking], times), np.full(times.sum(), 0.5)])
    repeated = PilotEstimate.of_records(loss, x, np.repeat(t[~lacking], times), 1.0, "")
    for name in ("curvature", "best", "least", "scatter"):
        np.testing.assert_allclose(getattr(found, name), getattr(repeated, name), rtol=1e-9, atol=1e-12, err_msg=name)
    assert found.source == "48 public records"
