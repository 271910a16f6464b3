"""A module as operations in a fixed order, and one pass through them and back.

Value 0 is the records as the module reads them, value i + 1 is what step i gives. Backwards, steps are taken in the opposite
order, and the gradients of a value that several steps read are added in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from ...rowwise import kernels as rows
from .alone import slopes_alone
from .operations import Array, Operation, solid
from .parts import LayerGradients

SLOPES = {"binary": rows.binary_slopes, "number": rows.squared_slopes}
"""Gradients of losses at the output, by kind of target."""

Losses = Callable[[Any, Tensor], Tensor]
"""`(output, target) -> (n,)`."""


@dataclass(frozen=True)
class RowStep:
    """An operation, and the numbers of the values that it reads."""

    operation: Operation
    reads: tuple[int, ...]


@dataclass(frozen=True)
class RowGraph:
    """Steps from the records to the output, which is value number `result`."""

    steps: tuple[RowStep, ...]
    result: int
    kind: str
    losses: Losses | None = None

    @cached_property
    def learns(self) -> tuple[bool, ...]:
        """For each value, whether a trained parameter enters it."""
        found = [False]
        for step in self.steps:
            found.append(bool(step.operation.parameters) or any(found[i] for i in step.reads))
        return tuple(found)

    def prepare(self, weights: Mapping[str, Array]) -> list[Any]:
        """What a broadcast's weights, float32 arrays by name, are made into for each step."""
        return [step.operation.prepare(weights) for step in self.steps]

    def parts(self, made: list[Any], x: Array, target: Array) -> list[LayerGradients]:
        """The gradients of records, float32 of shape (n, ...), with their targets, (n,), layer by layer."""
        values, kept = [x], []
        last = {i: k for k, step in enumerate(self.steps) for i in step.reads}
        for k, (step, own) in enumerate(zip(self.steps, made, strict=True)):
            out, needed = step.operation.forward(own, *(values[i] for i in step.reads))
            values.append(out)
            kept.append(needed if self.learns[k + 1] else None)
            for i in step.reads:
                if last[i] == k and i != self.result:
                    values[i] = np.zeros(0, np.float32)  # nobody reads it any more
        slopes, found = {self.result: self._slopes(values[self.result], target)}, list[LayerGradients]()
        for k in reversed(range(len(self.steps))):
            g = slopes.pop(k + 1, None)
            if g is None or not self.learns[k + 1]:
                continue
            step, own = self.steps[k], made[k]
            g = step.operation.before_relu(kept[k], g)
            found += step.operation.parts(own, kept[k], g)
            if any(self.learns[i] for i in step.reads):
                for i, back in zip(step.reads, step.operation.backward(own, kept[k], g), strict=True):
                    if self.learns[i]:
                        slopes[i] = slopes[i] + back if i in slopes else back
            kept[k] = None
        return found

    def _slopes(self, output: Array, target: Array) -> Array:
        output = solid(output)
        if self.losses is not None:
            return slopes_alone(self.losses, output, target)
        if self.kind == "category":
            found: Array = rows.softmax_slopes(output, target.astype(np.int64, copy=False))
            return found
        flat: Array = SLOPES[self.kind](output.reshape(len(output)), target.astype(np.float32, copy=False))
        return flat.reshape(output.shape)
