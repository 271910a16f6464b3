"""(2.4), tests and advantages: bounds reached and never exceeded; slips of the thesis told apart; Hsu's epsilons."""

import math
from collections import Counter

import numpy as np
import pytest

from hedgerow.errors import BudgetInvalid
from hedgerow.market.epsilon import channels
from hedgerow.market.epsilon.insurance import compensation, feasible_epsilons
from hedgerow.market.epsilon.posterior import (
    advantage,
    advantage_of,
    chance_beyond,
    epsilon_for_posterior,
    gaussian_advantage,
    gaussian_power,
    least_posterior,
    posterior,
    posterior_of_worlds,
    power,
    right_guess,
)
from hedgerow.privacy.accounting import charge_of, epsilon, gaussian_delta, gaussian_noise

ALPHAS = np.linspace(0, 1, 501)


def worst(epsilon, delta):
    """The channel that tells most at (epsilon, delta), of Kairouz, Oh and Viswanath: rows "not there" and "there"."""
    lie, truth = 1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))
    return np.array([[delta, 0, (1 - delta) * truth, (1 - delta) * lie], [0, delta, (1 - delta) * lie, (1 - delta) * truth]])


def beliefs(worlds, epsilon, outputs):
    """Beliefs in worlds that were as likely, after Laplace noise of scale 1 / epsilon on their answers: (worlds, outputs)."""
    chances = np.exp(-epsilon * np.abs(outputs - np.asarray(worlds, float)[:, None]))
    return chances / chances.sum(axis=0)


def test_goldens():
    assert posterior_of_worlds(4, 1.0) == pytest.approx(0.475367, abs=5e-7)
    assert epsilon_for_posterior(4, 1 / 3) == pytest.approx(0.405465, abs=5e-7)
    assert epsilon_for_posterior(10, 0.5) == pytest.approx(2.197225, abs=5e-7)
    assert advantage(1.0) == pytest.approx(0.462117, abs=5e-7)
    assert advantage(1.0) == pytest.approx(math.tanh(0.5), rel=1e-15)
    assert advantage(1.0, 1e-5) == pytest.approx(0.462123, abs=5e-7)
    found = feasible_epsilons(10_000, 1000.0, 10.0, 0.05, 0.05)
    assert (found.least, found.most) == (pytest.approx(0.005991, abs=5e-7), pytest.approx(0.009950, abs=5e-7))
    assert found


def test_belief_in_a_world_reaches_its_bound_and_never_exceeds_it():
    rng = np.random.default_rng(0)
    outputs = np.linspace(-3, 4, 400)
    for _ in range(200):
        m, eps = int(rng.integers(2, 8)), rng.exponential(1.5)
        worlds = rng.uniform(0, 1, m)
        change = np.ptp(worlds)
        assert beliefs(worlds, eps, outputs).max() <= posterior_of_worlds(m, eps, change) + 1e-12
    assert beliefs([1, 0, 0, 0], 1.0, outputs)[0].max() == pytest.approx(posterior_of_worlds(4, 1.0), rel=1e-12)
    assert beliefs([3, 0, 0, 0], 1.0, outputs)[0].max() == pytest.approx(posterior_of_worlds(4, 1.0, change=3.0), rel=1e-12)


def test_worlds_that_lack_one_person_each_are_two_steps_apart():
    # values -1 and 1: a person who comes or goes moves the sum by 1, and noise of scale 1 keeps epsilon 1 for that
    reached = beliefs([1, -1, -1], 1.0, np.array([5.0]))[0, 0]
    assert reached > posterior_of_worlds(3, 1.0) + 0.2
    assert reached == pytest.approx(posterior_of_worlds(3, 2.0), rel=1e-12)
    assert reached == pytest.approx(posterior_of_worlds(3, 1.0, change=2.0), rel=1e-12)


@pytest.mark.parametrize("worlds", [2, 4, 100])
@pytest.mark.parametrize("belief", [0.02, 0.3, 0.5, 0.99])
def test_the_epsilon_of_a_belief_is_the_inverse(worlds, belief):
    eps = epsilon_for_posterior(worlds, belief, change=1.5, sensitivity=2.0)
    if belief <= 1 / worlds:
        assert eps == 0.0
    else:
        assert posterior_of_worlds(worlds, eps, 1.5, 2.0) == pytest.approx(belief, rel=1e-12)


def test_a_sum_over_the_other_worlds_gives_no_probability():
    chances = np.exp(-1.0 * np.abs(1.0 - np.array([1.0, 0.0, 0.0])))
    printed = chances / (chances.sum() - chances)  # the sum over psi != omega
    assert printed[0] > 1
    assert printed.sum() > 1.5
    right = chances / chances.sum()
    assert right.sum() == pytest.approx(1)
    assert right[0] == pytest.approx(posterior_of_worlds(3, 1.0))


def test_the_exponent_has_epsilon_and_not_e():
    printed = 1 / (1 + 3 * math.exp(-math.e))  # whatever epsilon is
    assert posterior_of_worlds(4, 0.1) < 0.3 < printed < posterior_of_worlds(4, 5.0)


@pytest.mark.parametrize("prior", [0.001, 0.01, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("eps", [0.0, 0.2, 1.0, 6.0, 800.0])
def test_beliefs_of_one_person(prior, eps):
    channel = channels.randomised_response(2, eps)
    joint = np.array([1 - prior, prior])[:, None] * channel
    after = joint[1] / joint.sum(axis=0)
    assert after.max() == pytest.approx(posterior(prior, eps), rel=1e-12)
    assert after.min() == pytest.approx(least_posterior(prior, eps), rel=1e-9, abs=1e-15)
    if eps < 700:
        odds = [p / (1 - p) for p in (prior, posterior(prior, eps), least_posterior(prior, eps)) if p < 1]
        assert odds[-1] * math.exp(eps) == pytest.approx(odds[0], rel=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
@pytest.mark.parametrize("eps", [0.0, 0.5, 2.0])
def test_tests_guesses_and_advantages_are_those_of_the_channel_that_tells_most(eps, delta):
    channel = worst(eps, delta)
    order = [1, 3, 2, 0]  # outputs by their likelihood ratio, most for "there" first
    alarms, powers = (np.r_[0, np.cumsum(channel[row, order])] for row in (0, 1))
    for alpha in ALPHAS:
        assert power(alpha, eps, delta) == pytest.approx(np.interp(alpha, alarms[1:], powers[1:]), abs=1e-12)
    assert advantage(eps, delta) == pytest.approx(np.abs(channel[0] - channel[1]).sum() / 2, rel=1e-12)
    for prior in (0.01, 0.3, 0.5, 0.8, 0.999):
        assert right_guess(prior, eps, delta) == pytest.approx(
            channels.success(channel, np.array([1 - prior, prior])), rel=1e-12
        )


@pytest.mark.parametrize("times", [1.1, 2.0, 30.0])
def test_with_delta_odds_change_by_more_so_seldom(times):
    eps, delta = 0.7, 1e-3
    chance = chance_beyond(eps, delta, times)
    apart = np.array([chance, chance * math.exp(-eps) / times])  # an output whose odds are times e^eps
    assert apart[0] - math.exp(eps) * apart[1] == pytest.approx(delta, rel=1e-12)
    assert chance_beyond(eps, 0.0, times) == 0.0


def test_yeoms_bound_is_larger_and_soon_says_nothing():
    rng = np.random.default_rng(1)
    for eps in rng.exponential(2, 200):
        assert advantage(eps) < math.expm1(eps)
        assert advantage(eps) < 1
    assert math.expm1(0.7) > 1


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_gaussian_noise_has_a_smaller_advantage_than_its_epsilon_allows(eps):
    z = gaussian_noise(eps, 1e-5)
    powers = np.array([gaussian_power(alpha, z) for alpha in ALPHAS])
    assert (powers - ALPHAS).max() == pytest.approx(gaussian_advantage(z), rel=1e-4)
    assert (powers - ALPHAS).max() <= gaussian_advantage(z)
    assert (powers - math.exp(eps) * ALPHAS).max() <= gaussian_delta(z, eps) * (1 + 1e-9)
    assert all(powers <= [power(alpha, eps, 1e-5) + 1e-12 for alpha in ALPHAS])
    assert gaussian_advantage(z) < advantage(eps, 1e-5) / 1.5
    assert advantage_of([charge_of(z)], "add-remove") == pytest.approx(gaussian_advantage(z), rel=1e-9)


def test_the_printed_example_of_a_gaussian_advantage():
    assert gaussian_advantage(gaussian_noise(1.0, 1e-5)) == pytest.approx(0.1067, abs=1e-4)


@pytest.mark.parametrize("law", [pytest.param("laplace", marks=pytest.mark.slow), "gaussian"])
def test_the_advantage_of_a_plan_is_below_the_bound_at_its_epsilon(law):
    charges = Counter({charge_of(20.0, law=law): 10})
    for delta in (1e-8, 1e-4):
        spent = epsilon(charges, delta=delta, adjacency="add-remove")
        assert 0 < advantage_of(charges, "add-remove") <= advantage(spent, delta)
    assert advantage_of([], "add-remove") == 0.0


@pytest.mark.slow
def test_the_advantage_of_sampled_rounds_is_that_of_their_noise():
    charges = Counter({charge_of(4.0, rate=0.01): 1000})
    exact = 2 * 0.5 * math.erf(0.01 * math.sqrt(1000 * math.expm1(1 / 16)) / 2 / math.sqrt(2))  # the limit of many rounds
    assert advantage_of(charges, "add-remove") == pytest.approx(exact, rel=0.02)


def test_hsus_epsilons_keep_accuracy_and_budget():
    rng = np.random.default_rng(2)
    for _ in range(100):
        n, budget, harm = int(rng.integers(1, 10**6)), rng.exponential(1e4), rng.exponential(20)
        error, failure = rng.uniform(0.001, 0.2), rng.uniform(0.001, 0.3)
        found = feasible_epsilons(n, budget, harm, error, failure)
        assert math.exp(-found.least * error * n) == pytest.approx(failure)  # Laplace noise of scale 1 / eps beyond alpha N
        assert n * compensation(harm, found.most) == pytest.approx(budget)
        assert bool(found) == (n * compensation(harm, found.least) <= budget)
    assert compensation(1.0, 0.1) == pytest.approx(0.105171, abs=5e-7)


@pytest.mark.parametrize(
    "call",
    [
        lambda: posterior(0.0, 1.0),
        lambda: posterior(1.0, 1.0),
        lambda: posterior(0.5, -1.0),
        lambda: posterior_of_worlds(1, 1.0),
        lambda: posterior_of_worlds(2, 1.0, change=0.0),
        lambda: epsilon_for_posterior(4, 1.0),
        lambda: chance_beyond(1.0, 1e-5, 1.0),
        lambda: advantage(1.0, -0.1),
        lambda: gaussian_power(0.1, 0.0),
        lambda: feasible_epsilons(100, -1.0, 1.0, 0.1, 0.1),
        lambda: feasible_epsilons(100, 1.0, 1.0, 0.1, 1.0),
    ],
)
def test_refuses(call):
    with pytest.raises(BudgetInvalid) as refused:
        call()
    assert refused.value.remedy
