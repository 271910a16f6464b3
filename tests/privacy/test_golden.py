"""Golden values of accounting: published numbers, and numbers computed once at higher precision."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp

from hedgerow.core.events import Event, Sampling
from hedgerow.privacy import accounting
from hedgerow.privacy.accounting import bounds, composition, renyi
from hedgerow.privacy.accounting.costs import Use, costs

ALL = Sampling()


def epsilon(charges, delta, accountant="tightest"):
    return accounting.epsilon(charges, delta=delta, adjacency="add-remove", accountant=accountant)


def rounds(rate, z, n):
    return [(Sampling("poisson", rate), (Event("gaussian", z),))] * n


def sampled(rate, z, orders, exchanged=False):
    return renyi.curve(Use("gaussian", z, rate=rate, exchanged=exchanged), orders)


# ---- one Gaussian ---------------------------------------------------------------------------------------------------
ANALYTIC = {
    (1, 1e-5): 3.730631634816,
    (0.1, 1e-5): 30.749566131978,
    (0.5, 1e-5): 7.031826675582,
    (2, 1e-5): 1.993812445644,
    (4, 1e-5): 1.081161849520,
    (8, 1e-5): 0.600229072199,
    (1, 1e-6): 4.224678889327,
    (8, 1e-3): 0.480013752480,
    (8, 1e-6): 0.652935384358,
}


@pytest.mark.parametrize(("budget", "z"), ANALYTIC.items(), ids=str)
def test_analytic_gaussian(budget, z):
    assert accounting.gaussian_noise(*budget) == pytest.approx(z, rel=1e-9)
    assert accounting.gaussian_epsilon(z, budget[1]) == pytest.approx(budget[0], rel=1e-9)


@pytest.mark.parametrize(
    ("z", "delta", "exact"),
    [(1, 1e-5, 4.377178095681), (2, 1e-5, 1.993091404415), (5, 1e-6, 0.834117548624), (0.5, 1e-5, 9.997256146434)],
)
def test_one_gaussian_is_reported_exactly(z, delta, exact):
    assert epsilon([(ALL, (Event("gaussian", z),))], delta) == pytest.approx(exact, rel=1e-9)


def classic_noise(budget, delta):
    """The formula of textbooks, proved for epsilon below 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / budget


def enough_noise(formula):
    return all(accounting.gaussian_delta(formula(e, d), e) <= d * (1 + 1e-9) for e, d in ANALYTIC)


def test_analytic_noise_is_enough():
    assert enough_noise(accounting.gaussian_noise)


def test_classic_gaussian_formula_is_caught_at_epsilon_8():
    assert classic_noise(8, 1e-3) == pytest.approx(0.4721, abs=1e-4)
    assert accounting.gaussian_delta(0.4721, 8) == pytest.approx(1.31e-3, abs=5e-6)
    assert not enough_noise(classic_noise)


# ---- Renyi ----------------------------------------------------------------------------------------------------------
def test_renyi_conversion():
    assert epsilon([(ALL, (Event("gaussian", 4.530877117),))], 1e-6, "rdp") == pytest.approx(1.0, rel=1e-6)
    orders = tuple(range(2, 33))
    assert renyi.epsilon_of(np.full(31, 1.1), 1e-5, orders) == pytest.approx(1.32783806176, rel=1e-10)
    assert accounting.RDP(32, 1.1).to_approximate(1e-5).epsilon == pytest.approx(1.32783806176, rel=1e-10)


def test_sampled_gaussian():
    assert 10 * sampled(0.1, 2, (5.0,)) == pytest.approx([0.07736968489796], rel=1e-9)
    published = [6.70579740668e-4, 1.08548710439e-3, 2.18075656231e-3, 0.0238460375387, 167.416307548]
    assert 50 * sampled(0.01, 2.5, (1.5, 2.5, 5.0, 50.0, 100.0)) == pytest.approx(published, rel=1e-6)


def test_gaussian_on_samples_of_fixed_size():
    published = [4.63860821653e-3, 8.76336051919e-3, 0.0984741502971, 167.766388553]
    assert 50 * sampled(0.01, 2.5, (2.5, 5.0, 50.0, 100.0), exchanged=True) == pytest.approx(published, rel=1e-9)


def test_laplace():
    published = [0.36787944117144, 0.51288351129451, 0.61912362999859, 0.92868290209668]
    assert renyi.curve(Use("laplace", 1.0), (1.0, 1.5, 2.0, 10.0)) == pytest.approx(published, rel=1e-9)
    delta = accounting.delta([(ALL, (Event("laplace", 1.0),))], epsilon=0.5, adjacency="add-remove", accountant="pld")
    assert delta == pytest.approx(0.2211992169285951, rel=1e-6)


def test_randomised_response():
    assert renyi.response_curve(math.log(3), 1.0, (2.0, 10.0)) == pytest.approx([0.84729786, 1.06664761], abs=5e-9)
    assert renyi.response_curve(5.942799375126701, 1.0, (1e9,)) == pytest.approx([5.942799375126701], rel=1e-7)
    delta = accounting.delta([(ALL, (Event("pure", epsilon=1.0),))], epsilon=0.5, adjacency="add-remove", accountant="pld")
    assert delta == pytest.approx(0.2876491366449679, rel=1e-6)  # that of discrete Laplace noise too


def test_exponential_mechanism():
    first, last = renyi.range_curve(1.0, (1 + 1e-7, 1000.0))
    assert first == pytest.approx(0.123301561, rel=1e-6)
    assert last == pytest.approx(1.0, rel=0.01)


def test_skellam():
    assert renyi.skellam_curve(100 / math.sqrt(100), 100.0, (2.0,)) == pytest.approx([0.01000225], rel=1e-9)


# ---- composition ----------------------------------------------------------------------------------------------------
def test_zcdp_and_advanced_composition():
    assert accounting.ZCDP(0.5).to_approximate(1e-5).epsilon == pytest.approx(5.298525912, rel=1e-9)
    assert epsilon([(ALL, (Event("gaussian", 1.0),))], 1e-5, "zcdp") == pytest.approx(5.298525912, rel=1e-9)
    assert epsilon([(ALL, (Event("gaussian", 1.0),))], 1e-5, "rdp") == pytest.approx(4.728507067, rel=1e-9)
    responses = [(ALL, (Event("pure", epsilon=0.1),))] * 100
    assert epsilon(responses, 1e-6, "advanced") == pytest.approx(6.308230950513, rel=1e-9)


def binomial_delta(n, e, threshold):
    """Delta of n randomised responses, summed over how many told the truth."""
    p = 1 / (1 + math.exp(-e))
    losses = [(2 * k - n) * e for k in range(n + 1)]
    return math.fsum(
        math.comb(n, k) * p**k * (1 - p) ** (n - k) * -math.expm1(threshold - loss)
        for k, loss in enumerate(losses)
        if loss > threshold
    )


def counts_responses(account):
    """The published 4.78201 is on a grid of losses; 4.774568 is the root of the exact sum."""
    return 4.774567 < account(100) < 4.78202


def test_a_hundred_randomised_responses():
    assert binomial_delta(100, 0.1, 4.7745676) == pytest.approx(1e-6, rel=1e-6)
    assert counts_responses(lambda n: epsilon([(ALL, (Event("pure", epsilon=0.1),))] * n, 1e-6))
    assert counts_responses(lambda n: epsilon([(ALL, (Event("pure", epsilon=0.1, count=n),))], 1e-6))


def test_accountant_that_forgets_the_count_of_responses_is_caught():
    noise = 2 / (1 + math.exp(0.1))  # two buckets: the truth with 1 - noise/2

    def library(n):
        accountant = pld.PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
        event = dp_accounting.RandomizedResponseDpEvent(noise, 2)
        return accountant.compose(event, n).get_epsilon(1e-6)

    assert library(100) < 0.2
    assert not counts_responses(library)


def test_library_bound_for_an_exchanged_unit_is_caught_and_ours_doubles_the_distance():
    charge = [(ALL, (Event("gaussian", 1.0),))]
    library = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    exact = accounting.gaussian_epsilon(0.5, 1e-5)
    assert library.compose(dp_accounting.GaussianDpEvent(1.0)).get_epsilon(1e-5) < 0.5 * exact
    for accountant in ("rdp", "pld", "zcdp", "basic", "tightest"):
        assert accounting.epsilon(charge, delta=1e-5, adjacency="replace-one", accountant=accountant) >= exact


# ---- published training runs ----------------------------------------------------------------------------------------
PUBLISHED = {  # rate, noise multiplier, rounds, delta, epsilon as published, and by the same method to more digits
    "Abadi et al. 2016": (0.01, 4, 10_000, 1e-5, 1.26, 1.258575),
    "McMahan et al. 2018": (5000 / 763430, 1, 5000, 1e-9, 4.634, 4.633789),
    "TF-Privacy tutorial, 1.3": (256 / 60000, 1.3, 3515, 1e-5, 1.19, 1.192130),
    "TF-Privacy tutorial, 1.1": (256 / 60000, 1.1, 14062, 1e-5, 3.01, 3.008272),
    "TF-Privacy tutorial, 0.7": (256 / 60000, 0.7, 10546, 1e-5, 7.10, 7.101262),
    "Jayaraman and Evans 2019, 30 epochs": (0.02, 3.9, 1500, 1e-5, 1, 1.0051),
    "Jayaraman and Evans 2019, 100 epochs": (0.02, 7, 5000, 1e-5, 1, 0.99987),
    "Tramer and Boneh 2021": (512 / 60000, 1.23, 4687, 1e-5, 3, 2.9946),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_eight_published_epsilons(name):
    rate, z, n, delta, published, digits = PUBLISHED[name]
    orders = renyi.ORDERS if "TF" in name or "Jayaraman" in name or "Tramer" in name else renyi.MOMENTS
    divergences = renyi.total_curve(costs(rounds(rate, z, n)), orders)
    assert renyi.classic_epsilon(divergences, delta, orders) == pytest.approx(digits, abs=6e-5)
    assert epsilon(rounds(rate, z, n), delta, "moments") == pytest.approx(published, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "z", "n", "delta", "exact"),
    [(0.01, 1, 1000, 1e-5, 1.8282367), (0.01, 4, 10_000, 1e-5, 0.9468684), (0.001, 0.8, 10_000, 1e-6, 0.9471970)],
)
def test_losses_on_a_grid_of_1e_5(rate, z, n, delta, exact):
    assert bounds._pld(costs(rounds(rate, z, n)), delta, 1e-5) == pytest.approx(exact, abs=6e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "n", "delta", "moments", "by_rdp", "by_pld", "exchanged", "full"),
    [
        (0.5, 11, 1e-3, 1.193, 1.081, 0.984, 3.396, 1.725),
        (0.22, 54, 1e-5, 1.436, 1.335, 1.251, 4.443, 4.686),
        (0.05085, 412, 1e-6, 1.092, 1.037, 0.990, 3.269, 13.991),
    ],
)
def test_noise_that_geyer_needs(rate, n, delta, moments, by_rdp, by_pld, exchanged, full):
    def noise(**how):
        return accounting.calibrate(8.0, delta, rounds=n, rate=rate, **how)

    assert noise(accountant="moments") == pytest.approx(moments, abs=6e-4)
    assert noise(accountant="rdp") == pytest.approx(by_rdp, abs=6e-4)
    assert noise() == pytest.approx(by_pld, abs=6e-4)
    assert noise(sampling="fixed", adjacency="replace-one", accountant="rdp") == pytest.approx(exchanged, abs=2e-3)
    assert noise(sampling="all", accountant="rdp") == pytest.approx(full, abs=2e-3)


def test_noise_of_a_hundred_releases_by_each_composition():
    found = {name: accounting.calibrate(1.0, 1e-5, rounds=100, accountant=name) for name in ("zcdp", "rdp", "pld")}
    assert found == pytest.approx({"zcdp": 49.0, "rdp": 40.5, "pld": 37.3}, abs=0.06)
    assert accounting.calibrate(1.0, 1e-5, rounds=100, accountant="basic") == pytest.approx(
        accounting.gaussian_noise(0.01, 1e-7), rel=2e-4
    )


def test_advanced_composition_is_as_published_where_epsilons_are_given():
    uses = costs([(ALL, (Event("pure", epsilon=0.05),))] * 400 + [(ALL, (Event("pure", epsilon=0.1),))] * 100)
    mean = 400 * 0.05 * math.expm1(0.05) + 100 * 0.1 * math.expm1(0.1)
    assert composition.advanced(uses, 1e-3) == pytest.approx(mean + math.sqrt(2 * math.log(1e3) * 2.0))


@pytest.mark.parametrize(("epsilon", "count"), [(0.5, 2), (3.0, 20), (200.0, 3)])
def test_advanced_composition_asks_for_no_more_than_basic_composition(epsilon, count):
    uses = costs([(ALL, (Event("pure", epsilon=epsilon),))] * count)
    theorem = count * epsilon * math.expm1(epsilon) + math.sqrt(2 * math.log(1e3) * count * epsilon**2)
    assert theorem > count * epsilon
    assert composition.advanced(uses, 1e-3) == composition.basic(uses, 1e-3) == pytest.approx(count * epsilon)


def test_choosing_among_runs_of_a_gaussian_at_epsilon_1():
    """One run is the analytic Gaussian of (1, 1e-5), whose Renyi epsilon is 1.0926."""
    run = [(ALL, (Event("gaussian", accounting.gaussian_noise(1.0, 1e-5)),))]

    def best(mean, law):
        return accounting.selection(run, mean_runs=mean, delta=1e-5, adjacency="add-remove", law=law)

    assert [epsilon(run * n, 1e-5, "rdp") for n in (1, 10, 100)] == pytest.approx([1.0926, 3.9147, 15.43], abs=5e-3)
    found = [best(10, "geometric"), best(10, "poisson"), best(100, "geometric")]
    assert found == pytest.approx([2.3108, 2.5337, 2.9137], abs=5e-5)
