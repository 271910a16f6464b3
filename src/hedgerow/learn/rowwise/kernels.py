"""Row-independent products, functions and sums, by the extension where it is compiled and by NumPy where it is not.

    b = packed(weights)                                    # shape (k, n), once for a broadcast
    h = multiply(x, b, bias, relu=True)                    # (m, k) to (m, n)
    y = gathered(images, where, terms, b, bias)            # convolutions and layers at many places
    d = outer_gathered(images, where, terms, g)            # their weight gradients, record by record

`paths` are the ways of this machine, the best first; the last is "numpy". `using("avx2")` takes another one, for tests, and so
does the environment variable HEDGEROW_ROWS when this module is imported. `multiply`, `gathered` and `outer_gathered` have other
bits under "numpy" than on the compiled paths, which agree; everything else has the same bits on all of them.

Arrays are C-contiguous, float32 unless said otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from hedgerow.errors import SettingsInvalid

from . import compiled as _native
from . import exact, folds, functions, integers, places
from .functions import binary_slopes, squared_slopes
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
    "gelu",
    "gelu_slopes",
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
    "silu",
    "silu_slopes",
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

Packed = exact.ExactPacked | _native.ChainPacked
"""The right operand of products, made ready; has its shape as `k` and `n`."""

compiled: bool = _native.available
"""Whether the extension was compiled at installation."""

paths: tuple[str, ...] = (*_native.paths, "numpy")
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
    b = _float32("b", b.T if transposed else b, 2)
    return exact.packed(b) if _path == "numpy" else _native.packed(paths.index(_path), b)


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
    _start(start, b)
    return (exact if isinstance(b, exact.ExactPacked) else _native).multiply(a, b, start, relu)


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
    _start(start, b)
    return (exact if isinstance(b, exact.ExactPacked) else _native).gathered(x, where, terms, b, start, relu)


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
    if _path == "numpy":
        return exact.outer_gathered(x, where, terms, g)
    return _native.outer_gathered(paths.index(_path), x, where, terms, g)


def _start(start: np.ndarray | None, b: Packed) -> None:
    if start is not None and _float32("start", start, 1).shape != (b.n,):
        raise ValueError(f"start has shape {start.shape}; the product has {b.n} columns.")


def _reach(x: np.ndarray, where: np.ndarray, terms: np.ndarray) -> None:
    """Nothing outside a record may be read."""
    _float32("x", x, 2)
    if len(where) and len(terms) and not (where.min() + terms.min() >= 0 and where.max() + terms.max() < x.shape[1]):
        raise ValueError(f"places and terms lead outside a record of {x.shape[1]} numbers.")


def _choose(name: str, numpy: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled function of this name, or that of NumPy, by the path of the moment."""
    native = getattr(_native, name)

    @wraps(numpy)
    def chosen(*args: Any) -> Any:
        return numpy(*args) if _path == "numpy" else native(paths.index(_path), *args)

    return chosen


def _choose_element(name: str, numpy: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(numpy)
    def chosen(*args: Any) -> Any:
        return numpy(*args) if _path == "numpy" else _native.elementwise(paths.index(_path), name, *args)

    return chosen


squares = _choose("squares", folds.squares)
summed = _choose("summed", folds.summed)
exp64 = _choose("exp64", functions.exp64)
softmax_slopes = _choose("softmax_slopes", functions.softmax_slopes)
max_pool = _choose("max_pool", places.max_pool)
max_pool_slopes = _choose("max_pool_slopes", places.max_pool_slopes)
lengths = _choose("lengths", integers.lengths)
steps = _choose("steps", integers.steps)
tanh = _choose_element("tanh", functions.tanh)
sigmoid = _choose_element("sigmoid", functions.sigmoid)
softplus = _choose_element("softplus", functions.softplus)
gelu = _choose_element("gelu", functions.gelu)
silu = _choose_element("silu", functions.silu)
relu_slopes = _choose_element("relu_slopes", functions.relu_slopes)
tanh_slopes = _choose_element("tanh_slopes", functions.tanh_slopes)
sigmoid_slopes = _choose_element("sigmoid_slopes", functions.sigmoid_slopes)
softplus_slopes = _choose_element("softplus_slopes", functions.softplus_slopes)
gelu_slopes = _choose_element("gelu_slopes", functions.gelu_slopes)
silu_slopes = _choose_element("silu_slopes", functions.silu_slopes)


@wraps(integers.whole)
def whole(a: np.ndarray, one: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _float32("a", a, 2)
    return integers.whole(a, one) if _path == "numpy" else _native.whole(paths.index(_path), a, one)


@wraps(integers.shorten)
def shorten(
    g: np.ndarray, factor: np.ndarray, scale: np.ndarray, length: np.ndarray, step: float, cut: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    _float32("g", g, 2)
    if _path == "numpy":
        return integers.shorten(g, factor, scale, length, step, cut)
    return _native.shorten(paths.index(_path), g, factor, scale, length, step, cut)


@wraps(integers.add_outer)
def add_outer(u: np.ndarray, a: np.ndarray, total: np.ndarray) -> None:
    if total.dtype != np.int64 or u.dtype != np.int16 or a.dtype != np.int16 or not total.flags.c_contiguous:
        raise ValueError(f"{u.dtype} times {a.dtype} into {total.dtype}; it takes int16 into int64, without gaps.")
    if len(u) != len(a) or total.shape != (u.shape[1], a.shape[1]):
        raise ValueError(f"records of shapes {u.shape} and {a.shape} do not add up to shape {total.shape}.")
    if _path == "numpy":
        integers.add_outer(u, a, total)
    else:
        _native.add_outer(paths.index(_path), u, a, total)


@wraps(integers.add_steps)
def add_steps(v: np.ndarray, total: np.ndarray) -> None:
    if total.dtype != np.int64 or v.dtype != np.int32 or total.shape != v.shape[1:] or not total.flags.c_contiguous:
        raise ValueError(f"{v.dtype} of shape {v.shape} into {total.dtype} of shape {total.shape}; it takes int32 into int64.")
    if _path == "numpy":
        integers.add_steps(v, total)
    else:
        _native.add_steps(paths.index(_path), v, total)
