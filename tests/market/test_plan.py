"""Plans of owners: what is printed is what is used, paid and charged, and nobody gains by another answer."""

import itertools
import re
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import scipy.stats

from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.learn.queries import Inputs, Steps, loss_of
from hedgerow.market import PilotEstimate, SumNoise, estimate_of, forecast, variances, weighted_excess
from hedgerow.market.epsilon.posterior import gaussian_advantage
from hedgerow.market.forecasts.known_loss import KnownLoss
from hedgerow.market.forecasts.second_moments import PilotState
from hedgerow.market.plans.owner_offer import OwnerOffer
from hedgerow.market.plans.owners_plan import digits, money
from hedgerow.market.plans.payment_terms import payments_grid
from hedgerow.market.plans.plan import advantage, fitness_of, plan, scaled
from hedgerow.market.plans.plan_page import beside, left_out, plan_page
from hedgerow.privacy.accounting.gaussian import gaussian_noise

CURVE = import_module("hedgerow.market.plans.plan")
LENDING = {
    "harbour": OwnerOffer(40_000, (0.2, 10.0), 1.0),
    "mill": OwnerOffer(20_000, (0.2, 10.0), 1.5),
    "chapel": OwnerOffer(800, (0.05, 0.2), 9.0),
    "orchard": OwnerOffer(30_000, (0.1, 1.0), 4.0),
    "quay": OwnerOffer(5_000, (0.5, 10.0), 0.5),
}
KNOWN = KnownLoss.of_numbers(10, amplification=0.378, bias=7.5e-5, sampling=0.49, least=0.049)
NOISE = SumNoise("gaussian", 100, 2 * (10**0.5 + 1), "add-remove", 1e-6)
THESIS = SumNoise("gaussian", 100, 2 * (10**0.5 + 1), "replace-one", 1e-6)
VALUE = 4e5


def free(offers):
    return {name: OwnerOffer(offer.records, offer.epsilon) for name, offer in offers.items()}


def significant(value):
    return len(f"{value!r}".replace(".", "").lstrip("0").rstrip("0"))


@pytest.fixture(autouse=True)
def few_points_of_the_curve(monkeypatch):
    monkeypatch.setattr(CURVE, "FACTORS", (0.3, 1.0, 3.0))


@pytest.fixture(scope="module")
def everybody():
    return plan(free(LENDING), KNOWN, NOISE)


@pytest.fixture(scope="module")
def lending():
    return plan(LENDING, KNOWN, NOISE, value=VALUE)


def precision(noise, n, epsilon):
    return n**2 / (KNOWN.sampling * n + KNOWN.amplification * noise.variance(np.asarray(epsilon, float)))


def test_the_specimen_of_the_note():
    found = plan(LENDING, KNOWN, THESIS, value=VALUE)
    assert [one.name for one in found.coalition] == ["harbour", "mill", "orchard"]
    assert found.fitness.expected == pytest.approx(0.0020, abs=5e-5)
    assert found.equal == pytest.approx(0.0107, abs=5e-5)
    assert found.weighted == pytest.approx(0.0019, abs=1e-4)
    assert found.weights["mill"] == pytest.approx(0.237, abs=0.01)
    assert found.weights["orchard"] == pytest.approx(0.166, abs=0.01)
    assert -VALUE * found.fitness.expected - found.payments > -VALUE * 0.0020 - 68.36, (
        "the prototype's grid found a better price"
    )


def test_no_owner_gains_by_another_epsilon_or_none(lending):
    for one in lending.owners:
        offer = LENDING[one.name]
        tried = np.geomspace(*offer.epsilon, 20_001)
        gains = lending.price * precision(NOISE, offer.records, tried) - offer.cost * np.expm1(tried)
        assert max(gains.max(), 0.0) - one.surplus <= 1e-6
        assert one.surplus >= 0
    assert 0 <= lending.deviation <= 1e-6


def test_the_learner_finds_no_better_price(lending):
    tried = {name: np.geomspace(*offer.epsilon, 20_001) for name, offer in LENDING.items()}
    sold = {name: precision(NOISE, LENDING[name].records, e) for name, e in tried.items()}
    cost = {name: LENDING[name].cost * np.expm1(e) for name, e in tried.items()}

    def net(price):
        gains = {name: price * sold[name] - cost[name] for name in LENDING}
        bought = [sold[name][gain.argmax()] for name, gain in gains.items() if gain.max() > 0]
        return -VALUE * (KNOWN.bias + 1 / sum(bought)) / KNOWN.least - price * sum(bought) if bought else -np.inf

    own = -VALUE * lending.fitness.expected - lending.payments
    assert own >= max(net(price) for price in lending.price * np.geomspace(0.05, 20, 120)) - 5e-3


def test_payments_and_costs_follow_from_what_is_printed(lending):
    for one in lending.coalition:
        assert one.payment == pytest.approx(lending.price * precision(NOISE, one.records, one.epsilon), rel=1e-12)
        assert one.cost == pytest.approx(LENDING[one.name].cost * np.expm1(one.epsilon), rel=1e-12)
    assert lending.payments == pytest.approx(sum(one.payment for one in lending.coalition))
    assert significant(lending.price) <= 6


def test_epsilons_are_rounded_down_and_weights_have_four_digits(lending):
    for one in lending.coalition:
        assert LENDING[one.name].epsilon[0] <= one.epsilon <= LENDING[one.name].epsilon[1]
        assert significant(one.epsilon) <= 8
        assert significant(one.weight) <= 4
    everybody = plan(free({"a": OwnerOffer(900, (0.1, 1.23456)), "b": OwnerOffer(100, (0.98765, 0.98765))}), KNOWN, NOISE)
    assert everybody.epsilons == {"a": 1.234, "b": 0.98765}, "an exact offer keeps its digits"


def test_the_forecast_is_that_of_the_answers_which_are_agreed_on():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 3))
    estimate = PilotEstimate(2 * x.T @ x / 400, np.array([0.5, -0.3, 0.1]), 0.05, 0.2 * x.T @ x / 400, "made")
    steps, noise = Steps("algorithm-2", 0.5, 1.0), SumNoise("gaussian", 30, 3.0, "add-remove", 1e-6)
    found = plan(free(LENDING), KnownLoss.of(estimate, steps, 30), noise)
    weights = [found.weights[name] for name in LENDING]
    beside = forecast(estimate, steps, 30, found.answers(), [offer.records for offer in LENDING.values()], weights)
    assert found.fitness.expected == pytest.approx(beside.relative_fitness, rel=1e-9)
    assert (found.fitness.low, found.fitness.high) == pytest.approx((beside.low, beside.high), rel=1e-6)
    assert found.fitness.saturated == beside.saturated
    parts = found.fitness
    assert parts.noise + parts.steps + parts.sample == pytest.approx(parts.expected)


@pytest.mark.parametrize("known_by", ["public records", "a noisy question"])
def test_the_interval_is_wider_by_what_another_estimate_would_change(known_by):
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, (300, 3))
    y = np.clip(x @ [0.5, -0.3, 0.1] + rng.normal(0, 0.2, 300), -1, 1)
    loss, steps, noise = (
        loss_of("linear", 0.0),
        Steps("algorithm-2", 1.0, 1.0),
        SumNoise("gaussian", 30, 3.0, "add-remove", 1e-6),
    )
    estimate = PilotEstimate.of_records(loss, x, y, 1.0, "300 public records")
    if known_by == "a noisy question":
        state = PilotState(1, x.T @ x, x.T @ y, float(y @ y), 5.0)
        spec = Inputs(("a", "b", "c"), "t", (0.0,) * 3, (1.0,) * 3, radius=1.0)
        estimate = estimate_of(state, loss, spec, 300, 1.0)
    owners = free(LENDING)
    found = plan(owners, KnownLoss.of(estimate, steps, 30), noise)
    weights, records = [found.weights[name] for name in LENDING], [one.records for one in owners.values()]
    beside = forecast(estimate, steps, 30, found.answers(), records, weights)
    bare = plan(owners, KnownLoss.of(replace(estimate, replicas=()), steps, 30), noise).fitness
    assert (found.fitness.low, found.fitness.high) == pytest.approx((beside.low, beside.high), rel=1e-6)
    assert found.fitness.doubt == pytest.approx(beside.doubt)
    assert bare.doubt == 0
    assert any(f"by {digits(beside.doubt)} (one standard error)" in said for said in found.assumptions)
    for wide in (found.fitness, found.own, next(one.fitness for one in scaled(found) if one.factor == 1.0)):
        assert wide.high - wide.low > 1.5 * (bare.high - bare.low)


def test_what_is_lost_without_an_owner_is_what_a_plan_of_the_others_says(everybody):
    found = everybody
    for one in found.owners[:2]:
        rest = {name: offer for name, offer in free(LENDING).items() if name != one.name}
        assert plan(rest, KNOWN, NOISE).fitness.expected - found.fitness.expected == pytest.approx(
            one.without, rel=2e-3, abs=1e-9
        )


def test_without_a_value_nobody_is_paid_and_everybody_answers_at_its_most_open(everybody):
    found = everybody
    assert found.epsilons == {name: offer.epsilon[1] for name, offer in LENDING.items()}
    assert (found.price, found.payments, found.deviation) == (None, None, None)
    assert "pa" not in found.sentence().replace("parts", "")
    page = plan_page(found)
    assert not any(word in page for word in ("payment", "price", "currency", "costs an owner"))


@pytest.mark.parametrize("subset", list(itertools.combinations(range(5), 3))[::3])
def test_the_best_owners_of_equal_weight_are_no_worse_than_others(subset, everybody):
    found = everybody
    n = np.array([offer.records for offer in LENDING.values()], float)[list(subset)]
    a = NOISE.variance(np.array([offer.epsilon[1] for offer in LENDING.values()]))[list(subset)]
    same = (KNOWN.bias + KNOWN.sampling / n.sum() + KNOWN.amplification * a.sum() / n.sum() ** 2) / KNOWN.least
    assert found.prefix_fitness <= same * (1 + 1e-12)
    assert found.fitness.expected <= found.prefix_fitness


def test_budgets_cover_a_question_that_was_asked_before():
    found = plan(LENDING, KNOWN, NOISE, value=VALUE, spent=0.1)
    for one in found.coalition:
        assert one.budget <= LENDING[one.name].epsilon[1]
        assert f"{one.budget:.12g}" == f"{one.epsilon + 0.1:.12g}"
        assert one.cost == pytest.approx(LENDING[one.name].cost * np.expm1(one.budget), rel=1e-12)
        assert one.surplus >= 0
    for one in (one for one in found.owners if not one.taken):
        assert one.surplus == pytest.approx(0.0, abs=1e-12), "who answered the first question only is paid its cost"
        assert one.budget == 0.1
    with pytest.raises(BudgetInvalid, match="chapel"):
        plan(LENDING, KNOWN, NOISE, value=VALUE, spent=0.2)


def test_an_owner_that_takes_part_with_exactly_one_epsilon():
    found = plan({"only": OwnerOffer(40_000, (1.5, 1.5), 0.1)}, KNOWN, NOISE, value=VALUE)
    assert found.epsilons == {"only": 1.5}
    assert found.weights == {"only": 1.0}
    zeros = (1.0 - KNOWN.least) / KNOWN.least
    assert found.owners[0].without == pytest.approx(zeros - found.fitness.expected), "what is lost is at most what zeros cost"


def test_what_is_lost_without_a_giant_is_not_cancelled():
    known = KnownLoss.of_numbers(4, amplification=0.4, bias=1e-4, sampling=1e-9, least=0.02)
    offers = {
        "giant": OwnerOffer(10**8, (50.0, 50.0)),
        "dwarf": OwnerOffer(10, (0.01, 0.01)),
        "mill": OwnerOffer(900, (9.0, 9.0)),
    }
    found = plan(offers, known, NOISE)
    rest = plan({name: offers[name] for name in ("dwarf", "mill")}, known, NOISE).fitness.expected
    lost = {one.name: one.without for one in found.owners}
    assert lost["giant"] == pytest.approx(rest - found.fitness.expected, rel=1e-3)
    assert 0 <= lost["dwarf"] < 1e-9


def test_a_learner_with_declared_numbers_does_not_pay_for_less_than_zeros_give():
    with pytest.raises(SettingsInvalid, match="coefficients of zero"):
        plan(LENDING, KNOWN, NOISE, value=1e-6)
    with pytest.raises(SettingsInvalid, match="least loss"):
        KnownLoss.of_numbers(4, amplification=0.4, bias=0.0, sampling=0.1, least=1.2)


def test_prices_of_a_result_that_noise_does_not_reach_are_refused_with_what_helps():
    estimate = PilotEstimate(np.diag([0.1, 0.2]), np.array([0.5, 0.5]), 0.05, np.diag([0.01, 0.01]), "made")
    with pytest.raises(SettingsInvalid, match="no part in the result of 1 question") as refused:
        plan(LENDING, KnownLoss.of(estimate, Steps(), 1), SumNoise("laplace", 1, 5.0), value=VALUE)
    assert "rounds" in refused.value.remedy


def test_noise_that_drowns_the_result_is_said():
    estimate = PilotEstimate(np.diag([0.1, 0.2]), np.array([0.5, 0.5]), 0.05, np.diag([0.01, 0.01]), "made")
    known = KnownLoss.of(estimate, Steps("algorithm-2", 3.0, 1.0), 50)
    found = plan({"small": OwnerOffer(50, (0.01, 0.1))}, known, SumNoise("laplace", 50, 5.0))
    assert found.fitness.saturated
    assert "no better than zeros" in found.sentence()


def test_more_openness_is_never_worse_with_the_best_weights(lending):
    curve = scaled(lending)
    expected = [one.fitness.expected for one in curve]
    assert expected == sorted(expected, reverse=True)
    assert all(one.equal >= one.fitness.expected * (1 - 1e-12) for one in curve)
    (plan_itself,) = (one for one in curve if one.factor == pytest.approx(1.0))
    assert plan_itself.fitness.expected == pytest.approx(lending.fitness.expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_declared_bounds_are_never_more_hopeful_than_a_loss_within_them(seed):
    rng = np.random.default_rng(seed)
    h, box = rng.uniform(0.05, 0.5, 4), 1.0
    steps = Steps("algorithm-2", 2.0, box)
    inside = PilotEstimate(np.diag(h), rng.uniform(-box, box, 4), 0.05, np.diag(h) * 0.1, "made")
    one, worst = KnownLoss.of(inside, steps, 60), KnownLoss.of_bounds(4, steps, 60, curvature=(0.05, 0.5), least=0.05)
    assert one.bias <= worst.bias
    assert one.amplification <= worst.amplification * (1 + 1e-3)
    assert one.sampling <= worst.sampling * (1 + 1e-12)
    n, a = np.array([1000.0, 500.0]), np.array([1e4, 1e3])
    assert fitness_of(one, n, a, np.ones(2)).expected <= fitness_of(worst, n, a, np.ones(2)).expected


def test_the_advantage_is_that_of_the_noise_which_is_drawn():
    assert advantage(SumNoise("laplace", 10, 1.0), np.array([1.0])) == pytest.approx([np.tanh(0.5)])
    for noise in (NOISE, THESIS):
        answers = plan(free({"a": OwnerOffer(100, (1.0, 1.0))}), KNOWN, noise).answers()
        (multiplier,) = (z for _, z in answers.multipliers)
        exact = gaussian_advantage(multiplier / 100**0.5)
        assert exact <= advantage(noise, np.array([1.0]))[0] <= exact * 1.01
    assert advantage(NOISE, np.array([0.0])) == 0


def test_the_advantage_counts_the_question_before_the_plan_also_for_owners_that_are_left_out():
    tell, both = np.array([0.3, 0.0]), scipy.stats.norm.cdf
    pilot, asked = (1 / gaussian_noise(e, 1e-6) for e in (0.5, 0.3))
    found = advantage(NOISE, tell, 0.5, 1e-6)
    assert found == pytest.approx([2 * both(np.hypot(pilot, asked) / 2) - 1, 2 * both(pilot / 2) - 1], rel=1e-6)
    laplace = SumNoise("laplace", 1, 1.0)
    assert advantage(laplace, tell, 0.5) == pytest.approx(np.tanh([0.4, 0.25]))
    mixed, alone = advantage(laplace, tell, 0.5, 1e-6), np.tanh(0.15)
    x, z = np.meshgrid(np.linspace(-40, 41, 3241), np.linspace(-8, 8.2, 163))
    there, not_there = (scipy.stats.laplace.pdf(x, k, 1 / 0.3) * scipy.stats.norm.pdf(z, k * pilot) for k in (0, 1))
    true = np.abs(there - not_there).sum() * 0.025 * 0.1 / 2
    assert true < mixed[0] < alone + found[1]
    planned = plan(free({"a": OwnerOffer(100, (0.1, 0.8))}), KNOWN, NOISE, spent=0.5, spent_delta=1e-6)
    assert planned.owners[0].advantage == pytest.approx(found[0], rel=1e-6)


def test_noise_of_the_plan_is_that_of_the_answers(lending):
    drawn = variances(lending.answers())
    n = np.array([one.records for one in lending.coalition], float)
    a = np.array([drawn[one.name] for one in lending.coalition])
    best = weighted_excess(n, a, KNOWN.sampling, KNOWN.amplification, KNOWN.bias) / KNOWN.least
    assert lending.fitness.expected == pytest.approx(best, rel=1e-6)


def test_the_page_is_one_file_with_the_sentence_the_table_and_what_is_not_seen(lending):
    page = plan_page(lending, "[program]\nepsilons = { harbour = 2 }")
    assert lending.sentence() in page
    assert lending.sentence() in " ".join(repr(lending).split())
    assert all(name in page for name in LENDING)
    told = [float(price) for price in re.findall(r"from a price of (\S+) on", left_out(lending))]
    entries = [one.entry for one in lending.owners if not one.taken]
    assert all(entry <= said <= entry * 1.01 for said, entry in zip(told, entries, strict=True))
    assert f"pays {lending.price!r} for" in page, "all digits of the price, as it is used"
    assert "nobody gains more than 0.000001." in page
    for word in ("Heterogeneity", "Truthfulness", "141 records", "Saturation", "[program]", "<svg"):
        assert word in page
    assert "src=" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_of_many_that_are_left_out_those_are_named_who_would_be_the_first():
    many = {f"owner {k}": OwnerOffer(100 + k, (0.5, 1.0), 1.0) for k in range(40)} | {
        "large": OwnerOffer(10**6, (1.0, 1.0), 0.1)
    }
    said = left_out(plan(many, KNOWN, NOISE, value=100.0))
    assert said.startswith("Left out: owner 39 (from a price of ")
    assert said.endswith("and 34 more.")


def test_names_of_owners_are_text():
    page = plan_page(plan({"<b>a</b>": OwnerOffer(50, (1.0, 1.0))}, KNOWN, NOISE))
    assert "<b>a</b>" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(SettingsInvalid, match="no owner"):
        plan({}, KNOWN, NOISE)
    with pytest.raises(SettingsInvalid, match="no cost of a"):
        plan({"a": OwnerOffer(5, (1.0, 1.0))}, KNOWN, NOISE, value=1.0)
    with pytest.raises(SettingsInvalid, match="a value of 0"):
        plan(LENDING, KNOWN, NOISE, value=0.0)
    for records, epsilon, cost in ((0, (1, 1), None), (5, (2, 1), None), (5, (0, 1), None), (5, (1, 1), -1.0)):
        with pytest.raises(SettingsInvalid):
            OwnerOffer(records, epsilon, cost)
    with pytest.raises(SettingsInvalid, match="least loss"):
        KnownLoss.of_numbers(2, amplification=1.0, bias=0.0, sampling=1.0, least=0.0)


@pytest.mark.slow
def test_of_a_thousand_owners_nobody_gains_by_another_epsilon_or_none():
    rng = np.random.default_rng(0)
    offers = {
        f"owner {k}": OwnerOffer(
            int(rng.lognormal(8, 1.5)) + 10, (rng.uniform(0.01, 0.3), rng.uniform(0.5, 10)), rng.lognormal()
        )
        for k in range(1000)
    }
    found = plan(offers, KNOWN, NOISE, value=1e9)
    assert 50 < len(found.coalition) < 950
    assert found.deviation <= 1e-6
    tried = np.geomspace(0.01, 10, 2001)
    noise = KNOWN.amplification * NOISE.variance(tried)
    for one, offer in zip(found.owners, offers.values(), strict=True):
        gains = found.price * offer.records**2 / (KNOWN.sampling * offer.records + noise) - offer.cost * np.expm1(tried)
        inside = (tried >= offer.epsilon[0]) & (tried <= offer.epsilon[1])
        assert max(gains[inside].max(), 0.0) - one.surplus <= 1e-6
        assert one.surplus >= 0


def test_a_page_has_all_that_a_payment_is_computed_from_and_no_cost(lending):
    page = plan_page(lending)
    assert "after cost" not in page
    assert "from a price of" not in page
    made = payments_grid(lending, lending.coalition)
    s, amplification = (float(found) for found in re.findall(r"(?:s|A) = ([\d.e-]+),", made.note))
    for (name, n, a, precision, payment), one in zip(made.rows, lending.coalition, strict=True):
        assert name == one.name
        assert float(precision) == pytest.approx(n**2 / (s * n + amplification * float(a)), rel=1e-7)
        assert money(lending.price * float(precision)) == payment
        assert precision in page
    assert re.search(r"Made on \d{4}-\d\d-\d\d", page)


def test_where_steps_leave_most_of_the_loss_more_of_them_are_advised(everybody):
    many = KnownLoss.of_numbers(10, amplification=0.378, bias=1e-7, sampling=0.49, least=0.049)
    assert "more rounds" in beside(everybody)
    assert "more rounds" not in beside(plan(free(LENDING), many, NOISE))


def test_numbers_of_a_plan_that_mean_nothing_are_refused(everybody):
    with pytest.raises(SettingsInvalid, match=r"an epsilon of 1\.0"):
        OwnerOffer(5, 1.0)
    with pytest.raises(SettingsInvalid, match="bias -1"):
        KnownLoss.of_numbers(2, amplification=1.0, bias=-1, sampling=0.1, least=0.1)
    with pytest.raises(SettingsInvalid, match="factor of -1"):
        scaled(everybody, [-1])
