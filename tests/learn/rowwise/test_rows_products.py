"""Products row by row: a row's bits are a function of that row and of the right operand, on every way of this machine."""

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch

from hedgerow.errors import SettingsInvalid
from hedgerow.learn.rowwise import kernels

SHAPES = [(1, 1), (15, 5), (65, 7), (30, 1), (200, 10), (33, 64), (12, 70)]  # (k, n); the second and third break BLAS
ROWS = [1, 2, 3, 4, 5, 16, 17, 31, 33, 64, 128, 129]
every_path = pytest.mark.parametrize("path", kernels.paths)
chains = pytest.mark.parametrize("path", kernels.paths[:-1])


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


OTHERS = {
    "random": lambda shape: numbers(*shape, seed=7),
    "zero": lambda shape: np.zeros(shape, np.float32),
    "huge": lambda shape: np.full(shape, 1e30, np.float32),
    "nan": lambda shape: np.full(shape, np.nan, np.float32),
    "infinite": lambda shape: np.full(shape, np.inf, np.float32),
    "subnormal": lambda shape: np.full(shape, 1e-42, np.float32),
}


def at_address(array, offset):
    """A copy that starts so many numbers behind a multiple of 64 bytes."""
    memory = np.empty(array.size + 64, np.float32)
    first = (-memory.ctypes.data // 4) % 16 + offset
    copy = memory[first : first + array.size].reshape(array.shape)
    copy[...] = array
    return copy


def changed_rows(product, record):
    """Every way found in which the result for `record` depends on something else; `product` maps (m, k) to (m, n)."""
    wanted, found = product(record[None])[0].tobytes(), []
    for name, others in OTHERS.items():
        for m in ROWS:
            for position in {0, 1, m // 2, m - 1} & set(range(m)):
                batch = others((m, len(record)))
                batch[position] = record
                if product(batch)[position].tobytes() != wanted:
                    found.append((name, m, position))
    batch = OTHERS["random"]((5, len(record)))
    batch[3] = record
    for offset in range(16):
        if product(at_address(batch, offset))[3].tobytes() != wanted:
            found.append(("address", offset))
    with ThreadPoolExecutor(2) as pool:
        found += [("threads", i) for i, out in enumerate(pool.map(product, [batch] * 8)) if out[3].tobytes() != wanted]
    torch.set_flush_denormal(True)
    try:
        if product(batch)[3].tobytes() != wanted:
            found.append(("flush to zero",))
    finally:
        torch.set_flush_denormal(False)
    return found


@every_path
@pytest.mark.parametrize(("k", "n"), SHAPES)
def test_a_row_of_a_product_knows_of_no_other(path, k, n):
    with kernels.using(path):
        b, start = kernels.packed(numbers(k, n, seed=1)), numbers(n, seed=2)
        assert changed_rows(lambda a: kernels.multiply(a, b, start), numbers(k, seed=3)) == []
        assert changed_rows(lambda a: kernels.multiply(a, b, relu=True), numbers(k, seed=4) * np.float32(1e-38)) == []


def by_numpy(a, b):
    return a @ b


def by_torch(a, b):
    return (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()


def by_halves_of_large_batches(a, b):
    """A twin that adds in another order from four rows on, as libraries do."""
    half = len(b) // 2 if len(a) >= 4 else 0
    left, right = np.zeros((len(a), b.shape[1]), np.float32), np.zeros((len(a), b.shape[1]), np.float32)
    for i in range(len(b)):
        (left if i < half else right)[...] += a[:, i, None] * b[i]
    return left + right


def caught(twin):
    with np.errstate(all="ignore"):
        return [change for k, n in SHAPES for change in changed_rows(partial(twin, b=numbers(k, n)), numbers(k, seed=3))]


@pytest.mark.slow
def test_a_product_that_changes_with_the_batch_is_caught():
    assert {change[0] for change in caught(by_halves_of_large_batches)} >= {"random", "zero", "address", "threads"}
    assert caught(by_numpy) or caught(by_torch)  # the libraries' own, on the machines that we know


@every_path
@pytest.mark.parametrize(("k", "n"), SHAPES)
def test_a_product_is_the_product(path, k, n):
    a, b, start = numbers(9, k), numbers(k, n, seed=1), numbers(n, seed=2)
    wanted = a.astype(np.float64) @ b + start
    size = np.abs(a) @ np.abs(b) + np.abs(start)
    with kernels.using(path):
        ready = kernels.packed(b)
        out, transposed = kernels.multiply(a, ready, start), kernels.packed(b.T.copy(), transposed=True)
        assert (np.abs(out - wanted) <= 4e-7 * size).all()
        assert kernels.multiply(a, transposed, start).tobytes() == out.tobytes()
        assert kernels.multiply(a, kernels.packed(b.T.copy().T), start).tobytes() == out.tobytes()
        np.testing.assert_array_equal(kernels.multiply(a, ready, start, relu=True), np.maximum(out, 0))
        assert (ready.k, ready.n) == (k, n)
        assert kernels.multiply(a[:0], ready).shape == (0, n)


@every_path
def test_what_is_not_finite_stays_in_its_row(path):
    a, b = numbers(4, 6), numbers(6, 3, seed=1)
    a[1, 2], a[2, 0] = np.nan, np.inf
    with kernels.using(path):
        out = kernels.multiply(a, kernels.packed(b), relu=True)
    assert np.isnan(out[1]).all()
    assert not np.isfinite(out[2]).any() or (out[2][np.isfinite(out[2])] == 0).all()
    assert np.isfinite(out[[0, 3]]).all()


def windows(side, taps, c):
    """Places and terms of a convolution of `taps` x `taps` over padded images (side + taps - 1)^2 with c channels last."""
    wide = side + taps - 1
    y, x = np.mgrid[:side, :side]
    dy, dx = np.mgrid[:taps, :taps]
    return ((y * wide + x) * c).ravel(), (((dy * wide + dx) * c).ravel()[:, None] + np.arange(c)).ravel()


@every_path
@pytest.mark.parametrize(("side", "taps", "c", "n"), [(5, 3, 1, 4), (3, 2, 2, 17), (6, 1, 2, 1)])
def test_gathered_products_are_convolutions_and_their_gradients(path, side, taps, c, n):
    wide, m = side + taps - 1, 3
    where, terms = windows(side, taps, c)
    x, w, start, g = numbers(m, wide * wide * c), numbers(taps, taps, c, n, seed=1), numbers(n, seed=2), numbers(m, side**2, n)
    image = torch.from_numpy(x).double().view(m, wide, wide, c).permute(0, 3, 1, 2)
    weight = torch.from_numpy(w).double().permute(3, 2, 0, 1).requires_grad_()
    with kernels.using(path):
        out = kernels.gathered(x, where, terms, kernels.packed(w.reshape(-1, n)), start, relu=True)
        slopes = kernels.outer_gathered(x, where, terms, g)
        assert changed_rows(lambda a: kernels.outer_gathered(a, where, terms, g[:1].repeat(len(a), 0)), x[0]) == []
        assert changed_rows(lambda a: kernels.gathered(a, where, terms, kernels.packed(w.reshape(-1, n))), x[0]) == []
    wanted = torch.nn.functional.conv2d(image, weight, torch.from_numpy(start).double())
    np.testing.assert_allclose(out, wanted.detach().relu().permute(0, 2, 3, 1).reshape(m, -1, n), atol=3e-6)
    for i in range(m):
        at = torch.from_numpy(g[i]).double().view(side, side, n).permute(2, 0, 1)
        (own,) = torch.autograd.grad((wanted[i] * at).sum(), weight, retain_graph=True)
        np.testing.assert_allclose(slopes[i].reshape(taps, taps, c, n), own.permute(2, 3, 1, 0), atol=1e-5)


def a_product_of_each_kind():
    """Results of the four products for numbers that every machine makes alike."""
    a = np.arange(-1500, 1500, dtype=np.float32) * np.float32(0.0137)
    where, terms = windows(5, 3, 2)
    products = [
        kernels.multiply(a[: 33 * k].reshape(33, k), kernels.packed(a[-k * n :].reshape(k, n)), a[7 : 7 + n], relu=relu)
        for k, n, relu in [(1, 1, False), (65, 7, False), (20, 130, True), (47, 16, False), (30, 33, True)]
    ]
    x, g = a[: 3 * 98].reshape(3, 98), a[900 : 900 + 3 * 25 * 19].reshape(3, 25, 19)
    products += [kernels.gathered(x, where, terms, kernels.packed(a[100 : 100 + 18 * 21].reshape(18, 21)), a[:21])]
    return [*products, kernels.outer_gathered(x, where, terms, g)]


@chains
def test_chains_have_the_same_bits_on_every_instruction_set_and_machine(path):
    """Golden: a chain of fused multiply-adds is defined by IEEE 754; the last path, without vectors, is the reference."""
    with kernels.using(path):
        found = a_product_of_each_kind()
    with kernels.using("scalar"):
        plain = a_product_of_each_kind()
    assert [f.tobytes() for f in found] == [p.tobytes() for p in plain]
    assert digest(*found) == "2a86df917e43786bad46ba3e"


@chains
def test_a_chain_is_the_one_that_is_written_down(path):
    """By hand, in exact fractions: each term is added and the result rounded once to 24 bits."""
    a, b, start = numbers(2, 40), numbers(40, 3, seed=1), numbers(3, seed=2)
    with kernels.using(path):
        out = kernels.multiply(a, kernels.packed(b), start)
    for i in range(2):
        for j in range(3):
            value = Fraction(float(start[j]))
            for p, q in zip(a[i], b[:, j], strict=True):
                value = rounded(value + Fraction(float(p)) * Fraction(float(q)))
            assert float(value) == out[i, j]


def rounded(value):
    """To the nearest of 24 bits, ties to even."""
    if value == 0:
        return value
    exponent = math.frexp(float(value))[1] - 24
    return Fraction(round(value / Fraction(2) ** exponent)) * Fraction(2) ** exponent


def test_exact_products_have_the_same_bits_on_every_machine():
    """Golden: sums of whole numbers below 2^53 do not round, whatever library adds them."""
    with kernels.using("numpy"):
        assert digest(*a_product_of_each_kind()) == "fc131f217d5f76f5b049a9e5"


def digest(*arrays):
    return hashlib.blake2b(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), digest_size=12).hexdigest()


@every_path
def test_wrong_shapes_are_refused(path):
    with kernels.using(path):
        b = kernels.packed(numbers(6, 3))
        with pytest.raises(ValueError, match="rows of 5 numbers"):
            kernels.multiply(numbers(2, 5), b)
        with pytest.raises(ValueError, match="float64"):
            kernels.multiply(np.zeros((2, 6)), b)
        with pytest.raises(ValueError, match="outside a record"):
            kernels.gathered(numbers(2, 8), np.array([0, 3]), np.arange(6), b)
        with pytest.raises(ValueError, match="outside a record"):
            kernels.outer_gathered(numbers(2, 8), np.array([0, -1]), np.arange(6), numbers(2, 2, 3))


def test_only_ways_of_this_machine_are_taken():
    with pytest.raises(SettingsInvalid, match="no way of this machine"), kernels.using("abacus"):
        pass
    assert kernels.path() in kernels.paths
