"""A tree does not predict for records of which it lacks a feature, and its score leaves them out."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.errors import NotFinite
from hedgerow.trees.results import score

DECLARED = {
    "x": {"kind": "number", "range": [0, 1]},
    "g": {"levels": ["a", "b", "c"]},
    "d": {"kind": "binary", "role": "target"},
}


@pytest.fixture(params=[False, True], ids=["whole", "with gaps"])
def grown(request):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.uniform(0, 1, 300), "g": rng.choice(list("abc"), 300)})
    frame["d"] = (frame["x"] > 0.5).astype(float)
    if request.param:
        frame.loc[:20, "x"], frame.loc[20:30, "g"] = np.nan, None
    table = Table.from_pandas(frame, declared=DECLARED, missing="drop")
    return hr.trees.decision_tree(hr.simulate(table, hr.data.iid(parties=3), seed=1), target="d", depth=2)


@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize(("x", "g", "column"), [(np.nan, "a", "x"), (0.3, None, "g")])
def test_a_missing_value_is_refused_and_its_column_is_named(grown, x, g, column, as_table):
    data = pd.DataFrame({"x": [0.1, 0.9, x], "g": ["a", "b", g], "d": [0.0, 1.0, 0.0]})
    assert grown.predict(data[:2]).tolist() == [0, 1]
    if as_table:
        data = Table.from_pandas(data, declared=DECLARED, missing="drop")
    for predict in (grown.predict, grown.probabilities):
        with pytest.raises(NotFinite, match=rf"\b{column}\b"):
            predict(data)


def test_the_score_is_that_of_whole_records(grown):
    frame = pd.DataFrame({"x": [0.1, 0.9, np.nan, 0.2], "g": ["a", "b", "c", None], "d": [0.0, 0.0, 1.0, 1.0]})
    table = Table.from_pandas(frame, declared=DECLARED, missing="drop")
    settings = {"features": ["x", "g"], "target": "d", "n_bins": 32}
    assert score(settings, grown.state, table.schema, table) == 0.5
