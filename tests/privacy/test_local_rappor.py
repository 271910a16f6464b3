"""RAPPOR with memory: what all reports together tell, what a party keeps, and what is found in them."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.core import Federation, Parties
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Schema
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import BudgetExhausted, BudgetInvalid
from hedgerow.privacy import Budget
from hedgerow.privacy.local import Bloom
from hedgerow.privacy.local.chance import WORD
from hedgerow.privacy.local.rappor import Permanent, collect, decode, lasso, no_memory, report
from helpers import charged

LEVELS = 6
PLAN = Permanent(Bloom(bits=16, cohorts=4), f=0.5, p=0.35, q=0.65, reports=50)


def people(n, engine=None, seed=0, values=None):
    values = (np.random.default_rng(0).random(n) ** 2 * LEVELS).astype(np.int16) if values is None else values
    schema = Schema((Column("code", "category", levels=tuple("abcdef")),))
    held = Parties([f"party {i}" for i in range(n)], {"code": values}, [1] * n)
    return Federation((engine or InProcess(threads=1)).hosting(held), schema, streams=Streams(seed))


def last(states):
    *_, state = states
    return state


# ---- what it costs ----------------------------------------------------------------------------------------------------
def test_golden_epsilons():
    plan = Permanent(Bloom(hashes=2), f=0.5, p=0.5, q=0.75, reports=1000)
    assert plan.forever == pytest.approx(4.394449154672, abs=1e-12)
    assert plan.once == pytest.approx(1.074285864167, abs=1e-12)
    assert plan.epsilon == plan.forever
    assert replace(plan, reports=2).epsilon == pytest.approx(2 * 1.074285864167)


@pytest.mark.parametrize(("f", "p", "q"), [(0.5, 0.5, 0.75), (0.25, 0.1, 0.9), (0.9, 0.0, 1.0), (0.5, 0.4, 0.5)])
def test_reports_tell_no_more_than_is_charged(f, p, q):
    """Exactly, for one bit that two values differ in, over every sequence of reports; a filter has 2 h such bits."""
    for reports in range(1, 9):
        plan = Permanent(Bloom(hashes=1), f, p, q, reports)
        worst = {}
        for heads in range(reports + 1):
            set_, unset = (chance**heads * (1 - chance) ** (reports - heads) for chance in (q, p))
            one, other = (1 - f / 2) * set_ + f / 2 * unset, f / 2 * set_ + (1 - f / 2) * unset
            if one > 0:
                worst[heads] = math.log(one / other)
        assert max(worst.values()) - min(worst.values()) <= plan.epsilon * (1 + 1e-12)


def test_permanent_words_flip_no_less_than_stated():
    flip, set_, unset = PLAN.words
    assert (WORD - flip) / flip <= (1 - PLAN.f / 2) / (PLAN.f / 2)
    assert (set_ / WORD, unset / WORD) == pytest.approx((0.65, 0.35))


def test_the_first_question_is_charged_for_all_of_them():
    fed = people(30).within(Budget(PLAN.forever * 1.001, 1e-6))
    last(collect(fed, "code", LEVELS, PLAN, 3))
    assert charged(fed.ledger) == ["pure", "covered", "covered"]
    assert fed.ledger.entries[0].event.epsilon == pytest.approx(PLAN.forever)
    with pytest.raises(BudgetExhausted):
        last(collect(fed, "code", LEVELS, PLAN, 1))


def test_more_rounds_than_the_plan_allows_are_refused():
    with pytest.raises(BudgetInvalid, match="reports=51"):
        next(collect(people(3), "code", LEVELS, PLAN, 51))


@pytest.mark.parametrize("wrong", [{"f": 0.0}, {"f": 1.5}, {"p": 0.7}, {"q": 1.1}, {"p": -0.1}, {"reports": 0}, {"f": 1e-6}])
def test_chances_that_hide_nothing_are_refused(wrong):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        replace(PLAN, **wrong)


# ---- what a party keeps -----------------------------------------------------------------------------------------------
def alone(value, plan, seed, state=None):
    """One report of one party, with its state."""
    party = Parties(("someone",), {"code": np.array([value])}, [1])[0]
    party.state = dict(state or no_memory(None, party, plan=plan, column="code"))
    rng = Streams(seed).stream(1, "someone", "local")
    return report(None, party, rng, plan=plan, column="code", levels=LEVELS), party.state


def test_a_party_answers_from_its_permanent_answer_even_if_its_value_changes():
    sharp = replace(PLAN, p=0.0, q=1.0)
    first, state = alone(2, sharp, 1)
    again, state = alone(5, replace(sharp, use=1), 2, state)
    np.testing.assert_array_equal(first["ones"], again["ones"])
    np.testing.assert_array_equal(first["n"], again["n"])


def test_covered_questions_learn_nothing_of_who_has_nothing_to_remember():
    """Word for word the same answer whatever the value: without a first, charged question there is no memory."""
    late = replace(PLAN, use=3)
    for seed in range(20):
        found = [alone(value, late, seed) for value in (0, 5)]
        np.testing.assert_array_equal(found[0][0]["ones"], found[1][0]["ones"])
        assert all(not np.any(kept) for _, state in found for kept in state.values())


def test_after_its_last_report_a_party_answers_by_noise_alone():
    plan = replace(PLAN, reports=2)
    for value in (0, 5):
        _, state = alone(value, plan, 1)
        _, state = alone(value, replace(plan, use=1), 2, state)
        said, _ = alone(value, replace(plan, use=2), 3, state)
        other, _ = alone(
            0,
            replace(plan, use=2),
            3,
            {key: np.zeros_like(v) if key.startswith("rappor bits") else v for key, v in state.items()},
        )
        np.testing.assert_array_equal(said["ones"], other["ones"])


def test_every_engine_collects_the_same():
    states = [last(collect(people(60, engine), "code", LEVELS, PLAN, 3)) for engine in (Loop(), InProcess(threads=2))]
    np.testing.assert_array_equal(states[0].ones, states[1].ones)
    np.testing.assert_array_equal(states[0].n, states[1].n)


def test_a_collection_goes_on_where_it_stopped():
    whole, fed = last(collect(people(40), "code", LEVELS, PLAN, 4)), people(40)
    half = last(collect(fed, "code", LEVELS, PLAN, 2))
    again = last(collect(fed, "code", LEVELS, PLAN, 4, start=half))
    np.testing.assert_array_equal(whole.ones, again.ones)


# ---- the attack that memory prevents ----------------------------------------------------------------------------------
def accuracy(memory, reports=300, parties=60):
    """How often an attacker who averages all reports of a party names its value, 0 or 5."""
    plan = replace(SHARP, reports=reports)
    values = np.tile([0, 5], parties // 2)
    party = Parties([f"party {i}" for i in range(parties)], {"code": values}, [1] * parties).stack(np.arange(parties))
    filters, ones = plan.bloom.filters(LEVELS).set_bits, 0.0
    nobody = {key: np.zeros((parties, *np.shape(v))) for key, v in no_memory(None, party, plan=plan, column="code").items()}
    party.state = dict(nobody)
    for use in range(reports):
        if not memory:  # the twin draws its permanent answer again for every report
            party.state = dict(nobody)
        rngs = [Streams(0).stream(use, f"party {i}", "local") for i in range(parties)]
        said = report(None, party, rngs, plan=replace(plan, use=use if memory else 0), column="code", levels=LEVELS)
        ones = ones + said["ones"] - said["n"][..., None] / 2
    scores = [(ones * (2 * filters[:, level] - 1)).sum((1, 2)) for level in (0, 5)]
    return ((scores[1] > scores[0]) == (values == 5)).mean()


SHARP = replace(PLAN, f=0.9, p=0.1, q=0.9)


@pytest.mark.slow
def test_reports_without_memory_average_out_and_are_caught():
    """With memory the best guess is right with chance at most e^eps / (1 + e^eps); without, every value is found."""
    honest, twin = accuracy(memory=True), accuracy(memory=False)
    allowed = math.exp(SHARP.forever) / (1 + math.exp(SHARP.forever))
    limit = stats.binom.isf(1e-6, 60, allowed) / 60
    assert honest <= limit < twin


# ---- what is found ----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_frequent_levels_are_found_among_very_many():
    levels, n = 400, 8_000
    values = np.random.default_rng(3).choice([7, 42, 99, 250, 399], n, p=[0.4, 0.25, 0.2, 0.1, 0.05]).astype(np.int64)
    held = Parties([f"party {i}" for i in range(n)], {"code": values}, [1] * n)
    plan = Permanent(Bloom(bits=32, cohorts=8), f=0.25, p=0.35, q=0.65, reports=4)
    schema = Schema((Column("code", "category", levels=tuple(map(str, range(levels)))),))
    fed = Federation(InProcess(threads=1).hosting(held), schema, streams=Streams(0))
    found = decode(plan, last(collect(fed, "code", levels, plan, 4)), levels)
    assert {7, 42, 99} <= set(found.levels[found.sure]) <= {7, 42, 99, 250, 399}
    for level, share in ((7, 0.4), (42, 0.25)):
        at = list(found.levels).index(level)
        assert abs(found.counts[at] - share * n) < 6 * found.errors[at] + 0.01 * n


def test_estimates_of_one_report_are_unbiased():
    """Chi-square of the estimates' sum of squares over 60 collections, at one false alarm in a million."""
    plan = Permanent(Bloom(bits=16, cohorts=2), f=0.25, p=0.25, q=0.75, reports=1)
    fed = people(60)
    true = np.bincount(hr.engines.records(fed).columns["code"], minlength=LEVELS).astype(float)
    scheme = plan.scheme(LEVELS)
    z = []
    for seed in range(60):
        state = last(collect(people(60, seed=seed), "code", LEVELS, plan, 1))
        total = np.concatenate([state.ones, state.n[:, None]], axis=1)
        z.append((scheme.estimate(total, 60) - true) / np.sqrt(scheme.variance(true)))
    assert np.abs(np.mean(z, axis=0) * math.sqrt(60)).max() < stats.norm.isf(1e-6 / 12)
    low, high = stats.chi2.interval(1 - 1e-6, 60)
    assert low < (np.array(z)[:, 0] ** 2).sum() < high


def test_the_lasso_is_at_its_optimum():
    """The conditions of Karush, Kuhn and Tucker: no gradient where it chose, none that wants to enter where it did not."""
    rng = np.random.default_rng(0)
    design = (rng.random((40, 15)) < 0.3).astype(float)
    y = design @ np.r_[5.0, 3.0, np.zeros(13)] + rng.normal(size=40)
    b = lasso(design, y, 2.0, steps=20_000)
    gradient = design.T @ (y - design @ b) - 2.0 * np.linalg.norm(design, axis=0)
    assert np.abs(gradient[b > 0]).max() < 1e-5
    assert gradient[b == 0].max() < 1e-5


def test_a_party_without_a_record_reports_like_any_other():
    plan, party = PLAN, Parties(("someone",), {"code": np.array([3])}, [1], np.zeros(1))[0]
    found = report(None, party, Streams(0).stream(1, "someone", "local"), plan=plan, column="code", levels=LEVELS)
    assert found["n"].sum() == 1
    ask = partial(report, plan=plan, column="code", levels=LEVELS)
    total = people(5).sum(ask, init=partial(no_memory, plan=plan, column="code"))
    assert total["n"].sum() == 5
