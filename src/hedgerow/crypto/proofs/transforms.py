"""Polynomials by their values at roots of unity: transforms, values elsewhere, powers and inverses.

    values at w^k, k < n   ->   value at t     sum_k v_k c_k,   c_k = w^k (t^n - 1) / (n (t - w^k))

All functions take leading axes, so that many polynomials and many points go through at once.

Source   : barycentric interpolation at roots of unity; VDAF (draft-irtf-cfrg-vdaf-20), section 6.1.3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hedgerow.core.arrays import Array

from .field import Field, log2_exact
from .field64 import Field64, limbs


def root_of_unity(field: Field, n: int) -> int:
    """Return a generator of the n-th roots of unity, n a power of two."""
    return pow(field.root, 1 << (field.adicity - log2_exact(n, field)), field.modulus)


def powers(field: Field, base: Array, n: int) -> Array:
    """Return 1, b, .., b^(n-1) of each base; shape (...) gives (..., n)."""
    out = field.zeros((*base.shape, 1))
    out[...] = 1
    step = base[..., None]
    while out.shape[-1] < n:
        more = field.mul(out[..., : n - out.shape[-1]], step)
        out = np.concatenate([out, more], axis=-1)
        step = field.mul(step, step)
    return out


@lru_cache(maxsize=64)
def nodes(field: Field, n: int) -> Array:
    """Return 1, w, .., w^(n-1) for the n-th root of unity w."""
    return powers(field, field.constant(root_of_unity(field, n)), n)


def power_of_two(field: Field, base: Array, k: int) -> Array:
    """Return b^(2^k)."""
    for _ in range(k):
        base = field.mul(base, base)
    return base


def inverses(field: Field, a: Array) -> Array:
    """Return 1 / a along the last axis, whose length is a power of two; a zero in it makes all of them zero.

    Pairs are multiplied until one product is left, which is inverted by Fermat, and the way back gives each inverse: three
    products a number in place of a hundred.
    """
    levels = [a]
    while levels[-1].shape[-1] > 1:
        last = levels[-1]
        half = last.shape[-1] // 2
        levels.append(field.mul(last[..., :half], last[..., half:]))
    out = _fermat(field, levels.pop())
    for level in reversed(levels):
        half = level.shape[-1] // 2
        out = np.concatenate([field.mul(out, level[..., half:]), field.mul(out, level[..., :half])], axis=-1)
    return out


def _fermat(field: Field, a: Array) -> Array:
    """Return a^(q-2)."""
    return field.of([pow(int(v), field.modulus - 2, field.modulus) for v in a.reshape(-1)]).reshape(a.shape)


def lagrange(field: Field, n: int, t: Array) -> Array:
    """Return c, shape (..., n), with f(t) = sum_k c_k f(w^k) for all f of degree below n; t of shape (...), no root itself."""
    w = nodes(field, n)
    top = field.sub(power_of_two(field, t, log2_exact(n, field)), field.constant(1))
    top = field.mul(top, field.constant(pow(n, -1, field.modulus)))
    return field.mul(field.mul(w, top[..., None]), inverses(field, field.sub(t[..., None], w)))


def is_root(field: Field, n: int, t: Array) -> Array:
    """Whether each t is an n-th root of unity."""
    found: Array = np.asarray(power_of_two(field, t, log2_exact(n, field)) == 1, bool)
    return found


@lru_cache(maxsize=64)
def _stages(field: Field, n: int, inverse: bool) -> tuple[Array, list[Array]]:
    """Return the order of reversed bits, and the factors of every stage."""
    log = log2_exact(n, field)
    left, order = np.arange(n), np.zeros(n, np.int64)
    for _ in range(log):
        order, left = order << 1 | (left & 1), left >> 1
    stages = []
    for k in range(1, log + 1):
        w = root_of_unity(field, 1 << k)
        stages.append(powers(field, field.constant(pow(w, -1, field.modulus) if inverse else w), 1 << (k - 1)))
    return order, stages


def ntt(field: Field, a: Array, inverse: bool = False) -> Array:
    """Return values at 1, w, w^2, .. of the coefficients along the last axis, or with `inverse` the coefficients of values."""
    n = a.shape[-1]
    order, stages = _stages(field, n, inverse)
    a = a[..., order]
    for k, w in enumerate(stages):
        half = 1 << k
        pairs = a.reshape(*a.shape[:-1], n // (2 * half), 2, half)
        u, v = pairs[..., 0, :], field.mul(pairs[..., 1, :], w)
        merged = np.empty(pairs.shape, field.dtype)
        merged[..., 0, :], merged[..., 1, :] = field.add(u, v), field.sub(u, v)
        a = merged.reshape(a.shape)
    return field.mul(a, field.constant(pow(n, -1, field.modulus))) if inverse else a


@lru_cache(maxsize=16)
def _extension_matrix(n: int) -> Array:
    """Return the limbs of the matrix from values at n-th roots to values between them."""
    field = Field64()
    return limbs(lagrange(field, n, nodes(field, 2 * n)[1::2]))


def between(field: Field, values: Array) -> Array:
    """Return the values at the odd 2n-th roots of polynomials of degree below n that are given at the n-th roots.

    The polynomials lie along the last axis but one: shape (..., n, k) in and out.
    """
    n = values.shape[-2]
    if isinstance(field, Field64) and n <= field.exact:
        return field.limb_product(_extension_matrix(n), values)
    coefficients = ntt(field, np.swapaxes(values, -1, -2), inverse=True)
    twisted = field.mul(coefficients, nodes(field, 2 * n)[:n])
    return np.ascontiguousarray(np.swapaxes(ntt(field, twisted), -1, -2))
