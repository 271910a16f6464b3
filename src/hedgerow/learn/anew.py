"""Copies of modules, losses and metrics for one record: what one of them keeps, no other record finds."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from .tasks.memory import Copies

if TYPE_CHECKING:
    from .models import Model


def anew(model: Model) -> Model:
    """A model with copies of its task's losses and metrics; itself where these are plain functions."""
    if model.task is None or (task := model.task.anew()) is model.task:
        return model
    made = copy.copy(model)
    object.__setattr__(made, "task", task)
    return made


def losses_alone(output: Any, target: Tensor, *, model: Model) -> Tensor:
    """Losses as the model has them, by copies that nothing else has met."""
    return anew(model).losses_of(output, target)


def module_anew(model: Model, weights: Mapping[str, Tensor]) -> nn.Module:
    """A copy of the module as it was given, with these parameters."""
    key = "copies of the module"
    if key not in model.programs:
        model.programs[key] = Copies(model.module)
    made: nn.Module = model.programs[key]({id(value): weights[name] for name, value in model.module.named_parameters()})
    return made


def outputs_alone(model: Model, flat: Tensor, x: Tensor) -> Any:
    """Outputs of one record, without dropout, of a copy of the module where it may keep something from call to call."""
    if not _keeps(model):
        return model.outputs(flat, x)
    parts = zip(model.names, torch.split(flat.clone(), [shape.numel() for shape in model.shapes]), model.shapes, strict=True)
    weights = {name: nn.Parameter(part.view(shape), requires_grad=False) for name, part, shape in parts}
    weights |= {name: nn.Parameter(value.clone(), requires_grad=False) for name, value in model.fixed.items()}
    return model.applied(module_anew(model, weights).eval(), model.scaled(x), dict(weights))


def _keeps(model: Model) -> bool:
    """Whether a module has anything but layers of torch without hooks, buffers, and largest norms."""
    key = "keeps from call to call"
    if key not in model.programs:
        model.programs[key] = any(
            not type(part).__module__.startswith("torch.nn.modules.")
            or bool(part._forward_hooks or part._forward_pre_hooks or part._buffers)
            or getattr(part, "max_norm", None) is not None
            or "forward" in vars(part)
            for part in model.module.modules()
        )
    found: bool = model.programs[key]
    return found
