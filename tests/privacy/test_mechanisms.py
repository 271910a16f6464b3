"""Mechanisms on the grid: the bound holds there, the noise is the declared one, and broken twins are caught."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from hedgerow import Gaussian, Laplace, l1, l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import Bound
from hedgerow.core.randomness import Streams
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.grid import Block, plan, to_steps
from hedgerow.privacy.mechanisms import Noise
from hedgerow.privacy.noise import grid_step

ENTROPY = Streams(7).entropy(1, "server", "noise")
BOUNDS = [l1(1.0), l2(1.0), linf(1.0)]


def vector(size):
    return Layout((("", (size,)),))


def rows_longer_than(rows, blocks):
    """The property that makes the noise enough: on the grid, no row is longer than its party-level bound."""
    whole = to_steps(rows, blocks)
    return [bool((b.bound.size(whole[:, b.part].astype(float)) > b.bound.radius / b.step * (1 + 1e-12)).any()) for b in blocks]


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@settings(max_examples=60, deadline=None)
@given(rows=hnp.arrays(float, (2, 6), elements=st.floats(-3, 3)), multiplier=st.sampled_from([0.3, 1.0, 50.0]))
def test_on_the_grid_no_row_is_longer_than_the_bound(bound, rows, multiplier):
    blocks = plan(bound, vector(6), multiplier, 2, grid_step)
    assert rows_longer_than(bound.clip(rows), blocks) == [False]


def test_rounding_a_long_vector_shortens_it_by_a_second_order_amount():
    row = l2(1.0).clip(np.random.default_rng(0).normal(size=(1, 200_000)))
    [block] = plan(l2(1.0), vector(200_000), 1.0, 2, grid_step)
    length = np.linalg.norm(to_steps(row, [block]) * block.step)
    assert 0.99 < length <= 1.0


@settings(max_examples=60, deadline=None)
@given(
    rest=hnp.arrays(float, 5, elements=st.floats(-100, 100)),
    record=hnp.arrays(float, 5, elements=st.floats(-1, 1)),
    norm=st.sampled_from([1, 2]),
)
def test_a_record_moves_the_rounded_sum_by_at_most_the_noise_scale_over_the_multiplier(rest, record, norm):
    bound = Bound(norm, 1.0, "record")
    record = bound.clip(record[None])[0]
    for law in (1, 2):
        [block] = plan(bound, vector(5), 2.0, law, grid_step)
        moved = to_steps((rest + record)[None], [block]) - to_steps(rest[None], [block])
        assert np.linalg.norm(moved.astype(float), ord=law) <= block.scale / 2.0 * (1 + 1e-12)


@pytest.mark.parametrize(("law", "norm"), [("gaussian", 2), ("laplace", 1)])
@pytest.mark.parametrize("bound", [l1(3.0), l2(3.0), linf(3.0)], ids=str)
def test_noise_is_the_multiplier_times_the_distance(law, norm, bound):
    [block] = plan(bound, vector(4), 1.5, norm, grid_step)
    assert block.scale * block.step == pytest.approx(1.5 * bound.distance(norm, 4))
    assert Noise(law, 1.5).event(bound).noise_multiplier == 1.5
    assert math.log2(block.step).is_integer()


@pytest.mark.parametrize("norm", [1, 2])
def test_several_bounds_cost_as_much_as_one(norm):
    layout = Layout((("a", (3,)), ("b", ())))
    blocks = plan({"a": l2(2.0), "b": linf(5.0)}, layout, 1.3, norm, grid_step)
    shares = [block.bound.distance(norm, block.part.stop - block.part.start) / (block.scale * block.step) for block in blocks]
    cost = sum(shares) if norm == 1 else math.sqrt(sum(share**2 for share in shares))
    assert cost == pytest.approx(1 / 1.3)


def released(mechanism, bound, size, value=0.0, seed=7):
    row = mechanism.at_party(np.full((1, size), value), bound, vector(size), lambda i: Streams(seed).entropy(1, "p", "noise"))[
        0
    ]
    return mechanism.at_server(row, bound, vector(size), Streams(seed).entropy(1, "server", "noise"))


@pytest.mark.parametrize("at", ["server", "party"])
def test_gaussian_noise_has_the_declared_law(at):
    """Kolmogorov-Smirnov at one false alarm in a million; the grid is 4096 times finer than the noise."""
    found = released(Gaussian(2.0, at=at), l2(1.0), 20_000)
    assert stats.kstest(found / 2.0, "norm").pvalue > 1e-6


def test_laplace_noise_has_the_declared_law():
    found = released(Laplace(2.0), linf(1.0), 4_000)
    assert stats.kstest(found / (2.0 * 4_000), "laplace").pvalue > 1e-6


@pytest.mark.parametrize("value", [0.0, 1e-3, 1 / 3])
def test_every_release_is_a_multiple_of_the_step_whatever_the_data(value):
    """The low-bit probe: floating-point noise would tell the data apart here."""
    mechanism = Gaussian(1.0)
    [block] = plan(l2(1.0), vector(1000), 1.0, 2, grid_step)
    steps = released(mechanism, l2(1.0), 1000, value / math.sqrt(1000)) / block.step
    assert (steps == np.rint(steps)).all()
    assert abs(float((steps % 2).mean()) - 0.5) < 5 * 0.5 / math.sqrt(1000)


def test_neighbours_at_a_party_are_twice_the_radius_apart():
    assert Gaussian(2.0, at="party").event(l2(1.0)).noise_multiplier == 1.0
    assert Gaussian(2.0, at="party").event(l2(1.0, unit="record")).noise_multiplier == 2.0
    assert Gaussian(2.0).event(l2(1.0)).noise_multiplier == 2.0


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_a_multiplier_is_finite_and_above_zero(wrong):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Gaussian(wrong)


def test_noise_is_added_where_somebody_can_add_it():
    with pytest.raises(BudgetInvalid, match="nowhere"):
        Gaussian(1.0, at="nowhere")


def test_a_sum_of_records_far_beyond_its_bound_stays_at_the_end_rather_than_wraps():
    """To refuse it, or to wrap it, would let the last record move it by all the others."""
    blocks = plan(l2(1e-9, unit="record"), vector(2), 1.0, 2, grid_step)
    most = 2**52 * blocks[0].step
    rows = np.array([[1e6, 0.0], [-1e300, 1e-9], [most, 0.0], [most - blocks[0].step, 0.0]])
    np.testing.assert_array_equal(to_steps(rows, blocks)[:, 0] - 2**52, [0, -(2**53), 0, -1])


# ---- an attack, and twins that are wrong on purpose -------------------------------------------------------------------
def epsilon_lower_bound(draw, trials=4000, threshold=0.5, delta=1e-5, confidence=1 - 1e-6):
    """Guess from one release whether a unit was there; Clopper-Pearson gives an epsilon that the mechanism cannot beat."""
    hits = [int(sum(draw(present, seed) > threshold for seed in range(trials))) for present in (1.0, 0.0)]
    low = stats.beta.ppf((1 - confidence) / 2, hits[0], trials - hits[0] + 1)
    high = stats.beta.ppf(1 - (1 - confidence) / 2, hits[1] + 1, trials - hits[1])
    return math.log(max(low - delta, 1e-12) / high)


def draw_from(mechanism):
    def draw(present, seed):
        return float(released(mechanism, l2(1.0), 1, present, seed)[0])

    return draw


@pytest.mark.slow
def test_an_attacker_stays_below_epsilon_and_catches_a_twin_with_too_little_noise():
    from hedgerow.core.events import Sampling
    from hedgerow.privacy import epsilon

    honest = Gaussian(2.0)
    claimed = epsilon([(Sampling(), (honest.event(l2(1.0)),))], delta=1e-5, adjacency="add-remove")
    assert epsilon_lower_bound(draw_from(honest)) < claimed
    twin = Gaussian(0.2)  # forgets a factor of ten
    assert epsilon_lower_bound(draw_from(twin)) > claimed


@dataclass(frozen=True)
class GrowingClip(Bound):
    """A clip that is upside down: it lengthens short rows and leaves long ones."""

    def clip(self, rows):
        size = self.size(rows)
        return np.where(size < self.radius, rows * (self.radius / np.maximum(size, 1e-300)), rows)


def test_a_clip_that_is_upside_down_is_caught():
    rows = np.array([[0.1, 0.2], [30.0, 40.0]])
    twin = GrowingClip(2, 1.0)
    assert (twin.size(twin.clip(rows)) > 1.0 + 1e-9).any()
    assert (l2(1.0).size(l2(1.0).clip(rows)) <= 1.0 + 1e-9).all()


@dataclass(frozen=True)
class CarelessBlock(Block):
    """Rounding that forgets to enforce the bound again."""

    def round(self, rows):
        return np.rint(rows / self.step)


def test_rounding_that_forgets_the_bound_is_caught():
    rows = l2(1.0).clip(np.random.default_rng(1).normal(size=(4, 5000)))
    [block] = plan(l2(1.0), vector(5000), 1.0, 2, grid_step)
    twin = CarelessBlock(**vars(replace(block)))
    assert rows_longer_than(rows, [block]) == [False]
    assert rows_longer_than(rows, [twin]) == [True]


def test_noise_that_forgets_the_number_of_bounds_is_caught():
    layout = Layout((("a", (3,)), ("b", ())))
    bounds = {"a": l2(2.0), "b": linf(5.0)}
    honest = plan(bounds, layout, 1.3, 2, grid_step)
    twin = [replace(block, scale=block.scale / math.sqrt(2)) for block in honest]
    for blocks, right in ((honest, True), (twin, False)):
        cost = math.sqrt(sum((b.bound.distance(2, b.part.stop - b.part.start) / (b.scale * b.step)) ** 2 for b in blocks))
        assert (cost <= 1 / 1.3 + 1e-12) == right


def test_a_row_that_overflows_is_clipped_not_wrapped():
    """Found in review: 1e305 over a step is infinite, and infinity as an integer is the smallest one."""
    row = Gaussian(1.0).at_party(np.array([[1e305, 1.0]]), l2(1.0), vector(2), lambda i: ENTROPY)
    [block] = plan(l2(1.0), vector(2), 1.0, 2, grid_step)
    assert np.linalg.norm(row * block.step) <= 1.0
