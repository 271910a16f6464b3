"""Posted prices: owners' answers are exact and dominant, and the learner's price is the best of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.learn.queries import Steps
from hedgerow.learn.queries.answers import Answers
from hedgerow.market.forecasts.known_loss import KnownLoss
from hedgerow.market.forecasts.owner_noise import variances
from hedgerow.market.forecasts.pilot_estimate import PilotEstimate
from hedgerow.market.plans.owner_offer import OwnerOffer
from hedgerow.market.plans.plan import plan
from hedgerow.market.prices.posted import LearnerTerms, OwnerTerms, Supply, post
from hedgerow.market.prices.price_search import best_price, candidate_prices
from hedgerow.market.prices.sum_noise import SumNoise, separation
from hedgerow.privacy.accounting import gaussian_noise

FIVE = OwnerTerms([40000, 20000, 800, 30000, 5000], [1, 1.5, 9, 4, 0.5], [0.2, 0.2, 0.05, 0.1, 0.5], [10, 10, 0.2, 1, 10])  # type: ignore[arg-type]


def learner(law: str = "gaussian", value: float = 4e5) -> LearnerTerms:
    """The pilot of the lending records: ten inputs, a hundred questions."""
    noise = SumNoise(law, 100, 4 * (10**0.5 + 1), delta=1e-6 if law == "gaussian" else 0.0)  # type: ignore[arg-type]
    return LearnerTerms(noise, 0.49, 0.378, 7.5e-5, 0.049, value)


def crowd(size: int, seed: int) -> OwnerTerms:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0.02, 0.5, size)
    high = np.minimum(low * rng.lognormal(2, 1, size).clip(1, 50), 20)
    return OwnerTerms(rng.lognormal(9, 1.5, size), rng.lognormal(-3, 1, size), low, high)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_noise_of_an_epsilon_is_that_of_the_answers(law, neighbours):
    epsilons = {"a": 0.03, "b": 1.0, "c": 17.0}
    answers = Answers.of(epsilons, 50, radius=3.0, law=law, neighbours=neighbours, delta=1e-6 if law == "gaussian" else 0.0)
    noise = SumNoise.of(answers)
    assert noise.variance(np.array(list(epsilons.values()))) == pytest.approx(list(variances(answers).values()), rel=1e-11)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2, 0.3])
def test_many_separations_are_those_that_the_accountant_finds_one_by_one(delta):
    epsilon = np.geomspace(1e-3, 100, 25)
    expected = [1 / gaussian_noise(float(e), delta) for e in epsilon]
    assert separation(epsilon, delta) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_slope_of_the_variance_is_its_derivative(law):
    noise, e = learner(law).noise, np.geomspace(0.01, 20, 40)
    step = 1e-5 * e
    difference = (noise.variance(e + step) - noise.variance(e - step)) / (2 * step)
    assert noise.variance_and_slope(e)[1] == pytest.approx(difference, rel=1e-7)


@pytest.mark.parametrize("k", np.geomspace(1e-8, 1e8, 9))
def test_the_rate_of_gaussian_precision_has_one_peak(k):
    """log R rises and then falls, along epsilon, whatever k = s n / (A a) at mu 1."""
    e = np.geomspace(1e-4, 60, 2000)
    for delta in (1e-12, 1e-6, 1e-2):
        terms = LearnerTerms(SumNoise("gaussian", 1, 1.0, delta=delta), k, 1.0, 0.0, 1.0, 1.0)
        one = OwnerTerms(*np.array([[1.0], [1.0], [1e-4], [60.0]]))
        log_rate = Supply(one, terms)._precision_and_log_rate(e[:, None])[1][:, 0]
        rises = np.diff(log_rate) > 1e-9
        assert (np.diff(rises.astype(int)) <= 0).all()


@pytest.mark.parametrize("k", np.geomspace(1e-6, 1e6, 7))
def test_the_rate_of_laplace_precision_turns_where_the_cubic_is_zero(k):
    terms = LearnerTerms(SumNoise("laplace", 1, 0.5**0.5), k, 1.0, 0.0, 1.0, 1.0)  # a = 1 / eps^2
    peak = Supply(OwnerTerms(*np.array([[1.0], [1.0], [1e-6], [50.0]])), terms).peak
    assert 1 - peak - 3 * k * peak**2 - k * peak**3 == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_an_answer_is_the_best_of_twenty_thousand_epsilons(law):
    owners, terms = crowd(40, seed=1), learner(law)
    supply = Supply(owners, terms)
    tried = np.exp(np.linspace(np.log(owners.lowest), np.log(owners.highest), 2000 if law == "gaussian" else 20000))
    entry = np.median(supply.entries[0])
    for price in (entry / 30, entry, 30 * entry):
        answers = supply.answers(price)
        own = np.where(answers > 0, supply.gains(price, np.maximum(answers, owners.lowest)), 0.0)
        best = np.maximum(supply.gains(price, tried).max(0), 0.0)
        assert (best - own <= 1e-12 * np.maximum(1.0, best)).all()
        assert (own >= 0).all()


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_of_a_thousand_owners_none_gains_by_deviating(law):
    owners, terms = crowd(1000, seed=2), learner(law)
    supply = Supply(owners, terms)
    posted = post(float(np.median(supply.entries[0])), owners, terms, supply)
    part = posted.takes_part
    assert 300 < part.sum() < 700
    assert posted.deviation_gains.max() <= 1e-6
    assert (posted.deviation_gains[part] <= 1e-6 * posted.payments[part]).all()
    assert (posted.surplus >= 0).all()
    assert (posted.epsilons[part] >= owners.lowest[part]).all()
    assert (posted.epsilons <= owners.highest).all()


def test_answers_on_a_grid_of_a_hundred_and_sixty_epsilons_are_told_apart():
    """The twin that answers from a grid gains by deviating, and is caught."""
    terms, grid = learner(), np.geomspace(0.02, 10, 160)
    supply = Supply(FIVE, terms)
    gains = supply.gains(0.00154, np.repeat(grid[:, None], 5, 1))
    gains[(grid[:, None] < FIVE.lowest) | (grid[:, None] > FIVE.highest)] = -np.inf
    answers = np.where(gains.max(0) > 0, grid[gains.argmax(0)], 0.0)
    assert supply.deviation_gains(0.00154, answers).max() > 1e-4
    assert supply.deviation_gains(0.00154, supply.answers(0.00154)).max() < 1e-12


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_entry_price_is_where_an_owner_begins_to_answer(law):
    owners, terms = crowd(30, seed=3), learner(law)
    supply = Supply(owners, terms)
    entry, enters, _ = supply.entries
    for k in range(0, 30, 3):
        assert supply.answers(entry[k] * (1 - 1e-7))[k] == 0
        assert supply.answers(entry[k] * (1 + 1e-7))[k] == pytest.approx(enters[k], rel=1e-2)


def test_an_owner_may_jump_from_its_lowest_epsilon_into_its_range():
    """Gaussian noise has a precision at epsilon 0, by delta, that costs nothing: who accepts so little enters with it."""
    terms = LearnerTerms(SumNoise("gaussian", 1, 1.0, delta=0.05), 1e-3, 1.0, 0.0, 1.0, 1.0)
    supply = Supply(OwnerTerms(*np.array([[1.0, 1.0], [1.0, 1.0], [1e-3, 0.5], [5.0, 5.0]])), terms)
    entry, enters, jump = supply.entries
    assert enters[0] == 1e-3
    assert entry[0] < jump[0] < np.inf
    assert jump[1] == np.inf
    assert supply.answers(jump[0] * (1 - 1e-7))[0] == 1e-3
    assert supply.answers(jump[0] * (1 + 1e-7))[0] > 0.1
    assert supply.deviation_gains(float(jump[0]), supply.answers(float(jump[0]))).max() < 1e-12


@pytest.mark.parametrize("law", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_price_leaves_the_learner_more_than_the_best(law, seed):
    owners = FIVE if not seed else crowd(6, seed)
    terms = learner(law)
    found, supply = best_price(owners, terms), Supply(owners, terms)
    known = candidate_prices(supply)
    others = np.concatenate(
        [np.geomspace(known[0], known[-1], 20), found.price * np.array([1 - 1e-4, 1 - 1e-6, 1 + 1e-6, 1 + 1e-4])]
    )
    assert max(post(float(price), owners, terms, supply).net for price in others) <= found.net + 1e-9 * abs(found.net)


def test_the_lending_plan_of_five_owners():
    """Close to the prototype's, whose epsilons and prices lie on grids of 160."""
    posted = best_price(FIVE, learner())
    assert posted.epsilons == pytest.approx([2.98, 1.53, 0, 1.0, 0], abs=0.05)
    assert posted.weights == pytest.approx([1, 0.237, 0, 0.166, 0], abs=0.01)
    assert posted.payments == pytest.approx([55.00, 6.51, 0, 6.85, 0], abs=1.0)
    assert posted.relative_fitness == pytest.approx(0.0020, abs=5e-5)
    assert posted.net > -4e5 * 0.0020 - 68.36
    assert posted.deviation_gains.max() < 1e-9
    # orchard, at its highest epsilon, gets what makes it enter and no more
    assert posted.price == pytest.approx(posted.entry_prices[3], rel=1e-8)
    assert 0 < posted.surplus[3] < 1e-6


def test_a_learner_buys_nothing_where_coefficients_of_zero_are_worth_more():
    terms = replace(learner(), nothing=0.05)
    bought = best_price(FIVE, terms)
    assert bought.epsilons == pytest.approx(best_price(FIVE, learner()).epsilons)
    poor = best_price(FIVE, replace(terms, value=1.0))  # one owner costs more than what it could save
    assert not poor.takes_part.any()
    assert (poor.price, poor.paid, poor.relative_fitness, poor.net) == (0.0, 0.0, 0.05, -0.05)
    assert poor.deviation_gains.max() == 0
    some = best_price(FIVE, learner(value=1.0))
    assert some.takes_part.any()
    assert some.net < poor.net


def test_owners_with_one_epsilon_or_without_a_cost_are_served():
    terms = learner()
    fixed = OwnerTerms(*np.array([[1e4, 2e4], [1.0, 0.0], [1.0, 0.5], [1.0, 2.0]]))
    posted = best_price(fixed, terms)
    assert posted.epsilons[1] == 2.0
    assert posted.epsilons[0] in (0.0, 1.0)
    assert best_price(fixed, learner(value=1e-3)).epsilons.tolist() == [0.0, 2.0]
    free = best_price(OwnerTerms(*np.array([[1e4], [0.0], [0.5], [2.0]])), terms)
    assert free.epsilons[0] == pytest.approx(2.0)
    assert free.paid < 1e-6 * terms.value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"records": [0.0]}, "0 records"),
        ({"cost": [-1.0]}, "cost -1"),
        ({"lowest": [0.0]}, "from 0"),
        ({"highest": [0.1]}, "to 0.1"),
    ],
)
def test_terms_out_of_range_are_refused(change, said):
    terms = {"records": [10.0], "cost": [1.0], "lowest": [0.2], "highest": [1.0]} | change
    with pytest.raises(SettingsInvalid, match=said):
        OwnerTerms(**{name: np.array(value) for name, value in terms.items()})


def test_other_values_out_of_range_are_refused():
    with pytest.raises(SettingsInvalid, match="shapes"):
        OwnerTerms(np.ones(2), np.ones(3), np.ones(2), np.ones(2))
    with pytest.raises(SettingsInvalid, match="least loss 0"):
        LearnerTerms(learner().noise, 1.0, 1.0, 0.0, 0.0, 1.0)
    with pytest.raises(BudgetInvalid, match="delta"):
        SumNoise("gaussian", 10, 1.0)
    with pytest.raises(SettingsInvalid, match="price"):
        post(0.0, FIVE, learner())


def test_a_plan_that_could_only_lose_is_refused():
    estimate = PilotEstimate(np.diag([0.1, 0.2]), np.array([0.5, 0.5]), 0.05, np.diag([0.01, 0.01]), "made")
    known = KnownLoss.of(estimate, Steps("algorithm-2", 3.0, 1.0), 50)
    offers = {"small": OwnerOffer(50, (0.01, 0.1), 1.0)}
    with pytest.raises(SettingsInvalid, match="no price is worth paying: coefficients of zero"):
        plan(offers, known, SumNoise("laplace", 50, 5.0), value=1e6)
