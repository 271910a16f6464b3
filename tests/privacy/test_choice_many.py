"""Many choices at once: the law of each row, one event for all of them, and what sees to it that a record touches one row."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from attack import FALSE_ALARM, chi_square_p_value, entropy
from hedgerow import l1, l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.events import Event
from hedgerow.core.party import Party
from hedgerow.core.question import Question, local, travels
from hedgerow.core.records import held_to_bounds, in_whole_steps
from hedgerow.core.release import Release
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.choice import ManyChoice, ScoreRule, choose_many, laws
from hedgerow.privacy.choice.many import DRAW, in_one_row
from helpers import federation

RATE = Fraction(1, 4)
SCORES = np.array([[5, 9, 10, 2], [7, 7, 7, 7], [0, -3, 1, -40]])
ONE_BY_ONE = {"exponential": laws.by_weight, "permute and flip": laws.by_coins, "noisy max": laws.by_noise}


def table_of(rows, candidates):
    return Layout((("", (rows, candidates)),))


# ---- exact laws of one row, as in test_choice.py --------------------------------------------------------------------
def exponential_law(scores, rate):
    weights = np.exp(float(rate) * (scores - scores.max()))
    return weights / weights.sum()


def permute_and_flip_law(scores, rate):
    p, law = np.exp(float(rate) * (scores - scores.max())), np.zeros(len(scores))
    for which in range(1, 2 ** len(scores)):
        heads = np.array([which >> i & 1 for i in range(len(scores))], bool)
        law += np.prod(np.where(heads, p, 1 - p)) * heads / heads.sum()
    return law


def noisy_max_law(scores, rate):
    r, k = math.exp(-float(rate)), np.arange(-300, 301)
    pmf = (1 - r) / (1 + r) * r ** np.abs(k[:, None] - scores)
    below = np.cumsum(pmf, 0)
    found = []
    for i in range(len(scores)):
        others = [below[:, j] - (pmf[:, j] if j < i else 0) for j in range(len(scores)) if j != i]
        found.append((pmf[:, i] * np.prod(others, 0)).sum())
    return np.array(found)


LAWS = {"exponential": exponential_law, "permute and flip": permute_and_flip_law, "noisy max": noisy_max_law}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("row", range(3))
def test_each_row_follows_its_law_whatever_the_others_hold(law, row):
    drawn = DRAW[law](np.tile(SCORES, (20_000, 1)), RATE, entropy())[row::3]
    expected = LAWS[law](SCORES[row], RATE)
    assert chi_square_p_value(drawn, dict(enumerate(expected))) > FALSE_ALARM


@pytest.mark.parametrize("law", LAWS)
def test_rows_are_independent(law):
    drawn = DRAW[law](np.tile(SCORES[:2], (20_000, 1)), RATE, entropy()).reshape(-1, 2)
    expected = np.outer(LAWS[law](SCORES[0], RATE), LAWS[law](SCORES[1], RATE)).ravel()
    assert chi_square_p_value(drawn[:, 0] * 4 + drawn[:, 1], dict(enumerate(expected))) > FALSE_ALARM


@pytest.mark.parametrize("law", ["exponential", "permute and flip"])
@pytest.mark.parametrize("near", [0.0, 1.0])
def test_double_precision_decides_nothing_that_exact_weights_would_not(monkeypatch, law, near):
    """With every draw settled exactly the same candidates come of the same numbers."""
    scores = np.random.default_rng(0).integers(-30, 30, (40, 5))
    expected = DRAW[law](scores, RATE, entropy())
    monkeypatch.setattr(laws, "_NEAR", near)
    np.testing.assert_array_equal(DRAW[law](scores, RATE, entropy()), expected)


def test_a_row_by_weight_is_the_choice_of_that_row_alone():
    numbers = np.frombuffer(entropy()(16 * 3), np.uint8).reshape(3, 16)
    together = laws.rows_by_weight(SCORES, RATE, lambda n: numbers.tobytes())
    for i in range(3):
        assert together[i] == laws.by_weight(SCORES[i], RATE, 1, lambda n, i=i: numbers[i].tobytes())[0]


@pytest.mark.parametrize("law", LAWS)
def test_what_is_no_candidate_is_never_chosen(law):
    possible = np.array([[True, False, True, False]] * 3)
    drawn = DRAW[law](np.tile(SCORES, (500, 1)), RATE, entropy(), np.tile(possible, (500, 1)))
    assert set(drawn) == {0, 2}


# ---- one event: two worlds, exactly ---------------------------------------------------------------------------------
def log_ratios(law, before, after, rate):
    """Log-ratio of every outcome of all rows together, between two worlds."""
    a, b = ([LAWS[law](row, rate) for row in world] for world in (before, after))
    outcomes = itertools.product(range(before.shape[1]), repeat=len(before))
    return np.array([sum(math.log(b[r][c]) - math.log(a[r][c]) for r, c in enumerate(one)) for one in outcomes])


def worlds(moves):
    rng = np.random.default_rng(1)
    for _ in range(12):
        before = rng.integers(-3, 4, (2, 3))
        for move in moves:
            yield before, before + np.array(move)


IN_ONE_ROW = [[list(one), [0, 0, 0]] for one in itertools.product((-1, 0, 1), repeat=3)]
UP_IN_ONE_ROW = [[[0, 0, 0], list(one)] for one in itertools.product((0, 1), repeat=3)]
IN_BOTH = [[[1, 0, 0], [0, 1, 0]], [[1, -1, -1], [1, -1, -1]]]


@pytest.mark.parametrize("law", LAWS)
def test_a_record_in_one_row_costs_one_epsilon(law):
    """The largest ratio over all outcomes is never exceeded, and nearly reached; of an exponential choice it is a range."""
    epsilon = 1.0
    for moves, factor in ((IN_ONE_ROW, 2), (UP_IN_ONE_ROW, 1)):
        found = [log_ratios(law, before, after, Fraction(epsilon) / factor) for before, after in worlds(moves)]
        largest = max(float(np.abs(one).max()) for one in found)
        assert largest <= epsilon * (1 + 1e-9)
        assert largest > 0.5 * epsilon
        if law == "exponential":
            assert max(float(np.ptp(one)) for one in found) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_a_record_in_two_rows_is_a_broken_twin(law):
    """Under linf alone each score moves by 1, in both rows, and outcomes tell more than epsilon."""
    found = [log_ratios(law, before, after, Fraction(1, 2)) for before, after in worlds(IN_BOTH)]
    assert max(float(np.abs(one).max()) for one in found) > 1.2


@pytest.mark.parametrize("law", LAWS)
def test_moves_in_several_rows_add_up(law):
    """Radius 2 of l1: one step in each of two rows, or two in one, cost the same epsilon at half the rate."""
    moves = [[[1, 0, 0], [0, -1, 0]], [[0, 0, 0], [2, 0, 0]], [[1, -1, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 1]]]
    found = [log_ratios(law, before, after, Fraction(1, 4)) for before, after in worlds(moves)]
    assert max(float(np.abs(one).max()) for one in found) <= 1 + 1e-9


# ---- what is enforced -----------------------------------------------------------------------------------------------
@local(additive=True)
def marks(broadcast, party, rng):
    """Scores (3, 2): the x of a record goes where its row says; what is beyond belongs to all rows."""
    scores = np.zeros((3, 2))
    for row, x, w in zip(party["row"], party["x"], party.w, strict=True):
        scores[int(row) % 3] += w * np.array([x, 1.0])
        if row > 2:
            scores += 0.7 * w
    return scores


def adds(question, row, x):
    release = in_whole_steps(Release(bounds=linf(1.0, "record"), mechanism=ManyChoice("exponential", 1.0)), question)
    ask = held_to_bounds(question, release, table_of(3, 2))
    return ask(None, Party("one", {"row": np.array([row]), "x": np.array([x])}, np.ones(1)), None)


def test_a_record_is_held_to_one_row():
    held = Question("sum", partial(in_one_row, scores=marks), None)
    np.testing.assert_allclose(adds(held, 1.0, 0.25), [[0, 0], [0.25, 1], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(adds(held, 4.0, 9.0), [[0, 0], [1, 1.7 / 9.7], [0, 0]], atol=1e-6)
    twin = Question("sum", marks, None)  # each score is cut, in every row
    assert (np.abs(adds(twin, 4.0, 1.0)).max(-1) > 0.4).sum() == 3


def test_a_record_that_lowers_a_score_raises_none_where_that_was_promised():
    held = Question("sum", partial(in_one_row, scores=marks, monotonic=True), None)
    assert adds(held, 1.0, -0.5).min() == 0.0


# ---- at the waist ---------------------------------------------------------------------------------------------------
@local(additive=True, stackable=True)
def by_label(broadcast, party, rng):
    """Votes (3, 2): the row is the largest x of a record, the candidate whether it is above zero."""
    row, up = party["x"].argmax(-1), (party["x"].max(-1) > 0).astype(int)
    found = np.zeros((*party.w.shape[:-1], 3, 2))
    for i in np.ndindex(party.w.shape):
        found[(*i[:-1], row[i], up[i])] += party.w[i]
    return found


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bound", [linf(1.0, "record"), l1(1.0, "record"), l1(1000.0)])
def test_the_best_of_each_row_is_chosen_at_a_large_epsilon_and_charged_once(law, bound):
    exact = federation().sum(by_label)
    fed = federation()
    epsilon = 1e5 if bound.unit == "party" else 200.0
    chosen = choose_many(fed, by_label, bound=bound, epsilon=epsilon, law=law, monotonic=True)
    np.testing.assert_array_equal(chosen, exact.argmax(-1))
    [entry] = fed.ledger.entries
    assert entry.event == Event("exponential" if law == "exponential" else "pure", epsilon=epsilon)
    assert entry.unit == bound.unit


def test_nothing_but_the_choices_is_released():
    fed = federation(recording=True)
    chosen = choose_many(fed, by_label, bound=l1(1.0, unit="record"), epsilon=1.0)
    [seen] = hr.engines.view(fed, "world")
    np.testing.assert_array_equal(np.reshape(seen.values, (3, 2)), np.eye(2)[chosen])


@pytest.mark.parametrize("bound", [linf(1.0), l2(1.0, "record"), {"": linf(1.0, "record")}])
def test_bounds_that_do_not_say_how_far_all_rows_move_are_refused(bound):
    fed = federation()
    with pytest.raises(BudgetInvalid, match="HR-214"):
        choose_many(fed, by_label, bound=bound, epsilon=1.0)


def test_rows_and_candidates_are_a_table():
    with pytest.raises(BudgetInvalid, match="rows and candidates"):
        ManyChoice("exponential", 1.0).fit(l1(1.0, "record"), Layout((("", (3,)),)))
    with pytest.raises(BudgetInvalid, match="'exponential'"):
        ManyChoice("exponentail", 1.0)
    with pytest.raises(BudgetInvalid, match="at the server"):
        ManyChoice("exponential", 1.0, at="party")


def test_sums_that_are_not_exact_are_rounded_in_one_row_and_refused_in_several():
    loose = ManyChoice("exponential", 1.0)._block(linf(1.0, "record"), table_of(3, 2))
    exact = ManyChoice("exponential", 1.0)._block(linf(1.0, "record", 2.0**-24), table_of(3, 2))
    assert loose.scale == math.floor(1 / loose.step) + 1
    assert exact.scale == 2**24
    with pytest.raises(BudgetInvalid, match="rounding in every row"):
        ManyChoice("exponential", 1.0)._block(l1(1.0, "record"), table_of(3, 2))


# ---- rules ----------------------------------------------------------------------------------------------------------
@travels
@dataclass(frozen=True)
class Larger(ScoreRule):
    """The larger of two counts against twice the smaller, for each row; a third candidate is none."""

    sensitivity: float = 2.0
    rows: int = 1
    monotonic: bool = True

    def scores(self, totals):
        return np.stack([totals.max(-1), 2 * totals.min(-1), np.full(len(totals), -np.inf)], axis=-1)


@pytest.mark.parametrize("law", LAWS)
def test_a_rule_makes_scores_of_totals(law):
    exact = federation().sum(by_label)
    expected = np.stack([exact.max(-1), 2 * exact.min(-1)], axis=-1).argmax(-1)
    fed = federation(recording=True)
    chosen = choose_many(fed, by_label, bound=l1(1.0, "record"), epsilon=200.0, law=law, rule=Larger())
    np.testing.assert_array_equal(chosen[:3], expected)
    [seen] = hr.engines.view(fed, "world")
    assert set(np.ravel(seen.values)[3:]) == {0.0}


def test_the_grid_of_a_rule_follows_from_its_sensitivity():
    mechanism = ManyChoice("exponential", 1.0, rule=Larger())
    assert mechanism._factor == 1
    grid = mechanism._scored(6)
    assert grid.scale == 2.0 / grid.step + 1
    assert "each row" in str(mechanism)
