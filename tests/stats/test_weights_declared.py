"""Weights count repeated records: a fraction among them is told, or refused where whole numbers are declared."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowWarning, OutOfRange

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"x": RNG.normal(size=80), "w": np.full(80, 0.5)})
FRAME["y"] = FRAME["x"] + RNG.normal(size=80)
WHOLE = {"w": {"kind": "integer", "range": [0, 9]}}


def federation(frame=FRAME, declared=None, **roles):
    table = hr.data.Table.from_pandas(frame, declared=declared).with_roles(**roles)
    return hr.simulate(table, hr.data.iid(parties=4))


def test_weights_that_are_not_declared_whole_are_told():
    plain = hr.stats.linear_regression(federation(), "y ~ x")
    with pytest.warns(HedgerowWarning, match=r"weights 'w' are not declared whole numbers[\s\S]*kind = \"integer\""):
        half = hr.stats.linear_regression(federation(), "y ~ x", weights="w")
    np.testing.assert_allclose(half.se_ / plain.se_, np.sqrt(2), rtol=0.02)  # what the warning is about
    with pytest.warns(HedgerowWarning, match="weights 'w'"):
        hr.stats.linear_regression(federation(weight="w"), "y ~ x")
    with pytest.warns(HedgerowWarning, match="weights 'w'"):
        hr.stats.design_of(federation().schema, "y ~ x", "gaussian", weights="w")


def test_fractions_are_refused_where_whole_numbers_are_declared():
    with pytest.raises(OutOfRange, match="column 'w' has 80 of 80 values not whole, first in record 1"):
        federation(declared=WHOLE)


def test_weights_that_are_declared_whole_are_repeated_records():
    whole = FRAME.assign(w=np.arange(80) % 3)
    found = hr.stats.linear_regression(federation(whole, WHOLE), "y ~ x", weights="w")
    repeated = whole.loc[whole.index.repeat(whole["w"])]
    np.testing.assert_allclose(found.se_, hr.stats.linear_regression(federation(repeated), "y ~ x").se_, rtol=1e-9)
