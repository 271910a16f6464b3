"""Cut points of whole numbers: every bin holds one, and bins are those of equal widths where all hold one."""

import math

import numpy as np
import pytest

from hedgerow.data.cuts import cut_points, cuts_of_whole_numbers


@pytest.mark.parametrize("widths", ["equal", "log"])
@pytest.mark.parametrize(
    ("low", "high", "bins"), [(0, 5000, 64), (0, 10.7, 16), (-20.5, 80.5, 100), (5, 5, 4), (0, 16, 16), (-7, 2**40, 512)]
)
def test_every_bin_of_whole_numbers_holds_one(low, high, bins, widths):
    cuts = cuts_of_whole_numbers(low, high, bins, widths)
    reached = [math.ceil(low) - 1, *map(math.floor, cuts), math.floor(high)]
    assert np.diff(reached).min() >= 1
    assert len(cuts) < bins


def test_bins_that_all_hold_a_whole_number_are_those_of_other_numbers():
    assert cuts_of_whole_numbers(0, 99_999, 16, "log") == cut_points(0, 99_999, 16, "log")
    assert cuts_of_whole_numbers(17, 90, 64) == cut_points(17, 90, 64)
