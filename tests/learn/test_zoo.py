"""The zoo: sizes of the papers, initial weights, training on every engine, refusals, and names in studies."""

import math
import zlib

import numpy as np
import pytest
import torch
from clinics import clinics
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

import hedgerow as hr
from hedgerow.errors import ModelInvalid, SettingsInvalid
from hedgerow.learn import ZOO, evaluate, fedavg, lenet, lstm, mcmahan_cnn, resnet18, two_nn
from hedgerow.learn.models import Model
from hedgerow.learn.results import MODEL, module_for

SIZES = {
    ("logistic", (28, 28), 10): 7_850,
    ("two_nn", (28, 28), 10): 199_210,
    ("he_net", (28, 28), 10): 25_450,
    ("geyer_net", (28, 28), 10): 531_400,
    ("mcmahan_cnn", (28, 28), 10): 1_663_370,
    ("lenet", (3, 32, 32), 10): 62_006,
    ("lenet", (28, 28), 10): 44_426,
    ("resnet18", (3, 32, 32), 10): 11_173_962,
    ("lstm", (9, 128), 6): 19_334,
}
SMALL = {
    "logistic": (5,),
    "two_nn": (3, 4),
    "he_net": (3, 4),
    "geyer_net": (3, 4),
    "mcmahan_cnn": (8, 8),
    "lenet": (2, 17, 16),
    "lstm": (3, 6),
    "resnet18": (3, 8, 8),
}
EACH = [pytest.param(name, marks=[pytest.mark.slow] * (name == "resnet18")) for name in SMALL]
TRACED = [pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
LEVELS = ("0", "1", "2")


def records(shape, n=8):
    rng = np.random.default_rng(zlib.crc32(str(shape).encode()))
    return rng.normal(size=(n, *shape)).astype(np.float32), rng.integers(3, size=n)


def schema_of(shape, **target):
    target = {"kind": "category", "levels": LEVELS} | target
    return hr.data.Schema((hr.data.Column("x", "number", shape=shape), hr.data.Column("level", role="target", **target)))


def federation(shape):
    (x, level), schema = records(shape), schema_of(shape)
    table = hr.data.Table(schema.admit({"x": x, "level": level}), schema)
    return hr.simulate(table, hr.data.iid(parties=2), seed=0)


def slope(module, x, level):
    """Initial weights, and the gradient of the mean loss as a function of flat weights."""
    model, x, level = Model(module, "category"), torch.from_numpy(x), torch.from_numpy(level)
    return torch.from_numpy(model.initial), grad(lambda w: model.losses(w, x, level).mean())


# ---- architectures and initial weights -------------------------------------------------------------------------------
@pytest.mark.parametrize(("case", "size"), SIZES.items(), ids=lambda value: str(value[0]) if isinstance(value, tuple) else "")
def test_a_model_has_its_papers_number_of_parameters(case, size):
    name, shape, n_outputs = case
    assert sum(weight.numel() for weight in ZOO[name](shape, n_outputs).parameters()) == size


def test_every_model_of_the_zoo_is_tested():
    assert {name for name, _, _ in SIZES} == set(SMALL) == set(ZOO)


@pytest.mark.parametrize("name", EACH)
def test_the_seed_decides_the_initial_weights_and_leaves_torchs_generator_alone(name):
    before = torch.get_rng_state()
    one, again, other = (Model(ZOO[name](SMALL[name], 3, seed=seed), "category").initial for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert np.array_equal(one, other) == (name == "logistic")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", EACH)
def test_a_model_keeps_nothing_but_parameters(name):
    module = ZOO[name](SMALL[name], 3)
    assert list(module.buffers()) == []
    assert not Model(module, "category").stochastic


def test_geyers_weights_are_cut_at_two_standard_deviations():
    weight = ZOO["geyer_net"]((28, 28), 10).hidden1.weight.detach().numpy() * math.sqrt(784)
    assert 1.99 < np.abs(weight).max() <= 2
    assert weight.std() == pytest.approx(0.8796, abs=0.005)  # of a standard normal cut at two


@pytest.mark.slow
def test_resnets_convolutions_start_with_the_variance_of_he():
    for part in resnet18((3, 8, 8), 3).modules():
        if isinstance(part, nn.Conv2d):
            assert part.weight.std().item() == pytest.approx(math.sqrt(2 / part.weight[0].numel()), rel=0.06)


def test_resnet_reduces_an_image_three_times_and_not_at_its_stem():
    net, sizes = resnet18((3, 32, 32), 10), {}
    for name, part in net.named_children():
        part.register_forward_hook(lambda module, given, made, name=name: sizes.update({name: tuple(made.shape[1:])}))
    with torch.no_grad():
        net(torch.zeros(1, 3, 32, 32))
    assert [sizes[name] for name in ("stem", "stage1", "stage2", "stage3", "stage4")] == [
        (64, 32, 32),
        (64, 32, 32),
        (128, 16, 16),
        (256, 8, 8),
        (512, 4, 4),
    ]


@pytest.mark.slow
def test_the_lstm_is_torchs():
    ours, theirs = lstm((3, 6), 2, hidden=5), nn.LSTM(3, 5, batch_first=True)
    weights = {"weight_ih_l0": ours.gates.weight, "bias_ih_l0": ours.gates.bias, "weight_hh_l0": ours.recall.weight}
    theirs.load_state_dict(weights | {"bias_hh_l0": torch.zeros(20)})
    x = torch.from_numpy(records((3, 6))[0])
    torch.testing.assert_close(ours(x), ours.output(theirs(x.transpose(1, 2))[0][:, -1]))


@pytest.mark.parametrize("build", [mcmahan_cnn, lenet], ids=lambda build: build.__name__)
def test_a_grey_image_needs_no_channel_axis(build):
    x = torch.from_numpy(records((16, 16))[0])
    without, with_one = build((16, 16), 3), build((1, 16, 16), 3)
    torch.testing.assert_close(functional_call(without, dict(with_one.named_parameters()), (x,)), with_one(x[:, None]))


# ---- through the waist -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EACH)
def test_the_gradient_reaches_every_parameter(name):
    x, level = records(SMALL[name])
    module = ZOO[name](SMALL[name], 3)
    nn.functional.cross_entropy(module(torch.from_numpy(x)), torch.from_numpy(level)).backward()
    assert [key for key, weight in module.named_parameters() if not weight.grad.any()] == []


@pytest.mark.parametrize("name", EACH)
def test_the_output_of_a_record_is_its_own(name):
    x, _ = records(SMALL[name])
    module = ZOO[name](SMALL[name], 3)
    with torch.no_grad():
        together, alone = module(torch.from_numpy(x)), module(torch.from_numpy(x[:1]))
    torch.testing.assert_close(together[:1], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", EACH)
def test_copies_can_be_trained_in_one_call(name):
    (w, ask), step = slope(ZOO[name](SMALL[name], 3), *records(SMALL[name])), 1e-3
    both = torch.stack([w, w + step])
    torch.testing.assert_close(vmap(ask)(both), torch.stack([ask(v) for v in both]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", TRACED)
def test_a_step_can_be_traced(name):
    w, ask = slope(ZOO[name](SMALL[name], 3), *records(SMALL[name]))
    torch.testing.assert_close(make_fx(ask)(w)(w + 0.01), ask(w + 0.01))


@pytest.mark.parametrize("name", TRACED)
def test_a_round_moves_every_parameter_on_every_engine_alike(name):
    fed, module = federation(SMALL[name]), ZOO[name](SMALL[name], 3)
    ways = [(hr.Loop(), "eager"), (hr.InProcess(), "auto")]
    settings = {"rounds": 1, "batch_size": 2, "learning_rate": 0.01}
    states = [hr.last(fedavg(hr.engines.on(fed, on), module, path=path, **settings)) for on, path in ways]
    for key, weight in module.named_parameters():
        assert not np.array_equal(states[0].weights[key], weight.detach())
        np.testing.assert_allclose(states[0].weights[key], states[1].weights[key], atol=5e-5)
    assert 0 <= evaluate(fed, module, states[0].weights)["accuracy"] <= 1


@pytest.mark.slow
def test_an_lstm_learns_the_direction_of_time():
    """A party's records rise or fall; only their order tells which."""
    steps = np.linspace(-1, 1, 12)
    x = np.stack([np.random.default_rng(i).permutation(12) * 0.01 + steps * (-1) ** i for i in range(40)])[:, None]
    schema = schema_of((1, 12), kind="binary", levels=())
    table = hr.data.Table(schema.admit({"x": x, "level": np.arange(40) % 2}), schema)
    fed, module = hr.simulate(table, hr.data.iid(parties=4), seed=0), lstm((1, 12), 1, hidden=4)
    state = hr.last(fedavg(fed, module, rounds=5, learning_rate=0.5, epochs=2))
    assert evaluate(fed, module, state.weights)["accuracy"] == 1


# ---- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("two_nn", ()),
        ("logistic", (0, 3)),
        ("mcmahan_cnn", (3, 32)),
        ("lenet", (784,)),
        ("lenet", (28, 28, 1)),
        ("lenet", (15, 28)),
        ("resnet18", (1, 3, 32, 32)),
        ("lstm", (128,)),
        ("lstm", (1, 9, 128)),
    ],
    ids=str,
)
def test_a_shape_that_does_not_fit_is_refused_with_what_is_needed(name, shape):
    with pytest.raises(ModelInvalid) as caught:
        ZOO[name](shape, 3)
    assert name in caught.value.reason
    assert str(shape) in caught.value.reason
    assert "It needs" in caught.value.remedy


@pytest.mark.parametrize("name", SMALL)
def test_a_model_without_outputs_is_refused(name):
    with pytest.raises(ModelInvalid, match="0 outputs"):
        ZOO[name](SMALL[name], 0)


def test_an_lstm_without_a_state_is_refused():
    with pytest.raises(SettingsInvalid, match="0 units"):
        lstm((9, 128), 6, hidden=0)


# ---- names in studies ------------------------------------------------------------------------------------------------
def named(model, shape, **more):
    return module_for(schema_of(shape), {"model": model, "hidden": [4], "model_seed": 0, **more})


@pytest.mark.parametrize("name", EACH)
def test_a_study_names_a_model_of_the_zoo(name):
    found, expected = named(name, SMALL[name], model_seed=3), ZOO[name](SMALL[name], 3, seed=3)
    for one, other in zip(found.parameters(), expected.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", ZOO)
def test_the_key_of_a_study_lists_the_zoo(name):
    assert name in MODEL["model"].meaning


def by_shape(shape, n_outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1], n_outputs))


def by_count(n_inputs, n_outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, n_outputs))


def broken(n_inputs, n_outputs):
    raise KeyError("width")


@pytest.mark.parametrize("factory", [by_shape, by_count], ids=lambda factory: factory.__name__)
def test_a_factory_is_given_a_shape_or_a_number_of_inputs(factory):
    assert named(f"{__name__}:{factory.__name__}", (3, 4))[1].weight.shape == (3, 12)


def test_a_builder_of_the_zoo_has_an_import_path():
    found = named("hedgerow.learn:two_nn", (3, 4))
    assert [weight.shape for weight in found.parameters()] == [weight.shape for weight in two_nn((3, 4), 3).parameters()]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("lennet", "Did you mean 'lenet'"),
        ("transformer", "neither a known name nor an import path"),
        ("transformer", "package.module:factory"),
        ("nowhere.at_all:net", "cannot be imported"),
        ("hedgerow.learn:lennet", "cannot be imported"),
        (".learn:lenet", "cannot be imported"),
        ("hedgerow.learn:ZOO", "is a dict"),
        ("builtins:max", "made a int"),
        (f"{__name__}:broken", r"broken\(12, 3\) failed: KeyError"),
    ],
)
def test_a_model_that_cannot_be_made_is_refused(model, said):
    with pytest.raises(ModelInvalid, match=rf"HR-510[\s\S]*{said}"):
        named(model, (3, 4))


@pytest.mark.parametrize("name", ZOO)
def test_a_number_in_place_of_a_shape_is_refused(name):
    with pytest.raises(ModelInvalid, match=r"shape is 30[\s\S]*Give a tuple, such as \(30,\)"):
        ZOO[name](30, 1)


def test_a_shape_that_does_not_fit_is_refused_before_anybody_is_asked():
    fed = clinics()
    with pytest.raises(ModelInvalid, match="lenet cannot read"):
        module_for(fed.schema, {"model": "lenet", "hidden": [], "model_seed": 0})
    assert len(fed.ledger) == 0
