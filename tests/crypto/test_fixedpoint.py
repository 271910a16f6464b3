"""Fixed point: totals fit whatever parties contribute within their bounds, and what does not fit is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2, linf
from hedgerow.core.release import Release
from hedgerow.crypto.fixedpoint import RingEncoding, encoding_for, most
from hedgerow.errors import RangeExceeded, SettingsInvalid, UnboundedSum
from hedgerow.privacy import Gaussian, Geometric

ONE = Layout((("", (1,)),))


@given(
    bits=st.sampled_from([16, 32, 64]),
    parties=st.integers(1, 400),
    radius=st.floats(1e-6, 1e12),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_everybody_at_the_bound_fits_and_the_step_is_at_most_four_times_the_least(bits, parties, radius, sign):
    """Also where the range over the step is a power of two, at which a sum once wrapped around."""
    encoding = encoding_for(Release(bounds=linf(radius)), ONE, parties=parties, bits=bits)
    row = encoding.encode(np.array([sign * radius]))
    total = (row.astype(object) * parties % 2**bits).astype(row.dtype)
    step, exact = encoding.steps[0][1], sign * parties * radius
    assert abs(encoding.decode(total)[0] - exact) <= parties * step / 2 * (1 + 1e-9) + 1e-15 * abs(exact)
    assert step <= 4 * radius / (2 ** (bits - 1) / parties)


@pytest.mark.parametrize("parties", [1, 2, 3, 7, 8, 64, 1000])
@pytest.mark.parametrize("bits", [16, 32, 64])
def test_so_many_of_the_most_stay_below_half_the_ring(bits, parties):
    assert most(bits, parties) * parties <= 2 ** (bits - 1) - 1 < 4 * most(bits, parties) * parties


def test_a_bound_per_record_is_the_range_of_so_many_records():
    narrow = encoding_for(Release(bounds=linf(1.0, "record")), ONE, parties=4, records=1)
    wide = encoding_for(Release(bounds=linf(1.0, "record")), ONE, parties=4, records=1024)
    assert wide.steps[0][1] == 1024 * narrow.steps[0][1]
    with pytest.raises(RangeExceeded):
        narrow.encode(np.array([2.0]))
    assert wide.decode(wide.encode(np.array([2.0])))[0] == 2.0


def test_each_key_has_the_step_of_its_bound():
    layout = Layout((("score", (3,)), ("n", ())))
    encoding = encoding_for(Release(bounds={"score": linf(1e6), "n": l2(1.0)}), layout, parties=10)
    assert [n for n, _ in encoding.steps] == [3, 1]
    assert encoding.steps[0][1] > 1e5 * encoding.steps[1][1]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_what_has_no_place_is_refused(value):
    with pytest.raises(RangeExceeded, match="HR-243"):
        encoding_for(Release(bounds=linf(1.0)), ONE, parties=4).encode(np.array([value]))


@pytest.mark.parametrize("bits", [32, 64])
def test_behind_a_mechanism_one_record_more_moves_a_row_by_no_more_than_itself_wherever_the_range_ends(bits):
    whole = RingEncoding(bits, 100, ((1, 1.0),), whole=True)
    ends = np.array([-(2**63), -whole.most - 7, -whole.most, -5, 0, whole.most - 3, whole.most + 4, 2**63 - 8])
    for number in ends.tolist():
        before, after = (int(whole.decode(whole.encode(np.array([n])))[0]) for n in (number, number + 7))
        assert 0 <= after - before <= 7
        assert abs(before) <= whole.most
        assert before == number or abs(number) > whole.most


def test_a_ring_without_room_for_one_step_of_each_party_is_refused():
    """The total of 40 000 ones once came out below zero in 16 bits."""
    counts = Release(clip=l1(1.0), bounds=l1(1.0), mechanism=Geometric(1.0))
    with pytest.raises(RangeExceeded, match="No party was asked"):
        encoding_for(counts, ONE, parties=40_000, bits=16)
    with pytest.raises(RangeExceeded):
        RingEncoding(16, 2**15, ((1, 1.0),), whole=True)
    everybody = RingEncoding(16, 2**15 - 1, ((1, 1.0),), whole=True)
    ones = np.full(2**15 - 1, everybody.encode(np.array([1]))[0])
    assert everybody.decode(ones.sum(dtype=np.uint16)[None]) == 2**15 - 1


def test_too_few_bits_are_refused_beforehand():
    with pytest.raises(RangeExceeded, match=r"leave 16 steps[\s\S]*No party was asked"):
        encoding_for(Release(bounds=linf(1.0)), ONE, parties=2000, bits=16)
    noise = Release(clip=l2(1.0), bounds=l2(1.0), mechanism=Gaussian(1.0))
    with pytest.raises(RangeExceeded, match="No party was asked"):
        encoding_for(noise, ONE, parties=10, bits=16)
    assert encoding_for(noise, ONE, parties=10, bits=32).whole


def test_without_a_bound_or_a_range_there_is_no_step():
    with pytest.raises(UnboundedSum, match="HR-210"):
        encoding_for(Release(), ONE, parties=4)
    assert encoding_for(Release(), ONE, parties=4, largest=8.0).steps[0][1] == 8.0 / most(64, 4)
    with pytest.raises(SettingsInvalid):
        RingEncoding(24, 4, ((1, 1.0),))


def test_another_encoding_has_another_digest():
    found = {encoding_for(Release(bounds=linf(r)), ONE, parties=n).digest for r in (1.0, 4.0) for n in (4, 100)}
    assert len(found) == 4
