"""Epsilon at delta 0: the sum of what is pure, and infinity as soon as anything is not."""

import math
from typing import get_args

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.events import Event, Sampling
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy import accounting

ALL, SAMPLED = Sampling(), Sampling("poisson", 0.1)
PURE = [Event("laplace", 4.0), Event("laplace", 2.0), Event("pure", epsilon=0.5)]


def at_zero(*charges, accountant="tightest"):
    return accounting.epsilon(charges, delta=0.0, adjacency="add-remove", accountant=accountant)


@pytest.mark.parametrize("accountant", get_args(accounting.Accountant))
def test_pure_epsilons_add_up_by_every_accountant(accountant):
    assert at_zero(*[(ALL, (event,)) for event in PURE], accountant=accountant) == pytest.approx(0.25 + 0.5 + 0.5)
    assert at_zero(accountant=accountant) == 0.0


def test_the_sum_is_what_the_loss_of_laplace_noise_reaches():
    x = np.linspace(-50, 50, 100_001)
    loss = sum(np.abs(x - 1) / b - np.abs(x) / b for b in (4.0, 2.0))
    assert at_zero((ALL, (PURE[0],)), (ALL, (PURE[1],))) == pytest.approx(np.abs(loss).max())


def test_sampling_amplifies_what_is_pure():
    assert at_zero((SAMPLED, (PURE[2],))) == pytest.approx(math.log1p(0.1 * math.expm1(0.5)))


@pytest.mark.parametrize("accountant", get_args(accounting.Accountant))
@pytest.mark.parametrize(
    "event", [Event("gaussian", 100.0), Event("approximate", epsilon=0.1, delta=1e-9), Event("nonprivate")], ids=str
)
def test_what_has_no_pure_epsilon_has_none_beside_what_has(event, accountant):
    assert at_zero((ALL, (PURE[0],)), (ALL, (event,)), accountant=accountant) == math.inf
    assert at_zero((ALL, (event,)), accountant=accountant) == math.inf


def test_a_ledger_of_pure_answers_has_spent_what_was_planned():
    parties = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=3), seed=0)
    hr.trees.private_forest(parties, trees=2, depth=2, epsilon=1.0, delta=0.0)
    spent = parties.ledger.epsilon(delta=0.0)
    assert 0.999 < spent <= 1.0 + 1e-9
    assert parties.ledger.epsilon(delta=1e-6) <= spent
    gaussian = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=3), seed=0)
    hr.trees.private_forest(gaussian, trees=2, depth=2, epsilon=1.0, delta=1e-5)
    assert gaussian.ledger.epsilon(delta=0.0) == math.inf


def test_a_budget_of_delta_zero_says_where_what_is_pure_is_read():
    with pytest.raises(BudgetInvalid, match="delta=0"):
        hr.Budget(1.0, 0.0)
