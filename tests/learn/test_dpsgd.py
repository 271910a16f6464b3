"""DP-SGD over a federation: the pooled algorithm for any number of parties, its guarantee, and twins that break it."""

import math
from functools import partial

import dp_accounting
import numpy as np
import pytest
import torch
from clinics import SCHEMA, clinics, flat
from dp_accounting import rdp
from scipy.stats import chi2
from torch import nn

import hedgerow as hr
from hedgerow.errors import MixedUnits, ModelInvalid, SettingsInvalid, UnlawfulChannel
from hedgerow.learn.records import RecordState, dpsgd
from hedgerow.store.checkpoint import Checkpoint, Mark
from helpers import ENGINE_NAMES, ENGINES, run_of

WHOLE = {"sampling_rate": 1.0, "batch_size": 90}


def pooled_descent(fed, rounds, clip, learning_rate, batch_size):
    """Clipped full-batch gradient descent on the pooled records of a logistic regression, in numpy."""
    held, w = hr.engines.records(fed), np.zeros(5)
    x, y = np.column_stack([held.columns["x"], np.ones(90)]), held.columns["label"]
    for _ in range(rounds):
        rows = x * (1 / (1 + np.exp(-x @ w)) - y)[:, None]
        rows *= np.minimum(1.0, clip / np.linalg.norm(rows, axis=1))[:, None]
        w = w - learning_rate * rows.sum(0) / batch_size
    return w


@pytest.mark.parametrize("parties", [1, 6])
def test_without_noise_it_is_clipped_descent_on_the_pooled_records(parties):
    fed = clinics(parties=parties)
    found = hr.last(dpsgd(fed, hr.learn.linear(4, 1), rounds=5, clip=0.4, learning_rate=2.0, **WHOLE))
    np.testing.assert_allclose(flat(found), pooled_descent(fed, 5, 0.4, 2.0, 90), rtol=1e-4, atol=1e-6)


PROGRAM = partial(
    dpsgd, module=hr.learn.mlp(4, [6], 1), rounds=4, sampling_rate=0.4, batch_size=36, learning_rate=0.5, solver="adam"
)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
@pytest.mark.parametrize("noise", [None, hr.Gaussian(0.8), hr.Gaussian(0.8, at="party")], ids=["none", "server", "party"])
def test_every_engine_computes_the_same(engine, noise):
    one, other = (hr.last(PROGRAM(hr.engines.on(clinics(), on).protect(mechanism=noise))) for on in (hr.Loop(), engine))
    for name, value in one.weights.items():
        np.testing.assert_allclose(other.weights[name], value, atol=2e-4)


def test_a_resumed_run_ends_where_it_would_have():
    whole, states, marks = clinics().protect(mechanism=hr.Gaussian(1.0)), [], []
    for state in PROGRAM(whole):
        states.append(state)
        marks.append(Mark.of(run_of(whole)))
    for state, mark in zip(states[:-1], marks, strict=False):
        again = clinics().protect(mechanism=hr.Gaussian(1.0))
        run_of(again).ledger.entries = whole.ledger.entries[: mark.entries]
        Checkpoint(state, mark, {}, {}).restore(again)
        found = hr.last(PROGRAM(again, start=state))
        for name, value in states[-1].weights.items():
            np.testing.assert_array_equal(found.weights[name], value)


# ---- the guarantee --------------------------------------------------------------------------------------------------------
def test_epsilon_is_what_the_accountant_says_by_hand():
    fed = clinics().protect(mechanism=hr.Gaussian(1.3))
    hr.last(dpsgd(fed, hr.learn.linear(4, 1), rounds=30, sampling_rate=0.05, batch_size=5, clip=0.7))
    step = dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(1.3))
    by_hand = rdp.RdpAccountant().compose(step, 30).get_epsilon(1e-5)
    found = hr.privacy.epsilon(fed.ledger.charges("record"), delta=1e-5, adjacency="add-remove", accountant="rdp")
    assert found == pytest.approx(by_hand, rel=1e-9)


def test_layers_clipped_apart_are_one_event_with_the_joint_bound():
    fed = clinics().protect(mechanism=hr.Gaussian(1.3))
    hr.last(dpsgd(fed, hr.learn.mlp(4, [6], 1), rounds=2, sampling_rate=0.5, batch_size=45, clip=[3.0, 4.0]))
    found = [(entry.bound, entry.event.noise_multiplier) for entry in fed.ledger.entries]
    assert found == [("l2(5) per record in steps of 2^-22", 1.3)] * 2


def test_the_noise_has_the_declared_size():
    fed = clinics().protect(mechanism=hr.Gaussian(2.0))
    module = hr.learn.mlp(4, [600], 1)
    began = np.concatenate([value.detach().numpy().ravel() for value in module.parameters()])
    found = hr.last(dpsgd(fed, module, rounds=1, sampling_rate=1e-9, batch_size=1, clip=3.0, learning_rate=1.0))
    noise = began - np.concatenate([value.ravel() for value in found.weights.values()])
    low, high = chi2.interval(1 - 1e-6, len(noise))  # one false alarm in a million runs
    rounding = (1 + math.sqrt(len(noise)) / 2048) ** 2  # at a few thousand steps of the grid per deviation
    assert low < (noise**2).sum() / (2.0 * 3.0) ** 2 < high * rounding


def divided_by_the_records_that_came(fed, module, *, clip, learning_rate, **_):
    """The twin: a mean over the realised batch, as data loaders make it."""
    total = hr.last(dpsgd(fed, module, rounds=1, sampling_rate=1.0, batch_size=1, clip=clip, learning_rate=1.0))
    step = flat(total) / len(hr.engines.records(fed).w)
    return RecordState(1, {"1.weight": learning_rate * step[:4][None], "1.bias": learning_rate * step[4:]}, step, step)


def largest_step(train):
    """How far a record moves the model in one round, over the neighbours of a few tables of three records."""
    moved = []
    for x in ([[9.0] * 4, [-9.0] * 4, [9.0] * 4], [[9.0] * 4, [9.0] * 4, [-8.0] * 4], [[5.0, 0, 0, 0]] * 3):
        for i in range(3):
            kept = [np.arange(3), np.delete(np.arange(3), i)]
            tables = [{"x": np.array(x)[rows], "label": np.array([1.0, 1.0, 1.0])[rows]} for rows in kept]
            feds = [hr.simulate(hr.data.Table(SCHEMA.admit(t), SCHEMA), hr.data.iid(parties=1), seed=0) for t in tables]
            one, other = (flat(train(fed, hr.learn.linear(4, 1))) for fed in feds)
            moved.append(np.linalg.norm(one - other))
    return max(moved)


@pytest.mark.slow
def test_dividing_by_the_records_that_came_is_caught():
    """A record moves the model by at most rate * clip / batch_size; the mean over the realised batch breaks this."""
    settings = {"rounds": 1, "sampling_rate": 1.0, "batch_size": 3, "clip": 1.0, "learning_rate": 1.0}
    bound = (1 + 1e-5) / 3
    assert largest_step(lambda fed, module: hr.last(dpsgd(fed, module, **settings))) <= bound
    assert largest_step(partial(divided_by_the_records_that_came, **settings)) > bound


def test_the_size_of_a_party_tells_nothing_to_the_server():
    fed = hr.engines.watch(clinics())
    hr.last(dpsgd(fed, hr.learn.linear(4, 1), rounds=2, sampling_rate=0.5, batch_size=45))
    assert {entry.contribution for entry in fed.ledger.entries} == {"gradient (5,)"}


# ---- the server's step ----------------------------------------------------------------------------------------------------
def test_what_a_rule_remembers_begins_at_zero():
    fed, module = clinics(), hr.learn.linear(4, 1)
    step = {name: hr.last(dpsgd(fed, module, rounds=1, solver=name, **WHOLE)) for name in ("sgd", "momentum", "adam")}
    gradient = -flat(step["sgd"]) / 0.1
    np.testing.assert_allclose(step["momentum"].first, gradient, rtol=1e-5)
    np.testing.assert_allclose(flat(step["momentum"]), flat(step["sgd"]), rtol=1e-6)
    np.testing.assert_allclose(step["adam"].first, 0.1 * gradient, rtol=1e-4)
    np.testing.assert_allclose(flat(step["adam"]), -0.1 * np.sign(gradient), rtol=1e-3)


def test_the_learning_rate_falls_by_the_schedule():
    fed, module = clinics(), hr.learn.linear(4, 1)
    given = {"rounds": 2, "clip": 1e-3, "learning_rate": 1.0, **WHOLE}
    one, two = list(dpsgd(fed, module, schedule="exponential", decay=0.5, **given))
    assert np.linalg.norm(flat(two) - flat(one)) == pytest.approx(0.5 * np.linalg.norm(flat(one)), rel=0.05)


def test_rounds_in_which_nobody_joins_are_counted_and_change_nothing_but_noise():
    fed, module = clinics(), hr.learn.linear(4, 1)
    found = hr.last(dpsgd(fed, module, rounds=3, sampling_rate=1e-9, batch_size=1))
    assert not flat(found).any()
    assert (found.round, len(fed.ledger)) == (3, 3)
    private = clinics().protect(mechanism=hr.Gaussian(1.0))
    assert flat(hr.last(dpsgd(private, module, rounds=1, sampling_rate=1e-9, batch_size=1))).all()
    assert len(private.ledger.charges("record")) == 1


def test_frozen_parameters_stay_as_they_are_and_take_no_noise():
    module = hr.learn.mlp(4, [6], 1)
    module[1].requires_grad_(False)
    fed = clinics().protect(mechanism=hr.Gaussian(1.0))
    found = hr.last(dpsgd(fed, module, rounds=2, sampling_rate=0.5, batch_size=45))
    np.testing.assert_array_equal(found.weights["1.weight"], module[1].weight.detach().numpy())
    assert (found.weights["3.weight"] != module[3].weight.detach().numpy()).all()
    assert {entry.contribution for entry in fed.ledger.entries} == {"gradient (7,)"}


def test_the_budget_ends_it_before_it_is_exceeded():
    fed = clinics().protect(mechanism=hr.Gaussian(2.0)).within(hr.Budget(2.0, 1e-3, "record", accountant="rdp"))
    ended = hr.drive(partial(dpsgd, module=hr.learn.linear(4, 1), rounds=500, sampling_rate=0.2, batch_size=18), fed)
    assert ended.stopped == "budget"
    assert 0 < fed.ledger.limit.spent(fed.ledger.charges("record")) <= 2.0
    assert 1 < ended.state.round < 500


@pytest.mark.slow
def test_it_learns_from_digits_in_private():
    """Accuracy above a stated floor at a stated epsilon; chance is 10%."""
    table = hr.data.load("digits")
    fed = hr.simulate(table, hr.data.iid(parties=3), seed=0).protect(mechanism=hr.Gaussian(1.5))
    given = {"rounds": 60, "sampling_rate": 0.1, "batch_size": 180, "learning_rate": 2.0}
    found = hr.last(dpsgd(fed, hr.learn.linear(64, 10), **given))
    assert hr.privacy.epsilon(fed.ledger.charges("record"), delta=1e-4, adjacency="add-remove") < 4
    assert hr.learn.evaluate_on(table, hr.learn.linear(64, 10), found.weights)["accuracy"] > 0.85


# ---- refusals -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rounds": 0}, "rounds"),
        ({"sampling_rate": 0.0}, "sampling_rate"),
        ({"batch_size": 0}, "batch_size"),
        ({"clip": 0.0}, "clip"),
        ({"clip": [1.0, 1.0]}, "clip"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"solver": "newton"}, "solver"),
        ({"momentum": 1.0}, "momentum"),
        ({"schedule": "step", "period": 0}, "period"),
    ],
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(wrong, said):
    fed = clinics()
    with pytest.raises(SettingsInvalid, match=said):
        hr.last(dpsgd(fed, hr.learn.linear(4, 1), **{"rounds": 1, **WHOLE, **wrong}))
    assert len(fed.ledger) == 0


def test_a_clip_of_the_channel_is_refused():
    with pytest.raises(UnlawfulChannel, match="HR-211"):
        hr.last(dpsgd(clinics().protect(clip=hr.l2(1.0)), hr.learn.linear(4, 1), rounds=1, **WHOLE))


def test_a_budget_per_party_is_refused():
    fed = clinics().protect(mechanism=hr.Gaussian(1.0)).within(hr.Budget(1.0, 1e-3, "party"))
    with pytest.raises(MixedUnits):
        hr.last(dpsgd(fed, hr.learn.linear(4, 1), rounds=1, **WHOLE))


def test_batch_norm_is_refused_and_its_rewrite_trains():
    module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))
    with pytest.raises(ModelInvalid, match="without_batch_norm"):
        hr.last(dpsgd(clinics(), module, rounds=1, **WHOLE))
    found = hr.last(dpsgd(clinics(), hr.learn.records.without_batch_norm(module, groups=2), rounds=2, **WHOLE))
    assert all(np.isfinite(value).all() for value in found.weights.values())
    assert torch.is_tensor(module[1].running_mean)
