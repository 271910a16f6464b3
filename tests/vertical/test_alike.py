"""Columns that together single out few people are refused, whatever their values."""

import numpy as np
import pytest

from hedgerow.errors import TooFewRecords
from hedgerow.vertical.alike import first_nearly_alike
from hedgerow.vertical.few import refuse_weights_of_few
from hedgerow.vertical.terms import refuse_few_of

N = 300
RNG = np.random.default_rng(4)
AGE = RNG.integers(18, 76, N).astype(float)
Z = RNG.normal(size=N)
SPARSE = np.where(np.arange(N) < 25, AGE, 0.0)


def moved(column, people, by=2.0):
    out = column.copy()
    out[100 : 100 + people] += by
    return out


@pytest.mark.parametrize("people", [1, 5, 9])
@pytest.mark.parametrize("column", [AGE, Z, SPARSE, (AGE > 40) * 1.0], ids=["age", "z", "sparse", "binary"])
@pytest.mark.parametrize(("a", "s"), [(0.0, 1.0), (3.0, -0.7), (-1.0, 250.0)])
def test_v11_a_column_and_its_copy_but_for_few_people_are_refused(column, people, a, s):
    columns = np.stack([Z**2, column, a + s * moved(column, people)], 1)
    assert first_nearly_alike(columns, 10) == (1, 2, people)
    assert first_nearly_alike(columns[:, ::-1], 10) == (0, 1, people)
    with pytest.raises(TooFewRecords):
        refuse_few_of(columns, 10)


def test_v11_a_column_that_few_people_make_is_refused_behind_tiny_numbers():
    assert first_nearly_alike(np.stack([AGE, moved(1e-9 * Z, 3)], 1), 10) == (1, 1, 3)
    assert first_nearly_alike(np.stack([AGE, moved(AGE + 1e-8 * Z, 3)], 1), 10) == (0, 1, 3)


@pytest.mark.parametrize("other", [AGE, 2 - 3 * AGE, moved(AGE, 10), moved(AGE, 40), AGE**2, np.log(AGE), Z, SPARSE, AGE > 40])
def test_whole_copies_and_columns_apart_for_enough_people_are_not(other):
    assert first_nearly_alike(np.stack([AGE, other, np.ones(N)], 1), 10) is None
    refuse_few_of(np.stack([AGE, other, np.ones(N)], 1), 10)


def test_v11_few_people_in_a_small_table_cannot_hide_behind_few_pairs():
    column = np.where(np.arange(40) < 10, 1.0 + np.arange(40), 0.0)
    other = 5 + 2 * column
    other[:9] += np.arange(1, 10) ** 2
    assert first_nearly_alike(np.stack([column, other], 1), 10) == (0, 1, 9)


def test_v11_weights_and_rows_of_the_hub_that_count_one_person_are_refused():
    tiny = 1e-9 * RNG.uniform(1, 2, (N, 1))
    tiny[7] = 1.0
    for rows, weights in ((tiny, True), (tiny, False), (1000 + tiny, False), (np.hstack([Z[:, None], -tiny]), False)):
        with pytest.raises(TooFewRecords, match="counts 1 of 300"):
            refuse_weights_of_few(rows, 10, weights=weights)


def test_weights_and_rows_of_the_hub_that_count_many_are_not():
    for column in (np.ones(N), AGE, (np.arange(N) < 10) * 1.0, np.exp(Z)):
        refuse_weights_of_few(column[:, None], 10, weights=True)
    for column in (np.ones(N), np.zeros(N), AGE, Z, Z[:12], 5 - (np.arange(N) < 10)):
        refuse_weights_of_few(column[:, None], 10, weights=False)
