"""Choosing: the law of each, the distance of neighbours on the grid, the cost, and what is refused."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hedgerow as hr
from attack import FALSE_ALARM, chi_square_p_value, entropy
from hedgerow import Budget, l1, l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.events import Event
from hedgerow.errors import BudgetExhausted, BudgetInvalid
from hedgerow.privacy.choice import Choice, Exponential, NoisyMax, PermuteAndFlip, choose, laws
from hedgerow.privacy.choice.grid import score_block
from helpers import federation

SCORES, RATE, DRAWS = np.array([5, 9, 10, 2]), Fraction(1, 4), 50_000
CHOICES = [Exponential(1.0), NoisyMax(1.0), PermuteAndFlip(1.0)]


def vector(size):
    return Layout((("", (size,)),))


def level_counts(broadcast, party, rng):
    """How many records have their largest x in each column: one column a record."""
    return np.bincount(party["x"].argmax(1), minlength=3).astype(float)


def two_keys(broadcast, party, rng):
    """Scores under two keys."""
    return {"a": np.zeros(2), "b": np.zeros(2)}


# ---- laws -----------------------------------------------------------------------------------------------------------
def exponential_law(scores, rate):
    weights = np.exp(float(rate) * (scores - scores.max()))
    return weights / weights.sum()


def permute_and_flip_law(scores, rate):
    """Each candidate's share over all sets of heads, by enumeration."""
    p, law = np.exp(float(rate) * (scores - scores.max())), np.zeros(len(scores))
    for which in range(1, 2 ** len(scores)):
        heads = np.array([which >> i & 1 for i in range(len(scores))], bool)
        law += np.prod(np.where(heads, p, 1 - p)) * heads / heads.sum()
    return law


def noisy_max_law(scores, rate):
    """By summation over the winner's noisy score; ties go to the first."""
    r, k = math.exp(-float(rate)), np.arange(-300, 301)
    pmf = (1 - r) / (1 + r) * r ** np.abs(k[:, None] - scores)
    below = np.cumsum(pmf, 0)
    law = []
    for i in range(len(scores)):
        others = [below[:, j] - (pmf[:, j] if j < i else 0) for j in range(len(scores)) if j != i]
        law.append((pmf[:, i] * np.prod(others, 0)).sum())
    return np.array(law)


LAWS = [(laws.by_weight, exponential_law), (laws.by_coins, permute_and_flip_law), (laws.by_noise, noisy_max_law)]


@pytest.mark.parametrize(("draw", "law"), LAWS, ids=["exponential", "permute and flip", "noisy max"])
@pytest.mark.parametrize("scores", [SCORES, np.array([7, 7, 7]), np.array([0, -3])], ids=str)
def test_candidates_follow_the_law(draw, law, scores):
    expected = dict(enumerate(law(scores, RATE).tolist()))
    assert sum(expected.values()) == pytest.approx(1)
    assert chi_square_p_value(draw(scores, RATE, DRAWS, entropy()), expected) > FALSE_ALARM


def test_a_single_candidate_is_chosen():
    for draw, _ in LAWS:
        assert not draw(np.array([4]), RATE, 100, entropy()).any()


@pytest.mark.parametrize(("draw", "law"), LAWS, ids=["exponential", "permute and flip", "noisy max"])
def test_a_rate_twice_as_large_does_not_follow_the_law(draw, law):
    expected = dict(enumerate(law(SCORES, RATE).tolist()))
    assert chi_square_p_value(draw(SCORES, 2 * RATE, DRAWS, entropy()), expected) < FALSE_ALARM


def test_permute_and_flip_has_the_smaller_expected_error():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 30, 6)
        errors = [(law(scores, RATE) * (scores.max() - scores)).sum() for law in (permute_and_flip_law, exponential_law)]
        assert errors[0] <= errors[1] + 1e-12


@pytest.mark.parametrize("far", [10**4, 2**52])
def test_scores_far_apart_neither_overflow_nor_vanish_together(far):
    scores = np.array([-far, far, far - 1])
    weights = laws.weights(scores, Fraction(1))
    assert weights[0] == 0
    assert weights[2] / weights[1] == pytest.approx(math.exp(-1), rel=1e-15)
    for draw, _ in LAWS[:2]:
        assert set(draw(scores, Fraction(1), 1000, entropy()).tolist()) == {1, 2}


@given(scores=hnp.arrays(np.int64, 5, elements=st.integers(-50, 50)), shift=st.integers(-(2**40), 2**40))
@settings(max_examples=30)
def test_only_differences_of_scores_count(scores, shift):
    assert laws.weights(scores, RATE) == laws.weights(scores + shift, RATE)


# ---- distance of neighbours -----------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(
    rest=hnp.arrays(float, 4, elements=st.floats(-100, 100)),
    record=hnp.arrays(float, 4, elements=st.floats(-1, 1)),
    bound=st.sampled_from([linf(1.0, "record"), l2(2.0, "record"), l1(4.0, "record")]),
    choice=st.sampled_from([*CHOICES, NoisyMax(0.01)]),
)
def test_a_record_moves_each_score_by_at_most_the_distance(rest, record, bound, choice):
    block = choice._block(bound, vector(4))
    before, after = (choice.at_party(x[None], bound, vector(4), lambda i: entropy()) for x in (rest, rest + record))
    assert np.abs(after - before).max() <= block.scale
    assert block.scale == int(block.scale)


@settings(max_examples=60)
@given(row=hnp.arrays(float, 4, elements=st.floats(-9, 9)), choice=st.sampled_from([*CHOICES, Exponential(1.0, True)]))
def test_a_party_moves_each_score_by_at_most_the_distance(row, choice):
    bound = linf(1.7)
    steps = choice.at_party(row[None], bound, vector(4), lambda i: entropy())
    assert np.abs(steps).max() <= choice._block(bound, vector(4)).scale
    assert not choice.monotonic or steps.min() >= 0


@pytest.mark.parametrize("epsilon", [1e-3, 0.01, 1.0, 50.0])
def test_noise_of_a_choice_can_be_drawn_for_any_epsilon(epsilon):
    choice = NoisyMax(epsilon)
    total = choice.at_party(np.array([[0.0, 1.0]]), linf(1.0, "record"), vector(2), lambda i: entropy())[0]
    assert choice.at_server(total, linf(1.0, "record"), vector(2), entropy()).sum() == 1.0


# ---- at the waist ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", ["exponential", "noisy max", "permute and flip"])
def test_the_best_candidate_is_chosen_at_a_large_epsilon_and_charged(law):
    fed = federation()
    exact = federation().sum(level_counts)
    chosen = choose(fed, level_counts, bound=linf(1.0, unit="record"), epsilon=50.0, law=law, monotonic=True)
    assert chosen == int(exact.argmax())
    [entry] = fed.ledger.entries
    assert entry.event == Event("exponential" if law == "exponential" else "pure", epsilon=50.0)
    assert entry.unit == "record"


def test_nothing_but_the_choice_is_released():
    fed = federation(recording=True)
    chosen = choose(fed, level_counts, bound=linf(1.0, unit="record"), epsilon=1.0)
    [seen] = hr.engines.view(fed, "world")
    np.testing.assert_array_equal(np.ravel(seen.values), np.eye(3)[chosen])


def test_a_choice_beyond_the_budget_is_refused_before_anybody_is_asked():
    fed = federation(recording=True).within(Budget(epsilon=1.0, delta=1e-6, unit="record"))
    with pytest.raises(BudgetExhausted):
        choose(fed, level_counts, bound=linf(1.0, unit="record"), epsilon=1.5, law="permute and flip")
    assert hr.engines.view(fed, "server") == []


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_is_finite_and_above_zero(epsilon):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Exponential(epsilon)


def test_unknown_laws_and_places_are_refused():
    with pytest.raises(BudgetInvalid, match="'exponential'"):
        Choice("exponentail", 1.0)
    with pytest.raises(BudgetInvalid, match="at the server"):
        Choice("exponential", 1.0, at="party")


def test_scores_are_one_array_with_one_bound():
    with pytest.raises(BudgetInvalid, match="one array with one bound"):
        choose(federation(), two_keys, bound=linf(1.0, unit="record"), epsilon=1.0)
    with pytest.raises(BudgetInvalid, match="one array with one bound"):
        score_block({"": linf(1.0)}, vector(2), 1.0)


def far_apart(broadcast, party, rng, *, place):
    """Scores of 0, and of 200 for each record at one place."""
    return 200.0 * len(party["x"]) * np.eye(3)[place]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("law", ["exponential", "permute and flip", "noisy max"])
def test_the_best_of_scores_that_lie_far_apart_is_chosen(law, place):
    """Weights below 2^-192 of the largest are zero, wherever their candidates stand."""
    scores = partial(far_apart, place=place)
    assert choose(federation(), scores, bound=linf(200.0, unit="record"), epsilon=50.0, law=law) == place


@pytest.mark.parametrize("scores", [[1000, 0], [0, 1000], [1000, 0, 0], [0, 1000, 0], [1000, 1000, 0], [0, 1000, 1000, 0, 0]])
def test_candidates_without_any_weight_are_not_drawn(scores):
    best = [i for i, score in enumerate(scores) if score == 1000]
    for draw in (laws.by_weight, laws.by_coins):
        assert sorted(set(draw(np.array(scores), Fraction(1, 2), 200, entropy()).tolist())) == best


def test_noise_without_a_grid_is_refused():
    with pytest.raises(BudgetInvalid, match="larger epsilon"):
        NoisyMax(1e-14).fit(linf(1.0), vector(2))
