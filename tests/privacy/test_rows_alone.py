"""A row is rounded to the grid to the same whole steps, whatever other rows are rounded with it."""

import numpy as np
import pytest

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import l1, l2, linf
from hedgerow.privacy import Gaussian, Laplace, grid


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("bound", [l1(1.0), l2(1.0), linf(0.7)], ids=str)
@pytest.mark.parametrize("multiplier", [1.1, 1e-2, 1e-6])
def test_a_row_is_rounded_as_if_it_were_the_only_one(bound, kind, multiplier, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(grid, "_steps", None)
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(20, 1000)) * 10.0 ** rng.integers(-3, 3, (20, 1))).astype(kind)
    rows[3], rows[7, 5] = 0.0, np.nan
    layout, noise = Layout((("", (1000,)),)), (Laplace if bound.norm == 1 else Gaussian)(multiplier)
    together = noise.at_party(rows, bound, layout, lambda k: bytes)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(noise.at_party(row[None], bound, layout, lambda k: bytes)[0], together[i])
    backwards = noise.at_party(rows[::-1], bound, layout, lambda k: bytes)
    np.testing.assert_array_equal(backwards[::-1], together)
    assert noise.within(together, bound, layout).all()
    assert not together[7].any()
