"""Geyer's algorithm as printed and corrected; schedules and plans; what each costs."""

from collections import Counter

import dp_accounting
import numpy as np
import pytest
from clinics import clinics, flat
from dp_accounting import pld

import hedgerow as hr
from hedgerow.core.events import Event, Sampling
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SettingsInvalid
from hedgerow.learn import linear
from hedgerow.learn.local import local_sgd
from hedgerow.learn.private import ScheduledGaussian, claimed_delta, delta_threshold, dp_fedavg, geyer, grown, plan
from hedgerow.learn.private.geyer import at_median
from hedgerow.learn.training import Training
from hedgerow.privacy.accounting import delta, epsilon
from helpers import charged

LOCAL = {"learning_rate": 0.3, "epochs": 1, "batch_size": 5}


def run(fed, **settings):
    return list(geyer(fed, linear(4, 1), **{"rounds": 3, "parties": 4, **LOCAL, **settings}))


# ---- as printed ------------------------------------------------------------------------------------------------------
def test_as_printed_every_round_is_charged_as_not_private():
    fed = clinics()
    states = run(fed, printed=True)
    assert len(states) == 3
    assert {entry.event.kind for entry in fed.ledger.entries} == {"nonprivate"}
    assert epsilon(fed.ledger.charges("party"), delta=1e-3, adjacency="add-remove") == np.inf
    assert states[-1].spent < 1e-3  # what the paper would claim


def test_the_twin_with_a_median_clip_is_caught():
    """Neighbours whose sums, clipped at the median, differ by far more than that median, which the noise is scaled to."""
    rest = np.full((4, 1), 1.0)
    without, with_one = rest * [[0.01], [0.01], [5.0], [5.0]], rest * [[0.01], [0.01], [5.0], [5.0]]
    with_one = np.vstack([with_one, [[0.01]]])

    def total(updates):
        return float(hr.l2(at_median(updates)).clip(updates).sum()), at_median(updates)

    (one, S), (other, T) = total(without), total(with_one)
    assert abs(one - other) > 10 * min(S, T)
    fixed = abs(hr.l2(0.5).clip(without).sum() - hr.l2(0.5).clip(with_one).sum())
    assert fixed <= 0.5


@pytest.mark.slow
def test_the_twin_that_accounts_a_fixed_cohort_as_poisson_is_caught():
    """What the ledger charges for exactly m parties is more than the paper's claim for as many in expectation."""
    fed = clinics().protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(2.0))
    hr.last(hr.learn.fedavg(fed, linear(4, 1), rounds=5, size=3, **LOCAL))
    claim = epsilon(Counter({(Sampling("poisson", 0.5), (Event("gaussian", 2.0),)): 5}), delta=1e-3, adjacency="add-remove")
    assert epsilon(fed.ledger.charges("party"), delta=1e-3, adjacency="add-remove") > 2 * claim


def test_one_party_more_in_a_fixed_cohort_moves_the_sum_by_twice_the_clip():
    """The ground for that charge: the new party pushes another out."""
    before, after = np.array([1.0, 1.0, -1.0]), np.array([1.0, 1.0, 1.0])
    assert abs(before.sum() - after.sum()) == 2.0


def test_the_claim_is_the_moments_accountants():
    event = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(1.193))
    orders = [float(order) for order in range(2, 34)]
    curve = dp_accounting.rdp.RdpAccountant(orders).compose(event, 11).rdp
    expected = np.exp(min((order - 1) * (value - 8.0) for order, value in zip(orders, curve, strict=True)))
    assert claimed_delta((0.5,) * 11, 1.193, 8.0) == pytest.approx(expected, rel=1e-3)
    assert expected == pytest.approx(1e-3, rel=0.02)  # the noise that Table 1 implies for 100 parties


def test_as_printed_it_ends_where_the_claim_would_cross_the_threshold():
    states = run(clinics(), printed=True, rounds=50, noise_multiplier=1.0)
    claims = [claimed_delta((4 / 6,) * n, 1.0, 8.0) for n in range(1, len(states) + 2)]
    assert claims[-2] <= 1e-3 < claims[-1]
    assert [state.spent for state in states] == claims[:-1]


def test_as_printed_the_step_is_the_mean_of_updates_clipped_at_their_median():
    fed = clinics()
    state = run(fed, printed=True, rounds=1, parties=6, noise_multiplier=1e-6, threshold=2.0)[0]
    training = Training.of(clinics(), linear(4, 1), 1, LOCAL, lawful=("expected",))
    sent = training.federation.sample(size=6).gather(training.ask(local_sgd, 0), training.begin(None))
    rows = np.stack([one["update"] for one in sent.values()])
    assert state.clip == pytest.approx(np.median(np.linalg.norm(rows, axis=1)), rel=1e-5)
    assert state.below == 0.5
    np.testing.assert_allclose(flat(state), hr.l2(state.clip).clip(rows).mean(0), atol=2e-4)  # lengths are overstated a little


def test_as_printed_a_protected_federation_is_refused():
    with pytest.raises(SettingsInvalid, match="looks at every update"):
        run(clinics().protect(mechanism=hr.Gaussian(1.0)), printed=True)


# ---- corrected -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_corrected_it_is_dp_fedavg_with_growing_poisson_cohorts_within_the_threshold():
    fed, other = clinics(), clinics().protect(mechanism=hr.Gaussian(3.0))
    states = run(fed, parties=2, last_parties=5, noise_multiplier=3.0)
    rates = list(grown(2 / 6, 5 / 6, 3))
    expected = hr.last(dp_fedavg(other, linear(4, 1), rounds=3, rates=rates, **LOCAL))
    np.testing.assert_array_equal(flat(states[-1]), flat(expected))
    assert [entry.sampling for entry in fed.ledger.entries] == [Sampling("poisson", q) for q in rates]


@pytest.mark.slow
def test_the_threshold_stops_before_the_question_that_would_cross_it():
    fed, states = clinics(), []
    with pytest.raises(BudgetExhausted):
        states.extend(iter_until(geyer(fed, linear(4, 1), rounds=60, parties=4, noise_multiplier=1.5, **LOCAL), states))
    assert 1 <= len(states) == len(fed.ledger) < 60
    more = [*fed.ledger.charges("party"), (Sampling("poisson", 4 / 6), (Event("gaussian", 1.5),))]
    assert states[-1].spent <= 1e-3 < delta(more, epsilon=8.0, adjacency="add-remove")


def iter_until(source, kept):
    for state in source:
        kept.append(state)
    return []


@pytest.mark.parametrize("n", [1, 5, 20])
def test_a_delta_threshold_is_a_budget(n):
    charges = [(Sampling("poisson", 0.5), (Event("gaussian", 1.3),))] * n
    limit = delta_threshold(8.0, 1e-3)
    assert limit.admits(charges) == (delta(charges, epsilon=8.0, adjacency="add-remove") <= 1e-3)


@pytest.mark.slow
def test_delta_by_rounds_is_what_dp_accounting_says():
    fed = clinics().protect(mechanism=hr.Gaussian(1.0))
    states = list(dp_fedavg(fed, linear(4, 1), rounds=2, rate=0.5, delta_at=2.0, **LOCAL))
    event = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(1.0))
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    for state in states:
        accountant.compose(event)
        assert state.spent == pytest.approx(accountant.get_delta(2.0), rel=1e-3)


@pytest.mark.slow
def test_through_an_open_channel_v_c_and_u_s_are_those_of_spread():
    whole = {"learning_rate": 0.3, "batch_size": None}  # nothing is shuffled
    state = hr.last(dp_fedavg(clinics(), linear(4, 1), rounds=2, quantile=None, clip=1e6, spread_every=2, **whole))
    found = hr.learn.spread(clinics(), linear(4, 1), state.weights, measures=("updates",), **whole)
    assert state.variance == pytest.approx(found.variance, rel=1e-4)
    assert state.scale == pytest.approx(found.scale, rel=1e-4)


def test_v_c_through_a_noisy_channel_is_refused():
    with pytest.raises(SettingsInvalid, match="spread_every"):
        hr.last(dp_fedavg(clinics().protect(mechanism=hr.Gaussian(1.0)), linear(4, 1), rounds=2, spread_every=1))


# ---- schedules -------------------------------------------------------------------------------------------------------
def test_rates_grow_by_steps_or_by_factors():
    np.testing.assert_allclose(grown(0.1, 0.4, 3, "linear"), [0.1, 0.25, 0.4])
    np.testing.assert_allclose(grown(0.1, 0.4, 3, "geometric"), [0.1, 0.2, 0.4])
    assert grown(0.1, None, 2) == (0.1, 0.1)


@pytest.mark.parametrize("wrong", [(0.0, None, 3), (0.1, 1.5, 3), (0.1, None, 0)])
def test_rates_out_of_range_are_refused(wrong):
    with pytest.raises(SettingsInvalid):
        grown(*wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "target"), [("constant", 0.5), ("distortion", 1.0)])
def test_a_plan_costs_its_budget_and_the_ledger_agrees(noise, target):
    chosen = plan(target, 1e-3, rounds=2, rate=0.3, last_rate=0.9, noise=noise)
    assert 0.99 * target < chosen.epsilon <= target
    fed = clinics().protect(mechanism=chosen.mechanism).within(hr.Budget(target, 1e-3))
    hr.last(dp_fedavg(fed, linear(4, 1), rounds=2, rates=list(chosen.rates), **LOCAL))
    assert Counter(fed.ledger.charges("party")) == chosen.charges()
    by_hand = pld.PLDAccountant(value_discretization_interval=1e-4)
    for q, z in zip(chosen.rates, chosen.noise_multipliers, strict=True):
        by_hand.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(z)))
    assert by_hand.get_epsilon(1e-3) == pytest.approx(chosen.epsilon, rel=1e-3)


@pytest.mark.slow
def test_with_equal_distortion_small_early_cohorts_leave_less_noise_for_the_last():
    same, less = (
        plan(8.0, 1e-3, rounds=4, rate=0.1, last_rate=0.8, noise=n, accountant="rdp") for n in ("constant", "distortion")
    )
    ratio = [z**2 / q for q, z in zip(less.rates, less.noise_multipliers, strict=True)]
    np.testing.assert_allclose(ratio, ratio[0])
    assert less.noise(100)[0] < same.noise(100)[0]


@pytest.mark.slow
def test_of_several_numbers_of_rounds_a_plan_takes_the_best_by_its_score():
    chosen = plan(8.0, 1e-3, rounds=[2, 8, 4], rate=0.5, accountant="rdp", score=lambda one: -abs(one.rounds - 5))
    assert chosen.rounds == 4


def test_scheduled_noise_is_charged_question_by_question_and_ends():
    schedule = ScheduledGaussian((1.0, 2.0))
    fed = clinics().protect(mechanism=schedule)
    hr.last(dp_fedavg(fed, linear(4, 1), rounds=2, **LOCAL))
    assert [entry.event.noise_multiplier for entry in fed.ledger.entries] == [1.0, 2.0]
    with pytest.raises(BudgetInvalid, match="question 3 has no noise"):
        hr.last(dp_fedavg(fed, linear(4, 1), rounds=1, **LOCAL))


def test_with_noise_on_running_totals_the_clip_is_fixed():
    fed = clinics().protect(mechanism=hr.privacy.Tree(1.0, 4))
    with pytest.raises(SettingsInvalid, match="keep the clip fixed"):
        hr.last(dp_fedavg(fed, linear(4, 1), rounds=4, **LOCAL))
    hr.last(dp_fedavg(fed, linear(4, 1), rounds=4, quantile=None, **LOCAL))
    assert charged(fed.ledger) == ["gaussian", "covered", "covered", "covered"]
