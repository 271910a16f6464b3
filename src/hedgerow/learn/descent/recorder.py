"""The basic operations of PyTorch (ATen) that a computation consists of, forward and backward, recorded as a graph.

`make_fx` of PyTorch does the same, and imports PyTorch's compiler for it: a second or more of every process that trains.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.node import map_aggregate
from torch.utils._python_dispatch import TorchDispatchMode

UNRECORDED = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
"""Operations whose result, as a number or a shape, follows from values: a record of them holds for these values alone."""


@dataclass(frozen=True)
class Recorded:
    """A graph whose placeholders are the inputs, and the tensors that it takes from elsewhere, by name."""

    graph: fx.Graph
    constants: dict[str, Tensor]


def recorded(function: Callable[..., Sequence[Tensor]], *inputs: Tensor) -> Recorded:
    """Run a function of tensors, and record what it did.

    Raises
    ------
    NotImplementedError
        Its control flow may depend on data.
    """
    recorder = _Recorder(inputs)
    with recorder:
        made = function(*inputs)
    recorder.graph.output(tuple(recorder.node(value) for value in made))
    return Recorded(recorder.graph, recorder.constants)


class _Recorder(TorchDispatchMode):
    """Sees each operation after autograd and `vmap` have made it one of plain tensors."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__()
        self.graph, self.constants = fx.Graph(), dict[str, Tensor]()
        self._known: dict[int, tuple[Tensor, fx.Node]] = {}  # tensors are held, so that no other gets the number of one
        for k, value in enumerate(inputs):
            self._keep(value, self.graph.placeholder(f"input_{k}"))

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch asks this; it would import its compiler, only to tell it not to compile what follows."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if UNRECORDED.intersection(func.tags):
            raise NotImplementedError(f"{func} depends on values")
        given = map_aggregate((args, kwargs or {}), lambda value: self.node(value) if isinstance(value, Tensor) else value)
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self._keep(made, self.graph.call_function(func, *given))
        elif isinstance(made, (tuple, list)):
            node = self.graph.call_function(func, *given)
            for k, value in enumerate(made):
                if isinstance(value, Tensor):
                    self._keep(value, self.graph.call_function(operator.getitem, (node, k)))
        return made

    def node(self, value: Tensor) -> fx.Node:
        """The node of a tensor; what comes from elsewhere is a constant."""
        if id(value) not in self._known:
            name = f"constant_{len(self.constants)}"
            self.constants[name] = value.detach()
            self._keep(value, self.graph.create_node("get_attr", name))
        return self._known[id(value)][1]

    def _keep(self, value: Tensor, node: fx.Node) -> None:
        self._known[id(value)] = (value, node)
