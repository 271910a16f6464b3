"""Public weights of owners: the weighted mean by hand, the same bits everywhere, noise and charges as without weights."""

import numpy as np
import pytest
from scipy.stats import kstest, laplace
from test_queries import BOXED, ROUNDS, federation, planned, told

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.crypto import SecAgg
from hedgerow.errors import BudgetExhausted, SettingsInvalid
from hedgerow.learn.queries import Answers, QueryLoss, answers_for, gradient, gradient_queries, inputs, multiplier
from hedgerow.learn.queries import answers as module
from hedgerow.privacy.accounting import epsilon
from helpers import ENGINE_NAMES, ENGINES

LOSS = QueryLoss("squared", 0.1)
OWNERS = ("party 1", "party 2", "party 3")
WEIGHTS = dict(zip(OWNERS, (1.0, 0.237, 0.166), strict=True))
EACH = dict.fromkeys(OWNERS, 20)
EPSILONS = dict(zip(OWNERS, (2.98, 1.53, 1.0), strict=True))


def trained(fed, answers, n_records=EACH, **more):
    settings = {"loss": LOSS, "spec": BOXED, "steps": hr.learn.queries.Steps("algorithm-2", 0.4, 2.0), "rounds": ROUNDS} | more
    return hr.last(gradient_queries(fed, n_records=n_records, answers=answers, **settings))


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(module, "discrete_laplace", lambda scale, size, entropy: np.zeros(size, np.int64))


# ---- what is computed -----------------------------------------------------------------------------------------------
def test_the_gradient_is_the_weighted_mean_of_all_owners_by_hand(no_noise):
    fed, records = federation(), hr.engines.records(federation())
    answers = planned(fed, dict.fromkeys(OWNERS, 1e12), weights=WEIGHTS)
    theta = average = np.zeros(3)
    for k in range(1, ROUNDS + 1):
        total = np.zeros(3)
        for i, name in enumerate(OWNERS):
            party = records[i]
            held = Party(name, inputs(party.columns, spec=BOXED), party.w)
            total += WEIGHTS[name] * gradient(theta, held, None, loss=LOSS, box=2.0, bounds=answers.bound)
        mean = total / (20 * 1.0 + 20 * 0.237 + 20 * 0.166) + 0.1 * theta
        moved, eta = np.clip(theta - 0.4 / np.sqrt(k) * mean, -2, 2), 1 / np.sqrt(ROUNDS)
        average = (k - 1) / (eta + k) * average + (eta + 1) / (eta + k) * theta
        theta = moved
    found = trained(fed, answers)
    np.testing.assert_allclose(found.theta, theta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.average, average, rtol=0, atol=1e-12)


def test_weights_of_one_change_no_bit():
    fed = federation()
    plain = trained(fed, planned(fed, EPSILONS), n_records=60)
    fed = federation()
    np.testing.assert_array_equal(trained(fed, planned(fed, EPSILONS, weights=dict.fromkeys(OWNERS, 1))).theta, plain.theta)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_weighted_answers_are_the_same_bits_on_every_engine(engine):
    def run(on):
        fed = federation(on)
        return trained(fed, planned(fed, EPSILONS, weights=WEIGHTS), rounds=4)

    np.testing.assert_array_equal(run(engine).theta, run(hr.Loop()).theta)


def finest(plan, size):
    """The finest grid of all owners' weighted answers."""
    return min(plan.fit(size, name).step * 2.0 ** np.floor(np.log2(plan.weight(name))) for name in OWNERS)


@pytest.mark.slow
@pytest.mark.parametrize("least", [0.166, 1e-3])
def test_weighted_answers_pass_secure_aggregation_bit_by_bit(least):
    """As far as the range that is stated for exact totals."""
    weights = WEIGHTS | {"party 3": least}

    def run(fed):
        return trained(fed, planned(fed, EPSILONS, weights=weights), rounds=3).theta

    plan = planned(federation(), EPSILONS, weights=weights)
    largest = 2**61 * finest(plan, 3) / 3
    assert largest > 1e8
    np.testing.assert_array_equal(run(federation().protect(aggregation=SecAgg(largest=largest))), run(federation()))


def test_totals_of_weighted_answers_are_exact_in_any_order_within_the_range_that_is_stated():
    """Answers of which the first one alone is as long as totals may be; beyond it the order decides late digits."""
    plan = Answers.of(EPSILONS, 10, radius=3.0, weights={"party 1": 1.0, "party 2": 0.03, "party 3": 1e-3})
    most = 2**53 * finest(plan, 50)
    rng = np.random.default_rng(0)

    def differ(length):
        sums = dict(zip(OWNERS, rng.uniform(-1, 1, (3, 50)) * [[0.9 * length], [1e3], [1e3]], strict=True))
        one, two, three = (plan.noisy(name, total, rng.bytes) for name, total in sums.items())
        return bool((one + two + three != three + two + one).any())

    assert not differ(most)
    assert differ(most * 2**9)


# ---- what it costs --------------------------------------------------------------------------------------------------
def ratio_of(release, plan, seed=0):
    """Noise of weighted answers over how far a neighbour's answer is, for one owner of weight 0.237; shape (6000,)."""
    rng, again = np.random.default_rng(seed), np.random.default_rng(seed)
    here, moved = np.zeros((2000, 3)), np.zeros((2000, 3))
    moved[:, 0] = plan.bound.radius  # one record more, as far as the bound allows
    noisy, neighbour = release(plan, here, rng.bytes), release(plan, moved, again.bytes)
    return noisy.ravel() / np.abs(neighbour - noisy).sum(-1).mean()


def honest(plan, sums, entropy):
    return plan.noisy("party 2", sums, entropy)


def weighs_only_the_noise(plan, sums, entropy):
    """The dangerous twin: the sum counts in full, and the noise that hides it is 0.237 of what was agreed."""
    return sums + plan.noisy("party 2", np.zeros_like(sums), entropy)


def weighs_only_the_sum(plan, sums, entropy):
    """The wasteful twin: a fourth of the sum under all of the noise."""
    full = Answers(plan.bound, plan.law, plan.horizon, plan.epsilons, plan.multipliers, plan.neighbours)
    return 0.237 * sums + full.noisy("party 2", np.zeros_like(sums), entropy)


def test_noise_over_the_distance_of_neighbours_is_that_without_weights_and_twins_are_caught():
    """Kolmogorov-Smirnov, one false alarm in a million."""
    plan = Answers.of(EPSILONS, 10, radius=3.0, neighbours="add-remove", weights=WEIGHTS)
    law = laplace(scale=multiplier("laplace", 1.53, 10, "add-remove")).cdf
    assert kstest(ratio_of(honest, plan), law).pvalue > 1e-6
    assert kstest(ratio_of(weighs_only_the_noise, plan), law).pvalue < 1e-6
    assert kstest(ratio_of(weighs_only_the_sum, plan), law).pvalue < 1e-6
    assert np.std(ratio_of(weighs_only_the_noise, plan)) < 0.25 * np.std(ratio_of(honest, plan))


def test_a_weighted_answer_is_the_answer_times_its_weight_but_for_a_step_of_a_finer_grid():
    plan = Answers.of(EPSILONS, 10, radius=3.0, weights=WEIGHTS)
    full = Answers.of(EPSILONS, 10, radius=3.0)
    sums = np.random.default_rng(1).normal(size=(50, 3))
    for name, weight in WEIGHTS.items():
        weighed = plan.noisy(name, sums, np.random.default_rng(2).bytes)
        whole = full.noisy(name, sums, np.random.default_rng(2).bytes)
        step = 2.0 ** np.floor(np.log2(weight)) * full.fit(3, name).step
        np.testing.assert_allclose(weighed, weight * whole, rtol=0, atol=step / 2 * (1 + 1e-9))
        np.testing.assert_array_equal(weighed / step, np.rint(weighed / step))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_ledger_and_each_owner_are_charged_what_they_are_without_weights(law):
    charged = []
    for weights in (None, WEIGHTS):
        fed = federation()
        answers = planned(fed, EPSILONS, law=law, delta=1e-6 if law == "gaussian" else 0.0, weights=weights)
        trained(fed, answers, rounds=3)
        basic = epsilon(fed.ledger.charges("record"), delta=1e-6, adjacency="add-remove", accountant="tightest")
        charged.append((basic, answers.spent(3), answers.event(), fed.ledger.uses(answers.key)))
    assert charged[0] == charged[1]


def test_other_weights_give_no_second_horizon():
    """The broken twin names weights in the key by which answers are counted."""
    fed = federation()
    trained(fed, planned(fed, EPSILONS, weights=WEIGHTS))
    with pytest.raises(BudgetExhausted, match="12 questions were answered"):
        trained(fed, planned(fed, EPSILONS, weights=WEIGHTS | {"party 2": 0.3}))
    with pytest.raises(BudgetExhausted, match="12 questions were answered"):
        hr.last(told(fed, answers=planned(fed, EPSILONS)))


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.1, float("nan"), float("inf"), True, "0.5"])
def test_a_weight_outside_zero_to_one_is_refused(wrong):
    with pytest.raises(SettingsInvalid, match=r"HR-511.*party 2"):
        Answers.of(EPSILONS, 10, radius=3.0, weights=WEIGHTS | {"party 2": wrong})


def test_weights_of_strangers_and_owners_without_a_weight_are_refused():
    with pytest.raises(SettingsInvalid, match="party 4 has a weight and no epsilon"):
        Answers.of(EPSILONS, 10, radius=3.0, weights=WEIGHTS | {"party 4": 0.5})
    with pytest.raises(SettingsInvalid, match="party 2, party 3 has an epsilon and no weight"):
        Answers.of(EPSILONS, 10, radius=3.0, weights={"party 1": 0.5})


@pytest.mark.parametrize(
    ("n_records", "said"),
    [
        (60, "owners have weights"),
        ({"party 1": 20, "party 2": 20}, "says nothing of party 3"),
        (EACH | {"party 3": 0}, "n_records of party 3 = 0"),
        (EACH | {"party 3": 2.5}, "n_records of party 3 = 2.5"),
    ],
)
def test_weights_need_the_records_of_each_owner(n_records, said):
    fed = federation()
    with pytest.raises(SettingsInvalid, match=said):
        trained(fed, planned(fed, EPSILONS, weights=WEIGHTS), n_records=n_records)
    assert len(fed.ledger) == 0


def test_only_owners_that_are_asked_are_in_the_denominator(no_noise):
    """Records and weights of three owners are said, and two of them are picked: the mean is that of two."""
    fed = federation()
    answers = planned(fed, dict.fromkeys(OWNERS, 1e12), weights=WEIGHTS)
    two = trained(fed.pick(OWNERS[:2]), answers, rounds=1).theta
    fed = federation()
    alone = answers_for(
        fed.schema, dict.fromkeys(OWNERS[:2], 1e12), ROUNDS, LOSS, BOXED, 2.0, weights={"party 1": 1.0, "party 2": 0.237}
    )
    np.testing.assert_allclose(
        two, trained(fed.pick(OWNERS[:2]), alone, n_records={"party 1": 20, "party 2": 20}, rounds=1).theta, atol=1e-12
    )
