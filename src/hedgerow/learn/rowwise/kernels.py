"""Row-independent products, functions and sums, by the extension where it is compiled and by NumPy where it is not.

    b = packed(weights)                                    # shape (k, n), once for a broadcast
    h = multiply(x, b, bias, relu=True)                    # (m, k) to (m, n)
    y = gathered(images, where, terms, b, bias)            # convolutions and layers at many places
    d = outer_gathered(images, where, terms, g)            # their weight gradients, record by record

`paths` are the ways of this machine, the best first; the last is "numpy". `using("avx2")` takes another one, for tests, and so
does the environment variable HEDGEROW_ROWS when this module is imported. Functions that are not named here by `paths` have the
same bits on all of them: everything but the four products.

Arrays are C-contiguous, float32 unless said otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from hedgerow.errors import SettingsInvalid

from . import exact, folds, functions, integers, places
from .functions import (
    binary_slopes,
    exp64,
    relu_slopes,
    sigmoid,
    sigmoid_slopes,
    softplus,
    softplus_slopes,
    squared_slopes,
    tanh,
    tanh_slopes,
)
from .integers import TOO_LONG, factors, within
from .norms import affine, normalised, normalised_slopes, product_sums
from .places import add_steps_at, combined, mean_pool, mean_pool_slopes

__all__ = [
    "TOO_LONG",
    "Packed",
    "add_outer",
    "add_steps",
    "add_steps_at",
    "affine",
    "binary_slopes",
    "combined",
    "compiled",
    "exp64",
    "factors",
    "gathered",
    "lengths",
    "max_pool",
    "max_pool_slopes",
    "mean_pool",
    "mean_pool_slopes",
    "multiply",
    "normalised",
    "normalised_slopes",
    "outer_gathered",
    "packed",
    "path",
    "paths",
    "product_sums",
    "relu_slopes",
    "shorten",
    "sigmoid",
    "sigmoid_slopes",
    "softmax_slopes",
    "softplus",
    "softplus_slopes",
    "squared_slopes",
    "squares",
    "steps",
    "summed",
    "tanh",
    "tanh_slopes",
    "using",
    "whole",
    "within",
]

Packed = exact.ExactPacked
"""The right operand of products, made ready; has its shape as `k` and `n`."""

compiled: bool = False
"""Whether the extension was compiled at installation."""

paths: tuple[str, ...] = ("numpy",)
"""Ways of this machine, the best first."""


def path() -> str:
    """Return the way that is taken now."""
    return _path


def _known(name: str) -> str:
    if name not in paths:
        raise SettingsInvalid(f"{name!r} is no way of this machine.", remedy=f"Take one of {', '.join(paths)}.")
    return name


_path = _known(os.environ.get("HEDGEROW_ROWS", paths[0]))


@contextmanager
def using(name: str) -> Iterator[None]:
    """Take another of the `paths` in all threads, for tests and comparisons."""
    global _path
    before, _path = _path, _known(name)
    try:
        yield
    finally:
        _path = before


def _float32(name: str, array: np.ndarray, dimensions: int) -> np.ndarray:
    if array.dtype != np.float32 or array.ndim != dimensions:
        raise ValueError(f"{name}: {array.dtype} of shape {array.shape}; it must be float32 with {dimensions} axes.")
    return array


def packed(b: np.ndarray, *, transposed: bool = False) -> Packed:
    """Make a right operand ready.

    Parameters
    ----------
    b : float32 array of shape (k, n), or (n, k) if `transposed`
        Any strides.
    """
    return exact.packed(_float32("b", b.T if transposed else b, 2))


def multiply(a: np.ndarray, b: Packed, start: np.ndarray | None = None, relu: bool = False) -> np.ndarray:
    """Return a @ b + start, rows independently, of shape (m, n).

    Parameters
    ----------
    a : float32 array of shape (m, k)
    b : Packed
    start : float32 array of shape (n,), optional
    relu : bool
        Whether numbers below zero become zero; NaN stays.
    """
    if _float32("a", a, 2).shape[1] != b.k:
        raise ValueError(f"a has rows of {a.shape[1]} numbers; the right operand takes {b.k}.")
    return exact.multiply(a, b, start, relu)


def gathered(
    x: np.ndarray, where: np.ndarray, terms: np.ndarray, b: Packed, start: np.ndarray | None = None, relu: bool = False
) -> np.ndarray:
    """Products of numbers that lie apart: out[i, p] = start + sum over k of x[i, where[p] + terms[k]] b[k].

    Parameters
    ----------
    x : float32 array of shape (m, d)
        Records, e.g. padded images with channels last.
    where : int64 array of shape (places,)
        Where each place starts inside a record.
    terms : int64 array of shape (k,)
        How far from there each term lies, e.g. taps of a convolution times channels.
    b : Packed
        Of shape (k, n).

    Returns
    -------
    float32 array of shape (m, places, n)
    """
    _reach(x, where, terms)
    if len(terms) != b.k:
        raise ValueError(f"{len(terms)} terms; the right operand takes {b.k}.")
    return exact.gathered(x, where, terms, b, start, relu)


def outer_gathered(x: np.ndarray, where: np.ndarray, terms: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Weight gradients of `gathered`, record by record: out[i, k] = sum over p of x[i, where[p] + terms[k]] g[i, p].

    Parameters
    ----------
    x, where, terms
        As for `gathered`.
    g : float32 array of shape (m, places, n)

    Returns
    -------
    float32 array of shape (m, k, n)
    """
    _reach(x, where, terms)
    if _float32("g", g, 3).shape[:2] != (len(x), len(where)):
        raise ValueError(f"g has shape {g.shape}; {len(x)} records at {len(where)} places were given.")
    return exact.outer_gathered(x, where, terms, g)


def _reach(x: np.ndarray, where: np.ndarray, terms: np.ndarray) -> None:
    """Nothing outside a record may be read."""
    _float32("x", x, 2)
    if len(where) and len(terms) and not (where.min() + terms.min() >= 0 and where.max() + terms.max() < x.shape[1]):
        raise ValueError(f"places and terms lead outside a record of {x.shape[1]} numbers.")


squares = folds.squares
summed = folds.summed
softmax_slopes = functions.softmax_slopes
max_pool = places.max_pool
max_pool_slopes = places.max_pool_slopes
whole = integers.whole
lengths = integers.lengths
shorten = integers.shorten
steps = integers.steps
add_outer = integers.add_outer
add_steps = integers.add_steps
