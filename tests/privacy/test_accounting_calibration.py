"""Noise for a budget, rounds for a noise, rates, and the price of choosing among runs."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.core.events import Event, Sampling
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy import accounting

QUICK = ("basic", "advanced", "zcdp", "rdp", "moments")
HOW = {"adjacency": "add-remove"}


def rounds(rate, z, n, law="gaussian", sampling="poisson"):
    return [(Sampling(sampling, rate), (Event(law, z),))] * n


# ---- noise ----------------------------------------------------------------------------------------------------------
@settings(max_examples=20, deadline=None)
@given(
    target=st.floats(0.1, 10),
    n=st.integers(1, 300),
    rate=st.sampled_from([0.02, 0.2]),
    law=st.sampled_from(["gaussian", "laplace"]),
    sampling=st.sampled_from(["all", "poisson", "fixed"]),
    accountant=st.sampled_from(["basic", "zcdp", "rdp"]),
)
@pytest.mark.slow
def test_noise_is_enough_and_a_little_less_is_not(target, n, rate, law, sampling, accountant):
    how = {"delta": 1e-5, "accountant": accountant} | HOW
    z = accounting.calibrate(target, 1e-5, rounds=n, rate=rate, law=law, sampling=sampling, accountant=accountant)
    assert accounting.epsilon(rounds(rate, z, n, law, sampling), **how) <= target
    assert accounting.epsilon(rounds(rate, z / 1.0003, n, law, sampling), **how) > target * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "rate", "n"), [(2.0, 0.01, 1000), (8.0, 0.5, 11)])
def test_noise_agrees_with_dp_accounting_called_by_hand(target, rate, n):
    z = accounting.calibrate(target, 1e-5, rounds=n, rate=rate)
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(z))
    spent = pld.PLDAccountant(value_discretization_interval=1e-4).compose(event, n).get_epsilon(1e-5)
    assert target * (1 - 1e-3) < spent <= target


def test_noise_of_plain_gaussians_is_the_exact_one():
    z = accounting.calibrate(1.0, 1e-5, rounds=25)
    assert 1 <= z / (5 * accounting.gaussian_noise(1.0, 1e-5)) < 1 + 1.1e-4


def test_laplace_noise_of_one_round_is_its_epsilon():
    assert accounting.calibrate(0.5, 1e-12, law="laplace", accountant="basic") == pytest.approx(2.0, rel=2e-4)


def test_fixed_cohorts_take_twice_the_noise_of_everybody():
    everybody = accounting.calibrate(1.0, 1e-5, rounds=9, sampling="all")
    assert accounting.calibrate(1.0, 1e-5, rounds=9, rate=0.1, sampling="fixed") == pytest.approx(2 * everybody, rel=3e-4)


def test_refuses_where_no_noise_is_enough():
    with pytest.raises(BudgetInvalid, match="no noise multiplier"):
        accounting.calibrate(1e-12, 1e-300, rounds=10**9, accountant="zcdp")


# ---- rounds and rates -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("accountant", [*QUICK, "pld", "tightest"])
def test_one_round_more_is_too_many(accountant):
    budget = {"delta": 1e-5, "accountant": accountant} | HOW
    n = accounting.most_rounds(30.0, epsilon=2.0, **budget)
    assert n > 0
    charge = (Sampling("poisson", 1.0), (Event("gaussian", 30.0),))
    assert accounting.epsilon([charge] * n, **budget) <= 2.0 < accounting.epsilon([charge] * (n + 1), **budget)


@pytest.mark.slow
def test_rounds_left_are_what_a_budget_admits():
    charge = (Sampling("poisson", 0.1), (Event("gaussian", 1.5),))
    spent = [(Sampling(), (Event("laplace", 5.0),)), charge, charge]
    n = accounting.rounds_left(charge, epsilon=2.0, delta=1e-5, spent=spent, **HOW)
    from hedgerow.privacy import Budget

    budget = Budget(2.0, 1e-5)
    assert budget.admits([*spent, *[charge] * n])
    assert not budget.admits([*spent, *[charge] * (n + 1)])


def test_no_round_is_left_of_a_budget_that_is_spent():
    charge = (Sampling(), (Event("gaussian", 1.0),))
    assert accounting.rounds_left(charge, epsilon=1.0, delta=1e-5, **HOW) == 0
    assert accounting.rounds_left(charge, epsilon=9.0, delta=1e-5, spent=[charge] * 9, **HOW) == 0
    assert accounting.rounds_left((Sampling(), (Event("none"),)), epsilon=9.0, delta=1e-5, **HOW) == 10**12


@pytest.mark.slow
def test_largest_rate_fits_and_a_larger_one_does_not():
    rate = accounting.largest_rate(1.0, epsilon=2.0, delta=1e-5, rounds=500)
    spent = [accounting.epsilon(rounds(r, 1.0, 500), delta=1e-5, **HOW) for r in (rate, rate * 1.001)]
    assert spent[0] <= 2.0 < spent[1]


@pytest.mark.slow
def test_rate_is_one_where_sampling_is_not_needed_and_zero_where_it_cannot_help():
    assert accounting.largest_rate(50.0, epsilon=2.0, delta=1e-5, rounds=10) == 1.0
    assert accounting.largest_rate(1e-3, epsilon=1e-9, delta=1e-13, rounds=10**6, accountant="rdp") == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: accounting.calibrate(0.0, 1e-5),
        lambda: accounting.calibrate(math.inf, 1e-5),
        lambda: accounting.calibrate(1.0, 1.0),
        lambda: accounting.calibrate(1.0, 1e-5, rounds=0),
        lambda: accounting.calibrate(1.0, 1e-5, law="cauchy"),
        lambda: accounting.calibrate(1.0, 1e-5, sampling="shuffled"),
        lambda: accounting.calibrate(1.0, 1e-5, accountant="clt"),
        lambda: accounting.calibrate(1.0, 1e-5, rate=0.0),
        lambda: accounting.most_rounds(-1.0, epsilon=1.0, delta=1e-5),
    ],
)
def test_refuses_a_plan_that_is_none(wrong):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        wrong()


# ---- the best of several runs ---------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("law", "shape"), [("geometric", 1.0), ("poisson", math.inf)])
@pytest.mark.parametrize("mean", [1.0, 10.0, 100.0])
def test_selection_agrees_with_dp_accounting_called_by_hand(law, shape, mean):
    run = dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.2)), 300)
    library = rdp.RdpAccountant().compose(dp_accounting.dp_event.RepeatAndSelectDpEvent(run, mean, shape)).get_epsilon(1e-5)
    ours = accounting.selection(rounds(0.01, 1.2, 300), mean_runs=mean, delta=1e-5, law=law, **HOW)
    assert ours == pytest.approx(library, rel=1e-9)


@pytest.mark.slow
def test_the_best_of_many_costs_little_more_than_the_best_of_few():
    one = accounting.epsilon(rounds(0.01, 1.2, 300), delta=1e-5, accountant="rdp", **HOW)
    ten, hundred = (accounting.selection(rounds(0.01, 1.2, 300), mean_runs=m, delta=1e-5, **HOW) for m in (10, 100))
    naive = accounting.epsilon(rounds(0.01, 1.2, 3000), delta=1e-5, accountant="rdp", **HOW)
    assert one < ten < hundred < 1.5 * ten
    assert ten < naive


def covers_a_choice(price):
    """Choosing costs more than one run: the best of three responses, by hand, where each run reports one of two outcomes.

    A geometric number of runs K with P(K = k) = g (1-g)^(k-1), of which the best is released: P(best = 0) = E p0^K.
    """
    e, g, delta = 1.0, 0.25, 1e-6
    p = 1 / (1 + math.exp(-e))

    def all_low(low):
        return g * low / (1 - (1 - g) * low)

    a, b = ((all_low(low), 1 - all_low(low)) for low in (p, 1 - p))
    exact = max(abs(math.log(x / y)) for x, y in zip(a, b, strict=True))
    return price(e, 1 / g, delta) >= exact > 1.3 * e


def test_selection_covers_an_exact_choice_and_the_price_of_one_run_does_not():
    def run(e):
        return [(Sampling(), (Event("pure", epsilon=e),))]

    assert covers_a_choice(lambda e, mean, d: accounting.selection(run(e), mean_runs=mean, delta=d, **HOW))
    assert not covers_a_choice(lambda e, mean, d: accounting.epsilon(run(e), delta=d, **HOW))


def test_selection_at_the_edges():
    assert accounting.selection([], mean_runs=5, delta=1e-5, **HOW) == 0.0
    assert accounting.selection([(Sampling(), (Event("nonprivate"),))], mean_runs=5, delta=1e-5, **HOW) == math.inf
    for wrong in ({"mean_runs": 0.5}, {"mean_runs": 0.0, "law": "poisson"}, {"mean_runs": 2, "law": "uniform"}):
        with pytest.raises(BudgetInvalid, match="HR-214"):
            accounting.selection(rounds(0.1, 2, 1), delta=1e-5, **wrong, **HOW)
    leaking = [(Sampling(), (Event("approximate", epsilon=0.1, delta=1e-9),))]
    with pytest.raises(BudgetInvalid, match="approximate"):
        accounting.selection(leaking, mean_runs=2, delta=1e-5, **HOW)
