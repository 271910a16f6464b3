"""Frequencies by local reports: estimates as good as theory says, on every engine, for each question its own epsilon."""

import numpy as np
import pytest
from clinic import clinic
from scipy import stats

import hedgerow as hr
from hedgerow.data import stores
from hedgerow.engines import InProcess, Loop, simulate
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SchemaInvalid, SettingsInvalid
from hedgerow.privacy import Budget
from hedgerow.stats import frequencies, oracle_of

ORACLES = ["k-ary", "symmetric", "optimised", "rappor", "sketch", "hadamard"]


def people(n=60, engine=None, seed=0):
    return simulate(clinic(n), stores(), seed=seed, engine=engine or InProcess(threads=1))


def last(states):
    *_, state = states
    return state


def held(federation, n=None):
    return np.bincount(hr.engines.records(federation).columns["stage"][:n].astype(int), minlength=3)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES)
def test_what_people_hold_is_recovered_to_within_the_noise(oracle):
    fed = people(1500)
    state = last(frequencies(fed, "stage", oracle=oracle, epsilon=2.0))
    z = (state.counts[0] - held(fed)) / oracle_of(oracle, 2.0).deviation(held(fed))
    assert np.abs(z).max() < stats.norm.isf(1e-6 / 6)


@pytest.mark.slow
def test_a_larger_epsilon_and_more_parties_find_more():
    fed = people(1500)
    state = last(frequencies(fed, "stage", epsilon=0.5, epsilons=[8.0], numbers=[50]))
    true = [held(fed, int(n)) / n for n in state.parties]
    error = [np.abs(row / n - t).max() for row, n, t in zip(state.counts, state.parties, true, strict=True)]
    assert error[1] < error[0] < error[2]


@pytest.mark.parametrize("oracle", ORACLES)
def test_every_engine_releases_the_same(oracle):
    found = [last(frequencies(people(30, engine), "stage", oracle=oracle)).counts for engine in (Loop(), InProcess(threads=2))]
    np.testing.assert_array_equal(*found)


def test_every_question_is_charged_its_own_epsilon():
    fed = people().within(Budget(2.0, 1e-4))
    asked = frequencies(fed, "stage", epsilon=1.0, epsilons=[0.5, 4.0])
    assert [next(asked).round, next(asked).round] == [1, 2]
    with pytest.raises(BudgetExhausted):
        next(asked)
    assert [(entry.event.kind, entry.event.epsilon) for entry in fed.ledger.entries] == [("pure", 1.0), ("pure", 0.5)]
    assert {entry.unit for entry in fed.ledger.entries} == {"party"}


def test_a_trial_goes_on_where_it_stopped():
    settings = {"epsilon": 1.0, "epsilons": [2.0], "numbers": [20]}
    whole, fed = last(frequencies(people(), "stage", **settings)), people()
    first = next(frequencies(fed, "stage", **settings))
    rest = last(frequencies(fed, "stage", **settings, start=first))
    np.testing.assert_array_equal(rest.counts, whole.counts)
    np.testing.assert_array_equal(rest.parties, [60, 60, 20])


def test_settings_that_ask_nobody_or_nothing_are_refused():
    with pytest.raises(SettingsInvalid, match="0 parties"):
        next(frequencies(people(), "stage", numbers=[0]))
    with pytest.raises(SettingsInvalid, match="61 parties"):
        next(frequencies(people(), "stage", parties=61))
    with pytest.raises(BudgetInvalid, match="HR-214"):
        next(frequencies(people(), "stage", epsilon=0.0))
    with pytest.raises(SchemaInvalid):
        next(frequencies(people(), "age"))
    with pytest.raises(BudgetInvalid, match="cannot be told apart"):
        next(frequencies(people(), "stage", oracle="rappor", bits=2, cohorts=1))
