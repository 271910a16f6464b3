"""Several columns in one row of numbers for each record, and the tensors that a module reads made of it again.

    at the party        columns  ->  model_input (n, numbers), model_target       `packed`, record by record
    at the module       model_input (n, numbers)  ->  tensors (n, *shape)         `Packing.tensors`

Rows are float32, in which whole numbers are exact up to 2^24, or float64, up to 2^53, where declared ranges reach further or
none is declared. A single array-shaped column, or a single target, is no row: it stays as it is, in its own type. So records
are sampled, stacked and batched as those of a module with one input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.question import elementwise, travels
from hedgerow.data import Column, Schema
from hedgerow.errors import ModelInvalid, OutOfRange

from ..scale import Scale, Span, of_batches, span
from .declared import Dtype, Input

EXACT32, EXACT64 = 2.0**24, 2.0**53
"""Whole numbers up to these are exact in float32 and in float64."""

NUMPY: Mapping[str, Any] = {"float32": np.float32, "int64": np.int64, "bool": np.float32}
"""In which type a lone target is kept."""


@travels
@dataclass(frozen=True)
class Piece:
    """One tensor of a record's row.

    Attributes
    ----------
    key : str or int
        Argument of `forward`, or name of a target.
    columns : tuple of str
    levels : tuple of int
        Of each column: how many indicators it becomes, 0 where it stays as it is.
    ranges : tuple of (float, float) or None
        Of each column: what is subtracted, and by what it is divided then.
    shape : tuple of int
        Of one record's tensor.
    dtype : {"float32", "int64", "bool"}
    low, high : float
        Between which made-up values lie; of whole numbers the declared ends.
    """

    key: str | int
    columns: tuple[str, ...]
    levels: tuple[int, ...]
    ranges: tuple[Span | None, ...]
    shape: tuple[int, ...]
    dtype: Dtype
    low: float = 0.0
    high: float = 1.0

    @property
    def size(self) -> int:
        """Numbers of a record."""
        return prod(self.shape)

    def numbers(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """The records' numbers, (n, size)."""
        parts = []
        for name, n_levels, taken in zip(self.columns, self.levels, self.ranges, strict=True):
            values = np.asarray(columns[name])
            if self.dtype == "int64" and values.size and np.abs(values.astype(np.float64)).max() >= EXACT64:
                raise OutOfRange(
                    f"column {name!r} has whole numbers of 2^53 or beyond, which are not kept exactly.",
                    remedy="Make it a category or text, such as a name, or leave it out of the task.",
                )
            if n_levels:
                values = (values[..., None] == np.arange(n_levels)).astype(np.float32)
            elif taken is not None:
                values = (values.astype(np.float32 if values.ndim > 1 else np.float64) - taken[0]) / taken[1]
            parts.append(values.reshape(len(values), -1))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def tensor(self, numbers: Tensor) -> Tensor:
        """What a module receives, (n, *shape), from numbers of shape (n, size)."""
        made = numbers.reshape(numbers.shape[0], *self.shape)
        return made != 0 if self.dtype == "bool" else made.to(getattr(torch, self.dtype))

    def made_up(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Lawful numbers, (n, size), from the declaration alone."""
        if self.dtype == "float32":
            return rng.uniform(self.low, self.high, (n, self.size))
        return rng.integers(int(self.low), int(self.high), (n, self.size), endpoint=True)


@travels
@dataclass(frozen=True)
class Packing:
    """The tensors of a record, in the order of its row.

    Attributes
    ----------
    pieces : tuple of Piece
    wide : bool
        Whether rows are float64.
    bare : bool
        Whether there is one piece, kept without a row, and in its column's own type; then `low` and `by` scale it.
    """

    pieces: tuple[Piece, ...]
    wide: bool = False
    bare: bool = False
    low: float = 0.0
    by: float = 1.0

    @cached_property
    def starts(self) -> list[int]:
        """Where each piece begins in a row."""
        return [0, *np.cumsum([piece.size for piece in self.pieces]).tolist()]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, each once."""
        return tuple(dict.fromkeys(name for piece in self.pieces for name in piece.columns))

    @property
    def record(self) -> tuple[int, ...]:
        """Shape of one record as it is kept."""
        return self.pieces[0].shape if self.bare else (self.starts[-1],)

    def rows(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Records as they are kept, (n, numbers)."""
        made = [piece.numbers(columns) for piece in self.pieces]
        return np.concatenate(made, axis=1).astype(np.float64 if self.wide else np.float32)

    def tensors(self, kept: Tensor) -> dict[str | int, Tensor]:
        """What a module receives of kept records, by key."""
        if self.bare:
            piece = self.pieces[0]
            if piece.dtype == "float32" and (self.low, self.by) != (0.0, 1.0):
                return {piece.key: (kept.to(torch.float32) - self.low) * self.by}
            return {piece.key: piece.tensor(kept)}
        return {
            piece.key: piece.tensor(kept[:, start:stop])
            for piece, start, stop in zip(self.pieces, self.starts, self.starts[1:], strict=False)
        }

    def made_up(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Lawful records as they are kept, (n, ...), from the declaration alone."""
        made = [piece.made_up(n, rng) for piece in self.pieces]
        if self.bare:
            return made[0].reshape(n, *self.pieces[0].shape).astype(NUMPY[self.pieces[0].dtype])
        return np.concatenate(made, axis=1).astype(np.float64 if self.wide else np.float32)


@travels
@elementwise
def packed(columns: Mapping[str, np.ndarray], *, inputs: Packing, target: Packing) -> dict[str, np.ndarray]:
    """Prepare `model_input` and `model_target`, of shapes (n, ...)."""
    one, other = inputs.pieces[0], target.pieces[0]
    x = np.asarray(columns[one.columns[0]]) if inputs.bare else inputs.rows(columns)
    if not target.bare:
        return {"model_input": x, "model_target": target.rows(columns)}
    wanted = np.asarray(columns[other.columns[0]]).astype(NUMPY[other.dtype])
    return {"model_input": x, "model_target": wanted.reshape(len(wanted), *other.shape)}


def packing_of(given: Sequence[tuple[str | int, Input]], schema: Schema, scale: Scale, *, target: bool = False) -> Packing:
    """How a schema's columns are packed.

    Raises
    ------
    MissingColumn (HR-403)
        A column is not in the schema.
    ModelInvalid (HR-510)
        A shape does not fit, numbers are asked for as whole ones, or whole numbers are too large to be kept exactly.
    """
    pieces = tuple(_piece(key, one, schema, scale, target) for key, one in given)
    sizes = [_largest(schema[name]) for piece in pieces if piece.dtype == "int64" for name in piece.columns]
    if any(size > EXACT64 for size in sizes):
        raise ModelInvalid(
            "whole numbers beyond 2^53 are not kept exactly.", remedy="Declare a smaller range, or make the column a category."
        )
    wide = any(size > EXACT32 for size in sizes)
    first = schema[pieces[0].columns[0]]
    lone = len(pieces) == 1 and len(pieces[0].columns) == 1 and not pieces[0].levels[0]
    if target:
        return Packing(pieces, wide, bare=lone)
    if not lone or not first.shape or pieces[0].shape != first.shape:
        return Packing(pieces, wide)
    return Packing(pieces, wide, True, *(of_batches([first], scale) if pieces[0].dtype == "float32" else (0.0, 1.0)))


def _piece(key: str | int, given: Input, schema: Schema, scale: Scale, target: bool) -> Piece:
    columns = [schema[name] for name in given.names]
    dtype = given.dtype or _dtype(columns, target and isinstance(given.columns, str))
    if dtype == "int64" and (wrong := [column.name for column in columns if column.kind == "number"]):
        raise ModelInvalid(
            f"{wrong[0]!r} is declared a number, and input {key!r} is to be int64.", remedy="Declare it integer, or a category."
        )
    floats = dtype == "float32"
    joined = not isinstance(given.columns, str)
    levels = tuple(len(c.levels) if floats and joined and c.kind == "category" else 0 for c in columns)
    ranges = tuple(_range(c, scale, lone=not joined) if floats and not target else None for c in columns)
    own = columns[0].shape if not joined else (sum(n_levels(c, k) for c, k in zip(columns, levels, strict=True)),)
    shape = own if given.shape is None else given.shape
    if prod(shape) != prod(own):
        raise ModelInvalid(
            f"{', '.join(given.names)} have {prod(own)} numbers, which do not fill the shape {shape}.",
            remedy="Leave shape out, or give one of as many numbers.",
        )
    ends = _ends(columns) if not floats else _float_ends(columns, ranges, target)
    return Piece(key, given.names, levels, ranges, shape, dtype, *ends)


def n_levels(column: Column, indicators: int) -> int:
    """Numbers that a column becomes when it is joined."""
    return prod(column.shape) * max(indicators, 1)


def _dtype(columns: Sequence[Column], lone_target: bool) -> Dtype:
    kinds = {column.kind for column in columns}
    return "float32" if "number" in kinds or (lone_target and "binary" in kinds) else "int64"


def _range(column: Column, scale: Scale, *, lone: bool) -> Span | None:
    if column.kind in ("binary", "category"):
        return None
    if lone and column.shape and column.low is not None and column.low < 0:
        return None  # zero means something, as in signals
    return span(column, scale)


def _largest(column: Column) -> float:
    """The largest whole number that a column may hold, by its size; of one without a range such that rows are float64."""
    if column.kind == "category":
        return float(len(column.levels))
    return EXACT64 if column.absolute is None else column.absolute


def _ends(columns: Sequence[Column]) -> tuple[float, float]:
    """Ends of whole numbers that all of the columns may hold."""
    lows = [0.0 if c.kind in ("category", "binary") or c.low is None else c.low for c in columns]
    highs = [
        len(c.levels) - 1.0 if c.kind == "category" else 1.0 if c.kind == "binary" or c.high is None else c.high
        for c in columns
    ]
    low, high = max(lows), min(highs)
    return (low, high) if low <= high else (lows[0], max(lows[0], highs[0]))


def _float_ends(columns: Sequence[Column], ranges: Sequence[Span | None], target: bool) -> tuple[float, float]:
    """Ends of numbers as they are kept."""
    column = columns[0]
    if len(columns) == 1 and column.low is not None and column.high is not None and (target or ranges[0] is None):
        return float(column.low), float(column.high)
    return 0.0, 1.0
