"""A trained network predicts for tables and data frames, which it reads as it read those of its training."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import MissingColumn, OutOfRange, SchemaInvalid

SCHEMA = Schema(
    (
        Column("x", "number", low=-3, high=3),
        Column("site", "category", levels=("a", "b", "c")),
        Column("y", "binary", role="target"),
    )
)
FRAME = pd.DataFrame({"site": ["c", "c", "b"], "x": [0.5, -1.0, 2.0]})
NET = nn.Linear(4, 1)


def trained(target="malignant", task=None):
    """A network of two rounds, its federation, and records that it did not see."""
    train, test = hr.data.load("breast_cancer").split(0.8, seed=0)
    hospitals = hr.simulate(train.with_roles(target=target), hr.data.iid(parties=3), seed=0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(len(hospitals.schema.features), 4), nn.ReLU(), nn.Linear(4, 1))
    state = hr.last(hr.learn.fedavg(hospitals, net, rounds=3, learning_rate=0.3, task=task))
    return hospitals, test.with_roles(target=target), net, state


@pytest.mark.parametrize("task", [None, hr.learn.Task(target="malignant", loss="log_loss")])
def test_a_prediction_is_what_an_evaluation_counts(task):
    hospitals, test, net, state = trained(task=task)
    found = hr.learn.predict(test, net, state)
    assert found.shape == (len(test),)
    assert 0 <= found.min() < found.max() <= 1
    accuracy = hr.learn.evaluate_on(test, net, state)["accuracy"]
    assert ((found > 0.5) == test["malignant"]).mean() == pytest.approx(accuracy)
    frame = test.to_pandas().drop(columns="malignant")  # the target is not needed, nor the order
    again = hr.learn.predict(frame[frame.columns[::-1]], net, state, schema=hospitals.schema)
    np.testing.assert_array_equal(again, found)


def test_a_predicted_number_has_the_mean_squared_error_of_an_evaluation():
    _, test, net, state = trained("mean_radius")
    found = hr.learn.predict(test, net, state)
    error = ((found - test["mean_radius"]) ** 2).mean()
    assert error == pytest.approx(hr.learn.evaluate_on(test, net, state)["mean_squared_error"], rel=1e-5)


def test_by_hand_with_levels_in_the_order_of_the_schema():
    weights = {"weight": np.array([[2.0, 0.1, 0.2, 0.3]], np.float32), "bias": np.array([-1.0], np.float32)}
    logits = 2 * FRAME["x"] / 3 + np.array([0.3, 0.3, 0.2]) - 1
    found = hr.learn.predict(FRAME, NET, weights, schema=SCHEMA)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-logits)), rtol=1e-5)
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(hr.learn.predict(pl.DataFrame(FRAME.to_dict("list")), NET, weights, schema=SCHEMA), found)
    without = Table.from_frame(FRAME, schema=SCHEMA.select(["x", "site"]))
    np.testing.assert_array_equal(hr.learn.predict(without, NET, weights, schema=SCHEMA), found)


def test_probabilities_of_a_category_add_up_to_one():
    table = Table.from_frame(FRAME.assign(y=[0, 1, 1]), schema=SCHEMA).with_roles(target="site")
    net = nn.Linear(1, 3)
    found = hr.learn.predict(table, net, net.state_dict(), ["x"])
    with torch.no_grad():
        logits = net(torch.tensor([[0.5], [-1.0], [2.0]]) / 3).numpy()
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)


def test_a_record_that_lacks_a_feature_has_no_prediction():
    weights = {name: value.numpy() for name, value in NET.state_dict().items()}
    lacking = FRAME.assign(x=[0.5, np.nan, 2.0])
    found = hr.learn.predict(lacking, NET, weights, schema=SCHEMA.allowing(missing=True))
    assert np.isnan(found).tolist() == [False, True, False]
    np.testing.assert_array_equal(found[[0, 2]], hr.learn.predict(FRAME, NET, weights, schema=SCHEMA)[[0, 2]])


def test_several_outputs_stay_what_the_module_returns():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(4, 2)

        def forward(self, x):
            found = self.line(x)
            return {"y": found[:, 0], "other": found[:, 1]}

    schema = SCHEMA.with_columns([Column("z", "number", low=0, high=1, role="ignore")])
    net = Two()
    weights = {name: value.numpy() for name, value in net.state_dict().items()}
    task = hr.learn.Task(
        inputs={"x": ["x", "site"]}, target={"y": "y", "other": "z"}, loss={"y": "log_loss", "other": "squared"}
    )
    found = hr.learn.predict(FRAME, net, weights, schema=schema, task=task)
    assert {name: values.shape for name, values in found.items()} == {"y": (3,), "other": (3,)}


def test_what_does_not_fit_the_declaration_is_refused():
    weights = {name: value.numpy() for name, value in NET.state_dict().items()}
    with pytest.raises(SchemaInvalid, match="codes its levels"):
        hr.learn.predict(FRAME, NET, weights)
    with pytest.raises(SchemaInvalid, match="no target"):
        hr.learn.predict(Table.from_frame(FRAME, schema=SCHEMA.select(["x", "site"])), NET, weights)
    with pytest.raises(OutOfRange, match="'d'"):
        hr.learn.predict(FRAME.replace("b", "d"), NET, weights, schema=SCHEMA)
    with pytest.raises(MissingColumn, match="site"):
        hr.learn.predict(FRAME[["x"]], NET, weights, schema=SCHEMA)
