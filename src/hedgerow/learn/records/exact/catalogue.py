"""Layers and functions that have operations, and what these make of records of a shape.

Layers are known by their exact type, since a subclass may do something else.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ...zoo import Planes
from .convolutions import Convolution
from .layers import EmbeddedRows, Linear
from .norms import Norm
from .operations import GELU, RELU, SIGMOID, SILU, SOFTPLUS, TANH, NoGraph, Operation, Reshape, Shape
from .pools import Pool

Made = tuple[Operation | None, Shape]
"""An operation, None for one that changes nothing, and the shape of what it gives."""

ELEMENTWISE: dict[Any, Operation] = {nn.ReLU: RELU, nn.Tanh: TANH, nn.Sigmoid: SIGMOID, nn.SiLU: SILU}
POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)


def flattened(shape: Shape, start: int = 0, end: int = -1) -> Made:
    axes = len(shape) + 1
    first, last = start % axes, end % axes
    if first == 0:
        raise NoGraph("records are flattened together")
    joined = (*shape[: first - 1], math.prod(shape[first - 1 : last]), *shape[last:])
    return Reshape(shape, joined), joined


def parted(shape: Shape, axis: int, sizes: Any) -> Made:
    if not isinstance(axis, int) or axis % (len(shape) + 1) == 0 or not all(isinstance(size, int) for size in sizes):
        raise NoGraph("an axis is parted as it is not known")
    at = axis % (len(shape) + 1) - 1
    known = math.prod(size for size in sizes if size != -1)
    into = tuple(shape[at] // max(known, 1) if size == -1 else size for size in sizes)
    after = (*shape[:at], *into, *shape[at + 1 :])
    return Reshape(shape, after), after


def _planes(shape: Shape) -> Made:
    return (Reshape(shape, (1, *shape)), (1, *shape)) if len(shape) == 2 else (None, shape)


def _softplus(layer: nn.Softplus, prefix: str, shape: Shape) -> Made:
    if layer.beta != 1:
        raise NoGraph("softplus with another slope")
    return SOFTPLUS, shape


def _gelu(layer: nn.GELU, prefix: str, shape: Shape) -> Made:
    if layer.approximate != "none":
        raise NoGraph("an approximation of GELU")
    return GELU, shape


def _unless_drawn(layer: nn.Dropout, prefix: str, shape: Shape) -> Made:
    if layer.p > 0:
        raise NoGraph("dropout")
    return None, shape


LAYERS: dict[type[nn.Module], Callable[[Any, str, Shape], Made]] = {
    nn.Linear: Linear.of,
    nn.Conv1d: Convolution.of,
    nn.Conv2d: Convolution.of,
    nn.Embedding: EmbeddedRows.of,
    nn.LayerNorm: Norm.of,
    nn.RMSNorm: Norm.of,
    nn.GroupNorm: Norm.of,
    nn.Softplus: _softplus,
    nn.GELU: _gelu,
    nn.Dropout: _unless_drawn,
    nn.Identity: lambda layer, prefix, shape: (None, shape),
    nn.Flatten: lambda layer, prefix, shape: flattened(shape, layer.start_dim, layer.end_dim),
    nn.Unflatten: lambda layer, prefix, shape: parted(shape, layer.dim, layer.unflattened_size),
    Planes: lambda layer, prefix, shape: _planes(shape),
    **dict.fromkeys(POOLS, Pool.of),
    **{kind: lambda layer, prefix, shape: (ELEMENTWISE[type(layer)], shape) for kind in ELEMENTWISE},
}

FUNCTIONS: dict[Any, type[nn.Module]] = {
    F.relu: nn.ReLU,
    torch.relu: nn.ReLU,
    torch.tanh: nn.Tanh,
    F.tanh: nn.Tanh,
    torch.sigmoid: nn.Sigmoid,
    F.sigmoid: nn.Sigmoid,
    F.softplus: nn.Softplus,
    F.gelu: nn.GELU,
    F.silu: nn.SiLU,
    F.max_pool1d: nn.MaxPool1d,
    F.max_pool2d: nn.MaxPool2d,
    F.avg_pool1d: nn.AvgPool1d,
    F.avg_pool2d: nn.AvgPool2d,
    F.adaptive_avg_pool1d: nn.AdaptiveAvgPool1d,
    F.adaptive_avg_pool2d: nn.AdaptiveAvgPool2d,
    "relu": nn.ReLU,
    "relu_": nn.ReLU,
    "tanh": nn.Tanh,
    "tanh_": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "sigmoid_": nn.Sigmoid,
}
"""Functions, and methods by name, that are layers without parameters; these take their arguments."""

WORDS = {torch.flatten: "flatten", torch.mean: "mean", torch.transpose: "transpose", torch.permute: "permute"}
WORDS |= {torch.unsqueeze: "unsqueeze", torch.squeeze: "squeeze", torch.reshape: "reshape", torch.add: "add"}
WORDS |= {operator.add: "add", operator.iadd: "add", operator.mul: "mul", operator.imul: "mul", torch.mul: "mul"}
WORDS |= {operator.sub: "sub", operator.truediv: "div", operator.getitem: "item", getattr: "attribute"}
IN_PLACE = {operator.iadd, operator.imul}
