"""The exact sum of clipped gradients.

    parts    the gradients of some records, layer by layer                 functions of the broadcast and of each record
    c        min(w, S (1 - 2.5e-4) / length), for each radius              zero where anything is not finite
    v        c times the gradient, in whole steps, |v| <= S / step         checked in whole numbers: where it is longer it is
                                                                           cut off towards zero, and if it still is, it is zero
    total    the sum of all v, in int64                                    has no order, so it is that of any parts

The step is a power of two of which the clip has between 2^24 and 2^25. One record more moves the total by its own v, bit for
bit: the bound is exactly the clip, whoever the other records are.

Source: Abadi et al., CCS 2016, Algorithm 1; whole steps and independent rows as in the design note on the integer grid.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.errors import ContributionInvalid

from ...models import Model
from ...rowwise import kernels as rows
from ...rowwise.subnormals import ieee
from ..clipping import Clipping
from ..rewrite import keeps_nothing
from ..trained import Trained
from .alone import parts_alone
from .graph import RowGraph
from .operations import Array, NoGraph, Numbered, Shape
from .parts import Formed, LayerGradients
from .trace import traced

log = logging.getLogger("hedgerow.learn")

MEMORY = 2**26
"""Bytes that the values and gradients of one pass may take."""

MOST = 2**28
"""Records of a sum are fewer, so that it is a whole number below 2^53 and exact in float64."""

ALONE = 64
"""Records, at most, whose gradients are held at once where they are found one after the other."""


@dataclass
class Totals:
    """Whole-number sums, layer by layer."""

    sums: dict[str, Array] = field(default_factory=dict)
    kinds: dict[str, LayerGradients] = field(default_factory=dict)

    def add(self, parts: list[LayerGradients]) -> None:
        """Add what was made whole."""
        for part in parts:
            key = part.names[0]
            if key not in self.sums:
                self.sums[key], self.kinds[key] = np.zeros(part.shape, np.int64), part
            part.add(self.sums[key])

    def flat(self, trained: Trained, step: float) -> Array:
        """The sum over the trained parameters, (d,), float64, in the units of the gradient."""
        by_name: dict[str, Array] = {}
        for key, total in self.sums.items():
            by_name |= self.kinds[key].named(total)
        found, at = np.zeros(trained.size), 0
        for name in trained.names:
            size = trained.shapes[name].numel()
            if name in by_name:
                found[at : at + size] = by_name[name].reshape(-1)
            at += size
        found *= step
        return found


@dataclass(frozen=True, eq=False)
class Exact:
    """How a model's exact sums are found for records of a shape: by its graph, or one record after the other.

    Attributes
    ----------
    graph : RowGraph or None
    reason : str
        Why there is no graph; empty while it is found out.
    numbers : int
        Held for each record.
    """

    trained: Trained
    graph: RowGraph | None
    reason: str = ""
    numbers: int = 1

    @property
    def at_once(self) -> int:
        """Records of one pass; the sum does not depend on it."""
        if self.graph is None:
            return max(1, min(ALONE, MEMORY // (8 * self.trained.size)))
        return max(1, min(1024, MEMORY // (4 * self.numbers)))

    def prepare(self, flat: Tensor) -> Any:
        """A broadcast's weights, ready for `parts`."""
        weights = self.trained.weights(flat.detach().to(torch.float32))
        if self.graph is None:
            return weights
        return self.graph.prepare({name: value.contiguous().numpy() for name, value in weights.items()})

    def parts(self, made: Any, x: Tensor, target: Tensor) -> list[LayerGradients]:
        """The gradients of records of shape (n, ...), n above zero."""
        if self.graph is None:
            return parts_alone(self.trained, made, x, target, tell=bool(self.reason))
        return self.graph.parts(made, self.scaled(x.numpy()), target.numpy())

    def scaled(self, x: Array) -> Array:
        """What the module reads, in this thread: of a task its one input, else `Model.scaled`."""
        model = self.trained.model
        if model.task is not None:
            (tensor,) = model.task.inputs.tensors(torch.from_numpy(x)).values()
            found: Array = np.ascontiguousarray(tensor.numpy(), np.float32)
            return found
        values = np.ascontiguousarray(x, np.float32)
        if (model.low, model.scale) == (0.0, 1.0):
            return values
        return (values - np.float32(model.low)) * np.float32(model.scale)


@ieee
def exact_sum(exact: Exact, flat: Tensor, x: Tensor, target: Tensor, w: Tensor, clipping: Clipping) -> tuple[Array, Array]:
    """The exact sum, (d,), a whole multiple of `clipping.bound.step`, and lengths before the clip, (n, layers).

    Weights of shape (n,) that are not finite, or below zero, count as zero.
    """
    if len(x) >= MOST:
        raise ContributionInvalid(f"a sum of {len(x)} records.", remedy=f"An exact sum has fewer than {MOST}.")
    made, totals, squares = exact.prepare(flat), Totals(), [np.zeros((0, exact.trained.n_layers))]
    weights = np.nan_to_num(w.numpy().astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0).clip(min=0.0)
    for start in range(0, len(x), exact.at_once):
        some = slice(start, start + exact.at_once)
        parts = exact.parts(made, x[some], target[some])
        squares.append(hold(parts, weights[some], exact.trained, clipping))
        totals.add(parts)
    lengths = np.sqrt(np.concatenate(squares))
    return totals.flat(exact.trained, clipping.step), np.where(np.isfinite(lengths), lengths, 0.0)


def hold(parts: list[LayerGradients], weights: Array, trained: Trained, clipping: Clipping) -> Array:
    """Make records' gradients whole and hold them to the clip; return their squared lengths before it, (n, layers)."""
    layers = dict(zip(trained.names, trained.layers, strict=True))
    where = [layers[part.names[0]] for part in parts]
    squares = np.zeros((len(weights), trained.n_layers))
    for part, layer in zip(parts, where, strict=True):
        squares[:, layer] += part.squares()
    factors = _factors(squares, weights, clipping)
    step = clipping.step
    used = [part.shorten(factors[layer], step, None) for part, layer in zip(parts, where, strict=True)]
    if not (within := _within(used, where, clipping)).all():
        cut = ~within
        used = [part.shorten(factors[layer], step, cut) for part, layer in zip(parts, where, strict=True)]
        if not (within := _within(used, where, clipping)).all():
            for part in parts:
                part.leave_out(~within)
    return squares


def _factors(squares: Array, weights: Array, clipping: Clipping) -> Mapping[int, Array]:
    """By what the records' gradients in each layer are multiplied, (n,) each."""
    n_layers = squares.shape[1]
    there = np.isfinite(squares).all(1)
    weights = np.where(there, weights, 0.0)
    if len(clipping.radii) > 1:
        return {i: rows.factors(squares[:, i], weights, clipping.radii[i]) for i in range(n_layers)}
    joint = np.zeros(len(squares))
    for i in range(n_layers):
        joint += squares[:, i]
    return dict.fromkeys(range(n_layers), rows.factors(joint, weights, clipping.radius))


def _within(used: list[Array], where: list[int], clipping: Clipping) -> Array:
    """Whether each record is within the radius, and within that of each layer, in whole numbers."""
    found: Array = rows.within(used, clipping.radius, clipping.step)
    if len(clipping.radii) > 1:
        for i, radius in enumerate(clipping.radii):
            own = [one for one, layer in zip(used, where, strict=True) if layer == i]
            if own:
                found = found & rows.within(own, radius, clipping.step)
    return found


# ---- finding out how --------------------------------------------------------------------------------------------------------
def exact_for(model: Model, shape: Shape) -> Exact:
    """Find out how a model's exact sums are found for records of a shape, on made-up ones alone.

    No record decides it: what one of them decided would move the others.

    Raises
    ------
    ModelInvalid (HR-510)
        Nothing is trained, or the module keeps something of what it has seen, or draws random numbers.
    """
    trained, generator = Trained(model), torch.Generator().manual_seed(0)
    if model.task is not None:
        x, target = model.task.made_up(2)
        keeps_nothing(model, x)
        lone = model.task.lone
        return _graph_or_alone(trained, lambda: traced(trained, _shape_of(lone)), lambda graph: (x, target))
    numbers, words = torch.randn(2, *shape, generator=generator), torch.randint(0, 3, (2, *shape), generator=generator)
    for x in (numbers, words.float()):
        keeps_nothing(model, x, may_fail=True)  # such as numbers that are no words
    target = torch.randn(2, generator=generator) if model.kind == "number" else torch.arange(2)
    target = target if model.kind == "category" else target.float()

    def records(graph: RowGraph) -> tuple[Tensor, Tensor]:
        read = any(isinstance(step.operation, Numbered) for step in graph.steps)
        return (words.float() if read else numbers), target

    return _graph_or_alone(trained, lambda: traced(trained, shape), records)


def _shape_of(lone: Shape | None) -> Shape:
    if lone is None:
        raise NoGraph("the task has several inputs, or whole numbers, or names a part of the output")
    return lone


def _graph_or_alone(
    trained: Trained, follow: Callable[[], RowGraph], records: Callable[[RowGraph], tuple[Tensor, Tensor]]
) -> Exact:
    """The graph where it finds what autograd finds of two made-up records; else one record after the other, which is said."""
    try:
        graph = follow()
        x, target = records(graph)
        fast = Exact(trained, graph, numbers=_numbers(graph, trained, x, target))
        if _same(fast, Exact(trained, None), x, target):
            return fast
        reason = "operations find other gradients than autograd"
    except (NoGraph, ValueError, IndexError, RuntimeError) as error:
        reason = str(error).split("\n")[0]
    log.warning(
        "%s: gradients are found for one record after the other, which takes some ten times as long: %s. "
        "Layers and functions that are computed together are listed in docs/exact-bounds.md.",
        type(trained.model.module).__name__,
        reason,
    )
    return Exact(trained, None, reason)


def _numbers(graph: RowGraph, trained: Trained, x: Tensor, target: Tensor) -> int:
    """Numbers that a record takes: of all values, forward and backward, and of gradients that are formed."""
    found = Exact(trained, graph)
    made = found.prepare(torch.from_numpy(trained.model.initial))
    values = [found.scaled(x[:1].numpy())]
    for step, own in zip(graph.steps, made, strict=True):
        values.append(step.operation.forward(own, *(values[i] for i in step.reads))[0])
    formed = sum(part.g.size for part in found.parts(made, x[:1], target[:1]) if isinstance(part, Formed))
    return 4 * sum(value.size for value in values) + 2 * formed


def _same(fast: Exact, slow: Exact, x: Tensor, target: Tensor) -> bool:
    """Whether two ways find the same; weights for which a kink decides are tried three times."""
    model, clipping = fast.trained.model, Clipping.of(1.0)
    for seed in range(3):
        flat = torch.from_numpy(model.initial)
        flat = flat + 0.05 * torch.randn(len(flat), generator=torch.Generator().manual_seed(seed))
        (one, lengths), (other, wanted) = (
            exact_sum(way, flat, x, target, torch.ones(len(x)), clipping) for way in (fast, slow)
        )
        if np.allclose(lengths, wanted, rtol=1e-3, atol=1e-6) and np.linalg.norm(one - other) <= 1e-2 * len(x):
            return True
    return False
