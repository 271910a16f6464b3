"""Questions of which no distance between neighbours is known are refused before anybody is asked."""

from functools import partial

import numpy as np
import pytest

from hedgerow import Budget, Gaussian, Laplace, l1, l2
from hedgerow.errors import BudgetInvalid, UnlawfulChannel
from hedgerow.privacy import DiscreteGaussian, Tree
from hedgerow.privacy.choice.sparse import SparseVector
from hedgerow.store import LedgerFile
from helpers import altered, federation, norm_of_x, zeros


def keep_n(broadcast, party, rng):
    """Keep the number of all records."""
    party.state["n"] = np.asarray(float(len(party.w)))


def kept_n(broadcast, party, rng):
    """Contribute what was kept, whatever records are in the sample."""
    return party.state["n"]


def count(broadcast, party, rng):
    """Records in the sample."""
    return party.n


def test_what_parties_keep_does_not_go_round_a_sample_of_records():
    fed = federation().protect(mechanism=Laplace(0.5))
    fed.each(keep_n)
    with pytest.raises(UnlawfulChannel, match="not in the sample"):
        fed.sample(records=0.01).sum(kept_n, bound=l1(1, unit="record"))
    fed.sum(kept_n, bound=l1(1, unit="record"))
    assert len(fed.ledger) == 2


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"bound": l2(1.0, unit="record")}, {"bound": l2(1.0)}),
        ({"bound": l2(1.0)}, {"bound": l2(1.3)}),
    ],
    ids=["unit", "radius"],
)
def test_a_tree_covers_only_what_was_paid_for(first, then):
    fed = federation().protect(mechanism=Tree(1.0, 4)).within(Budget(10.0, 1e-5, unit=first["bound"].unit))
    fed.sum(partial(zeros, size=3), **first)
    with pytest.raises(Exception, match=r"paid for|bounded per"):
        fed.sum(partial(zeros, size=3), **then)
    assert len(fed.ledger) == 1


def test_everybody_is_not_covered_by_what_a_sample_paid():
    fed = federation().protect(mechanism=SparseVector(1.0, 1, 10.0))
    fed.sample(rate=0.01).sum(count, bound=l1(1, unit="record"))
    with pytest.raises(UnlawfulChannel, match="paid for"):
        fed.sum(count, bound=l1(1, unit="record"))


def test_noise_too_small_for_whole_numbers_is_refused_where_the_shape_was_not_known():
    fed = altered(federation(), schema=None).protect(mechanism=DiscreteGaussian(0.1))
    with pytest.raises(BudgetInvalid):
        fed.sum(count, bound=l2(3.0, unit="record"))


def test_an_empty_cohort_is_not_told_by_an_error():
    fed = altered(federation(n_parties=1), schema=None).protect(clip=l2(1.0), mechanism=Gaussian(100.0))
    for _ in range(8):
        with pytest.raises(UnlawfulChannel, match="has no schema"):
            fed.sample(rate=0.5).sum(norm_of_x)


def test_cohorts_drawn_aside_without_a_question_between_are_charged_apart():
    fed = federation(seed=None).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    aside = fed.aside()
    for cohort in (aside.sample(rate=0.5), aside.sample(rate=0.5)):
        cohort.sum(norm_of_x)
    assert len(fed.ledger.charges("party")) == 2


def test_a_ledger_that_is_continued_numbers_new_cohorts_and_questions(tmp_path):
    charges = []
    for _ in range(2):
        fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
        fed.recorded(LedgerFile(tmp_path / "ledger.jsonl"))
        fed.sample(rate=0.5).sum(norm_of_x)
        charges.append(fed.ledger.charges("party"))
        rounds = [entry.round for entry in fed.ledger.entries]
        del fed
    assert len(charges[1]) == 2
    assert rounds == [1, 2]
