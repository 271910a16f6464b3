"""Models as the waist sees them: one flat vector of parameters, and a loss for each record."""

from __future__ import annotations

import copy
import math
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from hedgerow.data import Schema
from hedgerow.errors import ModelInvalid, SettingsInvalid

from .descent.flops import flops_of
from .descent.stack import Stack, stack_of
from .devices import CPU, device
from .fixed import Weights, arrived, checked, fixed_of, same, weights_of
from .fixed import told as fixed_told
from .made import Made, leaves_note, made_of
from .reading import Reading, TrainedWeights, read_alike
from .tasks.fitted import FittedTask
from .tasks.trial import tried

KINDS = ("category", "binary", "number")
"""Kinds of a model's target."""

OWN = "task"
"""Kind of a model whose loss and inputs a `Task` names."""

TOLD = ("kind", "stackable", "wide", "least_stack", "flops", "low", "scale", "whole", "task")
"""What a party elsewhere is told of a model, beside how its module was made."""


def per_record_loss(kind: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss of each record, shape (n,): cross-entropy, log-loss of logits, or squared error."""
    return {
        "category": cross_entropy,
        "binary": lambda output, target: F.binary_cross_entropy_with_logits(
            output.reshape(target.shape), target, reduction="none"
        ),
        "number": lambda output, target: (output.reshape(target.shape) - target) ** 2,
    }[kind]


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """That of PyTorch without reduction, to the bit. Its own, under `vmap`, is decomposed by code that imports SymPy."""
    wide = output.to(torch.promote_types(output.dtype, torch.float32))
    return -F.log_softmax(wide, 1).gather(1, target.unsqueeze(1)).squeeze(1)


def hits(kind: str, output: Tensor, target: Tensor) -> Tensor:
    """Return 1.0 where a record is classified rightly, shape (n,); for numbers the squared error."""
    if kind == "category":
        return (output.argmax(-1) == target).float()
    if kind == "binary":
        return ((output.reshape(target.shape) > 0) == (target > 0.5)).float()
    return (output.reshape(target.shape) - target) ** 2


@dataclass(frozen=True, eq=False)
class Model:
    """A module with its task, as local functions receive it.

    Parameters
    ----------
    module : torch.nn.Module
        Template: its architecture is used, its parameters only as initial weights.
    kind : {"category", "binary", "number", "task"}
        Kind of the target, which decides the loss; or "task" where `task` does.
    stackable : bool
        Whether copies of it can be trained in one call; an engine reads this.
    wide : bool
        Whether a party's steps are worth several threads; an engine reads this.
    least_stack : int
        Fewer copies than this train faster one by one; an engine reads this.
    flops : float
        Of one record's forward pass.
    low, scale : float
        The module sees (input - low) * scale, so that records stay in the type in which they are kept.
    whole : bool
        Whether all parameters are in its flat vector, as to be evaluated; otherwise those that are trained (`requires_grad`).
    task : FittedTask, optional
        Inputs, loss and metrics, where a program was given a `Task`.
    reading : Reading, optional
        How features reach the module, which weights by name keep; a party is not told it.
    where : torch.device
        Where it is applied; see `devices`.

    Attributes
    ----------
    names, shapes : of the parameters in its flat vector, in their order
    fixed : dict of Tensor
        The others, which keep the module's values.
    """

    module: nn.Module
    kind: str
    stackable: bool = True
    wide: bool = False
    least_stack: int = 8
    flops: float = 0.0
    low: float = 0.0
    scale: float = 1.0
    whole: bool = False
    task: FittedTask | None = None
    reading: Reading | None = field(default=None, metadata={"told": False})
    where: torch.device = field(default=CPU, metadata={"told": False})
    names: tuple[str, ...] = field(init=False)
    fixed: dict[str, Tensor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parameters = dict(self.module.named_parameters())
        if not parameters:
            raise ModelInvalid(
                f"{type(self.module).__name__} has no parameters to train.", remedy="Give a module with at least one layer."
            )
        for name, part in self.module.named_modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                raise ModelInvalid(
                    f"layer {name!r} is {type(part).__name__}, which mixes records and keeps statistics of them.",
                    remedy="Use nn.GroupNorm or nn.LayerNorm, or module = hr.learn.without_batch_norm(module).",
                )
        fixed = {} if self.whole else fixed_of(self.module)
        object.__setattr__(self, "fixed", {name: value.to(self.where) for name, value in fixed.items()})
        object.__setattr__(self, "names", tuple(name for name in parameters if name not in self.fixed))
        if not self.names:
            raise ModelInvalid("no parameter of the module is trained.", remedy="Leave requires_grad on in at least one layer.")

    def __travel__(self) -> dict[str, Any]:
        """What crosses a wire: how the module was made, and the rest as it is."""
        return {"made": made_of(self.module)} | {name: getattr(self, name) for name in TOLD} | self._fixed_told

    @cached_property
    def _fixed_told(self) -> dict[str, Any]:
        return fixed_told(self.fixed, made_of(self.module).make()) if self.fixed else {}

    @classmethod
    def __arrive__(cls, *, made: Made, fixed: bytes = b"", values: Weights | None = None, **told: Any) -> Model:
        """A model whose module is made again."""
        numbers = [told[name] for name in ("flops", "low", "scale", "least_stack")]
        flags = [told["stackable"], told["wide"], told["whole"]]
        finite = all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers)
        known = told["kind"] in KINDS if told["task"] is None else told["kind"] == OWN and isinstance(told["task"], FittedTask)
        if set(told) != set(TOLD) or not known or not finite or not all(isinstance(f, bool) for f in flags):
            raise ModelInvalid("what arrived is no model.", remedy="Both sides must run the same version of Hedgerow.")
        module = made.make()
        if not told["whole"]:
            arrived(module, fixed, values or {})
        return cls(module, **told)

    @cached_property
    def programs(self) -> dict[Any, Any]:
        """What was compiled for this model, by what it is for."""
        return {}

    @cached_property
    def stack(self) -> Stack | None:
        """The module as a chain of linear layers, where it is one and all of them are trained."""
        return stack_of(self.module, self.kind) if self.task is None else None

    @cached_property
    def _copies(self) -> threading.local:
        return threading.local()

    @cached_property
    def shapes(self) -> list[torch.Size]:
        return [value.shape for name, value in self.module.named_parameters() if name not in self.fixed]

    @property
    def initial(self) -> np.ndarray:
        """The template's parameters as a flat float32 vector."""
        own = [value.detach().reshape(-1) for name, value in self.module.named_parameters() if name not in self.fixed]
        return torch.cat(own).numpy().astype(np.float32)

    def named(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """All parameters by name: those of a flat vector, and the fixed ones."""
        parts = np.split(np.asarray(flat, np.float32), np.cumsum([shape.numel() for shape in self.shapes])[:-1])
        made = {name: part.reshape(shape) for name, part, shape in zip(self.names, parts, self.shapes, strict=True)}
        if self.fixed:
            made |= {name: value.numpy().copy() for name, value in self.fixed.items()}
            made = {name: made[name] for name, _ in self.module.named_parameters()}
        return made if self.reading is None else TrainedWeights(made, self.reading)

    def flat(self, weights: Any) -> np.ndarray:
        """Join parameters by name, or those of a state, into a flat vector.

        Raises
        ------
        ModelInvalid (HR-510)
            One is missing or has another shape, or a fixed one differs from the module's.
        SettingsInvalid (HR-511)
            The weights were trained on features that were read otherwise; see `read_alike`.
        """
        given = weights_of(weights)
        read_alike(getattr(given, "reading", None), self.reading)
        found = checked(given, dict(zip(self.names, self.shapes, strict=True)))
        same(self.fixed, given)
        return np.concatenate([value.reshape(-1) for value in found])

    def outputs(self, flat: Tensor, x: Tensor, *, scaled: bool = False) -> Tensor:
        """Apply the module with these parameters to records of shape (n, ...): as they are kept, or `scaled` already."""
        parts = torch.split(flat, [shape.numel() for shape in self.shapes])
        weights = [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return self.call(weights, x if scaled else self.scaled(x))

    def call(self, parts: Sequence[Tensor], x: Tensor) -> Tensor:
        """Apply the module with these parameters to its input."""
        return self.applied(self._of_this_thread, x, dict(zip(self.names, parts, strict=True)) | self.fixed)

    def applied(self, module: nn.Module, x: Tensor, weights: dict[str, Tensor] | None = None) -> Any:
        """Apply a copy of the module, with these parameters or its own, to its input."""
        args, kwargs = ((x,), {}) if self.task is None else self.task.arguments(x)
        output = module(*args, **kwargs) if weights is None else functional_call(module, weights, args, kwargs)
        return output if self.task is None else self.task.chosen(output)

    def scaled(self, x: Tensor) -> Tensor:
        """The module's input: float32, from values in the type in which they are kept; with a task they are cast in `call`."""
        if self.task is not None:
            return x
        x = x.to(torch.float32)
        return x if (self.low, self.scale) == (0.0, 1.0) else (x - self.low) * self.scale

    def on(self, where: torch.device) -> Model:
        """The model as it is applied on a device; kept."""
        if where == self.where:
            return self
        if where not in self.programs:
            self.programs[where] = replace(self, where=where)
        found: Model = self.programs[where]
        return found

    def large(self, batch_size: int) -> bool:
        """Whether a step of this size is worth several threads: above two gigaflops, some tens of milliseconds."""
        return 3.0 * batch_size * self.flops > 2e9

    @property
    def _of_this_thread(self) -> nn.Module:
        """A copy of the module: `functional_call` swaps parameters in place, which threads must not share."""
        if not hasattr(self._copies, "module"):
            own = copy.deepcopy(self.module)
            self._copies.module = own if self.where.type == "cpu" else own.to(self.where)
        return self._copies.module

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let this thread's copy of the module be as in evaluations, without dropout; put it back then."""
        before = [(part, part.training) for part in self._of_this_thread.modules()]
        self._of_this_thread.eval()
        try:
            yield
        finally:
            for part, trains in before:
                part.training = trains

    def losses(self, flat: Tensor, x: Tensor, target: Tensor, *, scaled: bool = False) -> Tensor:
        """Loss of each record, shape (n,)."""
        return self.losses_of(self.outputs(flat, x, scaled=scaled), target)

    def losses_of(self, output: Any, target: Tensor) -> Tensor:
        """Loss of each record, shape (n,), of outputs that are at hand."""
        return per_record_loss(self.kind)(output, target) if self.task is None else self.task.losses(output, target)

    @cached_property
    def stochastic(self) -> bool:
        """Whether the module has a layer of torch's that draws random numbers while it trains."""
        return any(draws(part) for part in self.module.modules())


def _listed(names: tuple[str, ...]) -> str:
    """A few of the columns."""
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f" ({', '.join(names[:6])}{more})" if names else ""


def model_for(
    module: nn.Module, schema: Schema, x: np.ndarray, low: float = 0.0, scale: float = 1.0, *, whole: bool = False
) -> Model:
    """Pair a module with the schema's target, and try it on some records before any party is asked."""
    declared = schema[schema.target] if schema.target else None
    kind = declared.kind if declared is not None and declared.kind in ("category", "binary") else "number"
    model, n_levels = (
        Model(module, kind, low=low, scale=scale, whole=whole),
        len(declared.levels) if declared is not None else 0,
    )
    name, weights = type(module).__name__, torch.from_numpy(model.initial)
    try:
        with torch.no_grad():
            output = model.outputs(weights, torch.from_numpy(x))
    except Exception as error:  # whatever a foreign module raises
        raise ModelInvalid(
            f"{name} does not accept records of shape {x.shape[1:]}: {error}",
            remedy=f"Its input is the features, joined{_listed(schema.features)}; features=[...] takes fewer.\n"
            "A single array-shaped feature keeps its shape. Say several inputs, or those of a dict, by name:\n"
            'task=hr.learn.Task(inputs={"argument": "column", ...}).',
        ) from error
    if not isinstance(output, Tensor):
        raise ModelInvalid(
            f"{name} returns a {type(output).__name__}, not a tensor.",
            remedy='Say which part of it counts: task=hr.learn.Task(output="logits"), or give each output a loss.',
        )
    wanted = (len(x), n_levels) if kind == "category" else (len(x),)
    if output.shape != wanted and output.shape != (*wanted, 1):
        raise ModelInvalid(
            f"{name} turns {len(x)} records into outputs of shape {tuple(output.shape)}; a {kind} target needs {wanted}.",
            remedy="Give the last layer one output for each level of a category, and a single one otherwise.",
        )
    return replace(model, flops=_flops(model, weights, x))


def model_for_task(module: nn.Module, reading: Reading, *, whole: bool = False) -> Model:
    """Pair a module with a task, and try them on made-up records before any party is asked."""
    task = reading.task
    assert task is not None
    model = Model(module, OWN, whole=whole, task=task)
    tried(model)
    return replace(model, flops=_flops(model, torch.from_numpy(model.initial), task.made_up(2)[0].numpy()))


def _flops(model: Model, weights: Tensor, x: np.ndarray) -> float:
    """Floating-point operations of one record's forward pass."""
    if model.stack is not None:
        return model.stack.flops
    with torch.no_grad():
        return flops_of(lambda: model.outputs(weights, torch.from_numpy(x))) / len(x)


def draws(part: nn.Module) -> bool:
    if isinstance(part, nn.modules.dropout._DropoutNd):
        return part.p > 0
    if isinstance(part, nn.RNNBase):
        return part.dropout > 0 and part.num_layers > 1  # there is none behind the last layer
    if isinstance(part, nn.MultiheadAttention):
        return part.dropout > 0
    return isinstance(part, nn.RReLU | nn.FractionalMaxPool2d | nn.FractionalMaxPool3d)


_generator = threading.Lock()


@contextmanager
def own_generator(rng: Any) -> Iterator[None]:
    """Let the global generators of torch, NumPy and Python follow a party's stream, one party at a time; put them back then."""
    with _generator, torch.random.fork_rng(devices=[where] if (where := device()).type == "cuda" else []):
        before = np.random.get_state(), random.getstate()
        try:
            begin_anew(int(rng.integers(2**62)))
            yield
        finally:
            np.random.set_state(before[0])
            random.setstate(before[1])


def begin_anew(seed: int) -> None:
    """Seed the global generators of torch, NumPy and Python; within `own_generator`, which puts them back."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for devices first, a hundred times as long
    np.random.seed(seed % 2**32)
    random.seed(seed)


@leaves_note
def linear(n_inputs: int, n_outputs: int) -> nn.Module:
    """Logistic or linear regression, starting at zero."""
    layer = nn.Linear(n_inputs, n_outputs)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(nn.Flatten(), layer)


@leaves_note
def mlp(n_inputs: int, hidden: Sequence[int], n_outputs: int, *, seed: int = 0) -> nn.Module:
    """Fully connected layers with ReLU between them; the seed decides the initial weights."""
    if any(width < 1 for width in hidden):
        raise SettingsInvalid(f"hidden layers of {list(hidden)} units.", remedy="Every layer has at least one unit.")
    widths = [n_inputs, *hidden, n_outputs]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers[:-1])
