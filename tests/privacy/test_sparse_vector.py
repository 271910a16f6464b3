"""Sparse vector: charged once, ended by its count, its noise where Algorithm 7 puts it."""

import math

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from attack import FALSE_ALARM, entropy
from hedgerow import Budget, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Event
from hedgerow.core.randomness import Streams
from hedgerow.errors import BudgetExhausted, BudgetInvalid
from hedgerow.privacy import epsilon
from hedgerow.privacy.choice import ThresholdQuestion, above_threshold
from hedgerow.privacy.choice.sparse import SparseVector
from helpers import charged, federation

RECORD = linf(1.0, unit="record")
NUMBER = Layout((("", ()),))
N = 69.0  # records of the six parties


def n_records(broadcast, party, rng):
    """Number of records."""
    return np.array(float(len(party.w)))


def two_numbers(broadcast, party, rng):
    """Not one number."""
    return np.zeros(2)


def at(*thresholds):
    return [ThresholdQuestion(n_records, None, t) for t in thresholds]


def asked(fed, *thresholds, **settings):
    return list(above_threshold(fed, at(*thresholds), 0.0, **{"epsilon": 20.0, "bound": RECORD, **settings}))


def test_questions_far_from_their_threshold_are_answered_right():
    answers = asked(federation(), N + 40, N + 40, N - 40, N + 40, N - 40, most=3)
    assert [bool(answer) for answer in answers] == [False, False, True, False, True]
    assert {answer.value for answer in answers} == {None}


def test_the_first_question_is_charged_for_all():
    fed = federation()
    asked(fed, *[N + 40] * 30)
    assert charged(fed.ledger) == ["pure"] + ["covered"] * 29
    assert fed.ledger.entries[0].event == Event("pure", epsilon=20.0)
    assert epsilon(fed.ledger.charges("record"), delta=1e-6, adjacency="add-remove") == pytest.approx(20.0)


def test_the_conversation_ends_with_the_count():
    fed = federation()
    assert len(asked(fed, *[N - 40] * 9, most=2)) == 2
    assert len(fed.ledger) == 2


def test_another_conversation_is_charged_anew_and_has_noise_of_its_own():
    fed = federation()
    asked(fed, N + 40, N + 40)
    asked(fed, N + 40, N + 40)
    assert charged(fed.ledger) == ["pure", "covered"] * 2
    assert len({entry.mechanism for entry in fed.ledger.entries}) == 2


def test_numbers_are_charged_apart_and_drawn_anew():
    fed = federation()
    answers = asked(fed, N - 40, N + 40, N - 40, most=2, numbers=4.0)
    assert charged(fed.ledger) == ["pure", "laplace", "covered", "covered", "laplace"]
    assert [entry.event.noise_multiplier for entry in fed.ledger.entries if entry.event.kind == "laplace"] == [0.5, 0.5]
    values = [answer.value for answer in answers]
    assert values[1] is None
    assert abs(values[0] - N) < 0.5 * -math.log(FALSE_ALARM)
    assert values[0] != values[2]


def test_questions_may_depend_on_earlier_answers():
    heard = []

    def search():
        low, high = 0.0, 2.0**10
        while high - low > 16:
            middle = (low + high) / 2
            yield ThresholdQuestion(n_records, None, middle)
            low, high = (middle, high) if heard[-1] else (low, middle)

    for answer in above_threshold(federation(), search(), 0.0, epsilon=100.0, bound=RECORD, most=10):
        heard.append(bool(answer))
    assert heard == [False, False, False, True, False, False]


def test_a_budget_refuses_the_conversation_before_anybody_is_asked():
    fed = federation(recording=True).within(Budget(epsilon=3.0, delta=1e-6, unit="record"))
    with pytest.raises(BudgetExhausted):
        asked(fed, N, N, epsilon=5.0)
    assert hr.engines.view(fed, "server") == []
    assert len(asked(fed, N + 400, N + 400, epsilon=2.5)) == 2


# ---- its noise ------------------------------------------------------------------------------------------------------
def test_epsilon_is_divided_as_the_paper_advises():
    for most, monotonic, weight in ((1, False, 2 ** (2 / 3)), (4, False, 4.0), (8, True, 4.0)):
        first, second = SparseVector(1.0, most, 0.0, monotonic).shares
        assert first + second == pytest.approx(1.0)
        assert second / first == pytest.approx(weight)


@pytest.mark.parametrize(("monotonic", "factor"), [(False, 2), (True, 1)])
def test_noise_has_the_scales_of_algorithm_7(monotonic, factor):
    """Mean magnitudes of both noises, each 2 |K| / scale summed like chi-square; one false alarm in a million."""
    n, mechanism = 20_000, SparseVector(0.8, 3, 0.0, monotonic)
    block = mechanism._block(RECORD, NUMBER)
    threshold = mechanism.threshold_noise(block, n, entropy())
    low, high = stats.chi2.interval(1 - FALSE_ALARM, 2 * n)
    assert low < 2 * np.abs(threshold).sum() / (block.scale / mechanism.shares[0]) < high
    scale = factor * 3 * block.scale / mechanism.shares[1]
    for t in (0.0, 0.7 * scale):  # P(noise >= t) is a half, and exp(-0.7) / 2
        hits = int(mechanism.exceeds(np.zeros(n), block, np.full(n, round(t)), entropy(1)).sum())
        inside = stats.binom.interval(1 - FALSE_ALARM, n, math.exp(-t / scale) / 2)
        assert inside[0] <= hits <= inside[1]


def test_the_threshold_keeps_its_noise_and_questions_do_not():
    mechanism = SparseVector(1.0, 5, 0.0)
    total, found = np.array([0]), set()
    for use in range(4):
        turned = mechanism.taken(use, Streams(None), Cohort())
        turned.event(RECORD)
        turned.at_server(total, RECORD, NUMBER, entropy(use))
        found.add(mechanism.memory.noise)
    assert len(found) == 1
    draws = {SparseVector(1.0, 1, 0.0).taken(0, Streams(None), Cohort()).memory.noise for _ in range(2)}
    assert draws == {None}  # nothing is drawn before it is needed


def test_a_seeded_conversation_repeats():
    answers = [[bool(a) for a in asked(federation(seed=3), *[N] * 20, most=20, epsilon=1.0)] for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(set(answers[0])) == 2


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_no_answer_is_left_after_the_last_one_that_was_paid_for():
    mechanism = SparseVector(20.0, 1, 0.0)
    fed = federation().protect(mechanism=mechanism)
    fed.sum(n_records, bound=RECORD)
    assert mechanism.over
    with pytest.raises(BudgetExhausted, match="no more were paid for"):
        fed.sum(n_records, bound=RECORD)
    assert len(fed.ledger) == 1


def test_a_twin_of_the_same_name_is_not_covered():
    fed = federation()
    fed.protect(mechanism=SparseVector(20.0, 1, N + 40)).sum(n_records, bound=RECORD)
    with pytest.raises(BudgetInvalid, match="was used before"):
        fed.protect(mechanism=SparseVector(20.0, 1, N + 40)).sum(n_records, bound=RECORD)


def test_one_bound_holds_for_all_questions():
    fed = federation().protect(mechanism=SparseVector(20.0, 2, N + 40))
    fed.sum(n_records, bound=RECORD)
    with pytest.raises(BudgetInvalid, match="one bound"):
        fed.sum(n_records, bound=linf(2.0, unit="record"))


def test_a_question_is_one_number():
    with pytest.raises(BudgetInvalid, match="one number"):
        list(above_threshold(federation(), [two_numbers], 0.0, epsilon=1.0, bound=RECORD))


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"most": 0}, {"numbers": -1.0}, {"most": 1.5}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        asked(federation(), N, **wrong)
