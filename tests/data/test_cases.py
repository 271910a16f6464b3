"""Complete cases: what is prepared and counted, behind every channel, and twins that the checks catch."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import hedgerow as hr
from hedgerow.core.bound import l1
from hedgerow.core.party import PRESENT, Party
from hedgerow.core.question import elementwise, local, minds_missing
from hedgerow.data import Column, Schema, Table, complete_cases, iid, load
from hedgerow.data.cases import LeftOut, all_left_out, cases, cases_of, complete
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import NotFinite, OutOfRange
from hedgerow.testing.neighbours import hearing, longest

AGE = Column("age", "integer", low=18, high=90, optional=True)
SEX = Column("sex", "category", levels=("f", "m"), optional=True)
SICK = Column("sick", "binary", role="target", optional=True)
SCAN = Column("scan", "number", shape=(2,), optional=True, role="ignore")
SCHEMA = Schema((AGE, SEX, SICK, SCAN))
HELD = {
    "age": [40, np.nan, 60, None, np.inf, 30],
    "sex": ["f", "m", None, None, "f", "f"],
    "sick": [0, 1, 1, 0, np.nan, 1],
    "scan": np.array([[1, 2], [3, np.nan], [5, 6], [7, 8], [9, 1], [2, 3]], np.float32),
}


@pytest.fixture
def table():
    return Table(SCHEMA.admit(HELD), SCHEMA)


def federation(table, parties=2, **how):
    return hr.simulate(table, hr.data.iid(parties=parties), seed=0, **how)


def test_an_optional_column_keeps_what_is_missing_and_refuses_the_rest(table):
    assert_array_equal(table["age"], [40, np.nan, 60, np.nan, np.nan, 30])
    assert_array_equal(table["sex"], [0, 1, -1, -1, 0, 0])
    assert_array_equal(SCAN.lacks(table["scan"]), [False, True, False, False, False, False])
    with pytest.raises(OutOfRange, match="reaches from 5 to 40"):
        AGE.admit([5, np.nan, 40])
    with pytest.raises(OutOfRange, match="not whole"):
        AGE.admit([20.5, np.nan])
    with pytest.raises(OutOfRange):
        SEX.admit(np.array([-2], np.int16))
    with pytest.raises(NotFinite):
        Column("age", "integer").admit([np.nan])
    assert Column.from_json(AGE.to_json()) == AGE
    assert "optional" not in Column("age", "integer").to_json()


def test_a_lawful_value_stands_in_and_the_record_weighs_nothing(table):
    made = complete(table.columns, read=(AGE, SEX, SCAN))
    assert_array_equal(made[PRESENT], [True, False, False, False, False, True])
    assert_array_equal(made["age"], [40, 54, 60, 54, 54, 30])
    assert made["sex"].dtype == np.int16
    assert made["scan"].dtype == np.float32
    SCHEMA.allowing(missing=False).select(["age", "sex", "scan"]).admit(made)
    again = complete({**table.columns, **made}, read=(SICK,))
    assert_array_equal(again[PRESENT], made[PRESENT] & ~np.isnan(table["sick"]))


@pytest.mark.parametrize(
    "column",
    [
        AGE,
        SEX,
        SICK,
        Column("a", "number", low=-3, high=-1, optional=True),
        Column("a", "number", low=2, optional=True),
        Column("a", "integer", high=-7, optional=True),
        Column("a", "number", optional=True),
    ],
)
def test_what_stands_in_is_lawful_by_the_declaration_alone(column):
    values = np.array([0], np.int16) if column.kind == "category" else [column.stand_in]
    Schema((column,)).allowing(missing=False).admit({column.name: values})


@pytest.mark.parametrize("engine", [InProcess, Loop])
def test_records_are_counted_once_where_they_are_first_missing_and_for_each_column(table, engine):
    asked = federation(table, engine=engine())
    complete_cases(asked, ["age", "sex"])
    found = cases_of(asked, ["sex", "age"])
    assert found == LeftOut(("age", "sex"), ("age", "sex"), (2.0, 3.0, 1.0), (3.0, 2.0), True)
    assert (found.records, found.complete, found.left_out) == (6, 2, 4)
    assert found.sentence() == "complete 2 of 6"


def test_stacked_parties_of_different_sizes_count_each_record_once(table):
    party = Party(
        "two", {name: np.stack([v[:3], v[3:]]) for name, v in table.columns.items()}, np.array([[1, 1, 1], [1, 1, 0.0]])
    )
    found = cases(None, party, None, read=(AGE, SCAN), each=True)
    assert_array_equal(found["first"], [[2, 1, 0], [0, 2, 0]])
    assert_array_equal(found["each"], [[1, 1], [2, 0]])


def test_nothing_is_prepared_or_asked_where_no_value_may_be_missing(table):
    schema = SCHEMA.allowing(missing=False)
    whole = Table({name: values[[0, 5]] for name, values in table.columns.items()}, schema)
    asked = federation(whole)
    assert complete_cases(asked, ["age"]) is asked
    assert cases_of(asked, ["age"]) is None
    assert list(all_left_out(asked)) == []
    assert len(asked.ledger) == 0


def test_a_column_is_complete_once_it_has_been_made_so(table):
    asked = complete_cases(federation(table), ["age"])
    assert not asked.schema["age"].optional
    assert complete_cases(asked, ["age"]) is asked
    assert complete_cases(asked, ["age", "sex"]) is not asked


def test_records_of_several_parties_are_left_out_at_each(table):
    table = table.with_roles(target="sick")
    asked = hr.simulate(table, hr.data.shards(parties=4, shards_per_party=1, copies=2), seed=0)
    found = hr.stats.counts(complete_cases(asked, ["age", "sex"]), ["sex"])
    assert found["count"].tolist() == [4, 0]  # two copies of two records
    assert cases_of(asked, ["age", "sex"]).records == 12


def test_a_missing_record_weight_leaves_the_record_out():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0], "w": [1.0, np.nan, 2.0, 1.0]})
    table = Table.from_pandas(frame, missing="drop").with_roles(weight="w")
    asked = federation(table)
    assert hr.stats.means(asked, ["x"])["x"] == pytest.approx((1 + 8 + 8) / 4)
    assert cases_of(asked, ["x"]).counts == (3.0, 0.0, 1.0)


# ---- channels -------------------------------------------------------------------------------------------------------
def gaps(n=2000, seed=1):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.uniform(0, 1, n), "b": rng.uniform(0, 1, n)})
    frame.loc[rng.random(n) < 0.1, "a"] = np.nan
    frame.loc[rng.random(n) < 0.2, "b"] = np.nan
    return frame, Table.from_pandas(frame, missing="drop").declare(a=(0, 4), b=(0, 1))


def test_behind_noise_one_count_of_sensitivity_one_is_asked_and_charged():
    frame, table = gaps()
    asked = federation(table).protect(mechanism=hr.Gaussian(2.0))
    hr.stats.means(asked, ["a", "b"])
    entry = asked.ledger.entries[0]
    assert entry.query == "hedgerow.data.cases:cases"
    assert entry.numbers == 3
    assert str(l1(1.0, "record")) in str(entry.bound)
    assert entry.event.kind == asked.ledger.entries[1].event.kind != "nonprivate"
    found = cases_of(asked, ["a", "b"])
    assert found.each == ()
    assert found.exact
    assert abs(found.complete - len(frame.dropna())) < 20  # ten standard deviations
    assert found.complete != len(frame.dropna())


def test_hidden_rows_give_the_exact_total():
    frame, table = gaps()
    asked = federation(table, parties=3).protect(aggregation=hr.SecAgg())
    assert hr.stats.means(asked, ["a"])["a"] == pytest.approx(frame.a.mean(), abs=1e-6)
    assert cases_of(asked, ["a"]).counts == (frame.a.count(), frame.a.isna().sum())


@pytest.mark.parametrize(
    "protected",
    [
        lambda f: f.protect(clip=hr.l2(1.0)),
        lambda f: f.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0)),
        lambda f: f.within(hr.Budget(epsilon=1.0, delta=1e-6, unit="record")),
        lambda f: f.sample(size=1),
    ],
    ids=["clip", "clip and noise", "exact under a budget", "cohort"],
)
def test_where_a_count_would_be_spoilt_or_unlawful_none_is_asked(protected):
    asked = protected(federation(gaps(60)[1]))
    complete_cases(asked, ["a"])
    assert len(asked.ledger) == 0
    found = cases_of(asked, ["a"])
    assert found is None or not found.known
    assert found is None or "not asked" in found.sentence()


def test_counts_that_people_see_are_multiples_of_five_unless_they_are_simulated():
    found = LeftOut(("a",), ("a",), (1234.0, 66.0), (66.0,), exact=False)
    assert found.sentence() == "complete about 1\u202f235 of about 1\u202f300"
    shown = {LeftOut(("a",), ("a",), (float(n), 300.0 - n), (), exact=False).shown(n) for n in range(293, 298)}
    assert shown == {295}  # of nested models nobody tells 296 from 299 by less than a rounding


# ---- twins ----------------------------------------------------------------------------------------------------------
@elementwise
@minds_missing
def forgetful(columns, *, read):
    """Fills values, and leaves nobody out."""
    return {name: values for name, values in complete(columns, read=read).items() if name != PRESENT}


@minds_missing
@local(additive=True)
def counted_twice(broadcast, party, rng, *, read, each, bounds=None):
    """Counts a record once for each column that it lacks, under the bound of one that counts it once."""
    lost = np.stack([column.lacks(party[column.name]) for column in read], axis=-1)
    return {"first": np.concatenate([[(~lost.any(-1)).sum()], lost.sum(0)]).astype(float)}


def test_the_checks_catch_a_twin_that_fills_and_one_that_counts_twice():
    frame, table = gaps(200)
    asked = federation(table)
    read = tuple(column for column in asked.schema)
    declares = tuple(Schema(read).allowing(missing=False))
    filled = asked.prepare(forgetful, declares=declares, read=read)
    assert hr.stats.means(filled, ["a"])["a"] != pytest.approx(frame.a.mean(), rel=1e-3)
    assert hr.stats.means(asked, ["a"])["a"] == pytest.approx(frame.a.mean(), rel=1e-12)
    both = table.take(np.isnan(table["a"]) & np.isnan(table["b"]))
    for ask, lawful in ((cases, True), (counted_twice, False)):
        with hearing() as heard:
            federation(both, parties=1).sum(partial(ask, read=read, each=False), bound={"first": l1(1.0, "record")})
        moved = max(reached for _, reached in longest(heard[0], both))
        assert (moved <= 1) == lawful


def test_summaries_round_events_where_records_that_were_left_out_are_told():
    fit = hr.stats.logistic_regression(hr.simulate(load("heart_failure"), iid(parties=3), seed=0), "death_event ~ age")
    assert "events 96" in fit.summary()
    told = LeftOut(("age",), ("age",), (299.0, 4.0), (4.0,), exact=False)
    assert "events about 95" in replace(fit, cases=told).summary()
