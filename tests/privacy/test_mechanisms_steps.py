"""Bounds in whole steps from the records to the release: what a record moves is its own contribution, to the last bit."""

import math

import numpy as np
import pytest
from scipy import stats

from attack import FALSE_ALARM
from hedgerow import Gaussian, Laplace, l2
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import whole_step
from hedgerow.core.events import Event
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.core.randomness import Streams
from hedgerow.crypto import SecAgg
from hedgerow.data.schema import Column, Schema
from hedgerow.engines import InProcess
from hedgerow.errors import RangeExceeded
from hedgerow.privacy.mechanisms import Skellam
from helpers import Hiding

PARTIES, SIZE, RADIUS, MULTIPLIER = 5, 400, 0.3, 1.1
STEP = whole_step(RADIUS)
BOUND = l2(RADIUS, unit="record", step=STEP)
HIDDEN = SecAgg(mode="simulated", records=100)


def contribution(x):
    """A record's vector, shortened to the radius and cut off to whole steps."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.trunc(x * (RADIUS / np.maximum(length, RADIUS)) / STEP) * STEP


def sum_in_steps(broadcast, party, rng):
    """Exact in float64: whole steps, fewer than 2^53."""
    return contribution(party["x"]).sum(0)


def sum_with_a_rest(broadcast, party, rng):
    """The same, and half a step."""
    return sum_in_steps(broadcast, party, rng) + STEP / 2


def zeros_of(broadcast, party, rng):
    return np.zeros(SIZE)


def sum_in_float32(broadcast, party, rng):
    return sum_in_steps(broadcast, party, rng).astype(np.float32)


def records(more=0):
    """Records of some parties, the last of which may have one more."""
    rng = np.random.default_rng(0)
    sizes = [7] * PARTIES
    x = rng.normal(size=(sum(sizes) + 1, SIZE))
    sizes[-1] += more
    return x[: sum(sizes)], sizes


def federation(more=0, seed=0):
    x, sizes = records(more)
    hosted = InProcess(threads=1).hosting(Parties([f"party {i}" for i in range(PARTIES)], {"x": x}, sizes))
    return Federation(hosted, Schema((Column("x", "number", shape=(SIZE,)),)), Streams(seed))


WAYS = {
    "server": (Gaussian(MULTIPLIER), {}, 1.0),
    "party": (Gaussian(MULTIPLIER, at="party"), {}, math.sqrt(PARTIES)),
    "shares": (Gaussian(MULTIPLIER, at="shares", least=PARTIES), {"aggregation": Hiding()}, 1.0),
    "more shares than needed": (Gaussian(MULTIPLIER, at="shares", least=4), {"aggregation": Hiding()}, math.sqrt(PARTIES / 4)),
    "hidden shares": (Gaussian(MULTIPLIER, at="shares", least=PARTIES), {"aggregation": HIDDEN}, 1.0),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_record_moves_the_release_by_its_own_contribution_to_the_last_bit(way):
    mechanism, others, times = WAYS[way]
    with_it, without = (federation(more).protect(mechanism=mechanism, **others) for more in (1, 0))
    here, there = (fed.sum(sum_in_steps, bound=BOUND) for fed in (with_it, without))
    own = contribution(records(1)[0][-1])
    np.testing.assert_array_equal(here - there, own)  # of the same seed both have the same noise
    steps = here / STEP
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert (np.rint(own / STEP).astype(object) ** 2).sum() <= (RADIUS / STEP) ** 2
    noise = there - contribution(records()[0]).sum(0)
    low, high = stats.chi2.interval(1 - FALSE_ALARM, SIZE)
    assert low < ((noise / (MULTIPLIER * RADIUS * times)) ** 2).sum() < high
    entry = with_it.ledger.entries[-1]
    assert entry.event == Event("gaussian", MULTIPLIER)
    assert entry.bound == "l2(0.3) per record in steps of 2^-26"


@pytest.mark.parametrize("make", [Gaussian, Laplace])
def test_without_a_step_a_record_moves_the_release_by_more_than_its_contribution(make):
    """Half a step in each coordinate, which the noise allows for."""
    releases = [
        federation(more).protect(mechanism=make(MULTIPLIER)).sum(sum_in_steps, bound=l2(RADIUS, unit="record"))
        for more in (1, 0)
    ]
    moved = releases[0] - releases[1] - contribution(records(1)[0][-1])
    assert np.abs(moved).max() > STEP


@pytest.mark.parametrize(
    ("wrong", "right", "said"), [(sum_with_a_rest, sum_in_steps, "whole steps"), (sum_in_float32, zeros_of, "float64")]
)
def test_a_sum_that_is_not_in_whole_steps_is_rounded_or_counts_as_zeros(wrong, right, said, caplog):
    """Of numbers that cannot hold steps nothing is taken, whoever has them; what records decide takes no party away."""
    released = [federation().protect(mechanism=Gaussian(MULTIPLIER)).sum(ask, bound=BOUND) for ask in (wrong, right)]
    np.testing.assert_allclose(*released, atol=PARTIES * STEP)
    assert said in caplog.text


def test_what_shares_of_many_steps_reach_fits_64_bits_and_not_32():
    """log2(records + 8 z) + 25 bits a party, a sign, and the parties."""
    mechanism = Gaussian(MULTIPLIER, at="shares", least=PARTIES)
    reach = mechanism.reach(BOUND, Layout((("", (SIZE,)),)), 100)
    assert reach == pytest.approx((100 + 8 * MULTIPLIER) * RADIUS / STEP)
    assert 2**24 <= RADIUS / STEP < 2**25
    fed = federation().protect(mechanism=mechanism, aggregation=SecAgg(mode="simulated", records=100, bits=32))
    with pytest.raises(RangeExceeded, match="32 bits"):
        fed.sum(sum_in_steps, bound=BOUND)
    assert len(fed.ledger) == 0


def test_shares_of_skellam_fall_back_to_a_coarser_grid():
    fed = federation().protect(mechanism=Skellam(MULTIPLIER, at="shares", least=PARTIES), aggregation=Hiding())
    noise = fed.sum(sum_in_steps, bound=BOUND) - contribution(records()[0]).sum(0)
    low, high = stats.chi2.interval(1 - FALSE_ALARM, SIZE)
    assert low < ((noise / (MULTIPLIER * RADIUS)) ** 2).sum() < 1.01 * high
