"""A model is evaluated on a data frame as on the table that the frame becomes."""

import numpy as np
import pandas as pd
import pytest
from torch import nn

from hedgerow.data import Column, Schema, Table
from hedgerow.errors import OutOfRange, SchemaInvalid
from hedgerow.learn import evaluate_on

SCHEMA = Schema(
    (
        Column("x", "number", low=-3, high=3),
        Column("site", "category", levels=("a", "b", "c")),
        Column("y", "binary", role="target"),
    )
)
FRAME = pd.DataFrame({"x": [0.5, -1.0, 2.0], "site": ["c", "c", "b"], "y": [1, 0, 1]})


def test_a_frame_is_read_by_the_schema_of_the_federation():
    pl = pytest.importorskip("polars")
    module = nn.Linear(4, 1)
    weights = {name: value.detach().numpy() for name, value in module.state_dict().items()}
    expected = evaluate_on(Table.from_frame(FRAME, schema=SCHEMA), module, weights)
    assert evaluate_on(pl.DataFrame(FRAME.to_dict("list")), module, weights, schema=SCHEMA) == expected
    with pytest.raises(SchemaInvalid, match="codes its levels"):
        evaluate_on(FRAME, module, weights)
    with pytest.raises(OutOfRange, match="'d'"):
        evaluate_on(FRAME.replace("b", "d"), module, weights, schema=SCHEMA)
    assert np.isfinite(expected["loss"])
