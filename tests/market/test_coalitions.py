"""With whom: the best weights, and that the best owners of equal weight are the first in the order of a / n."""

import numpy as np
import pytest

from hedgerow.errors import SettingsInvalid
from hedgerow.market import best_prefix, best_weights, equal_excess, excess, precisions, weighted_excess

SUBSETS = {count: (np.arange(1, 1 << count)[:, None] >> np.arange(count) & 1).astype(float) for count in range(1, 11)}


def drawn(rng):
    """Owners as unlike as they may be: records over two orders, noise over four, sampling from nothing to all that counts."""
    count = int(rng.integers(1, 11))
    a = rng.lognormal(0, 2, count) * rng.choice([1.0, 1e4, 1e8])
    if rng.random() < 0.2:
        a[rng.random(count) < 0.3] = 0.0
    if rng.random() < 0.2:
        a = np.full(count, a[0])
    return rng.lognormal(7, 1.5, count), a, float(rng.choice([0.0, 1e-3, 0.24, 30.0])), float(rng.choice([0.0, 0.4, 1.0]))


def worst(choose, times=1000):
    """Largest excess of what `choose` takes, over the least of all sets of owners."""
    rng, found = np.random.default_rng(1), 1.0
    for _ in range(times):
        n, a, s, amplification = drawn(rng)
        least = excess(SUBSETS[len(n)], n, a, s, amplification).min()
        taken = choose(n, a, s, amplification)
        found = max(found, taken / least if least else 1.0 + taken)
    return found


def test_the_best_prefix_is_the_best_of_all_sets_of_owners():
    assert worst(lambda *owners: best_prefix(*owners).excess) <= 1 + 1e-12


def sorted_by(key):
    def choose(n, a, s, amplification):
        order = np.argsort(key(n, a), kind="stable")
        firsts = np.tri(len(n))[:, np.argsort(order)]
        return excess(firsts, n, a, s, amplification).min()

    return choose


def test_the_right_order_passes_this_search_and_others_do_not():
    assert worst(sorted_by(lambda n, a: a / n), 100) <= 1 + 1e-12
    assert worst(sorted_by(lambda n, a: a), 100) > 1.01  # by epsilon alone
    assert worst(sorted_by(lambda n, a: -n), 100) > 1.01  # by records alone
    assert worst(sorted_by(lambda n, a: a / n**2), 100) > 1.0001  # by what each would reach alone


def test_a_prefix_says_its_members_and_the_excess_that_the_formula_gives_them():
    n, a = np.array([40_000.0, 1000.0, 30_000.0]), np.array([4.0, 400.0, 1.0])
    found = best_prefix(n, a, 0.24, 1e6, 0.01)
    assert found.order.tolist() == [2, 0, 1]
    assert found.members.tolist() == [True, False, True]
    assert found.size == 2
    assert found.excess == pytest.approx(excess(found.members, n, a, 0.24, 1e6, 0.01))
    assert found.excess == pytest.approx(0.01 + 0.24 / 70_000 + 1e6 * 5 / 70_000**2)
    assert found.excesses[-1] == pytest.approx(equal_excess(n, a, 0.24, 1e6, 0.01))


def test_weights_are_never_worse_than_any_set_and_by_the_formula_the_best():
    rng = np.random.default_rng(2)
    for _ in range(200):
        n, a, s, amplification = drawn(rng)
        least = weighted_excess(n, a, s, amplification)
        w = best_weights(n, a, s, amplification)
        assert w.max() == 1
        assert (w >= 0).all()
        assert excess(w, n, a, s, amplification) == pytest.approx(least, rel=1e-12)
        assert least <= best_prefix(n, a, s, amplification).excess * (1 + 1e-12)
        others = w * rng.lognormal(0, 0.5, (20, len(w)))
        assert (excess(others, n, a, s, amplification) >= least * (1 - 1e-12)).all()


def test_one_owner_more_is_never_worse_with_weights_and_adds_its_own_precision():
    n, a = np.array([40_000.0, 1000.0, 30_000.0]), np.array([4.0, 400.0, 1e9])
    without, whole = (weighted_excess(n[:k], a[:k], 0.24, 1e6) for k in (2, 3))
    assert whole < without
    assert 1 / whole - 1 / without == pytest.approx(precisions(n, a, 0.24, 1e6)[2], rel=1e-6)
    assert equal_excess(n, a, 0.24, 1e6) > equal_excess(n[:2], a[:2], 0.24, 1e6)  # what the thesis saw


def test_alike_owners_have_alike_weights_and_all_of_them_are_the_prefix():
    n, a = np.full(5, 200.0), np.full(5, 3.0)
    assert best_weights(n, a, 0.1, 1.0).tolist() == [1.0] * 5
    assert best_prefix(n, a, 0.1, 1.0).size == 5
    assert weighted_excess(n, a, 0.1, 1.0) == pytest.approx(equal_excess(n, a, 0.1, 1.0))


def test_one_owner_is_its_own_coalition():
    assert best_prefix([50.0], [2.0], 0.5, 3.0).members.tolist() == [True]
    assert best_weights([50.0], [2.0], 0.5, 3.0).tolist() == [1.0]
    assert weighted_excess([50.0], [2.0], 0.5, 3.0) == pytest.approx(0.5 / 50 + 3 * 2 / 2500)


def test_owners_without_noise_take_all_where_sampling_costs_nothing():
    n, a = [10.0, 1000.0, 5.0], [0.0, 1.0, 0.0]
    assert best_weights(n, a, 0.0, 1.0).tolist() == [1.0, 0.0, 1.0]
    assert weighted_excess(n, a, 0.0, 1.0) == excess([1.0, 0.0, 1.0], n, a, 0.0, 1.0) == 0
    assert best_prefix(n, a, 0.0, 1.0).size == 1
    assert np.isinf(precisions(n, a, 0.0, 1.0)).tolist() == [True, False, True]


def test_without_noise_that_matters_everybody_counts_by_its_records():
    n, a = [10.0, 1000.0], [5.0, 1.0]
    assert best_weights(n, a, 0.3, 0.0).tolist() == [1.0, 1.0]
    assert best_prefix(n, a, 0.3, 0.0).size == 2
    assert weighted_excess(n, a, 0.3, 0.0) == pytest.approx(0.3 / 1010)


def test_an_owner_that_answers_nothing_is_left_out_and_not_counted():
    n, a = [10.0, 20.0], [1.0, np.inf]
    assert best_weights(n, a, 0.3, 1.0).tolist() == [1.0, 0.0]
    assert best_prefix(n, a, 0.3, 1.0).members.tolist() == [True, False]
    assert excess([[1, 0], [1, 1]], n, a, 0.3, 1.0).tolist() == [pytest.approx(0.3 / 10 + 1 / 100), np.inf]


@pytest.mark.parametrize(
    "owners",
    [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([np.nan], [1.0]), ([2.0], [-1.0]), ([2.0], [np.nan]), ([np.inf], [1.0])],
)
def test_owners_that_cannot_be_are_refused(owners):
    with pytest.raises(SettingsInvalid, match="HR-511"):
        best_weights(*owners, 0.1, 1.0)


def test_sampling_and_amplification_are_finite():
    with pytest.raises(SettingsInvalid, match="sampling"):
        weighted_excess([1.0], [1.0], np.inf, 1.0)


def test_a_hundred_thousand_owners_are_one_sort():
    rng = np.random.default_rng(3)
    n, a = rng.lognormal(7, 1.5, 100_000), rng.lognormal(0, 2, 100_000)
    found = best_prefix(n, a, 0.2, 1e3)
    assert 1 < found.size < 100_000
    changed = np.repeat(found.members[None].astype(float), 20, axis=0)
    one = np.concatenate([rng.choice(np.flatnonzero(found.members == inside), 10) for inside in (True, False)])
    changed[np.arange(20), one] = 1 - changed[np.arange(20), one]
    assert (excess(changed, n, a, 0.2, 1e3) > found.excess).all()


@pytest.mark.parametrize(
    ("first", "others", "epsilon", "everybody", "weighted", "members"),
    [
        (40_000, 1000, 1, 0.98823, 0.00870, [1]),
        (40_000, 1000, 100, 0.00829, 0.00811, [1, 2, 3]),
        (40_000, 30_000, 1, 0.17691, 0.00864, [1]),
        (40_000, 30_000, 100, 0.00405, 0.00327, [2, 3]),
        (4000, 1000, 1, 48.26690, 0.54487, [1]),
        (4000, 1000, 100, 0.24947, 0.04689, [2, 3]),
        (4000, 30_000, 1, 0.42740, 0.25784, [1, 2, 3]),
        (4000, 30_000, 100, 0.00537, 0.00327, [2, 3]),
    ],
)
def test_four_scenarios_of_lending_rows_are_forecast_as_they_were_first(first, others, epsilon, everybody, weighted, members):
    """Goldens of another implementation: Laplace noise of 100 questions, epsilon 10 of owner 1."""
    n = np.array([first, others, others], float)
    a = 2 * (2 * 26.324555 * 100 / np.array([10.0, epsilon, epsilon])) ** 2
    given, least = (n, a, 0.21559598, 0.37820768, 7.4625109e-5), 0.024256469
    assert equal_excess(*given) / least == pytest.approx(everybody, abs=6e-6)
    assert weighted_excess(*given) / least == pytest.approx(weighted, abs=6e-6)
    assert (np.flatnonzero(best_prefix(*given).members) + 1).tolist() == members
