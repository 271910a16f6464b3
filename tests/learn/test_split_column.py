"""A model that reads the column that splits parties is warned of, where nobody named its features."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowWarning
from hedgerow.sklearn import FederatedLogisticRegression

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {"ward": np.repeat(["a", "b", "c"], N // 3), "age": RNG.integers(20, 90, N), "died": RNG.integers(0, 2, N)}
)
AGES = {"age": {"range": [18, 110]}}
WARNED = r"'ward' splits the parties[\s\S]*role=\"ignore\"[\s\S]*features="


def wards(**declared):
    table = hr.data.Table.from_frame(FRAME, target="died", declared=AGES | declared)
    return hr.simulate(table, hr.data.by_column("ward"), seed=0)


PROGRAMS = {
    "fedavg": lambda fed, **more: hr.last(hr.learn.fedavg(fed, hr.learn.linear(4, 1), rounds=1, **more)),
    "dpsgd": lambda fed, **more: hr.last(
        hr.learn.dpsgd(fed, hr.learn.linear(4, 1), rounds=1, sampling_rate=0.5, batch_size=9, clip=1.0, **more)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_network_that_reads_the_wards_by_default_is_warned_of(name):
    with pytest.warns(HedgerowWarning, match=WARNED):
        PROGRAMS[name](wards())


def test_an_estimator_without_a_formula_is_warned_of():
    with pytest.warns(HedgerowWarning, match=WARNED):
        FederatedLogisticRegression().fit(wards())


def test_what_was_said_is_not_warned_of():
    named = partial(hr.learn.fedavg, module=hr.learn.linear(4, 1), rounds=1, features=["ward", "age"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hr.last(named(wards()))
        FederatedLogisticRegression("died ~ age").fit(wards())
        ignored = wards(ward={"role": "ignore"})
        assert ignored.names == ("a", "b", "c")
        hr.last(hr.learn.fedavg(ignored, hr.learn.linear(1, 1), rounds=1))
        FederatedLogisticRegression().fit(ignored)
        dealt = hr.simulate(hr.data.Table.from_frame(FRAME, target="died", declared=AGES), hr.data.iid(parties=3), seed=0)
        PROGRAMS["fedavg"](dealt)
