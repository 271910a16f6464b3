"""Every kind of event, against what can be computed by hand: sums over outcomes and integrals over densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import norm

from hedgerow.core.events import Charge, Event, Sampling
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import losses, renyi
from hedgerow.privacy.accounting.costs import Batch, Use, costs

ALL = Sampling()
ALL_ACCOUNTANTS = ("basic", "advanced", "zcdp", "rdp", "moments", "pld", "tightest")
KINDS = {
    "gaussian": Event("gaussian", 5.0),
    "laplace": Event("laplace", 5.0),
    "skellam": Event("skellam", 5.0, steps=200.0),
    "pure": Event("pure", epsilon=0.2),
    "exponential": Event("exponential", epsilon=0.2),
    "approximate": Event("approximate", epsilon=0.2, delta=1e-8),
    "local steps": Event("gaussian", 1.5, rate=0.05, count=3),
}


def poisson(rate: float, kind: str = "poisson") -> Sampling:
    return Sampling(kind, rate)


def epsilon(charges: list[Charge], delta: float = 1e-5, accountant: str = "tightest", adjacency: str = "add-remove") -> float:
    return accounting.epsilon(charges, delta=delta, adjacency=adjacency, accountant=accountant)


def delta(charges: list[Charge], e: float, accountant: str = "tightest") -> float:
    return accounting.delta(charges, epsilon=e, adjacency="add-remove", accountant=accountant)


def many(event: Event, count: int) -> Event:
    return Event(event.kind, event.noise_multiplier, event.epsilon, event.delta, event.steps, event.rate, event.count * count)


# ---- counts ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("accountant", ALL_ACCOUNTANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_count_costs_what_as_many_charges_cost(kind, accountant):
    event = KINDS[kind]
    counted, separate = epsilon([(ALL, (many(event, 7),))], accountant=accountant), [(ALL, (event,))] * 7
    assert counted == pytest.approx(epsilon(separate, accountant=accountant), rel=1e-9)
    assert counted == pytest.approx(epsilon([(ALL, (event,) * 7)], accountant=accountant), rel=1e-9)
    if math.isfinite(counted):
        assert counted > epsilon([(ALL, (event,))], accountant=accountant)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_curves_and_losses_compose_by_counting(kind):
    ((use, count),) = costs([(ALL, (KINDS[kind],))])
    assert renyi.total_curve(((use, 4 * count),)) == pytest.approx(sum(renyi.total_curve(((use, count),)) for _ in range(4)))
    total = losses.total_loss(((use, 4),))
    if kind != "skellam":
        one = losses.loss(use, 1)
        separate = one.compose(one).compose(one).compose(one)
        assert total.delta(0.3) == pytest.approx(separate.delta(0.3), rel=1e-4)


def test_a_counter_of_charges_is_taken_as_so_many_of_each():
    charge = (poisson(0.1), (Event("gaussian", 2.0),))
    assert costs({charge: 5}.keys()) == costs([charge])
    from collections import Counter

    assert epsilon(Counter({charge: 5}), accountant="rdp") == epsilon([charge] * 5, accountant="rdp")


def test_what_releases_nothing_costs_nothing_more():
    paid = (ALL, (Event("gaussian", 2.0),))
    assert epsilon([paid, (ALL, (Event("none"),))]) == epsilon([paid])


# ---- which accountant prices what -----------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("sampling", [ALL, poisson(0.1), Sampling("fixed", 0.1, 10), Sampling("given", 0.1, 10)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_least_valid_bound_is_reported(kind, sampling):
    charges = [(sampling, (KINDS[kind], Event("gaussian", 9.0)))] * 3
    each = {name: epsilon(charges, accountant=name) for name in ALL_ACCOUNTANTS}
    assert each["tightest"] == min(value for name, value in each.items() if name != "moments") < math.inf
    assert each["rdp"] <= each["moments"] + 1e-9
    assert math.isinf(each["pld"]) == math.isinf(each["zcdp"]) == (kind == "skellam")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sampling_of_records_amplifies_like_that_of_parties(kind):
    by_records, by_parties = ([(poisson(0.1, k), (KINDS[kind],))] for k in ("records", "poisson"))
    assert epsilon(by_records) == epsilon(by_parties) < epsilon([(ALL, (KINDS[kind],))])


@pytest.mark.slow
def test_rates_inside_and_outside_of_a_release_multiply():
    inside = [(poisson(0.2), (Event("gaussian", 1.0, rate=0.5),))] * 3
    assert epsilon(inside) == epsilon([(poisson(0.1), (Event("gaussian", 1.0),))] * 3)


@pytest.mark.parametrize("kind", KINDS)
def test_exchanging_a_unit_costs_at_least_as_much_as_adding_one(kind):
    charge = [(ALL, (KINDS[kind],))]
    assert epsilon(charge, adjacency="replace-one") > epsilon(charge)
    assert epsilon(charge, adjacency="replace-one") == epsilon([(Sampling("given", 0.1, 9), (KINDS[kind],))])


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["basic", "rdp", "pld", "tightest"])
def test_fixed_cohorts_amplify_for_an_exchanged_unit_only(accountant):
    charges = [(Sampling("fixed", 0.05, 5), (Event("gaussian", 4.0),))] * 2
    exchanged = epsilon(charges, accountant=accountant, adjacency="replace-one")
    assert exchanged <= epsilon(charges, accountant=accountant)
    assert exchanged > epsilon([(poisson(0.05), (Event("gaussian", 2.0),))] * 2, accountant="pld")


# ---- pure, exponential, approximate ---------------------------------------------------------------------------------
def response_delta(e: float, rate: float, threshold: float) -> float:
    """Delta of one randomised response on a Poisson sample, by its two outcomes and in both directions."""
    p = 1 / (1 + math.exp(-e))
    without, told = np.array([1 - p, p]), np.array([p, 1 - p])
    present = (1 - rate) * without + rate * told
    return max(np.maximum(a - math.exp(threshold) * b, 0).sum() for a, b in ((present, without), (without, present)))


@pytest.mark.parametrize("rate", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("e", [0.05, 1.0, 6.0])
def test_pure_event_has_the_curve_of_randomised_response(e, rate):
    charge = [(poisson(rate), (Event("pure", epsilon=e),))]
    for threshold in np.array([0.0, 0.2, 0.7]) * math.log1p(rate * math.expm1(e)):
        exact = response_delta(e, rate, threshold)
        assert exact * (1 - 1e-9) <= delta(charge, threshold, "pld") <= exact + 1e-4 * rate * 2


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("e", [1e-4, 0.1, 2.0, 40.0])
def test_divergence_of_sampled_responses_is_that_of_two_outcomes(e, rate):
    p = 1 / (1 + math.exp(-e))
    q = 1 / (1 + math.exp(e))
    without = np.array([q, p])
    present = (1 - rate) * without + rate * without[::-1]
    with np.errstate(over="ignore"):
        sums = [(a**3 * b**-2.0).sum() for a, b in ((present, without), (without, present))]
    by_hand = max(math.log(max(total, 1.0)) / 2 for total in sums)
    assert renyi.response_curve(e, rate, (3.0,))[0] == pytest.approx(by_hand, rel=1e-6, abs=1e-15)


def worst_of_range(e: float, threshold: float) -> float:
    """Delta of the worst pair with two outcomes of losses t and t - e, over a grid of t."""
    t = np.linspace(1e-9, e - 1e-9, 20001)
    p = (math.exp(e) - np.exp(t)) / math.expm1(e)
    gains = [p * np.maximum(-np.expm1(threshold - t), 0), (1 - p) * np.maximum(-np.expm1(threshold - (t - e)), 0)]
    return float(np.max(sum(gains)))


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.2, 0.27])
def test_exponential_event_has_the_hull_of_bounded_ranges(threshold):
    found = delta([(ALL, (Event("exponential", epsilon=0.3),))], threshold, "pld")
    exact = worst_of_range(0.3, threshold)
    assert exact * (1 - 1e-6) <= found <= exact + 1e-7


@pytest.mark.parametrize("order", [1.5, 2.0, 10.0, 200.0])
def test_divergence_of_bounded_ranges_is_the_worst_over_their_position(order):
    t = np.linspace(1e-9, 1 - 1e-9, 20001)
    p = (math.e - np.exp(t)) / math.expm1(1)
    sums = p * np.exp((order - 1) * t) + (1 - p) * np.exp((order - 1) * (t - 1))
    found = renyi.range_curve(1.0, (order,))[0]
    assert found == pytest.approx(float(np.log(sums).max()) / (order - 1), rel=1e-6)
    assert found <= order / 8


def test_exponential_mechanism_is_cheaper_than_its_epsilon_says():
    chosen, responses = ([(ALL, (Event(kind, epsilon=0.1),))] * 100 for kind in ("exponential", "pure"))
    assert epsilon(chosen) < 0.55 * epsilon(responses)
    assert epsilon(chosen, accountant="zcdp") == pytest.approx(0.125 + 2 * math.sqrt(0.125 * math.log(1e5)))


def test_delta_of_an_approximate_event_is_spent():
    charges = [(ALL, (Event("approximate", epsilon=0.1, delta=4e-6),))] * 2
    assert epsilon(charges, accountant="basic") == pytest.approx(0.2)
    assert all(math.isfinite(epsilon(charges, accountant=a)) for a in ALL_ACCOUNTANTS)
    assert all(math.isinf(epsilon(charges * 2, accountant=a)) for a in ALL_ACCOUNTANTS)
    assert all(delta(charges * 2, 0.4, a) >= 1.5e-5 for a in ALL_ACCOUNTANTS)
    assert delta(charges * 2, 0.4, "basic") == pytest.approx(1.6e-5)


# ---- several mechanisms in one sample -------------------------------------------------------------------------------
@pytest.mark.slow
def test_batch_of_gaussians_is_one_sampled_gaussian():
    batch = Batch(0.2, ((Use("gaussian", 2.0), 1), (Use("gaussian", 2.0), 1)))
    together = losses.loss(Use("gaussian", math.sqrt(2.0), rate=0.2), 1)
    for threshold in (0.0, 0.1, 0.5):
        exact = together.delta(threshold)
        assert losses.loss(batch, 1).delta(threshold) == pytest.approx(exact, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_batch_of_a_gaussian_and_a_response_is_their_integral(rate):
    x = np.linspace(-14, 15, 400_001)
    step, p = x[1] - x[0], 1 / (1 + math.exp(-0.5))
    without = np.stack([norm.pdf(x, 0, 1.5) * (1 - p), norm.pdf(x, 0, 1.5) * p])
    told = np.stack([norm.pdf(x, 1, 1.5) * p, norm.pdf(x, 1, 1.5) * (1 - p)])
    present = (1 - rate) * without + rate * told
    charge = [(poisson(rate), (Event("gaussian", 1.5), Event("pure", epsilon=0.5)))]
    for threshold in (0.0, 0.2, 0.6):
        pairs = ((present, without), (without, present))
        exact = max(np.maximum(a - math.exp(threshold) * b, 0).sum() * step for a, b in pairs)
        assert exact * (1 - 1e-6) <= delta(charge, threshold, "pld") <= exact * (1 + 1e-3)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=3), st.floats(0.05, 0.9))
def test_a_sampled_batch_lies_between_its_parts_and_no_sampling(kinds, rate):
    events = tuple(KINDS[kind] for kind in kinds)
    batch = epsilon([(poisson(rate), events)])
    assert batch <= epsilon([(ALL, events)]) * (1 + 1e-3)
    assert batch >= max(epsilon([(poisson(rate), (event,))]) for event in events) * (1 - 1e-3) or "skellam" in kinds


# ---- Skellam --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("steps", "apart"), [(3.0, 1), (10.0, 1), (30.0, 2)])
@pytest.mark.parametrize("order", [2.0, 5.0])
def test_skellam_bound_covers_the_divergence_of_one_coordinate(steps, apart, order):
    k = np.arange(-int(14 * steps), int(14 * steps) + 1)
    log_p = np.log(ive(np.abs(k), steps**2))
    log_q = np.log(ive(np.abs(k - apart), steps**2))
    exact = math.log(np.exp(order * log_p - (order - 1) * log_q).sum()) / (order - 1)
    bound = renyi.skellam_curve(steps / apart, steps, (order,))[0]
    assert exact <= bound * (1 + 1e-9)
    assert bound < exact * (1 + 10 * order / steps)


def test_fine_grid_of_skellam_noise_costs_what_gaussian_noise_costs():
    fine = epsilon([(ALL, (Event("skellam", 5.0, steps=1e5),))], accountant="rdp")
    assert fine == pytest.approx(epsilon([(ALL, (Event("gaussian", 5.0),))], accountant="rdp"), rel=0.01)


# ---- privacy curves -------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("accountant", ALL_ACCOUNTANTS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "approximate"])
def test_delta_and_epsilon_are_inverse(kind, accountant):
    charges = [(ALL, (KINDS[kind],))] * 12
    e = epsilon(charges, 1e-6, accountant)
    if math.isfinite(e):
        again = delta(charges, e, accountant)
        assert again <= 1.01e-6
        assert epsilon(charges, max(again, 1e-12), accountant) <= e * (1 + 1e-3) + 1e-4


def test_delta_of_what_is_pure_vanishes_at_its_epsilon():
    charges = [(ALL, (Event("pure", epsilon=0.5),))] * 3
    assert delta(charges, 1.5) == 0.0
    assert 0 < delta(charges, 1.4) < 1
    assert delta([], 1.0) == 0.0
    assert delta([(ALL, (Event("nonprivate"),))], 5.0) == 1.0


def test_delta_of_a_gaussian_is_exact_and_grows_with_rounds():
    charge = (ALL, (Event("gaussian", 1.0),))
    assert delta([charge], 8.0) == pytest.approx(accounting.gaussian_delta(1.0, 8.0), rel=1e-12)
    assert delta([charge], 8.0) < delta([charge] * 2, 8.0) < delta([charge] * 9, 8.0)


@pytest.mark.slow
def test_geyers_threshold_on_delta_is_read_from_the_curve():
    def spent(n):
        return [(poisson(0.05085), (Event("gaussian", 1.0),))] * n

    assert delta(spent(412), 8.0) < 1e-6 < delta(spent(600), 8.0)


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "event",
    [
        Event("pure"),
        Event("pure", epsilon=math.inf),
        Event("exponential", epsilon=-1.0),
        Event("approximate", epsilon=0.1),
        Event("approximate", epsilon=0.1, delta=1.0),
        Event("skellam", 2.0),
        Event("gaussian", 2.0, rate=0.0),
        Event("gaussian", 2.0, rate=1.5),
        Event("gaussian", 2.0, count=0),
        Event("uniform", 2.0),
    ],
    ids=str,
)
def test_refuses_an_event_that_says_too_little_or_too_much(event):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        epsilon([(ALL, (event,))])


@pytest.mark.parametrize("e", [-0.1, math.inf, math.nan])
def test_refuses_a_curve_at_no_epsilon(e):
    with pytest.raises(BudgetInvalid, match="epsilon"):
        delta([], e)
