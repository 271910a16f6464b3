import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import ColumnsDiffer, EmptyParty, NotFinite, PartitionInvalid
from helpers import run_of

NORTH = pd.DataFrame({"age": [30.0, 40.0, 50.0], "stage": ["i", "ii", "i"]})
SOUTH = pd.DataFrame({"age": [60.0, 70.0], "stage": ["iii", "i"]})


def test_one_frame_for_each_party():
    fed = hr.simulate({"north": NORTH, "south": SOUTH})
    assert fed.members == ("north", "south")
    assert hr.stats.moments(fed, ["age"]).mean[0] == pytest.approx(50.0)
    assert fed.schema["stage"].levels == ("i", "ii", "iii")


def test_tables_are_joined_by_their_schema():
    tables = [hr.data.Table.from_pandas(frame[["age"]]) for frame in (NORTH, SOUTH)]
    fed = hr.simulate(dict(zip("ab", tables, strict=True)))
    np.testing.assert_array_equal(hr.engines.records(fed)[1]["age"], SOUTH["age"])


def test_parties_that_hold_different_columns_are_refused():
    with pytest.raises(ColumnsDiffer, match=r"HR-407[\s\S]*south holds age[\s\S]*No party was asked"):
        hr.simulate({"north": NORTH, "south": SOUTH[["age"]]})


def test_tables_that_declare_different_ranges_are_refused():
    table = hr.data.Table.from_pandas(NORTH[["age"]])
    with pytest.raises(ColumnsDiffer, match="HR-407"):
        hr.simulate({"north": table, "south": table.declare(age=(0, 100))})


@pytest.mark.parametrize("wrong", [{}, {"north": NORTH, "south": SOUTH[:0]}], ids=["nobody", "no records"])
def test_empty_parties_are_refused(wrong):
    with pytest.raises(EmptyParty, match="HR-406"):
        hr.simulate(wrong)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value):
    with pytest.raises(NotFinite, match=r"HR-404[\s\S]*age"):
        hr.simulate({"north": NORTH.assign(age=[1.0, value, 2.0]), "south": SOUTH})


def test_one_table_needs_a_partition():
    with pytest.raises(PartitionInvalid, match="HR-408"):
        hr.simulate(NORTH)


@pytest.mark.parametrize("wrong", [1.5, True, -1, "systems"])
def test_a_seed_is_a_whole_number_or_the_system(wrong):
    with pytest.raises(hr.errors.BudgetInvalid, match="seed"):
        hr.simulate({"north": NORTH}, seed=wrong)


@pytest.mark.parametrize("slots", [{"clip": 3}, {"mechanism": "gaussian"}], ids=str)
def test_what_is_no_protection_is_refused(slots):
    with pytest.raises(hr.errors.UnlawfulChannel, match="HR-211"):
        hr.simulate({"north": NORTH}).protect(**slots)


@pytest.mark.parametrize("seed", [None, "system"])
def test_without_a_seed_randomness_is_the_systems(seed):
    fed = hr.simulate({"north": NORTH, "south": SOUTH}, seed=seed).protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0))
    assert run_of(fed).streams.source == "system"
    clip = hr.stats.moments(fed, ["age"]).mean[0]
    again = hr.simulate({"north": NORTH, "south": SOUTH}, seed=seed).protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0))
    assert hr.stats.moments(again, ["age"]).mean[0] != clip
    assert again.ledger.entries[0].randomness == "system"
