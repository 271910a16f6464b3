"""Floating-point noise: quick, refused outside simulation, and named in the ledger and the statement."""

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from attack import FALSE_ALARM, low_bits
from hedgerow import Budget, l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.randomness import Streams
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.mechanisms import Gaussian
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian
from hedgerow.privacy.statement import statement
from helpers import federation, totals

BOUND = {"sum": l2(5.0, unit="record"), "n": linf(1.0, unit="record")}


def vector(size):
    return Layout((("", (size,)),))


@pytest.mark.parametrize("at", ["server", "party"])
def test_it_is_refused_without_a_seed_before_anybody_is_asked(at):
    fed = federation(seed=None, recording=True).protect(mechanism=SimulatedGaussian(1.0, at))
    with pytest.raises(BudgetInvalid, match="Use Gaussian"):
        fed.sum(totals, bound=BOUND)
    assert len(fed.ledger) == 0
    assert hr.engines.view(fed, "server") == []


@pytest.mark.parametrize("at", ["server", "party"])
def test_the_ledger_and_the_statement_say_that_it_is_not_for_deployment(at):
    fed = federation().protect(mechanism=SimulatedGaussian(1.0, at)).within(Budget(epsilon=99.0, delta=1e-5, unit="record"))
    fed.sum(totals, bound=BOUND)
    [entry] = fed.ledger.entries
    assert "not for deployment" in entry.mechanism
    assert entry.mechanism.endswith(f"at the {at}")
    assert entry.randomness == "seeded"
    assert "not for deployment" in statement(fed.ledger, {"record": 60, "party": 6}).sentence


@pytest.mark.parametrize("at", ["server", "party"])
def test_its_noise_has_the_law_and_the_cost_of_gaussian(at):
    mechanism = SimulatedGaussian(2.0, at)
    source = Streams(1).entropy(1, "server", "noise")
    row = mechanism.at_party(np.zeros((1, 20_000)), l2(1.0), vector(20_000), lambda i: source)[0]
    found = mechanism.at_server(row, l2(1.0), vector(20_000), source)
    assert stats.kstest(found / 2.0, "norm").pvalue > FALSE_ALARM
    assert mechanism.event(l2(1.0)) == Gaussian(2.0, at).event(l2(1.0))


def test_its_low_bits_are_those_of_floating_point():
    source = Streams(1).entropy(1, "server", "noise")
    kept = [
        low_bits(mechanism.at_server(np.zeros(20_000, np.int64), l2(1.0), vector(20_000), source), 2.0**-40)
        for mechanism in (SimulatedGaussian(1.0), Gaussian(1.0))
    ]
    assert kept[0] < 0.01
    assert kept[1] == 1.0


def test_noise_is_added_where_somebody_can_add_it():
    with pytest.raises(BudgetInvalid, match="shares"):
        SimulatedGaussian(1.0, "shares")
