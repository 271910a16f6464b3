"""The extension `_rows`: what `exact`, `functions`, `integers` and `places` compute, compiled for several instruction sets.

Products are chains of fused multiply-adds in ascending order, so their bits are defined by IEEE 754; they are not those of
`exact`. Everything else has the bits that NumPy gives. Floating-point flags of the thread are set for each call and put back.

Functions take a path, the number of an instruction set in `paths`, and otherwise what those of the same name in `kernels` take.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

try:
    _rows: Any = import_module("hedgerow.learn.rowwise._rows")
except ImportError:  # it was installed without a compiler
    _rows = None

available: bool = _rows is not None
"""Whether the extension was compiled at installation."""

paths: tuple[str, ...] = _rows.paths if available else ()
"""Instruction sets of this machine for which it is compiled, the best first."""

FUNCTIONS = ("tanh", "sigmoid", "softplus", "gelu", "silu")
ELEMENTWISE = (*FUNCTIONS, "relu_slopes", *(f"{name}_slopes" for name in FUNCTIONS))
"""Functions of a number, and gradients before them, as they are numbered in `elements.hpp`."""


@dataclass(frozen=True, eq=False)
class ChainPacked:
    """The right operand of products, of shape (k, n), in panels of columns for one instruction set."""

    k: int
    n: int
    panels: np.ndarray
    path: int


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array itself where it has this type and no gaps, otherwise a copy."""
    return np.ascontiguousarray(array, dtype)


def packed(path: int, b: np.ndarray) -> ChainPacked:
    k, n = b.shape
    turned = not b.flags.c_contiguous and b.flags.f_contiguous
    panels = np.empty(_rows.panel_size(path, (), (k, n), 0.0), np.float32)
    _rows.pack(path, (b.T if turned else _plain(b, np.float32), panels), (k, n, int(turned)), 0.0)
    return ChainPacked(k, n, panels, path)


def multiply(a: np.ndarray, b: ChainPacked, start: np.ndarray | None, relu: bool) -> np.ndarray:
    out = np.empty((len(a), b.n), np.float32)
    begin = None if start is None else _plain(start, np.float32)
    _rows.multiply(b.path, (_plain(a, np.float32), b.panels, begin, out), (len(a), b.k, b.n, int(relu)), 0.0)
    return out


def gathered(
    x: np.ndarray, where: np.ndarray, terms: np.ndarray, b: ChainPacked, start: np.ndarray | None, relu: bool
) -> np.ndarray:
    out = np.empty((len(x), len(where), b.n), np.float32)
    begin = None if start is None else _plain(start, np.float32)
    arrays = (_plain(x, np.float32), _plain(where, np.int64), _plain(terms, np.int64), b.panels, begin, out)
    _rows.gathered(b.path, arrays, (*x.shape, len(where), b.k, b.n, int(relu)), 0.0)
    return out


def outer_gathered(path: int, x: np.ndarray, where: np.ndarray, terms: np.ndarray, g: np.ndarray) -> np.ndarray:
    out = np.empty((len(x), len(terms), g.shape[2]), np.float32)
    arrays = (_plain(x, np.float32), _plain(where, np.int64), _plain(terms, np.int64), _plain(g, np.float32), out)
    _rows.outer_gathered(path, arrays, (*x.shape, len(where), len(terms), g.shape[2]), 0.0)
    return out


def squares(path: int, rows: np.ndarray) -> np.ndarray:
    out = np.empty(len(rows))
    _rows.squares(path, (_plain(rows, np.float32), out), rows.shape, 0.0)
    return out


def summed(path: int, values: np.ndarray) -> np.ndarray:
    out = np.empty((len(values), values.shape[2]), np.float32)
    _rows.summed(path, (_plain(values, np.float32), out), values.shape, 0.0)
    return out


def whole(path: int, a: np.ndarray, one: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m, n = a.shape
    found = np.empty((m, n + one), np.int16), np.empty(m), np.empty(m, np.int64)
    _rows.whole(path, (_plain(a, np.float32), *found), (m, n, int(one)), 0.0)
    return found


def lengths(path: int, g: np.ndarray, scale: np.ndarray, length: np.ndarray) -> np.ndarray:
    out = np.empty(len(g))
    _rows.lengths(path, (_plain(g, np.float32), _plain(scale, np.float64), _plain(length, np.int64), out), g.shape, 0.0)
    return out


def shorten(
    path: int, g: np.ndarray, factor: np.ndarray, scale: np.ndarray, length: np.ndarray, step: float, cut: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    found = np.empty(g.shape, np.int16), np.empty(len(g), np.int64)
    given = (_plain(g, np.float32), _plain(factor, np.float64), _plain(scale, np.float64), _plain(length, np.int64))
    _rows.shorten(path, (*given, None if cut is None else _plain(cut, np.bool_), *found), g.shape, step)
    return found


def steps(path: int, g: np.ndarray, factor: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    found = np.empty(g.shape, np.int32), np.empty(len(g), np.int64)
    _rows.steps(path, (_plain(g, np.float32), _plain(factor, np.float64), *found), g.shape, step)
    return found


def add_outer(path: int, u: np.ndarray, a: np.ndarray, total: np.ndarray) -> None:
    _rows.add_outer(path, (_plain(u, np.int16), _plain(a, np.int16), total), (len(u), u.shape[1], a.shape[1]), 0.0)


def add_steps(path: int, v: np.ndarray, total: np.ndarray) -> None:
    _rows.add_steps(path, (_plain(v, np.int32), total), v.shape, 0.0)


def exp64(path: int, x: np.ndarray) -> np.ndarray:
    out = np.empty(x.shape)
    _rows.exp64(path, (_plain(x, np.float64), out), (x.size,), 0.0)
    return out


def elementwise(path: int, name: str, x: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
    out = np.empty(x.shape, np.float32)
    given = (_plain(x, np.float32), None if other is None else _plain(other, np.float32))
    _rows.elementwise(path, (*given, out), (ELEMENTWISE.index(name), x.size), 0.0)
    return out


def softmax_slopes(path: int, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty(z.shape, np.float32)
    _rows.softmax_slopes(path, (_plain(z, np.float32), _plain(y, np.int64), out), z.shape, 0.0)
    return out


def max_pool(path: int, x: np.ndarray, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    m, places, c = x.shape
    found = np.empty((m, len(windows), c), np.float32), np.empty((m, len(windows), c), np.int32)
    _rows.max_pool(path, (_plain(x, np.float32), _plain(windows, np.int64), *found), (m, places, c, *windows.shape), 0.0)
    return found


def max_pool_slopes(path: int, g: np.ndarray, chosen: np.ndarray, places: int) -> np.ndarray:
    m, n, c = g.shape
    out = np.empty((m, places, c), np.float32)
    _rows.max_pool_slopes(path, (_plain(g, np.float32), _plain(chosen, np.int32), out), (m, n, places, c), 0.0)
    return out
