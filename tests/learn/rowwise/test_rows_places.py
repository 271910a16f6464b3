"""Pools and tables: those of torch, ties to the first, and a record's bits its own."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hedgerow.learn.rowwise import kernels

every_path = pytest.mark.parametrize("path", kernels.paths)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def windows(side, size, stride, padding):
    """Windows of a square pool over side^2 places; -1 where one sticks out."""
    start = np.arange(0, side + 2 * padding - size + 1, stride) - padding
    y, x = (start[:, None] + np.arange(size)).reshape(len(start), size), np.arange(size)
    rows = y[:, None, :, None] + 0 * y[None, :, None, :]
    columns = y[None, :, None, :] + 0 * rows
    inside = (rows >= 0) & (rows < side) & (columns >= 0) & (columns < side)
    return np.where(inside, rows * side + columns, -1).reshape(len(start) ** 2, len(x) ** 2)


@every_path
@pytest.mark.parametrize(("size", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
def test_pools_are_those_of_torch(path, size, stride, padding):
    m, side, c = 3, 6, 5
    x, table = numbers(m, side * side, c).round(1), windows(side, size, stride, padding)
    image = torch.from_numpy(x).view(m, side, side, c).permute(0, 3, 1, 2).requires_grad_()
    g = numbers(m, len(table), c, seed=1)
    with kernels.using(path):
        out, chosen = kernels.max_pool(x, table)
        slopes = kernels.max_pool_slopes(g, chosen, side * side)
        alone = kernels.max_pool(x[1:2], table)
        assert alone[0].tobytes() == out[1].tobytes()
        assert kernels.max_pool_slopes(g[1:2], alone[1], side * side).tobytes() == slopes[1].tobytes()
        mean = kernels.mean_pool(x, table, np.full(len(table), float(size**2)))
        mean_slopes = kernels.mean_pool_slopes(g, table, np.full(len(table), float(size**2)), side * side)
    at = torch.from_numpy(g).view(m, *(int(len(table) ** 0.5),) * 2, c).permute(0, 3, 1, 2)
    for pool, found, back in ((F.max_pool2d, out, slopes), (F.avg_pool2d, mean, mean_slopes)):
        wanted = pool(image, size, stride, padding)
        np.testing.assert_allclose(found, wanted.detach().permute(0, 2, 3, 1).reshape(out.shape), atol=1e-6)
        (own,) = torch.autograd.grad((wanted * at).sum(), image)
        np.testing.assert_allclose(back, own.permute(0, 2, 3, 1).reshape(x.shape), atol=1e-6)


@every_path
def test_the_first_of_equals_is_chosen_and_not_a_number_stays(path):
    x = np.array([[[1], [3], [3], [np.nan], [-np.inf], [-np.inf]]], np.float32)
    table = np.array([[0, 1, 2], [2, 3, 1], [4, 5, -1], [-1, -1, -1], [-1, 5, 4]])
    with kernels.using(path):
        out, chosen = kernels.max_pool(x, table)
        np.testing.assert_array_equal(out[0, :, 0], np.array([3, np.nan, -np.inf, -np.inf, -np.inf], np.float32))
        assert chosen[0, :, 0].tolist() == [1, 3, 4, -1, 5]
        slopes = kernels.max_pool_slopes(np.ones((1, 5, 1), np.float32), chosen, 6)
    assert slopes[0, :, 0].tolist() == [0, 1, 0, 1, 1, 1]


def test_gradients_of_a_table_are_joined_and_added():
    index = np.array([[2, 0, 2, -1], [1, 1, 1, 3]])
    g = numbers(2, 4, 3)
    joined, sums = kernels.combined(index, g)
    assert joined.tolist() == [[2, 0, -1, -1], [1, -1, -1, 3]]
    np.testing.assert_allclose(sums[0, 0], g[0, 0] + g[0, 2], rtol=1e-6)
    np.testing.assert_allclose(sums[1, 0], g[1, :3].sum(0), rtol=1e-6, atol=1e-7)
    assert not sums[0, 2:].any()
    v = np.arange(24, dtype=np.int32).reshape(2, 4, 3)
    total = np.zeros((4, 3), np.int64)
    kernels.add_steps_at(v, joined, total)
    assert total.tolist() == [[3, 4, 5], [12, 13, 14], [0, 1, 2], [21, 22, 23]]
