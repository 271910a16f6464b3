import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hedgerow.core import l1, l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import blocks
from hedgerow.errors import BudgetInvalid, ContributionInvalid

ROWS = hnp.arrays(float, (3, 4), elements=st.floats(-1e6, 1e6))


def test_clip_leaves_short_rows_alone_and_shortens_long_ones():
    rows = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(l2(1.0).clip(rows), [[0.6, 0.8], [0.3, 0.4]])


@pytest.mark.parametrize("bound", [l1(2.0), l2(2.0), linf(2.0)], ids=str)
@given(rows=ROWS)
def test_after_the_clip_no_row_is_longer_and_short_rows_are_bit_identical(bound, rows):
    clipped, before = bound.clip(rows), bound.size(rows)[:, 0]
    assert (bound.size(clipped)[:, 0] <= bound.radius * (1 + 1e-12)).all()
    assert (clipped[before <= bound.radius] == rows[before <= bound.radius]).all()


@given(row=hnp.arrays(float, 5, elements=st.floats(-1, 1)), norm=st.sampled_from([1, 2]))
def test_distance_is_the_largest_length_inside_the_ball(row, norm):
    for bound in (l1(1.0), l2(1.0), linf(1.0)):
        inside = bound.clip(row[None])[0]
        assert np.linalg.norm(inside, ord=norm) <= bound.distance(norm, 5) + 1e-12


def test_distances_by_hand():
    assert l2(3.0).distance(2, 7) == 3.0
    assert l2(3.0).distance(1, 4) == 6.0
    assert linf(3.0).distance(1, 4) == 12.0
    assert linf(3.0).distance(2, 4) == 6.0
    assert l1(3.0).distance(2, 4) == 3.0


@pytest.mark.parametrize("radius", [0.0, -1.0, math.inf, math.nan])
def test_a_radius_is_finite_and_above_zero(radius):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        l2(radius)


def test_bounds_by_key_match_the_keys():
    layout = Layout.of({"a": np.zeros(2), "b": 0.0})
    assert [part for part, _ in blocks({"b": l2(1), "a": l2(2)}, layout)] == [slice(0, 2), slice(2, 3)]
    with pytest.raises(ContributionInvalid, match=r"\['a'\]"):
        blocks({"a": l2(1)}, layout)
