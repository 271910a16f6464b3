"""Shokri and Shmatikov's uploads: what the epsilon of a parameter adds up to, what the printed form is called, and its twin."""

import math

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.data import load
from hedgerow.errors import SettingsInvalid, SlotFilled, UnlawfulChannel
from hedgerow.papers.haug.selective_sgd import Uploads, claim, selective_sgd
from hedgerow.privacy import Gaussian

PRINTED = {"rounds": 2, "batch_size": 10, "form": "printed", "epsilon": 2.0, "clip": 0.01, "share": 0.1}


def cancer(seed=0):
    return hr.simulate(load("breast_cancer").take(range(120)), hr.data.iid(3), seed=seed)


def module():
    return hr.learn.linear(30, 1)


def test_the_epsilon_of_a_parameter_adds_up_over_uploads_and_rounds():
    state = hr.last(selective_sgd(cancer(), module(), **PRINTED))
    most = math.ceil(0.1 * 31)
    assert state.per_parameter == 2.0
    assert state.in_all == pytest.approx(2.0 * most * 2)


@pytest.mark.parametrize("most", [1, 7, 400])
def test_shares_of_a_round_are_eight_ninths_and_one_ninth_and_an_answers_noise_does_not_depend_on_how_many(most):
    rule = Uploads(most, 0.25, 0.0, 3.0)
    distance = 2 * rule.clip
    choosing = 2 * most * distance / rule.threshold_scale  # of the sparse vector technique with scale 2 c D / e1
    answering = most * distance / rule.answer_scale
    assert choosing == pytest.approx(8 / 9 * rule.a_round)
    assert answering == pytest.approx(1 / 9 * rule.a_round)
    assert rule.answer_scale == pytest.approx(18 * 0.25 / 3.0)


def test_large_changes_are_chosen_where_noise_is_small_and_never_more_than_asked_for():
    change = np.zeros(50)
    change[[3, 20, 41]] = 0.2
    found = Uploads(3, 0.25, 0.1, 1e6).chosen(change, np.random.default_rng(0))
    assert set(found) == {3, 20, 41}
    many = Uploads(5, 0.25, 0.0, 1.0).chosen(change, np.random.default_rng(1))
    assert len(many) == len(set(many)) <= 5


def test_noise_of_comparisons_is_that_of_the_law():
    rule, rng = Uploads(1, 0.25, 1.0, 1.0), np.random.default_rng(2)
    hits = sum(len(rule.chosen(np.zeros(1), rng)) for _ in range(4000))
    rho, nu = rng.laplace(scale=rule.threshold_scale, size=10**6), rng.laplace(scale=2 * rule.threshold_scale, size=10**6)
    expected = float((np.abs(0.0) + nu >= 1.0 + rho).mean())
    assert stats.binomtest(hits, 4000, expected).pvalue > 1e-4


def test_the_printed_form_is_not_private_and_the_corrected_one_keeps_its_budget():
    printed, corrected = cancer(), cancer()
    hr.last(selective_sgd(printed, module(), **PRINTED))
    assert {entry.event.kind for entry in printed.ledger.entries} == {"nonprivate"}
    hr.last(selective_sgd(corrected, module(), rounds=3, batch_size=120, epsilon=1.0, delta=1e-5))
    assert {entry.unit for entry in corrected.ledger.entries} == {"record"}
    assert 0.999 < corrected.ledger.epsilon(delta=1e-5, unit="record") <= 1.0


@pytest.mark.slow
def test_sampled_steps_keep_the_budget_too():
    fed = cancer()
    hr.last(selective_sgd(fed, module(), rounds=3, batch_size=60, sampling_rate=0.5, epsilon=1.0, delta=1e-5))
    assert 0.99 < fed.ledger.epsilon(delta=1e-5, unit="record") <= 1.0


def test_what_is_claimed_says_that_it_adds_up():
    said = claim(PRINTED)
    assert "epsilon 2 for each parameter" in said
    assert "10 % of all parameters and 2 rounds" in said
    assert claim(PRINTED | {"form": "corrected"}) == ""


def test_a_seed_repeats_both_forms_and_a_started_run_goes_on():
    for more in ({}, {"form": "corrected", "delta": 1e-5}):
        one, other = (list(selective_sgd(cancer(), module(), **PRINTED | more)) for _ in range(2))
        for name, value in one[-1].weights.items():
            np.testing.assert_array_equal(value, other[-1].weights[name])
        assert [state.round for state in selective_sgd(cancer(), module(), **PRINTED | more, start=one[0])] == [2]


def test_refused_before_anybody_is_asked():
    fed = cancer()
    with pytest.raises(SettingsInvalid):
        next(selective_sgd(fed, module(), **PRINTED | {"epsilon": None}))
    with pytest.raises(SettingsInvalid):
        next(selective_sgd(fed, module(), **PRINTED | {"form": "mended"}))
    with pytest.raises(UnlawfulChannel):
        next(selective_sgd(fed.protect(mechanism=Gaussian(1.0)), module(), **PRINTED))
    with pytest.raises(SlotFilled):
        next(selective_sgd(fed.protect(mechanism=Gaussian(1.0)), module(), **PRINTED | {"form": "corrected", "delta": 1e-5}))
    assert not fed.ledger.entries
