"""Clipped gradients as whole numbers: exact against Python's integers, at every limit, and never longer than the clip."""

import hashlib
import math

import numpy as np
import pytest

from hedgerow.core.bound import whole_step
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.rowwise import kernels
from hedgerow.learn.rowwise.integers import SHORTEST

every_path = pytest.mark.parametrize("path", kernels.paths)


def numbers(*shape, seed=0, size=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * size).astype(np.float32)


def contribution(a, u, weight, radius, one=True):
    """F(w, r) of records in one layer: U, A, and which are within the clip."""
    step = whole_step(radius)
    A, scale, length = kernels.whole(a, one)
    factor = kernels.factors(kernels.lengths(u, scale, length), weight, radius)
    U, used = kernels.shorten(u, factor, scale, length, step)
    beyond = ~kernels.within([used], radius, step)
    if beyond.any():
        U, used = kernels.shorten(u, factor, scale, length, step, cut=beyond)
    return U, A, used, step


@every_path
@pytest.mark.parametrize("radius", [1.0, 0.3, 1.999, 4e-5, 7e6])
@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, 1e20])
def test_contributions_are_within_the_clip_in_whole_numbers_and_near_the_clipped_gradient(path, radius, size):
    m, a, u = 60, numbers(60, 33, size=size), numbers(60, 7, seed=1)
    with kernels.using(path):
        U, A, used, step = contribution(a, u, np.ones(m, np.float32), radius)
        inside = kernels.within([used], radius, step)
    limit = math.floor(radius / step)
    assert 2**24 <= limit < 2**25
    rounded = 2.5e-4 + math.sqrt(34) / 2 / 2**11 + math.sqrt(7) / 2 / 2**12  # the margin, and halves in every number of A and U
    for i in range(m):
        product = [[int(p) * int(q) for q in A[i]] for p in U[i]]
        squared = sum(v * v for row in product for v in row)
        assert used[i] == squared
        assert inside[i] == (squared <= limit**2)
        exact = np.outer(u[i].astype(np.float64), [*a[i].astype(np.float64), 1.0])
        exact *= min(1.0, radius / np.linalg.norm(exact))
        assert np.linalg.norm(np.array(product, float) * step - exact) < rounded * radius
    assert inside.all()


@every_path
def test_rows_that_whole_numbers_cannot_hold(path):
    a = numbers(7, 5)
    a[1], a[2], a[3], a[4, 0], a[5] = 0, np.nan, np.inf, 1e38, 1e-37
    with kernels.using(path):
        A, scale, length = kernels.whole(a, False)
        with_one = kernels.whole(a, True)
        assert (A[1:4] == 0).all()
        assert (length[1:4] == 0).all()
        assert scale[1] == 1
        assert np.isnan(scale[2:4]).all()
        assert np.isfinite(scale[4])
        assert scale[5] == 1
        assert length[5] == 0
        assert (with_one[0][[1, 5], -1] == 2048).all()
        squared = kernels.lengths(numbers(7, 3), scale, length)
        factor = kernels.factors(squared, np.ones(7, np.float32), 1.0)
        U, used = kernels.shorten(numbers(7, 3), factor, scale, length, whole_step(1.0))
    assert np.isnan(squared[2:4]).all()
    assert (factor[2:4] == 0).all()
    assert (U[1:4] == 0).all()
    assert (used[1:4] == 0).all()
    assert length[0] >= SHORTEST


@every_path
@pytest.mark.slow
def test_a_long_and_even_row_is_refused(path):
    """Of 2^24 equal numbers each is below a half when the row is as long as 16 bits allow."""
    with kernels.using(path):
        A, scale, length = kernels.whole(np.ones((1, (1 << 24) + 8), np.float32), False)
        assert length.tolist() == [-1]
        assert not A.any()
        assert kernels.lengths(np.ones((1, 2), np.float32), scale, length).tolist() == [0.0]


@every_path
def test_the_limits_of_sixteen_bits_are_refusals(path):
    ones = np.ones(4)
    lengths = np.array([1 << 19, 1 << 19, 1 << 19, 0])
    g = np.array([[32767.4, -32767.4], [32768, 0], [np.nan, 1], [40000, 1]], np.float32)
    with kernels.using(path):
        U, used = kernels.shorten(g, ones, ones, lengths, 1.0)
        cut, _ = kernels.shorten(
            np.array([[1.9, -1.9]] * 2, np.float32), ones[:2], ones[:2], lengths[:2], 1.0, np.array([True, False])
        )
        assert U.tolist() == [[32767, -32767], [0, 0], [0, 0], [0, 0]]
        assert used.tolist()[1:] == [kernels.TOO_LONG, kernels.TOO_LONG, 0]
        assert cut.tolist() == [[1, -1], [2, -2]]
        assert not kernels.within([used] * 5000, 1.0, whole_step(1.0))[:3].any()
        many = np.full((1, 1 << 12), 32767, np.float32)
        assert kernels.shorten(many, ones[:1], ones[:1], lengths[:1], 1.0)[1][0] == kernels.TOO_LONG
    with pytest.raises(SettingsInvalid, match="power of two"):
        kernels.within([used], 1.0, 0.3)


@every_path
def test_formed_gradients_in_steps(path):
    g, factor, step = numbers(6, 301, size=0.04), np.array([1.0, 0.25, 0.0, 1.0, 1.0, 1.0]), whole_step(1.0)
    g[2, 0], g[3, 5], g[4, 7], g[5] = np.nan, np.inf, 3e3, 1e-40
    with kernels.using(path):
        V, used = kernels.steps(g, factor, step)
        for i in (0, 1):
            own = [math.trunc(float(v) * factor[i] / step) for v in g[i]]
            assert V[i].tolist() == own
            assert used[i] == sum(v * v for v in own)
        assert not V[2:].any()
        assert used[2:].tolist() == [0, kernels.TOO_LONG, kernels.TOO_LONG, 0]
        total = np.full(301, 2**62, np.int64)
        kernels.add_steps(V, total)
    assert total.tolist() == [2**62 + int(a) + int(b) for a, b in zip(V[0], V[1], strict=True)]


CASES = {
    "random": (37, 19, 33, None),
    "one record": (1, 3, 70, None),
    "no record": (0, 3, 5, None),
    "narrow": (200, 1, 1, None),
    "every product at its largest": (130, 5, 18, (32767, 32767)),
    "every product at its smallest": (131, 5, 18, (32767, -32768)),
    "pairs of the smallest number": (130, 3, 17, (-32768, -32768)),
    "the clip in one number": (1300, 2, 16, (8192, 4096)),  # 2^25 each: 63 records fill 31 bits
    "one below the flush": (2600, 1, 9, (16383, 4097)),
}


@every_path
@pytest.mark.parametrize("case", CASES)
def test_outer_products_are_added_as_pythons_integers_are(path, case):
    m, k, l, values = CASES[case]
    rng = np.random.default_rng(0)
    u, a = (rng.integers(-32768, 32768, (m, n)).astype(np.int16) for n in (k, l))
    if values:
        u[...], a[...] = values
        a[:: 7 if case == "random" else m + 1] = 0
    total = np.full((k, l), -(2**61), np.int64)
    with kernels.using(path):
        kernels.add_outer(u, a, total)
    wanted = u.T.astype(object) @ a.astype(object) if m else np.zeros((k, l), object)
    assert (total.astype(object) == wanted - 2**61).all()


@every_path
def test_a_record_more_moves_the_total_by_its_own_contribution(path):
    """Neighbours replayed: the difference of two sums is the record's own vector, to the bit."""
    a, u, w = numbers(40, 20), numbers(40, 6, seed=1), np.ones(40, np.float32)

    def total(records):
        U, A, _, _ = contribution(a[records], u[records], w[records], 0.7)
        found = np.zeros((6, 21), np.int64)
        kernels.add_outer(U, A, found)
        return found

    with kernels.using(path):
        for n in (0, 1, 2, 3, 5, 16, 17, 33, 38):
            order = np.random.default_rng(n).permutation(40)
            others, record = order[:n], order[n]
            for position in {0, n // 2, n}:
                both = np.insert(others, position, record)
                assert (total(both) - total(others) == total([record])).all()


@every_path
def test_whole_numbers_are_the_same_on_every_way_and_machine(path):
    values = np.arange(-3000, 3000, dtype=np.float32).reshape(20, 300)
    a, u = values * np.float32(0.01), values[:, :40] * np.float32(1e-4)
    with kernels.using(path):
        U, A, used, _ = contribution(a, u, np.ones(20, np.float32), 0.3)
        V, formed = kernels.steps(a, np.full(20, 1e-3), whole_step(0.3))
        total = np.zeros((40, 301), np.int64)
        kernels.add_outer(U, A, total)
    data = b"".join(x.tobytes() for x in (U, A, used, V, formed, total))
    assert hashlib.blake2b(data, digest_size=8).hexdigest() == "c78f5cdf80568d6d"
