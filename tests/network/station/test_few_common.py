"""Rows that single out few common people are refused at home, whichever function made them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import TooFewRecords
from hedgerow.network.station.few_common import refuse_few_common

N = 60
AGES = np.linspace(20, 80, N)


def group(n):
    return np.where(np.arange(N) < n, 1.0, 0.0)


@pytest.mark.parametrize("n", [1, 9, N - 9, N - 1])
def test_v11_a_group_of_fewer_than_ten_and_its_complement_are_refused(n):
    with pytest.raises(TooFewRecords, match=r"singles out \d of 60 common people"):
        refuse_few_common(np.stack([AGES, group(n)], 1), 10)


@pytest.mark.parametrize("n", [0, 10, 30, N - 10, N])
def test_v11_larger_groups_none_and_all_are_not(n):
    refuse_few_common(np.stack([AGES, group(n)], 1), 10)


def test_v11_a_product_with_a_small_group_is_refused_and_so_is_a_shifted_one():
    for column in (AGES * group(3), 5.0 + AGES * group(3), -2.0 * group(57)):
        with pytest.raises(TooFewRecords):
            refuse_few_common(column, 10)


def test_every_array_that_a_function_returns_is_looked_at():
    for made in ({"a": AGES, "b": group(3)}, (AGES, group(3)), [AGES[:, None], np.stack([AGES, group(3)], 1)]):
        with pytest.raises(TooFewRecords):
            refuse_few_common(made, 10)
    refuse_few_common(None, 10)
    refuse_few_common(np.zeros((0, 3)), 10)


@given(st.lists(st.integers(0, 2), min_size=40, max_size=60), st.integers(2, 12))
def test_it_refuses_exactly_the_columns_that_single_out_few(values, least):
    """As counted by hand: people with another value than zero, or than most have; where most have no value, none is refused."""
    column, counts = np.array(values, float), np.bincount(values, minlength=3)
    few = 0 < counts[1:].sum() < least
    if 2 * counts.max() > len(values):
        few |= 0 < len(values) - counts.max() < least
    else:
        few |= 0 < np.count_nonzero(column != np.sort(column)[(len(column) - 1) // 2]) < least
    if few:
        with pytest.raises(TooFewRecords):
            refuse_few_common(column, least)
    else:
        refuse_few_common(column, least)
