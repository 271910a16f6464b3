"""Gong's adaptive network: relevances of a record add up to one, unequal noise under one clip, and what is charged."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.bound import l2
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import load
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.learn.records import Clipping
from hedgerow.papers.haug.adaptive import _Steps, adaptive_network, claim, relevances, scale_of, score
from hedgerow.privacy import Gaussian

STEPS = {"rounds": 4, "batch_size": 150.0, "units": 5}


def digits(seed=0):
    return hr.simulate(load("digits").take(range(150)), hr.data.iid(3), seed=seed)


@pytest.mark.parametrize("outputs", [1, 3])
def test_relevances_of_a_record_add_up_to_one_and_a_single_unit_reaches_the_bound(outputs):
    rng = np.random.default_rng(0)
    n = 12
    columns = {"cube": rng.uniform(size=(n, 4)).astype(np.float32), "label": rng.integers(0, max(outputs, 2), n)}
    weights = {"hidden.weight": rng.normal(size=(5, 4)), "hidden.bias": rng.normal(size=5)}
    weights |= {"output.weight": rng.normal(size=(outputs, 5)), "output.bias": np.zeros(outputs)}
    party, bounds = Party("a", columns, np.ones(n)), in_steps(l2(1.0, "record"))
    total = relevances(weights, party, None)
    assert total.sum() == pytest.approx(n)
    held = relevances(weights, party, None, bounds=bounds)
    np.testing.assert_allclose(held, total, atol=1e-5)
    for i in range(n):
        w = np.ones(n)
        w[i] = 0.0
        assert np.linalg.norm(held - relevances(weights, Party("a", columns, w), None, bounds=bounds)) <= 1.0
    weights["output.weight"] = weights["output.weight"] * [1, 0, 0, 0, 0]
    w = np.eye(n)[0]
    alone = relevances(weights, Party("a", columns, w), None, bounds=bounds)
    assert 0.999999 < np.linalg.norm(alone) <= 1.0


def steps(federation, clip=8.0):
    return _Steps(federation, (64, 5, 10), Clipping.of(clip), 0)


def test_without_noise_or_clip_the_scale_changes_no_gradient():
    made = steps(digits())
    w, _ = made.begin(None)
    even, uneven = made.gradient(w, np.ones(5)), made.gradient(w, np.array([0.25, 0.5, 1.0, 0.5, 1.0]))
    np.testing.assert_allclose(even, uneven, atol=0.02)  # sums of 150 records, each in whole steps
    assert np.abs(even).max() > 1


def test_noise_of_a_unit_is_divided_by_its_scale():
    scale = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    noisy, exact = (steps(fed, 1.0) for fed in (digits().protect(mechanism=Gaussian(1e4)), digits()))
    w, _ = exact.begin(None)
    noise = (noisy.gradient(w, scale) - exact.gradient(w, scale)) / 1e4
    for s, of_unit in zip(scale, noise[:320].reshape(5, 64), strict=True):
        assert of_unit.std() * s == pytest.approx(1.0, rel=0.45)  # 5 deviations of the spread of 64 numbers
    assert noise[325:].std() == pytest.approx(1.0, rel=0.6)


def test_the_exponent_of_the_charged_form_is_the_best_one():
    rng = np.random.default_rng(1)
    R = rng.dirichlet(np.ones(6) * 5)

    def cost(s):
        return (R / s**2).sum() * (s**2).sum()

    best = cost(scale_of(R, 0.25))
    assert all(best <= cost(rng.uniform(0.3, 3.0, 6)) for _ in range(500))
    assert best < cost(scale_of(R, 1.0))


def test_scales_are_bounded_whatever_noise_relevances_have():
    for found in (np.zeros(4), np.array([-5.0, 1e9, 0.0, 1.0]), np.full(4, -1.0)):
        scale = scale_of(found, 1.0)
        assert (scale >= 0.25).all()
        assert (scale <= 4.0).all()


def test_charged_it_keeps_its_budget_and_as_printed_relevances_are_not_private():
    charged, printed = digits(), digits()
    hr.last(adaptive_network(charged, **STEPS, epsilon=1.0, delta=1e-5))
    asked = [entry.query.partition(":")[2] for entry in charged.ledger.entries]
    assert asked.count("relevances") == 1
    assert asked.count("clipped_gradients") == 4
    assert 0.999 < charged.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    hr.last(adaptive_network(printed, **STEPS, epsilon=1.0, delta=1e-5, form="printed"))
    open_ones = [entry.query.partition(":")[2] for entry in printed.ledger.entries if entry.event.kind == "nonprivate"]
    assert open_ones == ["relevances"] * 4
    assert "no budget is spent" in claim({"form": "printed", "epsilon": 1.0})
    assert claim({"form": "corrected", "epsilon": 1.0}) == ""


def test_equal_noise_has_the_whole_budget_for_its_steps():
    even = digits()
    hr.last(adaptive_network(even, **STEPS, epsilon=1.0, delta=1e-5, relevance=False))
    assert len(even.ledger) == 4
    assert 0.999 < even.ledger.epsilon(delta=1e-5, unit="record") <= 1.0


@pytest.mark.slow
def test_it_learns_and_a_seed_repeats_it_and_a_started_run_goes_on():
    table, settings = load("digits"), {"rounds": 12, "batch_size": 150.0, "learning_rate": 1.0, "epsilon": 100.0, "delta": 1e-5}
    runs = [list(adaptive_network(digits(), **settings)) for _ in range(2)]
    for name, value in runs[0][-1].weights.items():
        np.testing.assert_array_equal(value, runs[1][-1].weights[name])
    assert score({}, runs[0][-1], table.schema, table) > 0.6
    gone_on = [state.round for state in adaptive_network(digits(), **settings, start=runs[0][9])]
    assert gone_on == [11, 12]


def test_of_two_classes_there_is_one_output():
    fed = hr.simulate(load("breast_cancer"), hr.data.iid(2), seed=0)
    state = hr.last(adaptive_network(fed, rounds=2, batch_size=569.0, units=3))
    assert state.weights["output.weight"].shape == (1, 3)
    assert 0 <= score({}, state, load("breast_cancer").schema, load("breast_cancer")) <= 1


def test_refused_before_anybody_is_asked():
    fed = digits()
    for more in ({"units": 0}, {"rounds": 0}, {"batch_size": 0.0}, {"form": "printed"}):
        with pytest.raises(SettingsInvalid):
            next(adaptive_network(fed, **STEPS | more))
    with pytest.raises(UnlawfulChannel):
        next(adaptive_network(fed.protect(mechanism=Gaussian(1.0)), **STEPS, form="printed", epsilon=1.0, delta=1e-5))
    assert not fed.ledger.entries
