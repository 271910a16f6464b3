"""What a party's part of a network reads: some records of its own columns, scaled by their declared ranges.

Only the records of a batch are read and scaled. A label is kept as its column has it, or as label privacy flipped it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.party import Party
from hedgerow.core.question import travels
from hedgerow.data import Schema
from hedgerow.errors import NotFinite, SettingsInvalid
from hedgerow.learn.scale import Scale, Span, span
from hedgerow.learn.tasks.losses import KINDS_OF, LOSSES, OF_KINDS
from hedgerow.learn.tensors import inputs_and_target

from .piece import tensor

SplitScale = Literal["ranges", "numbers", "none", "symmetric"]
"""How features are scaled: as in `hedgerow.learn`; "symmetric" brings declared ranges without a change of sign to [-1, 1]."""

People = Literal["all", "trained", "held out"]
"""Of whom something is asked."""

UNKNOWN = " target "
"""A name that no column has."""


@travels
@dataclass(frozen=True)
class Batches:
    """The batches of an epoch, in an order that all parties draw alike from one public seed.

    Parameters
    ----------
    seed : int
        The order of epoch e, counted from zero, is numpy's permutation under the seed [seed, e].
    size : int
        Records in a batch; the last one has what is left.
    held_out : float
        Share of the people who are in no batch: the last ones of the permutation under the seed [seed].
    """

    seed: int
    size: int
    held_out: float = 0.0

    def rows(self, n: int, epoch: int, batch: int) -> np.ndarray:
        """Places of the records of a batch, in the aligned order."""
        drawn = order(self.seed, self.trained(n), epoch)[batch * self.size : (batch + 1) * self.size]
        return self.people(n, "trained")[drawn] if self.held_out else drawn

    def count(self, n: int) -> int:
        """Batches in an epoch."""
        return -(-self.trained(n) // self.size)

    def trained(self, n: int) -> int:
        """How many people training reads."""
        return n - round(self.held_out * n)

    def people(self, n: int, who: People) -> np.ndarray:
        """Places of some people, in the aligned order."""
        if who == "all" or not self.held_out:
            return np.arange(n if who != "held out" else 0)
        drawn = order(self.seed, n, None)
        return np.sort(drawn[: self.trained(n)] if who == "trained" else drawn[self.trained(n) :])


@lru_cache(maxsize=8)
def order(seed: int, n: int, epoch: int | None) -> np.ndarray:
    """The order of an epoch, shape (n,); without one, that by which people are held out."""
    return np.random.default_rng([seed] if epoch is None else [seed, epoch]).permutation(n)


@travels
@dataclass(frozen=True)
class OwnFeatures:
    """Columns of one party as its part of the network reads them.

    Parameters
    ----------
    names : tuple of str
    ranges : tuple of (float, float) or None
        What is subtracted from each column, and by what it is divided then.
    levels : tuple of int
        Of categories, each of which becomes an indicator; 0 of other columns.
    symmetric : bool
        Whether 2 v - 1 is taken of an array that is in [0, 1] then.
    array : bool
        Whether it is a single array-shaped column, which keeps its shape.
    """

    names: tuple[str, ...]
    ranges: tuple[Span | None, ...]
    levels: tuple[int, ...]
    symmetric: bool = False
    array: bool = False

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], scale: SplitScale) -> Self:
        """Columns of a schema.

        Raises
        ------
        NotFinite (HR-404)
            One may lack values; the common records would be others for each party.
        """
        columns = [schema[name] for name in names]
        if lacking := [column.name for column in columns if column.optional]:
            raise NotFinite(
                f"values of {lacking[0]!r} may be missing, and a record left out at one party would be there at the others.",
                remedy="Fill them before the parties are aligned, or leave the column out: features={party: [...]}.",
            )
        wanted: Scale = "ranges" if scale == "symmetric" else scale
        array = len(columns) == 1 and bool(columns[0].shape) and columns[0].kind != "category"
        signs = [column.low is not None and column.low < 0 for column in columns]
        ranges = tuple(span(column, wanted) for column in columns)
        if array and signs[0]:
            ranges = (None,)  # its zero means something, as in signals
        if scale == "symmetric" and not array:
            pairs = zip(ranges, signs, strict=True)
            ranges = tuple(one if one is None or signed else (one[0] + one[1] / 2, one[1] / 2) for one, signed in pairs)
        levels = tuple(len(column.levels) if column.kind == "category" else 0 for column in columns)
        return cls(tuple(names), ranges, levels, scale == "symmetric" and array, array)

    def rows(self, party: Party, rows: np.ndarray, dtype: torch.dtype) -> Tensor:
        """The module's input for some records, shape (len(rows), ...)."""
        return self.taken({name: np.asarray(party[name][rows]) for name in self.names}, len(rows), dtype)

    def taken(self, columns: Mapping[str, np.ndarray], n: int, dtype: torch.dtype) -> Tensor:
        """The same of columns that are at hand."""
        if self.array:
            found = np.asarray(columns[self.names[0]], np.float32)
            if self.ranges[0] is not None:
                low, width = self.ranges[0]
                found = (found - np.float32(low)) / np.float32(width)
                found = 2 * found - 1 if self.symmetric else found
            return tensor(found, dtype)
        given = {**columns, UNKNOWN: np.zeros(n)}
        known: Any = {"features": self.names, "ranges": self.ranges, "levels": self.levels}
        made = inputs_and_target(given, **known, target=UNKNOWN, target_kind="number")
        return tensor(made["model_input"], dtype)


@travels
@dataclass(frozen=True)
class OwnLabel:
    """The column that training predicts.

    Parameters
    ----------
    column : str
    loss : str
        A name of `hedgerow.learn.tasks.losses.LOSSES`.
    n_classes : int
        Levels of a category, 2 of a binary column, 0 of a number.
    """

    column: str
    loss: str
    n_classes: int = 0

    @classmethod
    def of(cls, schema: Schema, column: str, loss: str | None) -> Self:
        """The label of a schema, with the loss of its kind unless another one is named."""
        declared = schema[column]
        if declared.optional:
            raise NotFinite(f"labels of {column!r} may be missing.", remedy="Leave those records out before the alignment.")
        wanted = OF_KINDS[declared.kind] if loss is None else loss
        if wanted not in LOSSES:
            raise SettingsInvalid(f"no loss {loss!r}.", remedy=f"Known: {', '.join(LOSSES)}.")
        n_classes = {"category": len(declared.levels), "binary": 2}.get(declared.kind, 0)
        return cls(column, wanted, n_classes)

    @property
    def kind(self) -> str:
        """The kind of target to which the loss belongs."""
        return KINDS_OF.get(self.loss, "number")

    def rows(self, values: np.ndarray, rows: np.ndarray, dtype: torch.dtype) -> Tensor:
        """The labels of some records, shape (len(rows),)."""
        return tensor(np.asarray(values[rows]), torch.int64 if self.loss == "cross_entropy" else dtype)

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Loss of each record, shape (n,)."""
        return LOSSES[self.loss](output, target)
