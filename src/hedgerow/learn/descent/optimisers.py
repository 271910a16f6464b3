"""Optimisers of `torch.optim` as local solvers, by name: each step is the library's own, on the eager path.

    hr.learn.fedavg(federation, module, rounds=20, solver=torch.optim.AdamW, solver_settings={"weight_decay": 0.01})

A party makes the optimiser anew in every round, with the round's learning rate. Only names in `NAMES` and plain numbers travel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from hedgerow.errors import SettingsInvalid

from .rules import RuleName

OptimiserName = Literal[
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"
]

SolverName = Literal[RuleName, OptimiserName]

NAMES: tuple[str, ...] = get_args(OptimiserName)
"""Classes of `torch.optim` that step along a dense gradient, whatever the shapes of the parameters."""

HOW = ("lr", "params", "foreach", "capturable", "differentiable", "fused", "maximize")
"""Arguments of those classes that are not settings: the learning rate has its own, and others say how, or where to."""


def name_of(solver: Any) -> Any:
    """The name of a class of `torch.optim` that is among `NAMES`; what is no class as it is."""
    if isinstance(solver, torch.optim.Optimizer):
        name = type(solver).__name__
        raise SettingsInvalid(
            f"solver is an optimiser of type {name}, which holds parameters; each party makes its own.",
            remedy=f"Give the class and its arguments: solver=torch.optim.{name}, solver_settings={{...}}, learning_rate=...",
        )
    if not isinstance(solver, type):
        return solver
    if solver.__name__ in NAMES and getattr(torch.optim, solver.__name__) is solver:
        return solver.__name__
    raise ValueError(f"of classes, solver takes those of torch.optim called {', '.join(NAMES)}")


def settled(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Settings as they travel, in the order of their names; lists become tuples."""
    return tuple(sorted((name, tuple(value) if isinstance(value, list) else value) for name, value in settings.items()))


def known(name: str) -> list[str]:
    """The settings that a class has."""
    return [key for key in inspect.signature(getattr(torch.optim, name)).parameters if key not in HOW]


def problems(name: str, settings: tuple[tuple[str, Any], ...]) -> list[str]:
    """What is wrong with the settings of a class, in words; it is tried."""
    has = known(name)
    if wrong := [f"{key} is no setting of {name}, which has {', '.join(has)}" for key, _ in settings if key not in has]:
        return wrong
    try:
        step = stepper(name, torch.zeros(4), [torch.Size((2, 2))], 0.1, settings)
        step(torch.ones(4))
    except Exception as error:  # whatever the constructor refuses
        return [f"solver_settings of {name}: {error}"]
    return []


def stepper(
    name: str, y: Tensor, shapes: list[torch.Size], learning_rate: float, settings: tuple[tuple[str, Any], ...]
) -> Callable[[Tensor], None]:
    """A function that takes one step along a gradient of shape (d,), and changes `y` in place.

    The optimiser sees parameters of their own shapes, since some read rows and columns.
    """
    sizes = [shape.numel() for shape in shapes]
    parts = [nn.Parameter(part.view(shape)) for part, shape in zip(y.split(sizes), shapes, strict=True)]
    optimiser = getattr(torch.optim, name)(parts, lr=learning_rate, **dict(settings))

    def step(gradient: Tensor) -> None:
        for part, own in zip(parts, gradient.split(sizes), strict=True):
            part.grad = own.view(part.shape)
        optimiser.step()

    return step
