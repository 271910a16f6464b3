"""Sub-FedAvg against a numpy loop, FedAvg, every engine, protected, resumed; and pruning by itself."""

from functools import partial

import numpy as np
import pytest
import torch
from clinics import SCHEMA, clinics, flat, gradient
from torch import nn

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import evaluate, evaluate_subnetworks, fedavg, linear, mlp, subfedavg, with_weights
from hedgerow.learn.models import Model
from hedgerow.learn.pruning import Pruning
from hedgerow.store import drive, load_checkpoint
from helpers import ENGINE_NAMES, ENGINES, kept_by, party_of, run_of

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}
ALWAYS = {"least_accuracy": 0.0, "least_change": 0.0}
FLOAT32 = 5e-5


@pytest.fixture(scope="module")
def parties():
    return clinics()


def run(parties, rounds=4, engine=None, module=None, **settings):
    fed = hr.engines.on(parties, engine or hr.InProcess())
    return hr.last(subfedavg(fed, module or linear(4, 1), rounds=rounds, **{**LOCAL, **settings}))


def masks(fed):
    return {name: state["kept"] for name, state in kept_by(fed).items()}


# ---- against the box -------------------------------------------------------------------------------------------------
def by_hand(fed, rounds, share, step, least_accuracy, least_change, by_records=False):
    """The box of the module for four slopes and an intercept, which stays; also the masks."""
    x, kept = np.zeros(5), {name: np.ones(5) for name in fed.members}
    for t in range(rounds):
        total, count = np.zeros(5), np.zeros(5)
        for name in fed.members:
            m, party = kept[name], party_of(fed, name)
            ends = []
            for epochs in (1, 2):
                ends.append(masked_descent(fed, name, t + 1, m * x, m, {**LOCAL, "epochs": epochs}))
            early, y = (one_step(end, m, share, step) for end in ends)
            right = ((party["x"] @ (ends[1] * y)[:4] + (ends[1] * y)[4] > 0) == (party["label"] > 0.5)).mean()
            if (early != y)[:4].mean() >= least_change and right >= least_accuracy:
                kept[name] = y
            n = len(party["x"]) if by_records else 1
            total, count = total + n * kept[name] * (ends[1] - m * x), count + n * kept[name]
        x = x + np.divide(total, count, out=np.zeros(5), where=count > 0)
    return x, kept


def masked_descent(fed, name, round, w, m, local):
    """Local SGD of one party as a numpy loop, with its own shuffles; only what the mask keeps moves."""
    party = party_of(fed, name)
    rng, v, n = run_of(fed).streams.stream(round, name, "local"), w.copy(), len(party["x"])
    for order in [rng.permutation(n) for _ in range(local["epochs"])]:
        for start in range(0, n, local["batch_size"]):
            batch = order[start : start + local["batch_size"]]
            v = v - local["learning_rate"] * m * gradient(v, party["x"][batch], party["label"][batch])
    return v


def one_step(w, m, share, step):
    """Drop the smallest slopes that are left, one by one."""
    m, left = m.copy(), int(m[:4].sum())
    for _ in range(min(int(np.ceil(step * left)), left - int(np.ceil((1 - share) * 4)))):
        m[min(np.flatnonzero(m[:4]), key=lambda j: abs(w[j]))] = 0
    return m


BOXES = {
    "always": {"share": 0.5, "step": 0.1, **ALWAYS},
    "in one go": {"share": 0.75, "step": 0.7, **ALWAYS},
    "when accurate": {"share": 0.75, "step": 0.3, "least_accuracy": 0.8, "least_change": 0.0},
    "when undecided": {"share": 0.75, "step": 0.3, "least_accuracy": 0.0, "least_change": 0.1},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOXES)
def test_the_algorithm_is_its_papers_box(parties, name):
    fed = hr.engines.on(parties, hr.InProcess())
    found = hr.last(subfedavg(fed, linear(4, 1), rounds=4, **LOCAL, **BOXES[name]))
    x, kept = by_hand(hr.engines.on(parties, hr.Loop()), 4, **BOXES[name])
    for party, mask in masks(fed).items():
        np.testing.assert_array_equal(mask, kept[party])
    np.testing.assert_allclose(flat(found), x, atol=FLOAT32)
    assert found.sent == pytest.approx(np.mean([mask.sum() for mask in kept.values()]))
    assert found.sparsity == pytest.approx(1 - found.sent / 5)
    if name.startswith("when"):  # some parties prune and others do not, so both tests decide something
        assert len({mask.sum() for mask in kept.values()}) > 1


def test_parties_may_count_by_records(parties):
    found = run(parties, weighting="records", **BOXES["always"])
    x, _ = by_hand(hr.engines.on(parties, hr.Loop()), 4, **BOXES["always"], by_records=True)
    np.testing.assert_allclose(flat(found), x, atol=FLOAT32)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"share": 0.0}, {"step": 0.0}, {"least_change": 1.0}], ids=str)
def test_without_pruning_it_is_fedavg_of_equal_parties(parties, settings):
    average = hr.last(fedavg(hr.engines.on(parties, hr.InProcess()), linear(4, 1), rounds=4, weighting="uniform", **LOCAL))
    found = run(parties, **{**ALWAYS, **settings})
    np.testing.assert_array_equal(flat(found), flat(average))
    assert (found.sent, found.sparsity) == (5.0, 0.0)


def test_what_nobody_keeps_stays_as_it_was(parties):
    start = linear(4, 1)
    with torch.no_grad():
        start[1].weight.copy_(torch.tensor([[1.0, -1.0, 0.5, 1e-6]]))
    found = run(parties, rounds=2, module=start, step=0.01, share=0.25, learning_rate=1e-7, **ALWAYS)
    assert found.weights["1.weight"][0, 3] == np.float32(1e-6)
    assert found.sent == 4.0


# ---- pruning by itself -----------------------------------------------------------------------------------------------
def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 6), nn.ReLU(), nn.Linear(6, 1))


def cut(pruning, module, times):
    model = Model(module, "binary")
    kept = np.ones(len(model.initial), bool)
    for _ in range(times):
        for layers, share in pruning.kinds(model):
            kept = pruning.cut(model.initial, kept, layers, share)
    return model, {name: mask.astype(bool) for name, mask in model.named(kept).items()}


def test_weights_are_pruned_within_their_layer_until_the_share_is_reached():
    model, kept = cut(Pruning(share=0.5, step=0.2), convolutional(), 10)
    for name, shape in zip(model.names, model.shapes, strict=True):
        whole, mask, w = shape.numel(), kept[name], np.abs(model.named(model.initial)[name])
        assert mask.sum() == (whole if "bias" in name else whole / 2)
        assert mask.all() or w[~mask].max() < w[mask].min()


def test_weights_may_be_ranked_over_all_layers():
    model, kept = cut(Pruning(share=0.5, step=0.2, per_layer=False), convolutional(), 10)
    w = model.named(model.initial)
    pruned, left = (np.concatenate([np.abs(w[n])[kept[n] == flag] for n in kept if "weight" in n]) for flag in (False, True))
    assert len(pruned) == len(left)
    assert pruned.max() < left.min()
    assert kept["0.weight"].mean() != kept["3.weight"].mean()


def test_a_step_is_a_share_of_what_is_left():
    left = [cut(Pruning(share=0.9, step=0.25), mlp(8, [], 1), times)[1]["1.weight"].sum() for times in range(4)]
    assert left == [8, 6, 4, 3]


def test_filters_are_pruned_whole_with_their_biases():
    model, kept = cut(Pruning(share=0.5, step=0.3, filters=0.5), convolutional(), 5)
    w, filters = model.named(model.initial), kept["0.weight"].all((1, 2, 3))
    size = np.abs(w["0.weight"]).sum((1, 2, 3)) + np.abs(w["0.bias"])
    assert filters.sum() == 2
    assert size[~filters].max() < size[filters].min()
    np.testing.assert_array_equal(kept["0.weight"].any((1, 2, 3)), filters)
    np.testing.assert_array_equal(kept["0.bias"], filters)
    assert kept["3.weight"].mean() == 0.5
    x = torch.rand(3, 1, 4, 4)
    channels = with_weights(model.module, {name: w[name] * mask for name, mask in kept.items()})[0](x)
    assert (channels[:, ~filters] == 0).all()


def test_stacked_masks_are_those_of_each_party():
    rng, pruning, model = np.random.default_rng(0), Pruning(share=0.6, step=0.4), Model(mlp(5, [4], 1), "binary")
    w, kept = rng.normal(size=(3, 29)), np.ones((3, 29), bool)
    kept[0, :7] = False
    layers, share = pruning.kinds(model)[0]
    together = pruning.cut(w, kept, layers, share)
    for k in range(3):
        np.testing.assert_array_equal(together[k], pruning.cut(w[k], kept[k], layers, share))


def images(parties=3):
    rng = np.random.default_rng(0)
    columns = {"image": rng.random((60, 1, 4, 4)), "label": rng.integers(0, 2, 60).astype(float)}
    schema = hr.data.Schema(
        (hr.data.Column("image", "number", shape=(1, 4, 4)), hr.data.Column("label", "binary", role="target"))
    )
    return hr.simulate(hr.data.Table(schema.admit(columns), schema), hr.data.iid(parties=parties), seed=0)


@pytest.mark.slow
def test_whole_filters_are_left_out_of_training_and_of_what_is_sent():
    fed = images()
    found = hr.last(subfedavg(fed, convolutional(), rounds=3, filters=0.5, step=0.5, **LOCAL, **ALWAYS))
    for mask in masks(fed).values():
        assert mask[:36].reshape(4, 9).all(1).sum() == 2
    assert found.sent == 2 * 10 + 48 + 6 + 3 + 1


# ---- held-out records ------------------------------------------------------------------------------------------------
def validated(wrong):
    """Three parties, a quarter of whose records are held out; those of the `wrong` parties have the other label."""
    rng, schema = np.random.default_rng(0), hr.data.Schema((*SCHEMA.columns, hr.data.Column("later", "binary")))
    tables = {}
    for name in ("a", "b", "c"):
        x, later = rng.normal(size=(40, 4)), (np.arange(40) % 4 == 0).astype(float)
        label = (x @ [3.0, -3.0, 1.0, 0.0] > 0).astype(float)
        label = np.where((later == 1) & (name in wrong), 1 - label, label)
        tables[name] = hr.data.Table(schema.admit({"x": x, "label": label, "later": later}), schema)
    return hr.simulate(tables, seed=0)


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_held_out_records_decide_whether_a_party_prunes(engine):
    fed = hr.engines.on(validated(wrong="bc"), engine)
    hr.last(subfedavg(fed, linear(4, 1), rounds=3, held_out="later", least_accuracy=0.7, least_change=0, step=0.5, **LOCAL))
    assert {name: int(mask.sum()) for name, mask in masks(fed).items()} == {"a": 3, "b": 5, "c": 5}


def test_subnetworks_are_scored_each_with_its_own_mask():
    fed = validated(wrong="")
    state = hr.last(subfedavg(fed, linear(4, 1), rounds=3, share=0.75, step=0.5, held_out="later", **LOCAL, **ALWAYS))
    found = evaluate_subnetworks(fed, linear(4, 1), state.weights, held_out="later")
    right = 0
    for name, mask in masks(fed).items():
        party = party_of(fed, name)
        w, seen = flat(state) * mask, party["later"] == 1
        right += ((party["x"] @ w[:4] + w[4] > 0) == (party["label"] == 1))[seen].sum()
    assert found["n"] == 30
    assert found["accuracy"] == pytest.approx(right / 30)
    assert found["loss"] != evaluate(fed, linear(4, 1), state.weights, held_out="later")["loss"]


def test_a_subnetwork_before_any_pruning_is_the_model(parties):
    weights = {"1.weight": np.ones((1, 4)), "1.bias": np.zeros(1)}
    fed = hr.engines.on(parties, hr.InProcess())
    assert evaluate_subnetworks(fed, linear(4, 1), weights) == pytest.approx(evaluate(fed, linear(4, 1), weights))


# ---- as every algorithm ----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_every_engine_trains_the_same(parties):
    settings = {"module": mlp(4, [3], 1), "rate": 0.7, "least_accuracy": 0.6, "least_change": 0.01, "step": 0.3}
    one, *others = (run(parties, engine=on, **settings) for on in ENGINES)
    for engine, other in zip(ENGINE_NAMES[1:], others, strict=True):
        for key, value in one.weights.items():
            np.testing.assert_allclose(other.weights[key], value, atol=FLOAT32, err_msg=engine)
        assert other.sparsity == pytest.approx(one.sparsity)
    assert one.sparsity > 0.05


@pytest.mark.slow
def test_a_run_resumes_bit_identically(parties, tmp_path):
    program = partial(subfedavg, module=mlp(4, [3], 1), rate=0.6, **LOCAL, **ALWAYS)
    expected = drive(partial(program, rounds=5), hr.engines.on(parties, hr.InProcess())).state
    half = hr.engines.on(parties, hr.InProcess())
    drive(partial(program, rounds=2), half, checkpoint=tmp_path / "c")
    again = hr.engines.on(parties, hr.InProcess())
    run_of(again).ledger.entries.extend(half.ledger.entries)
    found = drive(partial(program, rounds=5), again, start=load_checkpoint(tmp_path / "c", type(expected), "")).state
    for key, value in expected.weights.items():
        np.testing.assert_array_equal(found.weights[key], value)
    assert (found.sent, found.sparsity) == (expected.sent, expected.sparsity)


CLIPS = {"one": hr.l2(0.5), "by key": {"update": hr.l2(0.5), "kept": hr.l2(5**0.5), "n": hr.linf(1.0)}}


@pytest.mark.slow
@pytest.mark.parametrize("clip", CLIPS)
def test_the_program_runs_protected_and_untouched(parties, clip):
    def protected(on):
        return hr.engines.on(parties, on).protect(clip=CLIPS[clip], mechanism=hr.Gaussian(0.5))

    feds = protected(hr.Loop()), protected(hr.InProcess())
    one, other = (hr.last(subfedavg(fed, linear(4, 1), rounds=2, rate=0.7, **ALWAYS)) for fed in feds)
    np.testing.assert_allclose(flat(other), flat(one), atol=3e-4)
    assert [entry.event.kind for entry in feds[1].ledger.entries] == ["gaussian"] * 2
    assert np.isnan(one.sparsity) == (clip == "one")


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": 1.0},
        {"step": -0.1},
        {"least_accuracy": 1.5},
        {"least_change": float("nan")},
        {"filters": 0.5},
        {"filters": 1.0},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, wrong):
    fed = hr.engines.on(parties, hr.InProcess())
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(subfedavg(fed, linear(4, 1), rounds=1, **wrong))
    assert len(fed.ledger) == 0
