"""Measurements aside: charged like any question, with randomness of their own, and without a trace in what parties keep."""

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.errors import BudgetInvalid, UnlawfulChannel
from hedgerow.store import LedgerFile
from helpers import counting, federation, one_count, recall, remember, zeros


def noise(fed):
    from functools import partial

    return fed.sum(partial(zeros, size=3))


def test_no_two_questions_share_their_noise():
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    one, other = fed.aside(), fed.aside()
    released = [noise(other), noise(one), noise(one), noise(fed), noise(one), noise(fed), noise(other)]
    assert len({tuple(values) for values in released}) == 7
    assert len({entry.round for entry in fed.ledger.entries}) == 7
    assert [entry.round for entry in fed.ledger.entries if entry.round > 0] == [1, 2]


def test_a_program_does_not_notice():
    plain, measured = (federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0)) for _ in range(2))
    aside = measured.aside()
    for _ in range(3):
        noise(aside.sample(rate=0.5))
        np.testing.assert_array_equal(noise(measured.sample(rate=0.5)), noise(plain.sample(rate=0.5)))


def test_what_parties_keep_stays():
    fed = federation()
    aside = fed.aside()
    fed.each(remember, 1.0)
    before = aside.sum(recall)
    for _ in range(2):
        np.testing.assert_array_equal(aside.sum(recall), before)
    np.testing.assert_array_equal(fed.sum(recall), before)


def test_it_is_charged():
    budget = Budget(2.0, 1e-5)
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(3.0)).within(budget)
    noise(fed.aside())
    assert budget.spent(fed.ledger.charges("party")) > 0


def test_cohorts_of_fixed_size_and_kept_states_have_no_known_cost():
    """A party that is pushed out of a cohort keeps another state, so that its later answers differ as well."""
    private = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="rate"):
        private.sample(size=3).sum(counting, init=one_count)
    assert len(private.ledger) == 0
    private.sample(rate=0.5).sum(counting, init=one_count)
    private.sum(counting, init=one_count)
    federation().sample(size=3).sum(counting, init=one_count)
    local = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0, at="party"))
    local.sample(size=3).sum(counting, init=one_count)


def test_nothing_makes_a_ledger_forget(tmp_path):
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(3.0)).within(Budget(2.0, 1e-5))
    noise(fed)
    with pytest.raises(BudgetInvalid, match="too late"):
        fed.ledger.attach(LedgerFile(tmp_path / "ledger.jsonl"))
    with pytest.raises(BudgetInvalid, match="charged to this budget"):
        fed.on(fed.engine)
    fed.ledger.rewind(0, replay=True)
    assert len(fed.ledger.charges("party")) == 1  # it was released, whether or not it is asked again
