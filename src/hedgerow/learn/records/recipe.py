"""How torch finds the gradients of single records for a module: by ghost norms, by `torch.func`, or one by one.

For sums without a mechanism only: what torch computes for a record depends on which others are computed with it. Behind a
mechanism sums are those of `exact`.

The fast way is taken where, on made-up records of several sizes, it finds the same as one backward pass for each record. With
ghost norms records pass through the module together, so a module in which they meet only now and then, by what a batch holds,
is computed otherwise than it was tried. One whose forward pass looks at values (`if x.max() > 8`) is therefore not given to
them. What it decides without looking, as by `torch.where` on a statistic of the batch, is left to whoever writes the module:
forward must treat each record as if it were alone.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.func import grad, vmap
from torch.overrides import TorchFunctionMode

from ..models import Model
from .layers import LAYERS, ParameterGradients, known, whole
from .rewrite import keeps_nothing
from .trained import Trained

log = logging.getLogger("hedgerow.learn")

Path = Literal["ghost", "vmap", "each"]
MEMORY = 2**26
"""Bytes that the gradients, or the activations, of one pass may take."""

SIZES = (1, 1000, 30)
"""The made-up records are tried in these sizes: a module may do with large numbers what it does not with small ones."""


class Unfit(Exception):
    """The layers of a module do not tell its records apart."""


@dataclass
class RecordGradients:
    """The gradients of some records: their squared lengths in each layer, (n, layers), and how to add them up.

    `adders` has one for each trained parameter, with its layer and its shape; see `layers.Part.add`.
    """

    squares: Tensor
    adders: list[tuple[Callable[[Tensor, Tensor], None], int, torch.Size]]

    def add(self, total: Tensor, factors: Tensor) -> None:
        """Add the gradients times factors of shape (n, 1) or (n, layers) to a float64 sum of shape (d,)."""
        columns, sizes = factors.expand(-1, self.squares.shape[1]).unbind(1), [shape.numel() for _, _, shape in self.adders]
        for part, (add, layer, shape) in zip(total.split(sizes), self.adders, strict=True):
            add(part.view(shape), columns[layer])

    def total(self, factors: Tensor) -> Tensor:
        """The sum of the gradients times factors, shape (d,)."""
        found = torch.zeros(sum(shape.numel() for _, _, shape in self.adders), dtype=torch.float64)
        self.add(found, factors)
        return found


@dataclass(frozen=True, eq=False)
class Recipe:
    """How the gradients of a module's trained parameters are found record by record, by torch."""

    model: Model
    path: Path = "each"
    _own: threading.local = field(init=False, repr=False, default_factory=threading.local)

    @cached_property
    def trained(self) -> Trained:
        return Trained(self.model)

    def at_once(self, x: Tensor) -> int:
        """Records of one pass, so that it fits in `MEMORY`."""
        numbers = self.trained.size if self.path != "ghost" else self._tape.numbers or 16 * (x[0].numel() + 1)
        return max(1, min(1024, MEMORY // (4 * numbers)))

    def find(self, flat: Tensor, x: Tensor, target: Tensor) -> RecordGradients:
        """Gradients at weights of shape (all,) of records of shape (n, ...), n above zero."""
        try:
            return self._find(flat, x, target)
        except Unfit:  # these records take another way through the module than the made-up ones did
            return self._each(flat, x, target)

    def _find(self, flat: Tensor, x: Tensor, target: Tensor) -> RecordGradients:
        return {"ghost": self._ghost, "vmap": self._vmap, "each": self._each}[self.path](flat, x, target)

    # ---- ghost norms ------------------------------------------------------------------------------------------------
    @property
    def _tape(self) -> Tape:
        if not hasattr(self._own, "tape"):
            self._own.tape = Tape(self.model.module)
        tape: Tape = self._own.tape
        return tape

    def _ghost(self, flat: Tensor, x: Tensor, target: Tensor) -> RecordGradients:
        parts = self._tape.parts(self.trained.weights(flat), self.model, x, target)
        if set(parts) != set(self.trained.names):
            raise Unfit("a parameter is used by no layer that is known")
        return self._found([parts[name] for name in self.trained.names])

    def _found(self, parts: list[ParameterGradients]) -> RecordGradients:
        """Put the trained parameters together, in their order."""
        shapes = (self.trained.shapes[name] for name in self.trained.names)
        adders = [(part.add, layer, shape) for part, layer, shape in zip(parts, self.trained.layers, shapes, strict=True)]
        return RecordGradients(self._by_layer(torch.stack([part.squares for part in parts], 1)), adders)

    def _by_layer(self, squares: Tensor) -> Tensor:
        """Sum squared lengths of parameters, (n, parameters), over each layer."""
        return torch.zeros(len(squares), self.trained.n_layers).index_add_(1, torch.tensor(self.trained.layers), squares)

    # ---- gradients themselves ---------------------------------------------------------------------------------------
    def _vmap(self, flat: Tensor, x: Tensor, target: Tensor) -> RecordGradients:
        weights = self.trained.weights(flat)
        trained = {name: weights.pop(name) for name in self.trained.names}
        found = vmap(grad(self._loss_of_one), in_dims=(None, None, 0, 0))(trained, weights, x, target)
        return self._gathered([found[name].flatten(1) for name in self.trained.names])

    def _each(self, flat: Tensor, x: Tensor, target: Tensor) -> RecordGradients:
        weights = {name: value.detach() for name, value in self.trained.weights(flat).items()}
        trained = {name: weights.pop(name).requires_grad_() for name in self.trained.names}
        rows = [
            torch.autograd.grad(self._loss_of_one(trained, weights, x[i], target[i]), list(trained.values()), allow_unused=True)
            for i in range(len(x))
        ]
        kept = [
            [
                torch.zeros_like(value) if part is None else part.to_dense()
                for part, value in zip(row, trained.values(), strict=True)
            ]
            for row in rows
        ]
        return self._gathered([torch.stack(column).flatten(1) for column in zip(*kept, strict=True)])

    def _gathered(self, gradients: list[Tensor]) -> RecordGradients:
        return self._found([whole(name, rows) for name, rows in zip(self.trained.names, gradients, strict=True)])

    def _loss_of_one(self, trained: Any, others: Any, x: Tensor, target: Tensor) -> Tensor:
        output = self.model.applied(self._copy, self.model.scaled(x[None]), {**trained, **others})
        return self.model.losses_of(output, target[None])[0]

    @property
    def _copy(self) -> nn.Module:
        if not hasattr(self._own, "copy"):
            self._own.copy = copy.deepcopy(self.model.module)
        found: nn.Module = self._own.copy
        return found


class Tape:
    """A copy of a module whose trained layers write down what they read and where their output enters the graph."""

    def __init__(self, module: nn.Module) -> None:
        self.module = copy.deepcopy(module)
        self.numbers = 0
        self.written: dict[str, tuple[Tensor, int, Any]] = {}
        self.holders: dict[str, nn.Module] = {}
        self.parameters = dict(self.module.named_parameters())
        times: dict[int, int] = {}
        for prefix, layer in self.module.named_modules():
            own = [value for value in layer._parameters.values() if value is not None and value.requires_grad]
            if not own:
                continue
            if not known(layer):
                raise Unfit(f"{type(layer).__name__} has no rule")
            for value in own:
                times[id(value)] = times.get(id(value), 0) + 1
            self.holders[prefix] = layer
            layer.register_forward_hook(self._hook(prefix))
        if any(count > 1 for count in times.values()):
            raise Unfit("layers share a parameter")

    def _hook(self, prefix: str) -> Any:
        def write(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if prefix in self.written or len(inputs) != 1 or not output.requires_grad:
                raise Unfit(f"layer {prefix!r} is called twice, or not with one input")
            self.written[prefix] = inputs[0].detach(), inputs[0]._version, get_gradient_edge(output)

        return write

    def parts(self, weights: dict[str, Tensor], model: Model, x: Tensor, target: Tensor) -> dict[str, ParameterGradients]:
        """One forward and one backward pass, and what every layer makes of them."""
        for name, value in weights.items():
            self.parameters[name].data = value
        self.written.clear()
        try:
            with torch.enable_grad():
                loss = model.losses_of(model.applied(self.module, model.scaled(x)), target).sum()
            order = list(self.written)
            edges = [self.written[prefix][2] for prefix in order]
            slopes = torch.autograd.grad(loss, edges, allow_unused=True)
            found: dict[str, ParameterGradients] = {}
            with torch.no_grad():
                for prefix, g in zip(order, slopes, strict=True):
                    a, version, _ = self.written[prefix]
                    if g is None or len(a) != len(x) or len(g) != len(x) or a._version != version:
                        raise Unfit(f"layer {prefix!r} does not read the records one by one")
                    for part in LAYERS[type(self.holders[prefix])](self.holders[prefix], a, g):
                        found[f"{prefix}.{part.name}".lstrip(".")] = part
            read = sum(self.written[prefix][0].numel() + g.numel() for prefix, g in zip(order, slopes, strict=True)) // len(x)
            self.numbers = max(self.numbers, read + sum(part.numbers for part in found.values()))
            return found
        finally:
            self.written.clear()


class Unseen(TorchFunctionMode):
    """Refuse to look at values while it is entered: what a batch holds must not decide how it is computed."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in LOOKS:
            raise Unfit(f"the module looks at values, by {function.__name__}")
        return function(*args, **(kwargs or {}))


LOOKS = {getattr(Tensor, name) for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist", "numpy")}


def recipe_for(model: Model, x: Tensor, target: Tensor) -> Recipe:
    """Find out, on a few records, made up or not, how a model's gradients are found record by record.

    Raises
    ------
    ModelInvalid (HR-510)
        Nothing is trained, or the module keeps something of what it has seen.
    """
    slow = Recipe(model)
    keeps_nothing(model, x)
    for fast in (Recipe(model, "ghost"), Recipe(model, "vmap")):
        try:
            if fast.path == "ghost":
                with Unseen():
                    model.applied(fast._copy, model.scaled(x))
            if all(_same(fast, slow, size * x, target) for size in SIZES if size == 1 or x.is_floating_point()):
                return fast
            reason = "it finds other gradients"
        except (Unfit, RuntimeError, ValueError, NotImplementedError) as error:
            reason = str(error).split("\n")[0]
        log.info("%s: gradients of records not by %s: %s", type(model.module).__name__, fast.path, reason)
    return slow


def _same(fast: Recipe, slow: Recipe, x: Tensor, target: Tensor) -> bool:
    """Whether two ways find the same; records that the slow way cannot compute tell nothing."""
    for flat in (_moved(slow.model, seed) for seed in range(3)):  # rounding may take another side of a kink: try again
        try:
            wanted = slow.find(flat, x, target)
        except (RuntimeError, ValueError, IndexError):  # such as numbers of words, enlarged
            return True
        if not torch.isfinite(wanted.squares).all() or _agree(fast._find(flat, x, target), wanted):
            return True
    return False


def _moved(model: Model, seed: int) -> Tensor:
    """The model's initial weights, moved a little, so that layers which begin at zero are tried as well."""
    flat = torch.from_numpy(model.initial)
    return flat + 0.05 * torch.randn(len(flat), generator=torch.Generator().manual_seed(seed))


def _agree(found: RecordGradients, wanted: RecordGradients) -> bool:
    """Whether lengths and sums are the same, up to rounding."""
    factors = torch.linspace(0.5, 1.5, len(wanted.squares))[:, None]
    total, other = wanted.total(factors), found.total(factors)
    close = torch.allclose(found.squares, wanted.squares, rtol=1e-3, atol=1e-8)
    return close and bool((total - other).norm() <= 1e-3 * total.norm())
