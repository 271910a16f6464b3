"""Frozen layers keep their values, take no noise, and are released with the others."""

import numpy as np
import pytest
from torch import nn

import hedgerow as hr
from hedgerow.errors import ModelInvalid
from hedgerow.learn import mlp
from hedgerow.learn.features import freeze, trained
from hedgerow.learn.records import dpsgd
from hedgerow.privacy import Gaussian

SCHEMA = hr.data.Schema((hr.data.Column("x", "number", shape=(4,)), hr.data.Column("y", "binary", role="target")))


def federation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    table = hr.data.Table(SCHEMA.admit({"x": x, "y": (x[:, 0] > 0).astype(float)}), SCHEMA)
    return hr.simulate(table, hr.data.iid(parties=3), seed=0).protect(mechanism=Gaussian(1.0))


def test_named_layers_are_frozen_in_a_copy():
    net = mlp(4, [5, 6], 1)
    assert trained(freeze(net, "1", "3.weight")) == ("3.bias", "5.weight", "5.bias")
    assert trained(freeze(net, but=["5"])) == ("5.weight", "5.bias")
    assert len(trained(net)) == 6


def test_freezing_twice_keeps_both():
    assert trained(freeze(freeze(mlp(4, [5], 1), "1"), "3.bias")) == ("3.weight",)


@pytest.mark.parametrize("call", [{}, {"but": ["7"]}, {"but": ["1"], "layers": ["3"]}, {"layers": ["1", "3"]}])
def test_what_leaves_nothing_to_train_or_names_no_layer_is_refused(call):
    with pytest.raises(ModelInvalid, match="HR-510"):
        freeze(mlp(4, [5], 1), *call.get("layers", ()), but=call.get("but", ()))


def test_private_training_moves_only_what_is_not_frozen_and_releases_only_its_sum():
    net = freeze(nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)), but=["3"])
    fed = federation()
    state = list(dpsgd(fed, net, rounds=2, sampling_rate=0.5, batch_size=30))[-1]
    np.testing.assert_array_equal(state.weights["1.weight"], net[1].weight.detach().numpy())
    assert np.abs(state.weights["3.weight"] - net[3].weight.detach().numpy()).max() > 0
    assert {entry.numbers for entry in fed.ledger.entries} == {6}
