"""Traced training: the gradient of any module as a flat list of tensor operations, looped over local steps in one call.

    trace    forward and backward of one batch are recorded as a graph (`recorder`); nothing is differentiated any more
    fuse     for plain SGD the update goes into the product that made the gradient:  W <- keep W - lr * (delta^T a)
    replay   the graph is written out as TorchScript, looped over a plan of batches, and run without Python's lock, so that
             threads train parties side by side in one process

A graph belongs to one batch size (and number of stacked parties); short batches are padded with records that do not count.
What cannot be traced, because its control flow depends on data, or does not give the eager gradient when it is checked, trains
eagerly, and a log line says why.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx
from torch.func import vmap

from .recorder import Recorded, recorded
from .rules import RULES, RuleName

log = logging.getLogger("hedgerow.learn")
aten = torch.ops.aten

ARGUMENTS = (
    "x: Tensor, target: Tensor, w: Tensor, plan: Tensor, y: Tensor, towards: Tensor, shift: Tensor, mask: Tensor, "
    "first: Tensor, second: Tensor, constants: List[Tensor], lr: float, pull: float, m: float, b: float, e: float"
)


@dataclass(frozen=True)
class Specialisation:
    """What a traced program is specialised to; one is compiled for each."""

    batch: int
    parties: int = 0
    rule: RuleName = "sgd"
    pulled: bool = False
    shifted: bool = False
    anchored: bool = False
    masked: bool = False

    @property
    def fused(self) -> bool:
        """Whether the update goes into the products."""
        return self.rule == "sgd" and not (self.parties or self.anchored or self.masked)


@dataclass(frozen=True)
class BatchSource:
    """How a batch is taken from kept records: the shape of one and of its target, and (values - low) * scale, cast or not."""

    record: tuple[int, ...]
    low: float = 0.0
    scale: float = 1.0
    target: tuple[int, ...] = ()
    cast: bool = True


def cotangent(kind: str, output: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """Gradient of the batch's loss by the module's output; `share` is each record's weight over the batch's."""
    if kind == "category":
        hit = torch.ones_like(target, dtype=torch.float32).unsqueeze(-1)
        return F.softmax(output, -1).scatter_add(-1, target.unsqueeze(-1), -hit) * share.unsqueeze(-1)
    flat = output.reshape(target.shape)
    slope = torch.sigmoid(flat) - target if kind == "binary" else 2.0 * (flat - target)
    return (slope * share).reshape(output.shape)


def graph_of(
    call: Callable[..., Any],
    kind: str,
    shapes: Sequence[torch.Size],
    batch: Sequence[Tensor],
    losses: Callable[[Any, Tensor], Tensor] | None = None,
) -> Recorded:
    """Trace the gradient of one batch: `(x, target, share, *parameters) -> gradients`, stacked where the batch is.

    Parameters
    ----------
    call : callable
        `(parameters, x) -> output` of one party's model.
    batch : x, target and share, with a leading axis of parties where stacked.
    losses : callable, optional
        `(output, target) -> (n,)`, in the place of the loss of that kind.
    """
    parties = batch[2].shape[0] if batch[2].ndim == 2 else 0

    def applied(x: Tensor, *parts: Tensor) -> Tensor:
        return call(parts, x)

    def pulled(output: Tensor, target: Tensor, share: Tensor) -> Tensor:
        return cotangent(kind, output, target, share)

    def lost(x: Tensor, target: Tensor, share: Tensor, *parts: Tensor) -> Tensor:
        assert losses is not None
        return (share * losses(call(parts, x), target)).sum()

    def slope(x: Tensor, target: Tensor, share: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            if losses is None:
                output = (vmap(applied) if parties else applied)(x, *parts)
                with torch.no_grad():
                    pull = (vmap(pulled) if parties else pulled)(output, target, share)
                end = _Pull.apply(output, pull)
            else:
                end = (vmap(lost) if parties else lost)(x, target, share, *parts).sum()
        return torch.autograd.grad(end, parts, materialize_grads=True)

    lead = (parties,) if parties else ()
    parts = [(torch.randn(*lead, *shape) * 0.1).requires_grad_() for shape in shapes]
    traced = recorded(slope, *batch, *parts)
    for node in list(traced.graph.nodes):
        if node.target in (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.graph.eliminate_dead_code()
    return traced


class _Pull(torch.autograd.Function):
    """A number whose gradient by the output is `pull`. (Given to `torch.autograd.grad`, it would import SymPy.)"""

    @staticmethod
    def forward(ctx: Any, output: Tensor, pull: Tensor) -> Tensor:
        ctx.pull = pull
        return output.sum()

    @staticmethod
    def backward(ctx: Any, one: Tensor) -> tuple[Tensor, None]:
        return ctx.pull, None


class Program:
    """A traced descent, compiled for one `Specialisation`."""

    def __init__(self, traced: Recorded, shapes: Sequence[torch.Size], kind: Specialisation, batch: BatchSource) -> None:
        self.source = source_of(traced.graph, shapes, kind, batch)
        self.constants = [traced.constants[str(node.target)] for node in traced.graph.nodes if node.op == "get_attr"]
        self._run = torch.jit.CompilationUnit(self.source).run

    def __call__(self, *tensors: Tensor, numbers: Mapping[str, float]) -> None:
        """Descend in place on `y` and `first`; the tensors are those of `run`, in its order."""
        with torch.inference_mode(), torch.jit.optimized_execution(False):
            self._run(*tensors, self.constants, **numbers)


def source_of(graph: fx.Graph, shapes: Sequence[torch.Size], kind: Specialisation, batch: BatchSource) -> str:
    """Write a gradient graph and the loop around it as TorchScript."""
    names = [f"p{k}" for k in range(len(shapes))]
    parts = ", ".join(names)
    arguments = "x: Tensor, target: Tensor, share: Tensor, constants: List[Tensor], " + ", ".join(f"{p}: Tensor" for p in names)
    if kind.fused:
        found = fuse(graph)
        body, known = statements(graph, names)
        made = updates(found, names, known, kind)
        lines = [f"def step({arguments}, lr: float, keep: float):", *body, *made, "    return 0"]
    else:
        body, known = statements(graph, names)
        gradients = next(node for node in graph.nodes if node.op == "output").args[0]
        lead, axis = (f"{kind.parties}, ", 1) if kind.parties else ("", 0)
        flat = ", ".join(f"{known[g]}.reshape({lead}-1)" for g in gradients)  # type: ignore[union-attr, index]
        lines = [f"def slope({arguments}):", *body, f"    return torch.cat([{flat}], {axis})"]
        lines += ["", inspect.getsource(RULES[kind.rule])]
    lines += ["", f"def run({ARGUMENTS}):", *views(shapes, kind, "y", "p")]
    if kind.anchored:
        lines += ["    anchor = y.clone()", *views(shapes, kind, "anchor", "a")]
    if kind.parties:
        lines += ["    offsets = (torch.arange(x.size(0)) * x.size(1)).unsqueeze(1)", "    n = x.size(0)"]
    if kind.fused and (kind.pulled or kind.shifted):
        drift = [text for text, on in (("pull * towards", kind.pulled), ("- shift", kind.shifted)) if on]
        lines += [f"    drift = {' '.join(drift)}"]
    lines += [] if kind.fused else ["    remembered = first"]
    lines += ["    for i in range(plan.size(0)):", *(f"        {line}" for line in loop(kind, parts, batch))]
    lines += [] if kind.fused else ["    remembered.copy_(first)"]
    lines += ["    return 0"]
    return "\n".join(line.replace("  # type: ignore[no-untyped-def]", "") for line in lines) + "\n"


def loop(kind: Specialisation, parts: str, batch: BatchSource) -> list[str]:
    """One local step: take the batch, then update y."""
    taken = "records.clamp_min(0)" + (" + offsets" if kind.parties else "")
    flat = ".reshape(-1)" if kind.parties else ""
    many = f"[n, {kind.batch}]" if kind.parties else f"[{kind.batch}]"
    shaped = f"[{', '.join(map(str, ([-1] if kind.parties else []) + [kind.batch, *batch.record]))}]"
    of = ".flatten(0, 1)" if kind.parties else ""
    aims = f"[{', '.join(map(str, ([-1] if kind.parties else []) + [kind.batch, *batch.target]))}]" if batch.target else many
    cast = ".to(torch.float32)" if batch.cast else ""
    scaled = f".sub({batch.low!r})" * (batch.low != 0.0) + f".mul({batch.scale!r})" * (batch.scale != 1.0)
    lines = [
        "records = plan[i]",
        "kept = records.ge(0)",
        f"taken = ({taken}){flat}",
        f"bx = x{of}.index_select(0, taken){cast}{scaled}.reshape({shaped})",
        f"bt = target{of}.index_select(0, taken).reshape({aims})",
        f"bw = w{of}.index_select(0, taken).reshape({many}) * kept",
        "share = bw / bw.sum(-1, True).clamp_min(1e-12)",
    ]
    if kind.fused:
        keep = "1.0 - lr * pull" if kind.pulled else "1.0"
        lines += [f"step(bx, bt, share, constants, {parts}, lr, {keep})"]
        return lines + (["y.add_(drift, alpha=lr)"] if kind.pulled or kind.shifted else [])
    lines += [f"g = slope(bx, bt, share, constants, {parts})"]
    if kind.anchored:
        lines += [f"g = g - slope(bx, bt, share, constants, {parts.replace('p', 'a')})"]
    lines += ["g = g + pull * (y - towards)"] * kind.pulled + ["g = g + shift"] * kind.shifted + ["g = g * mask"] * kind.masked
    lines += [f"moved, one, two = {kind.rule}(y, g, first, second, lr, m, b, e, i + 1)"]
    if not kind.parties:
        return [*lines, "y.copy_(moved)", "first = one", "second = two"]
    rest = ["moves = kept.any(-1, True)", "y.copy_(torch.where(moves, moved, y))"]
    return [*lines, *rest, "first = torch.where(moves, one, first)", "second = torch.where(moves, two, second)"]


def views(shapes: Sequence[torch.Size], kind: Specialisation, flat: str, name: str) -> list[str]:
    """Name the parameters inside a flat vector."""
    lines, start, axis = [], 0, 1 if kind.parties else 0
    for k, shape in enumerate(shapes):
        sizes = ", ".join(map(str, ([kind.parties] if kind.parties else []) + list(shape)))
        lines.append(f"    {name}{k} = {flat}.narrow({axis}, {start}, {math.prod(shape)}).view([{sizes}])")
        start += math.prod(shape)
    return lines


def statements(graph: fx.Graph, names: Sequence[str]) -> tuple[list[str], dict[fx.Node, str]]:
    """The graph's operations as lines, and the name of every value."""
    known: dict[fx.Node, str] = {}
    inputs = iter(["x", "target", "share", *names])
    lines, n_constants = [], 0
    for node in graph.nodes:
        if node.op == "placeholder":
            known[node] = next(inputs)
        elif node.op == "get_attr":
            known[node] = f"constants[{n_constants}]"
            n_constants += 1
        elif node.op == "call_function":
            known[node] = f"_{node.name}"
            lines.append(f"    _{node.name} = {call_text(node, known)}")
    return lines, known


def call_text(node: fx.Node, known: Mapping[fx.Node, str]) -> str:
    """One operation as TorchScript."""
    if getattr(node.target, "__name__", "") == "getitem":
        return f"{known[node.args[0]]}[{node.args[1]}]"  # type: ignore[index]
    if not isinstance(node.target, torch._ops.OpOverload):
        raise NotImplementedError(f"{node.target} is no tensor operation")
    given = [literal(value, known) for value in node.args]
    given += [f"{key}={literal(value, known)}" for key, value in node.kwargs.items() if value is not None]
    return f"torch.ops.{node.target._schema.name.replace('::', '.')}({', '.join(given)})"


def literal(value: Any, known: Mapping[fx.Node, str]) -> str:
    """An argument as TorchScript."""
    if isinstance(value, fx.Node):
        return known[value]
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(literal(part, known) for part in value)}]"
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise NotImplementedError(f"{type(value).__name__} {value!r} as an argument")


VIEWS = (aten.t.default, aten.view.default, aten.transpose.int, aten.unsqueeze.default, aten._unsafe_view.default)


def fuse(graph: fx.Graph) -> list[tuple[fx.Node, ...]]:
    """Find for each parameter what its update needs: two factors of a product, or else its gradient.

    The graph keeps only those; products that an update absorbs are dropped.
    """
    output = next(node for node in graph.nodes if node.op == "output")
    found: list[tuple[fx.Node, ...]] = []
    with graph.inserting_before(output):
        for gradient in output.args[0]:
            turned, source = False, gradient
            while source.target is aten.t.default:
                turned, source = not turned, source.args[0]
            if source.target is aten.mm.default and not any(from_parameter(factor) for factor in source.args):
                a, b = source.args
                found.append(tuple(graph.call_function(aten.t.default, (f,)) for f in (b, a)) if turned else (a, b))
            else:
                found.append((gradient,))
    output.args = ([node for nodes in found for node in nodes],)
    graph.eliminate_dead_code()
    return found


def updates(
    found: Sequence[tuple[fx.Node, ...]], names: Sequence[str], known: Mapping[fx.Node, str], kind: Specialisation
) -> list[str]:
    """In-place updates of the parameters, after everything else has been computed."""
    lines = []
    for name, nodes in zip(names, found, strict=True):
        if len(nodes) == 2:
            a, b = (known[node] for node in nodes)
            lines.append(f"    {name}.addmm_({a}, {b}, beta=keep, alpha=-lr)")
        else:
            lines += [f"    {name}.mul_(keep)"] * kind.pulled + [f"    {name}.add_({known[nodes[0]]}, alpha=-lr)"]
    return lines


def from_parameter(node: fx.Node) -> bool:
    """Whether a value is a parameter, or a view of one, and would change under an update in place."""
    while node.op == "call_function" and node.target in VIEWS:
        node = node.args[0]  # type: ignore[assignment]
    return node in [placeholder for placeholder in node.graph.nodes if placeholder.op == "placeholder"][3:]
