"""What an owner is worth: Shapley's properties, exact and sampled, and what is missing without one."""

from itertools import permutations

import numpy as np
import pytest

from hedgerow.errors import SettingsInvalid
from hedgerow.market import (
    CoalitionWorth,
    equal_excess,
    leave_one_out,
    marginal_worth,
    precisions,
    sampled_shapley,
    shapley,
    weighted_excess,
)

N, A = np.array([40_000.0, 1000.0, 30_000.0, 30_000.0, 500.0]), np.array([4.0, 400.0, 9e3, 9e3, 1e6])
MODEL = {"sampling": 0.24, "amplification": 3e4}
LIMITS = {"bias": 1e-4, "nobody": 0.2}


@pytest.fixture(params=["precision", "best weights", "equal weights"])
def worth(request):
    if request.param == "precision":
        return CoalitionWorth.precision(N, A, **MODEL)
    kind = CoalitionWorth.of_best_weights if request.param == "best weights" else CoalitionWorth.of_equal_weights
    return kind(N, A, **MODEL, **LIMITS)


def test_worths_of_sets_are_those_of_the_formula():
    members = np.array([True, False, True, True, False])
    best, equal = (kind(N, A, **MODEL, **LIMITS) for kind in (CoalitionWorth.of_best_weights, CoalitionWorth.of_equal_weights))
    assert best.of(members) == pytest.approx(0.2 - weighted_excess(N[members], A[members], **MODEL, bias=1e-4))
    assert equal.of(members) == pytest.approx(0.2 - equal_excess(N[members], A[members], **MODEL, bias=1e-4))
    assert best.of(np.zeros(5)) == equal.of(np.zeros(5)) == 0
    assert equal.of([0, 0, 0, 0, 1]) == 0  # worse than zeros, which nobody would use
    assert equal.everybody == equal.of(np.ones(5))


def test_shares_are_means_over_all_orders(worth):
    orders = np.array(list(permutations(range(5))))
    added = np.empty(orders.shape)
    for row, order in enumerate(orders):
        sets = np.array([np.isin(np.arange(5), order[:k]) for k in range(6)])
        added[row, order] = np.diff(worth.of(sets))
    np.testing.assert_allclose(shapley(worth), added.mean(0), rtol=1e-9, atol=1e-15 * worth.everybody)


def test_shares_add_up_to_what_everybody_is_worth(worth):
    assert shapley(worth).sum() == pytest.approx(worth.everybody, rel=1e-12)
    assert sampled_shapley(worth, 50, np.random.default_rng(0))[0].sum() == pytest.approx(worth.everybody, rel=1e-12)


def test_alike_owners_have_alike_shares(worth):
    found = shapley(worth)
    assert found[2] == pytest.approx(found[3], rel=1e-12)
    assert leave_one_out(worth)[2] == pytest.approx(leave_one_out(worth)[3], rel=1e-12)


@pytest.mark.parametrize("kind", [CoalitionWorth.of_best_weights, CoalitionWorth.precision])
def test_who_adds_nothing_to_any_set_has_no_share(kind):
    more = LIMITS if kind == CoalitionWorth.of_best_weights else {}
    worth = kind(N, np.array([4.0, 400.0, 9e3, 9e3, np.inf]), **MODEL, **more)
    assert shapley(worth)[4] == 0
    assert leave_one_out(worth)[4] == 0
    assert sampled_shapley(worth, 20, np.random.default_rng(0))[0][4] == 0
    rest = kind(N[:4], np.array([4.0, 400.0, 9e3, 9e3]), **MODEL, **more)
    np.testing.assert_allclose(shapley(worth)[:4], shapley(rest), rtol=1e-12)


def test_with_the_best_weights_precision_is_each_owners_own():
    worth, own = CoalitionWorth.precision(N, A, **MODEL), precisions(N, A, **MODEL)
    np.testing.assert_allclose(shapley(worth), own, rtol=1e-9, atol=1e-15 * own.max())  # differences of large sums
    np.testing.assert_allclose(leave_one_out(worth), own, rtol=1e-9, atol=1e-15 * own.max())
    mean, error = sampled_shapley(worth, 10, np.random.default_rng(0))
    np.testing.assert_allclose(mean, own, rtol=1e-9, atol=1e-15 * own.max())
    assert (error < 1e-6 * own.max()).all()


def test_sampled_shares_lie_within_four_standard_errors(worth):
    mean, error = sampled_shapley(worth, 4000, np.random.default_rng(1))  # 15 intervals, each wrong once in 15 000
    assert (np.abs(mean - shapley(worth)) <= 4 * error + 1e-9 * worth.everybody).all()


def test_the_standard_error_is_the_spread_over_runs():
    worth = CoalitionWorth.of_equal_weights(N, A, **MODEL, **LIMITS)
    runs = [sampled_shapley(worth, 30, np.random.default_rng(seed)) for seed in range(300)]
    spread = np.std([mean for mean, _ in runs], axis=0)
    np.testing.assert_allclose(np.sqrt(np.mean([error**2 for _, error in runs], axis=0)), spread, rtol=0.2)


def test_missing_one_is_everybody_less_the_others(worth):
    others = 1 - np.eye(5)
    np.testing.assert_allclose(leave_one_out(worth), worth.everybody - worth.of(others), rtol=1e-6, atol=1e-12)


def test_marginal_worth_is_of_joining_or_of_leaving(worth):
    members = np.array([True, True, False, False, False])
    found = marginal_worth(worth, members)
    assert found[2] == pytest.approx(worth.of([1, 1, 1, 0, 0]) - worth.of([1, 1, 0, 0, 0]))
    assert found[0] == pytest.approx(worth.of([1, 1, 0, 0, 0]) - worth.of([0, 1, 0, 0, 0]))


def test_with_equal_weights_an_owner_can_be_worth_less_than_nothing_and_with_the_best_never():
    equal, best = (kind(N, A, **MODEL, **LIMITS) for kind in (CoalitionWorth.of_equal_weights, CoalitionWorth.of_best_weights))
    assert leave_one_out(equal)[4] < 0
    assert (leave_one_out(best) > 0).all()
    assert (shapley(best) > 0).all()


def test_a_thousand_owners_are_a_cumulative_sum_for_each_order():
    rng = np.random.default_rng(2)
    worth = CoalitionWorth.of_best_weights(rng.lognormal(7, 1, 1000), rng.lognormal(0, 2, 1000), 0.2, 1e3, 0.0, 1.0)
    mean, error = sampled_shapley(worth, 20, rng)
    assert mean.sum() == pytest.approx(worth.everybody)
    assert (error > 0).all()
    assert leave_one_out(worth).shape == (1000,)


def test_too_many_sets_and_too_few_orders_are_refused():
    worth = CoalitionWorth.precision(np.ones(17), np.ones(17), **MODEL)
    with pytest.raises(SettingsInvalid, match="2\\^17 sets"):
        shapley(worth)
    with pytest.raises(SettingsInvalid, match="orders"):
        sampled_shapley(worth, 1, np.random.default_rng(0))
