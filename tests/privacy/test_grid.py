"""Rounding to the grid never leaves the bound, by the compiled passes and by numpy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2, linf, whole_step
from hedgerow.errors import ContributionInvalid
from hedgerow.privacy import Gaussian, Laplace, Skellam, grid
from hedgerow.privacy.mechanisms import DiscreteGaussian, Geometric
from hedgerow.privacy.noise import LARGEST_SCALE, grid_step

PATHS = [pytest.param(True, marks=pytest.mark.skipif(grid._steps is None, reason="built without a compiler")), False]


def vector(size):
    return Layout((("", (size,)),))


def rounded(rows, bound, multiplier=1.0):
    layout = vector(rows.shape[1])
    planned = grid.plan(bound, layout, multiplier, 1 if bound.norm == 1 else 2, grid_step)
    return grid.to_steps(rows, planned), planned[0]


@pytest.mark.parametrize("compiled", PATHS)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 9000),
    scale=st.sampled_from([1e-20, 1e-6, 0.01, 0.3, 1.0, 1.0001, 3.0, 1e6, 1e25]),
    radius=st.sampled_from([1e-20, 1e-3, 1.0, 7.5, 1e9]),
    multiplier=st.sampled_from([0.05, 1.0, 30.0]),
    law=st.sampled_from(["normal", "spike", "equal"]),
    kind=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=120, deadline=None)
def test_no_row_leaves_its_ball(compiled, seed, d, scale, radius, multiplier, law, kind):
    rng = np.random.default_rng(seed)
    row = {"normal": rng.normal(size=d), "spike": np.eye(1, d)[0], "equal": np.ones(d)}[law]
    with np.errstate(over="ignore"):
        row = (row / np.linalg.norm(row) * radius * scale).astype(kind)[None]
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(grid, "_steps", None)
        steps, block = rounded(row, l2(radius), multiplier)
    length = np.sqrt((steps.astype(float) ** 2).sum()) * block.step
    assert length <= radius * (1 + 1e-12)
    assert steps.dtype.kind == "i"
    if scale <= 0.3 and length > 0:  # a row inside its ball is only rounded
        assert np.abs(steps * block.step - row).max() <= block.step * (0.5 + 1e-6 * abs(row).max() / block.step)


@pytest.mark.skipif(grid._steps is None, reason="built without a compiler")
@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_both_ways_round_alike(scale, monkeypatch):
    row = np.random.default_rng(0).normal(size=(1, 20_000)).astype(np.float32)
    row *= scale / np.linalg.norm(row)
    compiled, _ = rounded(row, l2(1.0))
    monkeypatch.setattr(grid, "_steps", None)
    plain, _ = rounded(row, l2(1.0))
    assert np.abs(compiled.astype(int) - plain).max() <= 1
    assert (compiled != plain).mean() < (0.02 if scale > 1 else 1e-3)  # lengths differ by a part in a thousand at most


@pytest.mark.parametrize("compiled", PATHS)
@pytest.mark.parametrize("bound", [l1(1.0), l2(1.0), linf(1.0)], ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_leaves_as_zeros(compiled, bound, bad, monkeypatch):
    if not compiled:
        monkeypatch.setattr(grid, "_steps", None)
    rows = np.full((1, 100), 0.05, np.float32)
    rows[0, 17] = bad
    steps, _ = rounded(rows, bound)
    assert not steps.any()


def test_the_compiled_passes_refuse_other_arrays():
    if grid._steps is None:
        pytest.skip("built without a compiler")
    with pytest.raises(ValueError, match="kind 'f'"):
        grid._steps.squares(np.zeros(3))
    with pytest.raises(ValueError, match="3 numbers for 2 places"):
        grid._steps.steps(np.zeros(3, np.float32), 1.0, np.zeros(2, np.int32))
    frozen = np.zeros(3, np.int32)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        grid._steps.steps(np.zeros(3, np.float32), 1.0, frozen)


@pytest.mark.parametrize("d", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("make", [Gaussian, Laplace])
def test_rounding_adds_a_thousandth_to_the_noise_of_a_record(make, d):
    for multiplier in (0.01, 1.5, 3000.0):
        (block,) = make(multiplier)._plan(l1(1.0, unit="record"), vector(d))
        assert 0 < block.scale * block.step / multiplier - 1 <= 2**-10
        assert block.scale <= LARGEST_SCALE


def searched(distance, share, rounding, size, largest):
    """Halve the grid until rounding adds a part in 1024, as long as noise may take so many steps."""
    while rounding > distance / size / 1024 and share * (2 * distance / size + rounding) <= largest:
        size /= 2
    return size


@given(
    radius=st.floats(1e-9, 1e9),
    multiplier=st.floats(1e-3, 1e4),
    d=st.integers(1, 10**8),
    law=st.sampled_from([Gaussian, Laplace, Skellam]),
    largest=st.integers(12, 45),
)
def test_the_grid_of_a_record_is_found_by_search(radius, multiplier, d, law, largest):
    norm = 1 if law is Laplace else 2
    bound = (l1 if norm == 1 else l2)(radius, unit="record")
    (block,) = grid.plan(bound, vector(d), multiplier, norm, grid_step, largest=2.0**largest)
    rounding, usual = d if norm == 1 else math.sqrt(d), grid_step(multiplier * radius)
    assert block.step == searched(radius, multiplier, rounding, usual, 2.0**largest)
    assert block.scale == multiplier * (radius / block.step + rounding)


# ---- bounds with a step ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [Gaussian, Laplace])
def test_the_step_of_a_bound_is_the_grid_and_noise_is_scaled_to_the_radius_alone(make):
    radius = 0.3
    bound = l1(radius, unit="record", step=whole_step(radius))
    for multiplier in (0.7, 1.1, 1000.0):
        (block,) = make(multiplier)._plan(bound, vector(199_210))
        assert block.step == bound.step == 2.0**-26
        assert block.whole
        assert block.scale == multiplier * radius / block.step
        assert make(multiplier).event(bound) == make(multiplier).event(l1(radius, unit="record"))
        deviation = make(multiplier).noise_deviation(bound, vector(199_210), 10)[""]
        assert deviation == pytest.approx(multiplier * radius * (1 if make is Gaussian else math.sqrt(2)), rel=1e-12)


def test_several_bounds_with_steps_share_an_event():
    bounds = {"a": l2(1.0, "record", 2.0**-24), "b": l2(3.0, "record", 2.0**-20)}
    blocks = Gaussian(1.5)._plan(bounds, Layout((("a", (3,)), ("b", (2,)))))
    assert [block.step for block in blocks] == [2.0**-24, 2.0**-20]
    assert [block.scale for block in blocks] == [1.5 * math.sqrt(2) * 2**24, pytest.approx(1.5 * math.sqrt(2) * 3 * 2**20)]


@pytest.mark.parametrize("make", [Gaussian, Laplace, Skellam])
def test_a_step_coarser_than_the_usual_grid_is_divided(make):
    """Noise of few steps would cost more than its event says; what is whole in steps of 1 is whole in finer ones."""
    bound = l2(1.0, unit="record", step=1.0)
    (block,) = make(0.25)._plan(bound, vector(1))
    assert block.whole
    assert block.scale == 4096 == 0.25 / block.step
    np.testing.assert_array_equal(grid.to_steps(np.array([[3.0]]), [block]), [[3 / block.step]])


def test_where_noise_cannot_take_the_steps_of_a_bound_sums_are_rounded():
    bound = l2(1.0, unit="record", step=2.0**-24)
    (block,) = Skellam(1.5)._plan(bound, vector(100))
    (without,) = Skellam(1.5)._plan(l2(1.0, unit="record"), vector(100))
    assert (block.step, block.scale, block.whole) == (without.step, without.scale, False)
    assert block.scale > 1.5 / block.step
    assert Gaussian(2.0**21)._plan(bound, vector(100))[0].whole
    assert not Gaussian(2.0**22)._plan(bound, vector(100))[0].whole


@pytest.mark.parametrize("law", [Geometric, DiscreteGaussian])
def test_laws_on_whole_numbers_take_no_steps(law):
    (block,) = law(5.0)._plan(l1(1.0, unit="record", step=0.5), vector(3))
    assert (block.step, block.scale) == (1.0, 5.0)


def test_what_is_not_in_whole_steps_is_rounded_and_the_log_says_so(caplog):
    bound = l2(1.0, unit="record", step=2.0**-24)
    planned = Gaussian(1.0)._plan(bound, vector(2))
    rows = np.array([[3.0, -5 * 2.0**-24]])
    np.testing.assert_array_equal(grid.to_steps(rows, planned), [[3 * 2**24, -5]])
    assert not caplog.text
    np.testing.assert_array_equal(grid.to_steps(rows + 2.0**-26, planned), [[3 * 2**24, -5]])
    assert "not in whole steps of 5.96046e-08" in caplog.text
    with pytest.raises(ContributionInvalid, match="float64"):
        grid.to_steps(rows.astype(np.float32), planned)
    np.testing.assert_array_equal(grid.to_steps(np.array([[2.0**28 - 2.0**-24, -(2.0**29)]]), planned), [[2**52 - 1, -(2**52)]])
