"""Records in blocks: the same sums, and no copy of all records."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

from hedgerow.core import Party
from hedgerow.stats.blocks import BLOCK, blocks
from hedgerow.stats.moments import deviations


def long_party(n, k=4):
    rng = np.random.default_rng(0)
    return Party("one", {f"x{i}": rng.normal(size=n) for i in range(k)}, rng.random(n))


def test_blocks_hold_every_record_once():
    party = long_party(2 * BLOCK + 5)
    assert [len(block.w) for block in blocks(party)] == [BLOCK, BLOCK, 5]
    np.testing.assert_array_equal(np.concatenate([block["x1"] for block in blocks(party)]), party["x1"])
    few = long_party(BLOCK)
    assert next(blocks(few)) is few


@pytest.mark.parametrize("cross", [False, True])
def test_sums_of_blocks_are_those_of_all_records(cross):
    party = long_party(BLOCK + 7)
    found = deviations(np.ones(2), party, None, columns=("x0", "x1"), cross=cross)
    x = np.stack([party["x0"], party["x1"]], -1) - 1
    products = np.einsum("n,ni,nj->ij", party.w, x, x)
    np.testing.assert_allclose(found["sum"], party.w @ x, rtol=1e-10)
    np.testing.assert_allclose(found["squares"], products if cross else np.diag(products), rtol=1e-10)


def test_stacked_parties_are_cut_along_their_records():
    party = long_party(BLOCK + 3)
    pair = Party("two", {name: np.stack([x, -x]) for name, x in party.columns.items()}, np.stack([party.w, party.w]))
    ask = partial(deviations, columns=("x0", "x2"), cross=True)
    found, alone = ask(np.zeros(2), pair, None), ask(np.zeros(2), party, None)
    np.testing.assert_allclose(found["sum"], np.stack([alone["sum"], -alone["sum"]]), rtol=1e-12)
    np.testing.assert_allclose(found["squares"], np.stack([alone["squares"]] * 2), rtol=1e-12)


def test_no_copy_of_all_records_is_made():
    party = long_party(40 * BLOCK)
    tracemalloc.start()
    deviations(np.zeros(4), party, None, columns=tuple(party.columns), cross=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * party.w.nbytes / 5  # all four columns side by side would be four times the weights
