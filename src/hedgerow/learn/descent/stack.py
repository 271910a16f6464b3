"""Which modules are plain stacks of Linear layers, found by letting a stand-in for records pass through their forward."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Stack:
    """Linear layers with biases, and one activation between them.

    Attributes
    ----------
    widths : tuple of int
        Inputs, the outputs of each hidden layer, outputs.
    activation : {"relu", "tanh"}
    """

    widths: tuple[int, ...]
    activation: str = "relu"

    @property
    def flops(self) -> float:
        """Floating-point operations of one record's forward pass: those of its products."""
        return float(sum(2 * inputs * outputs for inputs, outputs in pairwise(self.widths)))

    @property
    def size(self) -> int:
        """Number of parameters; their order is torch's: weight (outputs, inputs), then bias, layer by layer."""
        return sum((inputs + 1) * outputs for inputs, outputs in pairwise(self.widths))


def stack_of(module: nn.Module, kind: str) -> Stack | None:
    """Recognise a stack, or answer None where anything differs; see `kernel.fits` for what counts as one.

    Notes
    -----
    Unlike `torch.fx.symbolic_trace`, which replaces how all modules are called while it lasts, this may run in any thread.
    """
    if any(_hooked(part) for part in module.modules()):
        return None
    try:
        module = copy.deepcopy(module)  # a forward may leave things behind
        came = module(Passing())
    except Exception:  # somebody's forward: whatever the stand-in cannot do ends here
        return None
    if not isinstance(came, Passing):
        return None
    layers = [step for step in came.steps if isinstance(step, LinearLayer)]
    widths = tuple(layer.weight.shape[1] for layer in layers[:1]) + tuple(layer.weight.shape[0] for layer in layers)
    activation = "tanh" if "tanh" in came.steps else "relu"
    steps = [step for step in came.steps if step != "flat"]
    if steps and widths and steps[0] == widths[0]:
        steps.pop(0)  # `view(-1, inputs)`
    if kind != "category" and steps and steps[-1] == "squeeze":
        steps.pop()
    wanted: list[Any] = [step for layer in layers for step in (layer, activation)][:-1]
    used, owned = [parameter for layer in layers for parameter in layer], list(module.parameters())
    if not layers or steps != wanted or len(used) != len(owned) or any(a is not b for a, b in zip(used, owned, strict=True)):
        return None
    if not all(p.requires_grad and p.dtype == torch.float32 and p.device.type == "cpu" for p in owned):
        return None
    return Stack(widths, activation) if kind == "category" or widths[-1] == 1 else None


def _hooked(part: nn.Module) -> bool:
    """Whether a module does more than its forward."""
    return bool(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks)


class LinearLayer(tuple[Tensor, Tensor]):
    """Weight and bias of one layer; equal only to itself."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def weight(self) -> Tensor:
        return self[0]


class _Records:
    """Stands for the number of records."""


class Passing:
    """Stands for records on their way through a forward, and remembers what was done to them.

    A step is a `LinearLayer`, "relu", "tanh", "flat" (all but the first axis joined), "squeeze", or the width of
    `view(-1, width)`. What is not defined here fails, and so ends the recognition.
    """

    def __init__(self, steps: tuple[Any, ...] = ()) -> None:
        self.steps = steps

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return FUNCTIONS[function](*args, **(kwargs or {}))

    def _then(self, step: Any, inplace: bool = False) -> Passing:
        made = self if inplace else Passing()
        made.steps = (*self.steps, step)
        return made

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Passing:
        if bias is None:
            raise TypeError("a layer without bias")
        return self._then(LinearLayer((weight, bias)))

    def relu(self, inplace: bool = False) -> Passing:
        return self._then("relu", inplace)

    def relu_(self) -> Passing:
        return self._then("relu", inplace=True)

    def tanh(self) -> Passing:
        return self._then("tanh")

    def tanh_(self) -> Passing:
        return self._then("tanh", inplace=True)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Passing:
        if (start_dim, end_dim) != (1, -1):
            raise ValueError("joins records")
        return self._then("flat")

    def squeeze(self, dim: int = -1) -> Passing:
        if dim not in (1, -1):
            raise ValueError("removes another axis")
        return self._then("squeeze")

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    @property
    def shape(self) -> Any:
        return {0: _Records}

    def reshape(self, *shape: Any) -> Passing:
        first, width = shape[0] if len(shape) == 1 else shape
        if first is _Records:
            return self._then("flat" if width == -1 else int(width))
        if first != -1 or int(width) < 1:
            raise ValueError("another shape")
        return self._then(int(width))

    view = reshape


FUNCTIONS = {
    F.linear: Passing.linear,
    F.relu: Passing.relu,
    torch.relu: Passing.relu,
    torch.relu_: Passing.relu_,
    torch.tanh: Passing.tanh,
    torch.tanh_: Passing.tanh_,
    torch.flatten: Passing.flatten,
    torch.squeeze: Passing.squeeze,
    torch.reshape: Passing.reshape,
}
"""What torch calls on a `Passing`."""
