"""Layers with `requires_grad_(False)` do not move and do not travel, in every program that trains a module and on every path.

The oracle is a network whose first layer has no parameters: the same numbers are asked, the same weights are learned.
"""

import copy

import numpy as np
import pytest
from frozen_nets import HIDDEN, frozen, twin
from torch import nn

import hedgerow as hr
from hedgerow.errors import MessageRefused, ModelInvalid
from hedgerow.learn import evaluate, evaluate_on, evaluate_personal, evaluate_subnetworks, fedavg, linear, spread, with_weights
from hedgerow.learn.models import Model
from hedgerow.study.catalogue import listing
from hedgerow.study.registry import own
from hedgerow.testing import Subject
from hedgerow.wire.values import Names, pack, unpack
from helpers import ENGINE_NAMES, ENGINES

TRAINERS = [name for name in own() if "hidden" in listing(name).keys and name != "membership"]  # whose state has many models
FROZEN, TRAINED = {"1.weight", "1.bias"}, {"3.weight", "3.bias"}
HERE = Names(("hedgerow", "frozen_nets"))
LOCAL = {"rounds": 2, "learning_rate": 0.3, "batch_size": 20}


def digits(parties=4, records=120):
    return hr.simulate(hr.data.load("digits").take(range(records)), hr.data.iid(parties=parties), seed=0)


def asked(name, net):
    """The last state of a program's case with one of the networks, and the numbers of each question."""
    subject = Subject(listing(name))
    program = {"name": name, **subject.case.settings, "model": f"frozen_nets:{net.__name__}"}
    built = subject.built(study=subject.study(program=program))
    *_, state = subject.states(built)
    return state, [entry.numbers for entry in built.federation.ledger.entries]


@pytest.mark.parametrize("name", TRAINERS)
def test_every_program_trains_and_sends_what_is_not_frozen(name):
    (state, numbers), (wanted, fewer) = asked(name, frozen), asked(name, twin)
    begun = {key: value.detach().numpy() for key, value in frozen(*shape_of(state)).named_parameters()}
    assert set(state.weights) == FROZEN | TRAINED
    for key in FROZEN:
        np.testing.assert_array_equal(state.weights[key], begun[key])
    if name != "local_only":  # which releases no weights but those it began with
        assert any(np.abs(state.weights[key] - begun[key]).max() > 0 for key in TRAINED)
    assert numbers == fewer
    for key in TRAINED:
        np.testing.assert_allclose(state.weights[key], wanted.weights[key], atol=1e-5)


def shape_of(state):
    return state.weights["1.weight"].shape[1], state.weights["3.bias"].shape[0]


def test_there_are_programs_to_try():
    assert {"fedavg", "fedprox", "scaffold", "feddyn", "fednova", "fedopt", "fedbuff", "ditto", "subfedavg"} <= set(TRAINERS)
    assert {"dpsgd", "local_dpsgd", "dp_fedavg", "geyer", "dpsgd_on_features", "admm"} <= set(TRAINERS)


@pytest.mark.parametrize("path", ["auto", "native", "traced", "eager"])
@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_every_path_of_every_engine_leaves_frozen_layers(path, engine):
    net = frozen(64, 10)
    begun = copy.deepcopy(net.state_dict())
    fed = hr.engines.on(digits(12), engine)
    *_, state = fedavg(fed, net, path=path, **LOCAL)
    *_, wanted = fedavg(hr.engines.on(digits(12), hr.Loop()), twin(64, 10), path="eager", **LOCAL)
    for name in FROZEN:
        np.testing.assert_array_equal(state.weights[name], begun[name].numpy())
    for name in TRAINED:
        np.testing.assert_allclose(state.weights[name], wanted.weights[name], atol=5e-5)
    assert {entry.numbers for entry in fed.ledger.entries} == {HIDDEN * 10 + 10 + 1}
    assert all(np.array_equal(value.numpy(), begun[name].numpy()) for name, value in net.state_dict().items())


def test_a_clip_and_its_noise_know_only_of_what_is_trained():
    channel = {"clip": hr.l2(0.05), "mechanism": hr.privacy.Gaussian(1.0)}
    (*_, one), (*_, other) = (fedavg(digits().protect(**channel), net(64, 10), **LOCAL) for net in (frozen, twin))
    for name in TRAINED:
        np.testing.assert_allclose(one.weights[name], other.weights[name], atol=1e-5)


def test_a_run_goes_on_from_a_state_with_the_same_fixed_weights():
    long = LOCAL | {"rounds": 4}
    *_, whole = fedavg(digits(), frozen(64, 10), **long)
    fed = digits()
    *_, half = fedavg(fed, frozen(64, 10), **LOCAL)
    *_, rest = fedavg(fed, frozen(64, 10), start=half, **long)
    for name in FROZEN | TRAINED:
        np.testing.assert_array_equal(rest.weights[name], whole.weights[name])


def test_weights_whose_fixed_part_is_another_are_refused_before_any_party_is_asked():
    *_, half = fedavg(digits(), frozen(64, 10), **LOCAL)
    other, fed = frozen(64, 10), digits()
    nn.init.ones_(other[1].bias)
    with pytest.raises(ModelInvalid, match="HR-510") as caught:
        next(fedavg(fed, other, start=half, **(LOCAL | {"rounds": 3})))
    assert "with_weights" in str(caught.value)
    assert not fed.ledger.entries
    loaded = with_weights(other, half)
    assert not loaded[1].weight.requires_grad
    assert next(fedavg(fed, loaded, start=half, **(LOCAL | {"rounds": 3}))).round == 3


def test_a_module_in_which_nothing_is_trained_is_refused_and_yet_evaluated():
    net, fed = linear(64, 10), digits()
    learned = linear(64, 10)
    nn.init.ones_(learned[1].weight)
    for training in (
        fedavg(fed, net.requires_grad_(False), **LOCAL),
        hr.learn.dpsgd(fed, net, rounds=1, sampling_rate=0.5, batch_size=9),
    ):
        with pytest.raises(ModelInvalid, match="HR-510"):
            next(training)
    assert not fed.ledger.entries
    weights = {name: value.detach().numpy() for name, value in learned.named_parameters()}
    assert evaluate(fed, net, weights) == evaluate(fed, learned, weights)


# ---- elsewhere -------------------------------------------------------------------------------------------------------------
def away(model):
    return unpack(pack(model), HERE)


@pytest.mark.parametrize("loaded", [False, True], ids=["as its factory makes it", "loaded from elsewhere"])
def test_a_model_arrives_with_its_fixed_values(loaded):
    net = frozen(6, 3)
    if loaded:
        nn.init.constant_(net[1].weight, 0.5)
    model = Model(net, "category")
    came = away(model)
    assert came.names == model.names == ("3.weight", "3.bias")
    for name in FROZEN:
        np.testing.assert_array_equal(came.fixed[name].numpy(), model.fixed[name].numpy())
    assert (len(pack(model)) > len(pack(Model(frozen(6, 3), "category")))) == loaded
    np.testing.assert_array_equal(came.initial, model.initial)


def test_a_factory_that_makes_other_fixed_values_there_is_refused(monkeypatch):
    sent = pack(Model(frozen(7, 3), "category"))
    monkeypatch.setattr("frozen_nets.SEED", 4)
    with pytest.raises(MessageRefused, match="ModelInvalid"):
        unpack(sent, HERE)


# ---- weights or a state ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("judge", [evaluate, evaluate_personal, evaluate_subnetworks])
@pytest.mark.parametrize("net", [frozen, linear])
def test_a_state_is_taken_wherever_weights_are(judge, net):
    fed = digits()
    *_, state = fedavg(fed, net(64, 10), **LOCAL)
    assert judge(fed, net(64, 10), state) == judge(fed, net(64, 10), state.weights)


def test_a_state_is_taken_on_a_table_by_spread_and_by_with_weights():
    fed, table, net = digits(), hr.data.load("digits").take(range(30)), linear(64, 10)
    *_, state = fedavg(fed, net, **LOCAL)
    assert evaluate_on(table, net, state) == evaluate_on(table, net, state.weights)
    assert spread(fed, net, state).gradient_variance == spread(fed, net, state.weights).gradient_variance > 0
    np.testing.assert_array_equal(with_weights(net, state)[1].bias.detach().numpy(), state.weights["1.bias"])


@pytest.mark.parametrize(
    "wrong", [3, None, {"1.weight": np.zeros((10, 64))}, {"1.weight": np.zeros((10, 4)), "1.bias": np.zeros(10)}]
)
def test_what_are_no_weights_of_the_module_is_said(wrong):
    fed = digits()
    with pytest.raises(ModelInvalid, match="HR-510"):
        evaluate(fed, linear(64, 10), wrong)
    assert not fed.ledger.entries
