"""FedAvg and FedSGD against a hand-written reference, on every engine, protected, resumed."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import hedgerow as hr
from hedgerow.errors import ModelInvalid, SchemaInvalid, SettingsInvalid
from hedgerow.learn import evaluate, evaluate_on, fedavg, fedsgd, linear, mlp, with_weights
from hedgerow.store import drive, last, load_checkpoint
from helpers import ENGINE_NAMES, ENGINES

FLOAT32 = 2e-5


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4))
    columns = {"x": x, "label": (x @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=90) * 0.3 > 0).astype(float)}
    schema = hr.data.Schema((hr.data.Column("x", "number", shape=(4,)), hr.data.Column("label", "binary", role="target")))
    return hr.data.Table(schema.admit(columns), schema)


@pytest.fixture(scope="module")
def ragged(table):
    return hr.simulate(table, hr.data.dirichlet_quantity(parties=6, alpha=2.0, min_records=3), seed=0)


def sigmoid_gradient(w, x, y):
    error = 1 / (1 + np.exp(-(x @ w[:4] + w[4]))) - y
    return np.append(x.T @ error, error.sum()) / len(y)


def reference(fed, rounds, learning_rate, epochs, batch_size, weighting):
    """Algorithm 1 as a numpy loop, with the parties' own shuffles."""
    w = np.zeros(5)
    for t in range(rounds):
        total, weight = np.zeros(5), 0.0
        for name in fed.members:
            party = fed.engine.held[fed.engine.held.position[name]]
            rng, v, n = fed.streams.stream(t + 1, name, "local"), w.copy(), len(party["x"])
            for order in [rng.permutation(n) for _ in range(epochs)]:
                for start in range(0, n, batch_size or n):
                    batch = order[start : start + (batch_size or n)]
                    v -= learning_rate * sigmoid_gradient(v, party["x"][batch], party["label"][batch])
            share = n if weighting == "records" else 1
            total, weight = total + share * (v - w), weight + share
        w = w + total / weight
    return w


def flat(state):
    return np.append(state.weights["1.weight"].ravel(), state.weights["1.bias"])


@pytest.mark.parametrize("weighting", ["records", "uniform", "expected"])
@pytest.mark.parametrize("batch_size", [4, None])
def test_fedavg_is_algorithm_1(ragged, batch_size, weighting):
    fed = ragged.on(hr.Loop())
    settings = {"learning_rate": 0.3, "epochs": 2, "batch_size": batch_size, "weighting": weighting}
    found = last(fedavg(fed, linear(4, 1), rounds=3, **settings))
    expected = reference(ragged.on(hr.Loop()), 3, **settings)
    np.testing.assert_allclose(flat(found), expected, atol=FLOAT32)


def test_one_epoch_of_one_batch_is_fedsgd(ragged):
    net = linear(4, 1)
    step = last(fedsgd(ragged.on(hr.InProcess()), net, rounds=5, learning_rate=0.5))
    average = last(fedavg(ragged.on(hr.InProcess()), net, rounds=5, learning_rate=0.5, epochs=1, batch_size=None))
    np.testing.assert_allclose(flat(step), flat(average), atol=FLOAT32)


def test_one_party_is_ordinary_sgd(table):
    fed = hr.simulate(table, hr.data.iid(parties=1), seed=0)
    found = last(fedavg(fed, linear(4, 1), rounds=2, batch_size=8))
    np.testing.assert_allclose(flat(found), reference(fed.on(hr.Loop()), 2, 0.1, 1, 8, "records"), atol=FLOAT32)


CHANNELS = {
    "open": {},
    "central": {"clip": hr.l2(0.5), "mechanism": hr.Gaussian(0.3)},
    "local": {"clip": hr.l2(0.5), "mechanism": hr.Gaussian(0.3, at="party")},
    "by key": {"clip": {"update": hr.l2(5.0), "n": hr.linf(30)}, "mechanism": hr.Gaussian(0.01)},
}


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.parametrize(
    "program",
    [partial(fedavg, rounds=3, rate=0.7, epochs=2, batch_size=5), partial(fedsgd, rounds=3)],
    ids=["fedavg", "fedsgd"],
)
def test_every_engine_trains_the_same(ragged, program, engine, channel):
    net = mlp(4, [3], 1)
    one, other = (last(program(ragged.on(on).protect(**CHANNELS[channel]), net)) for on in (hr.Loop(), engine))
    for name in one.weights:
        np.testing.assert_allclose(other.weights[name], one.weights[name], atol=3e-4 if channel != "open" else FLOAT32)


def test_an_update_longer_than_the_clip_is_shortened(ragged):
    fed = ragged.on(hr.InProcess()).protect(clip=hr.l2(0.01))
    found = last(fedavg(fed, linear(4, 1), rounds=1, learning_rate=1.0))
    assert np.linalg.norm(flat(found)) <= 0.01 * (1 + 1e-6)


def test_the_fixed_denominator_is_the_expected_size_of_the_cohort(ragged):
    fed = ragged.on(hr.InProcess(dropped=("party 1", "party 2"))).protect(clip=hr.l2(100.0))
    dropped = last(fedavg(fed, linear(4, 1), rounds=1))
    everybody = last(fedavg(ragged.on(hr.InProcess()).protect(clip=hr.l2(100.0)), linear(4, 1), rounds=1))
    assert fed.expected_size == 6
    assert not np.allclose(flat(dropped), flat(everybody))


def test_a_run_resumes_bit_identically(ragged, tmp_path):
    net, path = mlp(4, [3], 1), tmp_path / "checkpoint"
    program = partial(fedavg, module=net, rate=0.6)
    expected = drive(partial(program, rounds=6), ragged.on(hr.InProcess())).state
    half = ragged.on(hr.InProcess())
    drive(partial(program, rounds=3), half, checkpoint=path)
    start = load_checkpoint(path, type(expected), "")
    again = ragged.on(hr.InProcess())
    again.ledger.entries.extend(half.ledger.entries)
    found = drive(partial(program, rounds=6), again, start=start).state
    for name, value in expected.weights.items():
        np.testing.assert_array_equal(found.weights[name], value)


def test_evaluation_by_sums_is_evaluation_on_the_pooled_table(ragged, table):
    net = linear(4, 1)
    state = last(fedavg(ragged.on(hr.InProcess()), net, rounds=30))
    summed, pooled = evaluate(ragged.on(hr.InProcess()), net, state.weights), evaluate_on(table, net, state.weights)
    assert summed == pytest.approx(pooled)
    assert pooled["accuracy"] > 0.85
    module = with_weights(net, state)
    direct = (module(torch.tensor(table["x"], dtype=torch.float32)).squeeze(-1) > 0).numpy() == table["label"]
    assert pooled["accuracy"] == pytest.approx(direct.mean())


def test_evaluation_through_noise_is_bounded_and_charged(ragged):
    fed = ragged.on(hr.InProcess()).protect(mechanism=hr.Gaussian(0.01))
    found = evaluate(fed, linear(4, 1), {"1.weight": np.ones((1, 4)), "1.bias": np.zeros(1)})
    assert set(found) == {"accuracy", "n"}
    assert fed.ledger.entries[-1].unit == "record"
    assert found["n"] == pytest.approx(90, abs=1)


class Stochastic(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


class Branching(nn.Module):
    """Cannot be stacked: what it computes depends on the data."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else 2 * self.layer(x)


@pytest.mark.parametrize("module", [Stochastic, Branching])
def test_modules_that_cannot_be_stacked_train_the_same_on_every_engine(ragged, module):
    one, other = (last(fedavg(ragged.on(on), module(), rounds=2)) for on in (hr.Loop(), hr.InProcess(threads=2)))
    for name in one.weights:
        np.testing.assert_allclose(other.weights[name], one.weights[name], atol=FLOAT32)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)), "mixes records"),
        (nn.Linear(5, 1), "shape"),
        (nn.Linear(4, 3), "binary target needs"),
        (nn.ReLU(), "no parameters"),
    ],
    ids=["batchnorm", "inputs", "outputs", "nothing to train"],
)
def test_modules_that_do_not_fit_are_refused_before_anybody_is_asked(ragged, module, said):
    fed = ragged.on(hr.InProcess())
    with pytest.raises(ModelInvalid, match=rf"HR-510[\s\S]*{said}"):
        last(fedavg(fed, module, rounds=1))
    assert len(fed.ledger) == 0


def test_a_category_needs_one_output_for_each_level():
    digits = hr.simulate(hr.data.load("digits"), hr.data.iid(parties=3), seed=0)
    with pytest.raises(ModelInvalid, match=r"shape \(2, 5\)"):
        last(fedavg(digits, linear(64, 5), rounds=1))


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"batch_size": -1}, {"learning_rate": -1.0}, {"learning_rate": math.nan}, {"weighting": "votes"}],
    ids=str,
)
def test_settings_out_of_range_are_refused(ragged, wrong):
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        last(fedavg(ragged, linear(4, 1), rounds=1, **wrong))


def test_one_clip_cannot_fit_an_update_and_its_weight(ragged):
    with pytest.raises(SettingsInvalid, match="one clip cannot fit both"):
        last(fedavg(ragged.protect(clip=hr.l2(1.0)), linear(4, 1), rounds=1, weighting="records"))


def test_training_needs_a_target():
    table = hr.data.load("digits").with_roles(target=None, features=["image"])
    table = hr.data.Table(
        table.columns,
        hr.data.Schema(
            (table.schema["image"], hr.data.Column("digit", "category", role="ignore", levels=table.schema["digit"].levels))
        ),
    )
    with pytest.raises(SchemaInvalid, match="target"):
        last(fedavg(hr.simulate(table, hr.data.iid(parties=2)), linear(64, 10), rounds=1))


def test_records_stay_in_the_type_and_the_file_in_which_they_are_kept(tmp_path):
    """Half floats in a read-only memory map: parties share it, and a model is trained from it."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(60, 4)).astype(np.float16))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    clinic = np.repeat(["a", "b", "c"], 20)
    schema = hr.data.Schema(
        (
            hr.data.Column("x", "number", shape=(4,)),
            hr.data.Column("label", "binary", role="target"),
            hr.data.Column("clinic", "category", levels=("a", "b", "c"), role="id"),
        )
    )
    table = hr.data.Table(schema.admit({"x": x, "label": (x[:, 0] > 0).astype(float), "clinic": clinic}), schema)
    fed = hr.simulate(table, hr.data.by_column("clinic"), seed=0)
    state = hr.last(fedavg(fed, linear(4, 1), rounds=20, learning_rate=1.0))
    prepared = next(iter(fed.engine.held._prepared.values()))
    assert np.shares_memory(prepared.columns["model_input"], x)
    assert prepared.columns["model_input"].dtype == np.float16
    assert evaluate(fed, linear(4, 1), state.weights)["accuracy"] > 0.9
