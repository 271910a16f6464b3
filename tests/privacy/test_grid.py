"""Rounding to the grid never leaves the bound, by the compiled passes and by numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2, linf
from hedgerow.privacy import Gaussian, grid
from hedgerow.privacy.noise import LARGEST_SCALE, grid_step

PATHS = [pytest.param(True, marks=pytest.mark.skipif(grid._steps is None, reason="built without a compiler")), False]


def rounded(rows, bound, multiplier=1.0):
    layout = Layout((("", (rows.shape[1],)),))
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
def test_rounding_adds_a_hundredth_to_the_noise_of_a_record_where_a_table_can_hold_it(d):
    (block,) = Gaussian(1.5)._plan(l2(1.0, unit="record"), Layout((("", (d,)),)))
    added = block.scale * block.step / 1.5 - 1
    assert block.scale <= LARGEST_SCALE
    assert 0 < added <= (0.0101 if d <= 100_000 else 0.03)
