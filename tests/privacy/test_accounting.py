"""The facade over `dp_accounting`: golden values, agreement with it by hand, and the fences around its traps."""

from __future__ import annotations

import logging
import math
import warnings

import dp_accounting
import pytest
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.core.events import Charge, Event, Sampling
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import costs, renyi

ALL = Sampling()
QUICK = ("basic", "advanced", "zcdp", "rdp")
NOTHING, NONPRIVATE = Event("none"), Event("nonprivate")


def poisson(rate: float) -> Sampling:
    return Sampling("poisson", rate)


def fixed(size: int, of: int) -> Sampling:
    return Sampling("fixed", size / of, size)


def gaussian(z: float) -> Event:
    return Event("gaussian", z)


def laplace(b: float) -> Event:
    return Event("laplace", b)


def epsilon(charges: list[Charge], delta: float = 1e-5, accountant: accounting.Accountant = "tightest") -> float:
    return accounting.epsilon(charges, delta=delta, adjacency="add-remove", accountant=accountant)


def rounds(rate: float, z: float, n: int) -> list[Charge]:
    return [(poisson(rate), (gaussian(z),))] * n


# ---- golden values --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("z", "delta", "exact"),
    [
        (1, 1e-5, 4.377178095681),
        (2, 1e-5, 1.993091404415),
        (5, 1e-6, 0.834117548624),
        pytest.param(0.5, 1e-5, 9.997256146434, marks=pytest.mark.slow),
    ],
)
def test_one_gaussian_costs_what_balle_and_wang_compute(z, delta, exact):
    assert epsilon([(ALL, (gaussian(z),))], delta) == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "z", "n", "delta", "on_finer_grid"),
    [
        (0.01, 1, 1000, 1e-5, 1.8282367),
        (0.01, 4, 10_000, 1e-5, 0.9468684),
        (0.001, 0.8, 10_000, 1e-6, 0.9471970),
        (1, 10, 100, 1e-5, 4.3771782),
    ],
)
def test_pld_overstates_a_ten_times_finer_grid_by_little(rate, z, n, delta, on_finer_grid):
    assert 1 - 1e-7 < epsilon(rounds(rate, z, n), delta) / on_finer_grid < 1 + 2e-4


PUBLISHED = {  # rate, noise multiplier, rounds, delta: epsilon by rdp and by pld
    "Abadi et al. 2016": (0.01, 4, 10_000, 1e-5, 1.035490, 0.946999),
    "McMahan et al. 2018": (5000 / 763430, 1, 5000, 1e-9, 4.183292, 3.898826),
    "TF-Privacy tutorial, 1.3": (256 / 60000, 1.3, 3515, 1e-5, 0.954430, 0.864459),
    "TF-Privacy tutorial, 1.1": (256 / 60000, 1.1, 14062, 1e-5, 2.596556, 2.381686),
    "TF-Privacy tutorial, 0.7": (256 / 60000, 0.7, 10546, 1e-5, 6.319464, 5.639447),
    "Tramer and Boneh 2021": (512 / 60000, 1.23, 4687, 1e-5, 2.5808, 2.3633),
}


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "z", "n", "delta", "by_rdp", "by_pld"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_settings_restated(rate, z, n, delta, by_rdp, by_pld):
    charges = rounds(rate, z, n)
    printed = 1e-6 if by_pld != 2.3633 else 1e-4
    convolved = 1e-5 if delta < 1e-8 else printed  # a transform's last digits, which differ by processor, are near this delta
    assert epsilon(charges, delta, "rdp") == pytest.approx(by_rdp, abs=printed)
    assert epsilon(charges, delta, "pld") == pytest.approx(by_pld, abs=convolved)
    assert epsilon(charges, delta) == epsilon(charges, delta, "pld")


@pytest.mark.parametrize(
    ("b", "n", "delta", "by_rdp", "by_pld"),
    [(10, 10, 1e-5, 0.990334, 0.989962), (50, 100, 1e-5, 0.778789, 0.714572), (100, 1000, 1e-6, 1.465842, 1.362925)],
)
def test_laplace_composition(b, n, delta, by_rdp, by_pld):
    charges = [(ALL, (laplace(b),))] * n
    assert epsilon(charges, delta, "basic") == pytest.approx(n / b)
    assert epsilon(charges, delta, "rdp") == pytest.approx(by_rdp, abs=1e-6)
    assert epsilon(charges, delta, "pld") == pytest.approx(by_pld, abs=1e-6)


# ---- agreement with dp_accounting, called by hand -------------------------------------------------------------------
def by_hand(*events: dp_accounting.DpEvent, delta: float = 1e-5) -> float:
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    for event in events:
        accountant.compose(event)
    return accountant.get_epsilon(delta)


GAUSSIAN, LAPLACE = dp_accounting.GaussianDpEvent, dp_accounting.LaplaceDpEvent
SAMPLED = dp_accounting.PoissonSampledDpEvent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("charge", "events"),
    [
        ((ALL, (gaussian(3),)), [GAUSSIAN(3)]),
        ((ALL, (laplace(3),)), [LAPLACE(3)]),
        ((poisson(0.1), (gaussian(3),)), [SAMPLED(0.1, GAUSSIAN(3))]),
        ((poisson(0.1), (laplace(3),)), [SAMPLED(0.1, LAPLACE(3))]),
        ((ALL, (gaussian(3), laplace(5))), [GAUSSIAN(3), LAPLACE(5)]),
    ],
    ids=str,
)
def test_count_composes_like_separate_uses(charge, events):
    separately = by_hand(*events * 4)
    assert epsilon([charge] * 4, accountant="pld") == pytest.approx(separately, rel=1e-4)
    counted = pld.PLDAccountant(value_discretization_interval=1e-4)
    for event in events:
        counted.compose(event, 4)
    assert counted.get_epsilon(1e-5) == pytest.approx(separately, rel=1e-4)


def test_rdp_equals_dp_accounting():
    accountant = rdp.RdpAccountant()
    accountant.compose(SAMPLED(0.05, GAUSSIAN(1.5)), 30).compose(LAPLACE(20), 3).compose(GAUSSIAN(9))
    charges = [*rounds(0.05, 1.5, 30), *[(ALL, (laplace(20),))] * 3, (ALL, (gaussian(9),))]
    assert epsilon(charges, accountant="rdp") == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-12)


@pytest.mark.slow
def test_order_of_charges_does_not_matter():
    charges = [*rounds(0.05, 1.5, 3), (ALL, (laplace(20),)), (ALL, (gaussian(9),))]
    assert epsilon(charges) == epsilon(charges[::-1])


# ---- one cohort -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_gaussians_of_one_cohort_are_one_gaussian():
    together = [(poisson(0.1), (gaussian(2), gaussian(3), NOTHING, gaussian(6)))] * 5
    assert epsilon(together) == pytest.approx(epsilon(rounds(0.1, (1 / 4 + 1 / 9 + 1 / 36) ** -0.5, 5)))


@pytest.mark.slow
def test_one_cohort_asked_twice_costs_more_than_two_cohorts():
    assert epsilon([(poisson(0.1), (gaussian(2), gaussian(2)))]) > epsilon(rounds(0.1, 2, 2))


@pytest.mark.slow
@pytest.mark.parametrize("events", [(gaussian(2), laplace(9)), (laplace(9), laplace(8))], ids=str)
def test_several_mechanisms_are_amplified_as_a_whole_and_cost_more_than_each(events):
    together = epsilon([(poisson(0.1), events)] * 3)
    assert max(epsilon([(poisson(0.1), (event,))] * 3) for event in events) < together < epsilon([(ALL, events)] * 3)


def test_events_asked_of_everybody_cost_the_same_in_one_cohort_or_two():
    assert epsilon([(ALL, (laplace(9), laplace(9)))]) == epsilon([(ALL, (laplace(9),))] * 2)
    assert epsilon([(ALL, (laplace(9),)), (poisson(1.0), (laplace(9),))]) == epsilon([(ALL, (laplace(9),))] * 2)


@pytest.mark.parametrize("event", [gaussian(2), laplace(2)], ids=str)
def test_poisson_of_rate_one_asks_everybody(event):
    assert epsilon([(poisson(1.0), (event,))]) == epsilon([(ALL, (event,))])


def test_sampled_laplace_has_an_amplified_pure_epsilon():
    charges = [(poisson(0.1), (laplace(2),))] * 3
    assert epsilon(charges, accountant="basic") == pytest.approx(3 * math.log(1 + 0.1 * (math.exp(0.5) - 1)))
    assert epsilon(charges, 1e-12, "pld") <= epsilon(charges, 1e-12, "basic") + 3e-4  # three losses, rounded up


def test_pure_epsilon_does_not_overflow():
    assert epsilon([(poisson(0.5), (laplace(1e-4),))], accountant="basic") == 1e4


# ---- cohorts of fixed size ------------------------------------------------------------------------------------------
def doubled_distance(event: Event) -> Event:
    return Event(event.kind, event.noise_multiplier / 2)


def fixed_size_accountant_is_sound(claimed) -> bool:
    """A new party can replace a member of the cohort: with a cohort of everybody but one, this is what happens."""
    return all(claimed(fixed(9, of=10), e) >= epsilon([(ALL, (doubled_distance(e),))]) for e in (gaussian(2), laplace(2)))


@pytest.mark.slow
def test_fixed_size_cohort_pays_for_a_swap():
    assert fixed_size_accountant_is_sound(lambda sampling, event: epsilon([(sampling, (event,))]))


def test_accountant_that_ignores_the_swap_is_caught():
    assert not fixed_size_accountant_is_sound(lambda _, event: epsilon([(ALL, (event,))]))


@pytest.mark.slow
def test_accountant_that_takes_fixed_size_for_poisson_is_caught():
    assert not fixed_size_accountant_is_sound(lambda sampling, event: epsilon([(poisson(sampling.rate), (event,))]))


@pytest.mark.slow
def test_fixed_size_costs_more_than_poisson_at_the_same_rate():
    assert epsilon([(fixed(10, of=100), (gaussian(2),))]) > 2 * epsilon(rounds(0.1, 2, 1))


# ---- counts ---------------------------------------------------------------------------------------------------------
def counts_are_paid(account) -> bool:
    """A hundred Gaussians of multiplier 10 are one of multiplier 1."""
    return account([(ALL, (gaussian(10),))] * 100) == pytest.approx(epsilon([(ALL, (gaussian(1),))]))


def test_every_use_is_paid():
    assert counts_are_paid(epsilon)


def test_accountant_that_ignores_the_count_is_caught():
    assert not counts_are_paid(lambda charges: epsilon(list(set(charges))))


# ---- the edges ------------------------------------------------------------------------------------------------------
def test_nothing_costs_nothing():
    assert epsilon([]) == epsilon([(ALL, ())]) == epsilon([(fixed(5, of=9), (NOTHING,))]) == 0.0


@pytest.mark.parametrize("accountant", [*QUICK, "pld", "moments", "tightest"])
@pytest.mark.parametrize("event", [NONPRIVATE, gaussian(0.0), laplace(0.0)], ids=str)
@pytest.mark.parametrize("sampling", [ALL, poisson(1e-9), fixed(5, of=9)], ids=str)
def test_value_without_noise_costs_infinity(sampling, event, accountant):
    assert epsilon([*rounds(0.1, 9, 2), (sampling, (gaussian(9), event))], accountant=accountant) == math.inf


def test_gaussians_share_delta_where_epsilons_add():
    charges = [(ALL, (laplace(1),)), (ALL, (gaussian(1),)), (ALL, (gaussian(2),))]
    shares = accounting.gaussian_epsilon(1, 5e-6) + accounting.gaussian_epsilon(2, 5e-6)
    assert epsilon(charges, accountant="basic") == pytest.approx(1 + shares)


@pytest.mark.parametrize(
    "charges",
    [rounds(0.1, 2, 3), [(ALL, (laplace(1),))], [(ALL, (laplace(50),))] * 9, [(poisson(0.2), (laplace(1),))] * 2],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_tightest_is_the_least_bound(charges, delta):
    assert epsilon(charges, delta) == min(epsilon(charges, delta, a) for a in (*QUICK, "pld"))


def test_renyi_alone_can_exceed_the_pure_bound():
    charges = [(ALL, (laplace(1.0),))]
    assert epsilon(charges, accountant="rdp") > 1.0 >= epsilon(charges)


def test_meaningless_epsilon_is_not_refined():
    charges = [(poisson(0.9), (gaussian(0.01),))]
    assert epsilon(charges) == min(epsilon(charges, accountant=a) for a in QUICK) > 50


def test_exact_epsilon_of_gaussians_is_reported_however_large():
    charges = [(ALL, (gaussian(0.01),))]
    assert epsilon(charges) == epsilon(charges, accountant="pld") > 5000


@pytest.mark.slow
def test_divergences_lost_to_cancellation_are_not_taken_for_zero():
    curve = renyi.curve(costs.Use("gaussian", 1e9, rate=1e-6))
    assert (curve > 0).all()


def test_orders_that_do_not_converge_are_left_out_in_silence(caplog):
    renyi.curve.cache_clear()
    logging.getLogger("absl").addHandler(caplog.handler)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = renyi.curve(costs.Use("gaussian", 1.0, rate=0.5))
    logging.getLogger("absl").removeHandler(caplog.handler)
    assert math.inf in curve
    assert caplog.records == []


def test_other_messages_of_absl_are_heard(caplog):
    epsilon(rounds(0.5, 1.0, 1), accountant="rdp")
    logging.getLogger("absl").addHandler(caplog.handler)
    logging.getLogger("absl").warning("heard")
    logging.getLogger("absl").removeHandler(caplog.handler)
    assert {record.getMessage() for record in caplog.records} == {"heard"}


# ---- monotonicity ---------------------------------------------------------------------------------------------------
# Rates above 0.3 are left to the privacy loss distributions: there, low Renyi orders drop out one by one.
Z, RATE, N = st.floats(0.8, 20), st.floats(0.001, 0.3), st.integers(1, 200)
DELTA = st.floats(-9, -2).map(lambda e: 10**e)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(z=Z, factor=st.floats(1, 3), rate=RATE, n=N, delta=DELTA)
def test_more_noise_costs_less(z, factor, rate, n, delta):
    assert epsilon(rounds(rate, factor * z, n), delta, "rdp") <= epsilon(rounds(rate, z, n), delta, "rdp") + 1e-9


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(z=Z, rate=RATE, n=N, more=N, delta=DELTA)
def test_more_rounds_cost_more(z, rate, n, more, delta):
    assert epsilon(rounds(rate, z, n + more), delta, "rdp") >= epsilon(rounds(rate, z, n), delta, "rdp")


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(z=Z, rates=st.tuples(RATE, RATE), n=N, delta=DELTA)
def test_higher_rate_costs_more(z, rates, n, delta):
    low, high = (epsilon(rounds(rate, z, n), delta, "rdp") for rate in sorted(rates))
    assert low <= high + 1e-9


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(z=Z, rate=RATE, n=N, deltas=st.tuples(DELTA, DELTA))
def test_smaller_delta_costs_more(z, rate, n, deltas):
    small, large = (epsilon(rounds(rate, z, n), delta, "rdp") for delta in sorted(deltas))
    assert small >= large


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(z=st.floats(1, 5), rate=st.floats(0.01, 0.5), n=st.integers(1, 50), delta=DELTA)
def test_tightest_is_monotone_in_everything(z, rate, n, delta):
    here = epsilon(rounds(rate, z, n), delta)
    grid = 1 + 3e-4  # each side is rounded up on the grid of losses
    assert epsilon(rounds(rate, 1.2 * z, n), delta) <= here * grid
    assert epsilon(rounds(rate, z, n + 5), delta) * grid >= here
    assert epsilon(rounds(1.2 * rate, z, n), delta) * grid >= here
    assert epsilon(rounds(rate, z, n), delta / 2) >= here


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("delta", [1.0, -0.1, math.nan])
def test_refuses_a_delta_out_of_range(delta):
    with pytest.raises(BudgetInvalid, match="delta"):
        epsilon([], delta)


def test_refuses_an_unknown_adjacency_with_a_suggestion():
    with pytest.raises(BudgetInvalid, match="'replace-one'"):
        accounting.epsilon([], delta=1e-5, adjacency="replace")


def test_adjacency_has_no_default():
    with pytest.raises(TypeError, match="adjacency"):
        accounting.epsilon([], delta=1e-5)


def test_refuses_an_unknown_accountant_with_a_suggestion():
    with pytest.raises(BudgetInvalid, match="'pld'"):
        epsilon([], accountant="pdl")


@pytest.mark.parametrize(
    "charge",
    [
        (poisson(0.0), (gaussian(1),)),
        (poisson(1.1), (gaussian(1),)),
        (poisson(math.nan), (gaussian(1),)),
        (Sampling("shuffled"), (gaussian(1),)),
        (ALL, (gaussian(-1.0),)),
        (ALL, (laplace(math.nan),)),
        (ALL, (gaussian(math.inf),)),
        (ALL, (Event("exponential", 1.0),)),
    ],
    ids=str,
)
def test_refuses_charges_that_it_cannot_account_for(charge):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        epsilon([charge])
