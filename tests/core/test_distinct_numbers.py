"""Exact numbers that are copies of others count once, alike in the ledger and at stations."""

import os
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.disclosure import ExactNumbers
from hedgerow.core.federation import inside
from hedgerow.core.ledger import Entry
from hedgerow.core.question import local
from hedgerow.data import Column, Schema, Table, load

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
N = 60


def design(party):
    return np.stack([party["a"], party["b"], party["c"]], -1)


@local(additive=True)
def squares(broadcast, party, rng):
    x = design(party)
    return {"matrix": (x * party.w[:, None]).T @ x, "sum": party.w @ x}


@local(additive=True)
def moved(broadcast, party, rng):
    """Not symmetric: the columns on one side are others."""
    x = design(party)
    return {"matrix": (x * party.w[:, None]).T @ np.roll(x, 1, -1)}


@local(additive=True)
def apart(broadcast, party, rng):
    """Diagonal: symmetric, and nobody knows whether it always is."""
    return np.diag(party.w @ design(party))


@local(additive=True)
def by_broadcast(broadcast, party, rng):
    x = design(party)
    return (x * party.w[:, None]).T @ x @ broadcast


@local(additive=True)
def unlike(broadcast, party, rng):
    """Symmetric where there are no weights, as those of records that are made up for shapes alone."""
    x = design(party)
    return (x * party.w[:, None]).T @ x + np.arange(9.0).reshape(3, 3) * party.w.sum()


def federation():
    rng = np.random.default_rng(4)
    schema = Schema(tuple(Column(name, "number", low=-1, high=1) for name in "abc"))
    table = Table({name: rng.uniform(-1, 1, N) for name in "abc"}, schema)
    return hr.simulate({"p": table.take(range(30)), "q": table.take(range(30, N))})


def entries(federation):
    return inside(federation).run.ledger.entries


@pytest.mark.parametrize(
    ("asks", "sent", "counts"), [(squares, 12, 3 + 2 + 1 + 3), (moved, 9, 9), (apart, 9, 9), (unlike, 9, 9)]
)
def test_only_a_matrix_that_equals_its_transpose_for_all_records_counts_as_a_triangle(asks, sent, counts):
    parties = federation()
    parties.sum(asks)
    (entry,) = entries(parties)
    assert ExactNumbers.of(entry).plain == counts
    assert entry.numbers == sent


def test_what_a_broadcast_makes_symmetric_is_counted_for_that_broadcast_alone():
    parties = federation()
    parties.sum(by_broadcast, np.eye(3))
    parties.sum(by_broadcast, np.arange(9.0).reshape(3, 3))
    assert [ExactNumbers.of(entry).plain for entry in entries(parties)] == [6, 9]


@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
def test_the_numbers_of_a_regression_of_heart_failure_are_those_counted_by_hand():
    """Six coefficients a round: a score of 6, a triangle of 21 where 36 are sent, records, deviance, target and its square."""
    patients = load("heart_failure", data_dir=DATA)
    federation = hr.simulate({"a": patients.take(range(150)), "b": patients.take(range(150, 299))})
    formula = "death_event ~ age + ejection_fraction + serum_creatinine + serum_sodium + anaemia"
    hr.stats.logistic_regression(federation, formula)
    asked = entries(federation)
    assert {entry.numbers for entry in asked} == {6 + 36 + 4}
    assert [ExactNumbers.of(entry).plain for entry in asked] == [6 + 21 + 4] * len(asked)


def test_an_entry_is_read_back_as_it_was_written():
    parties = federation()
    parties.sum(squares)
    (entry,) = entries(parties)
    assert Entry.from_json(entry.to_json()) == entry
    assert entry.to_json()["distinct"] == 9
