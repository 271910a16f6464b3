"""Train on synthetic, test on real: what was learned, of classes and numbers, and what is refused."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema
from hedgerow.errors import MissingColumn, SchemaInvalid, SettingsInvalid
from hedgerow.synth import tstr

SCHEMA = Schema(
    [
        Column("x", "number", low=0, high=1),
        Column("kind", "category", levels=("a", "b", "c")),
        Column("y", "binary", role="target"),
        Column("z", "number", low=-2, high=4),
    ]
)


def people(n, seed, broken=False):
    rng = np.random.default_rng(seed)
    x, kind = rng.random(n), rng.integers(0, 3, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-8 * (x - 0.5) - 2 * (kind == 1)))).astype(float)
    z = np.clip(2 * x + kind / 2 + rng.normal(0, 0.2, n), -2, 4)
    if broken:
        y = rng.permutation(y)
    return hr.data.Table(SCHEMA.admit({"x": x, "kind": kind.astype(np.int16), "y": y, "z": z}), SCHEMA)


@pytest.fixture(scope="module")
def test():
    return people(600, 1).select(["x", "kind", "y"])


def test_a_table_of_the_same_law_trains_as_well_as_real_records(test):
    real = people(600, 0).select(["x", "kind", "y"])
    found = tstr(people(600, 2).select(["x", "kind", "y"]), test, real=real)
    assert found.measure == "accuracy"
    assert found.tested == 600
    frame = found.to_frame()
    assert frame.shape == (2, 2)
    assert (abs(frame["made-up records"] - frame["real records"]) < 0.04).all()
    assert frame.loc["logistic"].min() > 0.75


def test_a_table_whose_target_was_shuffled_trains_nothing(test):
    found = tstr(people(600, 2, broken=True).select(["x", "kind", "y"]), test)
    assert max(found.scores.values()) < 0.65
    assert "logistic on made-up records" in repr(found)
    assert set(found.named()) == {f"accuracy, {one} on made-up records" for one in ("logistic", "boosting")}


def test_a_number_is_scored_by_r2():
    found = tstr(people(600, 2), people(400, 3), target="z")
    assert found.measure == "R2"
    assert found.scores["linear", "made-up records"] > 0.8


def test_made_up_records_of_one_class_predict_that_class(test):
    made = people(300, 2).select(["x", "kind", "y"])
    made = made.take(made["y"] == 1)
    found = tstr(made, test)
    assert set(found.scores.values()) == {test["y"].mean()}


def test_what_cannot_be_tested_is_refused(test):
    made = people(50, 0).select(["x", "kind", "y"])
    with pytest.raises(SettingsInvalid, match="no target"):
        tstr(made.select(["x", "kind"]), test)
    with pytest.raises(SettingsInvalid, match="no made-up records"):
        tstr(made.take([]), test)
    with pytest.raises(MissingColumn):
        tstr(made, test.select(["x", "y"]))
    other = Schema([*SCHEMA.select(["x", "y"]), Column("kind", "category", levels=("b", "a", "c"))])
    with pytest.raises(SchemaInvalid, match="kind"):
        tstr(made, hr.data.Table(other.admit({"x": [0.5], "kind": ["a"], "y": [1.0]}), other))
