"""Functions and losses row by row: true to a few units in the last place, the same bits everywhere."""

import hashlib
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hedgerow.learn.rowwise import kernels
from hedgerow.learn.rowwise.folds import fold
from hedgerow.learn.rowwise.subnormals import flushing

every_path = pytest.mark.parametrize("path", kernels.paths)


def numbers(*shape, seed=0, size=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * size).astype(np.float32)


def digest(*arrays):
    return hashlib.blake2b(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), digest_size=8).hexdigest()


@every_path
def test_exp_is_that_of_the_c_library_to_less_than_two_units(path):
    with kernels.using(path):
        compare_with_the_c_library()


def compare_with_the_c_library():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-745, 709.7, 20000), rng.normal(size=20000), rng.normal(size=2000) * 1e-9, [0.0, -0.0]])
    wanted = np.array([math.exp(v) for v in x])
    assert (np.abs(kernels.exp64(x) - wanted) < 2 * np.spacing(wanted)).all()
    edges = np.array([np.inf, 710.0, 1e300, -np.inf, -746.0, -1e300, np.nan])
    np.testing.assert_array_equal(kernels.exp64(edges), [np.inf, np.inf, np.inf, 0, 0, 0, np.nan])
    assert kernels.exp64(np.array([-745.0])) == 5e-324


TORCH = {
    "tanh": (kernels.tanh, torch.tanh, kernels.tanh_slopes, True),
    "sigmoid": (kernels.sigmoid, torch.sigmoid, kernels.sigmoid_slopes, True),
    "softplus": (kernels.softplus, F.softplus, kernels.softplus_slopes, False),
    "gelu": (kernels.gelu, lambda x: x * torch.erfc(-x * 0.5**0.5) / 2, kernels.gelu_slopes, False),
    "silu": (kernels.silu, F.silu, kernels.silu_slopes, False),
}


@every_path
@pytest.mark.parametrize("name", TORCH)
def test_activations_and_their_slopes_are_those_of_autograd(path, name):
    with kernels.using(path):
        compare_with_autograd(name)


def compare_with_autograd(name):
    own, theirs, slopes, of_output = TORCH[name]
    x = np.concatenate([numbers(4000, size=3), numbers(500, size=1e-6), np.array([-60, -12, 0, 12, 60], np.float32)])
    at = torch.from_numpy(x).double().requires_grad_()
    wanted = theirs(at)
    out = own(x)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, wanted.detach(), rtol=1e-7, atol=1e-38)
    g = numbers(len(x), seed=1)
    (slope,) = torch.autograd.grad((wanted * torch.from_numpy(g)).sum(), at)
    np.testing.assert_allclose(slopes(g, out if of_output else x), slope, rtol=1e-4 if of_output else 1e-7, atol=2e-7)
    assert np.isnan(own(np.array([np.nan], np.float32)))
    np.testing.assert_array_equal(own(np.array([-1e38, np.inf], np.float32)), theirs(torch.tensor([-1e38, np.inf])))


@every_path
def test_slopes_of_losses_are_those_of_autograd(path):
    z, y = numbers(40, 7, size=4), np.random.default_rng(1).integers(0, 7, 40)
    at = torch.from_numpy(z).double().requires_grad_()
    (wanted,) = torch.autograd.grad(F.cross_entropy(at, torch.from_numpy(y), reduction="sum"), at)
    with kernels.using(path):
        np.testing.assert_allclose(kernels.softmax_slopes(z, y), wanted, rtol=1e-6, atol=1e-8)
        z[3, 2], z[4, 0], z[5, 1] = np.nan, np.inf, -np.inf
        y[6] = 7
        assert np.isnan(kernels.softmax_slopes(z, y)).all(1).nonzero()[0].tolist() == [3, 4, 5, 6]
    one, target = numbers(40, 1, seed=2), np.random.default_rng(3).integers(0, 2, 40).astype(np.float32)
    at, t = torch.from_numpy(one).double().requires_grad_(), torch.from_numpy(target).double()[:, None]
    (binary,) = torch.autograd.grad(F.binary_cross_entropy_with_logits(at, t, reduction="sum"), at)
    np.testing.assert_allclose(kernels.binary_slopes(one, target), binary, rtol=1e-6)
    np.testing.assert_allclose(kernels.squared_slopes(one, target), 2 * (at - t).detach(), rtol=1e-6)
    np.testing.assert_allclose(kernels.squared_slopes(one[:, 0], target), 2 * (at - t).detach()[:, 0], rtol=1e-6)


@every_path
def test_functions_have_the_same_bits_on_every_way_and_machine(path):
    """Golden: exactly rounded operations in a fixed order leave no freedom.

    The digest of exp sees all 53 bits, and so a compiler that joins a multiplication and an addition.
    """
    x, y = np.arange(-600, 601, dtype=np.float32) * np.float32(0.05), np.arange(40) % 30
    z = x[:1200].reshape(40, 30) * np.float32(0.37)
    with kernels.using(path):
        found = {
            "exp": digest(kernels.exp64(x.astype(np.float64))),
            "activations": digest(*(own(x) for own, *_ in TORCH.values())),
            "slopes": digest(kernels.relu_slopes(x, x), *(slopes(x, x[::-1].copy()) for _, _, slopes, _ in TORCH.values())),
            "losses": digest(kernels.softmax_slopes(z, y), kernels.binary_slopes(x, x), kernels.squared_slopes(x, x[::-1])),
            "sums": digest(kernels.squares(z), kernels.summed(z.reshape(4, 30, 10)), kernels.squares(x[None])),
        }
    assert found == {
        "exp": "c43fe34bb4ae816a",
        "activations": "035d526864c3b2db",
        "slopes": "cd07f818078aa4d9",
        "losses": "57ac88a01ec3d0ea",
        "sums": "565d2ddf05e3c4c9",
    }


@every_path
@pytest.mark.parametrize("n", [0, 1, 2, 3, 16, 33, 4095, 4096, 4097, 8192, 9001])
def test_squares_are_added_in_one_order(path, n):
    rows = numbers(3, n)
    with kernels.using(path):
        found = kernels.squares(rows)
    exact = [math.fsum(float(v) ** 2 for v in row) for row in rows]
    np.testing.assert_allclose(found, exact, rtol=1e-15)
    wide = rows.astype(np.float64)
    assert found.tobytes() == np.array([fold(row * row) for row in wide]).tobytes()


@every_path
def test_rows_of_sums_and_slopes_know_of_no_other(path):
    z, y = numbers(33, 11, size=3), np.arange(33) % 11
    x = numbers(33, 6 * 4)
    with kernels.using(path):
        slopes, sizes, sums = kernels.softmax_slopes(z, y), kernels.squares(z), kernels.summed(x.reshape(33, 6, 4))
        for i in range(33):
            one = slice(i, i + 1)
            assert kernels.softmax_slopes(z[one], y[one]).tobytes() == slopes[i].tobytes()
            assert kernels.squares(z[one].copy()).tobytes() == sizes[one].tobytes()
            assert kernels.summed(x[one].reshape(1, 6, 4)).tobytes() == sums[i].tobytes()


@every_path
def test_flush_to_zero_changes_nothing_and_is_put_back(path):
    tiny = numbers(5, 12, size=1e-40)
    z, y = tiny[:, :3] - np.float32(80) * np.arange(3, dtype=np.float32), np.zeros(5, np.int64)

    def all_of():
        return digest(
            kernels.tanh(tiny),
            kernels.softmax_slopes(z, y),
            kernels.squares(tiny),
            kernels.summed(tiny.reshape(5, 6, 2)),
            kernels.multiply(tiny, kernels.packed(tiny[:3].T)),
            kernels.normalised(tiny.reshape(5, 1, 1, 12), 1e-90)[0],
        )

    with kernels.using(path):
        wanted = all_of()
        torch.set_flush_denormal(True)
        try:
            found, still = all_of(), flushing()
        finally:
            torch.set_flush_denormal(False)
    assert found == wanted
    assert still
    assert not flushing()


@pytest.mark.parametrize(("groups", "centred"), [(1, True), (3, True), (1, False)])
def test_norms_are_those_of_autograd(groups, centred):
    m, places, c, eps = 5, 4, 6, 1e-5
    x, g = numbers(m, places, c), numbers(m, places, c, seed=1)
    weight, bias = numbers(c, seed=2), numbers(c, seed=3)
    at, w, b = (torch.from_numpy(v).double().requires_grad_() for v in (x, weight, bias))
    if centred:
        wanted = F.group_norm(at.transpose(1, 2), groups, w, b, eps).transpose(1, 2)
    else:
        wanted = at / (at.square().mean((1, 2), keepdim=True) + eps).sqrt() * w + b
    shape = (m, places, groups, c // groups)
    hat, inverse = kernels.normalised(x.reshape(shape), eps, centred=centred)
    out = kernels.affine(hat.reshape(x.shape), weight, bias)
    np.testing.assert_allclose(out, wanted.detach(), atol=2e-6)
    slopes, of_weight = torch.autograd.grad((wanted * torch.from_numpy(g)).sum(), (at, w))
    behind = kernels.affine(g, weight).reshape(shape)
    before = kernels.normalised_slopes(behind, hat, inverse, centred=centred)
    np.testing.assert_allclose(before.reshape(x.shape), slopes, atol=5e-6)
    np.testing.assert_allclose(kernels.product_sums(g, hat.reshape(x.shape)).sum(0), of_weight, atol=5e-6)
    alone = kernels.normalised(x[2:3].reshape(1, *shape[1:]), eps, centred=centred)
    assert digest(*alone) == digest(hat[2:3], inverse[2:3])
    slope = kernels.normalised_slopes(behind[2:3], *alone, centred=centred)
    assert digest(slope) == digest(before[2:3])


def test_no_rows_are_folded_whatever_their_length():
    for n in (0, 1, 4096, 4097, 9000):
        assert fold(np.zeros((0, n))).shape == (0,)
        for path in kernels.paths:
            with kernels.using(path):
                assert kernels.squares(np.zeros((0, n), np.float32)).shape == (0,)
