"""A module as a graph of operations, by following its forward pass with symbols in the place of records.

Symbols have no values and no number, so a module that looks at values, or builds in how many records there are, is not traced.
"""

from __future__ import annotations

import copy
import math
import threading
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import fx, nn

from ...anew import losses_alone
from ..trained import Trained
from .catalogue import FUNCTIONS, IN_PLACE, LAYERS, WORDS, Made, flattened, parted
from .convolutions import Convolution
from .graph import RowGraph, RowStep
from .layers import Linear
from .operations import RELU, Addition, Mean, NoGraph, Numbered, Reshape, Scaled, Shape, Turned


@dataclass(frozen=True)
class Value:
    """A value of the graph, by number, and the shape of one record's."""

    number: int
    shape: Shape


BATCH = object()
"""Stands for the number of records."""

_one_at_a_time = threading.Lock()


class SymbolTracer(fx.Tracer):
    """Follows a module's forward pass, and lets other threads call theirs: torch patches calls for all of them."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.thread = threading.get_ident()

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        if threading.get_ident() != self.thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return type(m) in LAYERS or super().is_leaf_module(m, module_qualified_name)


def traced(trained: Trained, shape: Shape) -> RowGraph:
    """The graph of a model for records of a shape; raises NoGraph."""
    module = copy.deepcopy(trained.model.module)
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if any(getattr(part, name, None) for part in module.modules() for name in hooks):
        raise NoGraph("a layer has hooks")
    owned = [id(value) for part in module.modules() for value in part._parameters.values() if value is not None]
    if len(set(owned)) < len(owned):
        raise NoGraph("layers share a parameter")
    if type(module) in LAYERS:
        module = _Alone(module)
    try:
        with _one_at_a_time:
            followed = SymbolTracer().trace(module)
    except Exception as error:  # a module may do anything with a symbol; whatever it is, it is not followed
        raise NoGraph(f"its forward pass is not followed: {str(error).split('. ')[0] or repr(error)}") from error
    return _Reader(trained, module, shape).read(followed)


class _Alone(nn.Module):
    """A layer that is the whole module."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class _Reader:
    """Reads what was followed, node by node, and writes down steps."""

    def __init__(self, trained: Trained, module: nn.Module, shape: Shape) -> None:
        self.trained, self.module, self.shape = trained, module, shape
        self.steps: list[RowStep] = []
        self.called: set[str] = set()
        self.known: dict[fx.Node, Any] = {}

    def read(self, followed: fx.Graph) -> RowGraph:
        for node in followed.nodes:
            if node.op == "output":
                return self._graph(self._of(node.args[0]))
            self.known[node] = self._node(node)
        raise NoGraph("there is no output")

    def _graph(self, result: Any) -> RowGraph:
        if not isinstance(result, Value):
            raise NoGraph("the output is no value")
        found = {name for step in self.steps for name in step.operation.parameters}
        if missing := set(self.trained.names) - found:
            raise NoGraph(f"{', '.join(sorted(missing))} is used by no layer that is known")
        model = self.trained.model
        own = model.task is not None and model.task.kind is None
        kind = model.kind if model.task is None else model.task.kind or model.kind
        return RowGraph(*_joined(self.steps, result.number), kind, partial(losses_alone, model=model) if own else None)

    def _of(self, given: Any) -> Any:
        return fx.node.map_arg(given, self.known.__getitem__)

    def _node(self, node: fx.Node) -> Any:
        if node.op == "placeholder":
            if self.known:
                raise NoGraph("forward takes more than the records")
            return Value(0, self.shape)
        args, kwargs = self._of(node.args), self._of(node.kwargs)
        changes = node.target in IN_PLACE or (isinstance(node.target, str) and node.target.endswith("_"))
        layer = self.module.get_submodule(str(node.target)) if node.op == "call_module" else None
        if (changes or getattr(layer, "inplace", False)) and len(node.args[0].users) > 1:
            raise NoGraph("a value that is read again is changed in place")
        if layer is not None:
            return self._layer(layer, str(node.target), args, kwargs)
        if node.op not in ("call_function", "call_method"):
            raise NoGraph("a parameter belongs to no layer")
        if node.target in FUNCTIONS:
            return self._layer(_made(FUNCTIONS[node.target], args[1:], kwargs), "", args[:1], {})
        word = WORDS.get(node.target) if node.op == "call_function" else node.target
        rule = getattr(self, f"_{word}", None) if word in RULES else None
        if rule is None:
            raise NoGraph(f"{getattr(node.target, '__name__', node.target)} has no rule")
        try:
            return rule(*args, **kwargs)
        except (TypeError, IndexError, ValueError) as error:
            raise NoGraph(f"{word} is called as it is not known") from error

    def _take(self, made: Made, *inputs: Any) -> Value:
        if not inputs or not all(isinstance(value, Value) for value in inputs):
            raise NoGraph("an operation reads something else than values")
        operation, shape = made
        if operation is None:
            return Value(inputs[0].number, shape)
        self.steps.append(RowStep(operation, tuple(value.number for value in inputs)))
        return Value(len(self.steps), shape)

    def _layer(self, layer: nn.Module, target: str, args: Any, kwargs: Any) -> Value:
        if type(layer) not in LAYERS:
            raise NoGraph(f"{type(layer).__name__} has no rule")
        if len(args) != 1 or kwargs or not isinstance(args[0], Value):
            raise NoGraph(f"{type(layer).__name__} is not called with one value")
        if target in self.called and next(layer.parameters(), None) is not None:
            raise NoGraph(f"layer {target!r} is called twice")
        self.called.add(target)
        prefix = "" if isinstance(self.module, _Alone) else target
        return self._take(LAYERS[type(layer)](layer, prefix, args[0].shape), args[0])

    # ---- functions and methods --------------------------------------------------------------------------------------
    def _add(self, one: Any, other: Any) -> Value:
        if isinstance(one, Value) and isinstance(other, Value):
            if one.shape != other.shape:
                raise NoGraph("values of different shapes are added")
            return self._take((Addition(), one.shape), one, other)
        return self._scaled(one, other, plus=1.0)

    def _sub(self, one: Any, other: Any) -> Value:
        return self._scaled(one, other, plus=-1.0) if isinstance(one, Value) else self._scaled(other, one, by=-1.0, plus=1.0)

    def _mul(self, one: Any, other: Any) -> Value:
        value, number = (one, other) if isinstance(one, Value) else (other, one)
        return self._take((Scaled(by=float(_number(number))), value.shape), value)

    def _div(self, one: Value, other: Any) -> Value:
        return self._take((Scaled(by=1.0 / _number(other)), one.shape), one)

    def _scaled(self, one: Any, other: Any, *, plus: float, by: float = 1.0) -> Value:
        value, number = (one, other) if isinstance(one, Value) else (other, one)
        return self._take((Scaled(by, plus * _number(number)), value.shape), value)

    def _flatten(self, x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
        return self._take(flattened(x.shape, start_dim, end_dim), x)

    def _unflatten(self, x: Value, dim: int, sizes: Any) -> Value:
        return self._take(parted(x.shape, dim, sizes), x)

    def _mean(self, x: Value, dim: Any, keepdim: bool = False) -> Value:
        axes = tuple(sorted(axis % (len(x.shape) + 1) for axis in (dim if isinstance(dim, tuple | list) else (dim,))))
        if axes[0] == 0:
            raise NoGraph("records are averaged together")
        mean = Mean(x.shape, axes, keepdim)
        return self._take((mean, mean.after), x)

    def _transpose(self, x: Value, dim0: int, dim1: int) -> Value:
        order = list(range(len(x.shape) + 1))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return self._permute(x, order)

    def _permute(self, x: Value, *dims: Any) -> Value:
        given = dims[0] if isinstance(dims[0], tuple | list) else dims
        order = tuple(axis % (len(x.shape) + 1) for axis in given)
        if order[0] != 0:
            raise NoGraph("records and places are exchanged")
        return self._take((Turned(order), tuple(x.shape[axis - 1] for axis in order[1:])), x)

    def _unsqueeze(self, x: Value, dim: int) -> Value:
        at = dim % (len(x.shape) + 2)
        if at == 0:
            raise NoGraph("an axis is put before the records")
        after = (*x.shape[: at - 1], 1, *x.shape[at - 1 :])
        return self._take((Reshape(x.shape, after), after), x)

    def _squeeze(self, x: Value, dim: int) -> Value:
        at = dim % (len(x.shape) + 1)
        if at == 0:
            raise NoGraph("the records' axis is taken away")
        after = (*x.shape[: at - 1], *x.shape[at:]) if x.shape[at - 1] == 1 else x.shape
        return self._take((Reshape(x.shape, after), after), x)

    def _reshape(self, x: Value, *sizes: Any) -> Value:
        first, *rest = sizes[0] if isinstance(sizes[0], tuple | list) else sizes
        if first is not BATCH and first != -1:
            raise NoGraph("the number of records is built in")
        if any(not isinstance(size, int) for size in rest) or rest.count(-1) > (0 if first == -1 else 1):
            raise NoGraph("a shape is not known")
        known = math.prod(size for size in rest if size != -1)
        after = tuple(math.prod(x.shape) // max(known, 1) if size == -1 else size for size in rest)
        return self._take((Reshape(x.shape, after), after), x)

    _view = _reshape

    def _contiguous(self, x: Value) -> Value:
        return x

    _float = _contiguous

    def _long(self, x: Value) -> Value:
        return self._take((Numbered(), x.shape), x)

    _int = _long

    def _to(self, x: Value, dtype: Any) -> Value:
        if dtype not in (torch.float32, torch.int64, torch.int32):
            raise NoGraph(f"values become {dtype}")
        return x if dtype == torch.float32 else self._long(x)

    def _size(self, x: Value, dim: int | None = None) -> Any:
        sizes = (BATCH, *x.shape)
        return sizes if dim is None else sizes[dim]

    def _attribute(self, x: Any, name: str) -> Any:
        if name != "shape" or not isinstance(x, Value):
            raise NoGraph(f"{name} has no rule")
        return self._size(x)

    def _item(self, sizes: Any, at: int) -> Any:
        if not isinstance(sizes, tuple):
            raise NoGraph("a part of a value is taken")
        return sizes[at]


RULES = {name[1:] for name in vars(_Reader) if name.startswith("_") and not name.startswith("__")}
RULES -= {"graph", "of", "node", "take", "layer", "scaled"}
"""Functions and methods that are read, by name."""


def _joined(steps: list[RowStep], result: int) -> tuple[tuple[RowStep, ...], int]:
    """Steps in which a layer whose output only a ReLU reads ends in that ReLU, and the number of the result."""
    read = Counter(i for step in steps for i in step.reads)
    numbers, found = [0], list[RowStep]()
    for step in steps:
        before, reads = step.reads[0], tuple(numbers[i] for i in step.reads)
        last = found[-1].operation if found and reads[0] == len(found) else None
        if step.operation is RELU and isinstance(last, Linear | Convolution) and read[before] == 1 and not last.relu:
            found[-1] = replace(found[-1], operation=replace(last, relu=True))
        else:
            found.append(RowStep(step.operation, reads))
        numbers.append(len(found))
    return tuple(found), numbers[result]


def _made(kind: type[nn.Module], args: Any, kwargs: Any) -> nn.Module:
    """A layer from the arguments of the function that it is."""
    kwargs = {name: value for name, value in kwargs.items() if name != "input"}
    try:
        return kind(*args, **kwargs)
    except TypeError as error:
        raise NoGraph(f"{kind.__name__} is called as it is not known") from error


def _number(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise NoGraph("a value is combined with something that is no number")
    return float(given)
