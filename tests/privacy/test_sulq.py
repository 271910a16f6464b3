"""SuLQ: noisy sums of what a function says about records, a limited number of them."""

import math

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow import Gaussian, l2
from hedgerow.core import Federation, Parties
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Schema
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import BudgetExhausted, BudgetInvalid, NotNamed, UnlawfulChannel
from hedgerow.privacy import Budget, epsilon
from hedgerow.privacy.sulq import Sulq, everybody, noise_for, noise_of_theorem_4, total

SCHEMA = Schema((Column("age", "number", low=0, high=100), Column("smoker", "binary")))


def clinics(engine=None, seed=0):
    rng = np.random.default_rng(3)
    columns = {"age": rng.uniform(20, 90, 900), "smoker": (rng.random(900) < 0.3).astype(float)}
    held = Parties(["a", "b", "c"], columns, [200, 300, 400])
    return Federation((engine or InProcess(threads=1)).hosting(held), SCHEMA, streams=Streams(seed))


def smokes(columns):
    return columns["smoker"]


def older(columns, *, than):
    return columns["age"] > than


def years(columns):
    return columns["age"]


def broken(columns):
    return np.where(columns["smoker"] == 1, np.nan, np.inf)


def shapeless(columns):
    return 1.0


def test_counts_and_sums_are_right_up_to_the_noise():
    fed = clinics()
    held = hr.engines.records(fed).columns
    sulq = Sulq(fed, 3, Gaussian(2.0))
    found = [sulq.count(smokes), sulq.count(older, than=60.0), sulq.count(everybody)]
    true = [held["smoker"].sum(), (held["age"] > 60).sum(), 900]
    distance = ((np.array(found) - true) / 2.0) ** 2
    assert distance.sum() < stats.chi2.isf(1e-6, 3)
    assert found[2] != 900


def test_the_question_beyond_the_number_agreed_is_refused_whoever_asks():
    fed = clinics()
    sulq = Sulq(fed, 2, Gaussian(2.0))
    sulq.count(smokes)
    Sulq(sulq.federation, 2).count(smokes)
    assert (sulq.asked, sulq.left) == (2, 0)
    with pytest.raises(BudgetExhausted, match="all 2 queries"):
        sulq.sum(smokes)
    assert len(fed.ledger) == 2


def test_what_a_function_says_is_cut_to_the_unit_interval():
    """The neighbour test of the bound: whatever is said, a record moves the total by at most one."""
    party = hr.engines.records(clinics())[0]
    assert total(None, party, None, of=years) == 200
    assert total(None, party, None, of=broken) == 0
    for of in (years, broken, smokes):
        for i in (0, 57):
            less = Parties(["a"], {k: np.delete(c, i) for k, c in party.columns.items()}, [199])[0]
            assert abs(total(None, party, None, of=of) - total(None, less, None, of=of)) <= 1


def test_all_queries_together_cost_what_was_asked_for():
    fed = clinics().within(Budget(1.0, 1e-6, unit="record"))
    sulq = Sulq.within(fed, epsilon=1.0, delta=1e-6, queries=5)
    for _ in range(5):
        sulq.count(smokes)
    spent = epsilon(fed.ledger.charges("record"), delta=1e-6, adjacency="add-remove")
    assert 0.98 < spent <= 1.0
    assert {entry.bound for entry in fed.ledger.entries} == {str(l2(1, "record"))}


def test_noise_is_that_of_balle_and_wang_and_far_below_that_of_the_publication():
    assert noise_for(1.0, 1e-5, 1) == pytest.approx(3.730631634816, rel=1e-9)
    assert noise_for(1.0, 1e-5, 100) == pytest.approx(37.30631634816, rel=1e-9)
    assert noise_of_theorem_4(1.0, 1e-5, 100) == pytest.approx(math.sqrt(32 * math.log(2e5) * 100))
    assert noise_of_theorem_4(1.0, 1e-5, 100) > 5 * noise_for(1.0, 1e-5, 100)


def test_every_engine_answers_the_same():
    found = [Sulq(clinics(engine), 2, Gaussian(1.0)).count(smokes) for engine in (Loop(), InProcess(threads=2))]
    assert found[0] == found[1]


def test_what_has_no_name_or_no_noise_is_refused():
    sulq = Sulq(clinics(), 2, Gaussian(1.0))
    with pytest.raises(NotNamed):
        sulq.count(lambda columns: columns["smoker"])
    with pytest.raises(BudgetInvalid, match="adds none"):
        Sulq(clinics(), 2)
    with pytest.raises(BudgetInvalid, match="clips parties"):
        Sulq(clinics().protect(clip=l2(1.0)), 2, Gaussian(1.0))
    for queries in (0, 1.5, True):
        with pytest.raises(BudgetInvalid, match="HR-214"):
            Sulq(clinics(), queries, Gaussian(1.0))
    for wrong in ((0.0, 1e-5), (1.0, 0.0), (1.0, 1.0), (math.nan, 1e-5)):
        with pytest.raises(BudgetInvalid, match="HR-214"):
            Sulq.within(clinics(), epsilon=wrong[0], delta=wrong[1], queries=3)


def test_a_function_says_one_number_about_each_record():
    with pytest.raises(UnlawfulChannel, match=r"returned shape \(\) for records"):
        Sulq(clinics(), 1, Gaussian(1.0)).count(shapeless)
