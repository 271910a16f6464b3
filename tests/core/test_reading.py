"""The columns that a question reads are found on made-up records, before any party is asked."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.federation import inside
from hedgerow.core.question import Question, elementwise, minds_missing
from hedgerow.core.reading import columns_read
from hedgerow.errors import NotFinite
from hedgerow.testing.neighbours import hearing

FRAME = {
    "age": [40.0, np.nan, 60.0, 50.0],
    "sex": ["f", "m", None, "f"],
    "bmi": [20.0, 21.0, 22.0, 23.0],
    "y": [0.0, 1.0, 1.0, 0.0],
}


@pytest.fixture
def federation():
    pandas = pytest.importorskip("pandas")
    table = hr.data.Table.from_pandas(pandas.DataFrame(FRAME), target="y", missing="drop")
    return hr.simulate(table, hr.data.iid(parties=2), seed=0)


def ages(broadcast, party, rng):
    return (party.w * party["age"]).sum()


def some_ages(broadcast, party, rng):
    return (party.w * np.where(party["bmi"] > 0, party["bmi"], party["age"])).sum()


def everything(broadcast, party, rng):
    return sum((party.w * np.nan_to_num(values)).sum() for values in party.columns.values())


def broken(broadcast, party, rng):
    raise ValueError("whatever the records are")


@elementwise
def doubled(columns):
    return {"twice": 2 * columns["age"]}


@elementwise
@minds_missing
def known(columns):
    return {"age": np.nan_to_num(columns["age"])}


def twice(broadcast, party, rng):
    return (party.w * party["twice"]).sum()


def read_by(federation, local):
    values = inside(federation)
    return columns_read(Question("sum", local, view=values.view), values.run.layouts, values.run.streams)


def test_what_a_function_reads_is_told_in_the_order_of_the_schema(federation):
    assert read_by(federation, ages) == ("age",)
    assert read_by(federation, some_ages) == ("age", "bmi")
    assert read_by(federation, everything) == ("age", "sex", "bmi", "y")


def test_what_a_preparation_reads_counts_and_what_it_made_does_not(federation):
    assert read_by(federation.prepare(doubled), twice) == ("age",)
    assert read_by(federation.prepare(known), ages) == ("age",)


def test_of_a_question_that_fails_for_made_up_records_all_columns_are_told(federation):
    assert read_by(federation, broken) == ("age", "sex", "bmi", "y")


@pytest.mark.parametrize(
    ("ask", "columns"),
    [
        (lambda f: hr.stats.moments(f, ["age", "bmi"]), {("age", "bmi")}),
        (lambda f: hr.stats.counts(f, ["sex"]), {("sex",)}),
        (lambda f: hr.stats.linear_regression(f, "bmi ~ I(age > 45)", tol=1e3), {("age", "bmi")}),
    ],
)
def test_questions_of_programs_tell_the_columns_of_their_models(federation, ask, columns):
    with hearing() as heard:
        ask(federation)
    found = set()
    for one in heard:
        values = inside(one.federation)
        question = Question("sum", one.local, one.broadcast, view=values.view)
        found.add(columns_read(question, values.run.layouts, values.run.streams))
    assert found == columns


def test_a_question_that_does_not_know_of_missing_values_is_refused_before_anybody_is_asked(federation):
    with pytest.raises(NotFinite, match="reads age, of which values may be missing"):
        federation.sum(ages)
    with pytest.raises(NotFinite, match="complete_cases"):
        federation.prepare(doubled).sum(twice)
    assert len(federation.ledger) == 0
    assert federation.prepare(known).sum(ages) == 150.0
    assert hr.data.complete_cases(federation, ["age"]).sum(ages) == 150.0
    assert hr.data.complete_cases(federation, ["age"]).prepare(doubled).sum(twice) == 300.0


def test_each_and_gather_are_refused_alike(federation):
    with pytest.raises(NotFinite):
        federation.each(ages)
    with pytest.raises(NotFinite):
        federation.gather(ages)
