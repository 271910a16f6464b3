"""One descent to be computed: records, plan, weights and terms as tensors, in the form that every path takes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.party import Party

from ..devices import CPU, device
from ..models import Model
from .correction import Correction
from .solver import Solver


@dataclass
class Work:
    """Tensors of one party, or of stacked ones with a leading axis; `y`, `first` and `second` are changed in place.

    Attributes
    ----------
    inputs, target, w : shape (n, ...), (n,), (n,)
    plan : shape (steps, batch_size), stacked (steps, n_parties, batch_size)
    y : shape (d,)
        Weights, from the start to the end.
    towards : shape (d,)
        Where the proximal term pulls to.
    first, second : shape (d,), or (1,) for a rule that remembers nothing
        What the rule remembers.
    """

    model: Model
    solver: Solver
    correction: Correction
    inputs: Tensor
    target: Tensor
    w: Tensor
    plan: Tensor
    y: Tensor
    towards: Tensor
    shift: Tensor | None
    mask: Tensor | None
    first: Tensor
    second: Tensor

    @classmethod
    def of(
        cls,
        party: Party,
        plan: np.ndarray,
        x: np.ndarray,
        model: Model,
        solver: Solver,
        correction: Correction,
        velocity: np.ndarray | None,
    ) -> Work:
        """Gather what a descent from `x` needs."""
        shape = (*party.w.shape[:-1], np.shape(x)[-1])
        towards = x if correction.towards is None else correction.towards
        inputs, target, w = tensors(party)
        memory = (*shape[:-1], 1) if solver.rule == "sgd" or solver.by_torch else shape  # plain SGD remembers nothing
        made = cls(
            model=model,
            solver=solver,
            correction=correction,
            inputs=inputs,
            target=target,
            w=w,
            plan=torch.from_numpy(plan),
            y=copied(x, shape),
            towards=spread(towards, shape),
            shift=None if correction.shift is None else spread(correction.shift, shape),
            mask=None if correction.mask is None else spread(correction.mask, shape),
            first=torch.zeros(memory) if velocity is None else copied(velocity, shape),
            second=torch.zeros(memory),
        )
        return made.on(device())

    def on(self, where: torch.device) -> Work:
        """The same work on a device."""
        if where == CPU:
            return self
        moved = {name: value.to(where) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, model=self.model.on(where), **moved)

    @property
    def away(self) -> bool:
        """Whether its tensors are not the CPU's, for which programs are compiled."""
        return self.y.device.type != "cpu"

    @property
    def parties(self) -> int:
        """How many are stacked; 0 for one alone."""
        return len(self.y) if self.y.ndim == 2 else 0

    def part(self, start: int, stop: int, width: int) -> Work:
        """Some of the stacked parties, filled up to `width` with copies of the last that take no step."""
        rows = torch.arange(start, start + width).clamp_max(stop - 1)
        plan = self.plan[:, rows]
        plan[:, stop - start :] = -1
        own = {name: value if value is None else value[rows] for name, value in vars(self).items() if name in OWN}
        return Work(self.model, self.solver, self.correction, plan=plan, **own)  # type: ignore[arg-type]


OWN = ("inputs", "target", "w", "y", "towards", "shift", "mask", "first", "second")
"""Attributes with a leading axis of parties."""


def tensors(party: Party) -> tuple[Tensor, Tensor, Tensor]:
    """A party's prepared inputs, in whatever type they are kept, its targets and its weights."""
    w = np.asarray(party.w, np.float32)
    inputs, target = (np.ascontiguousarray(party[name]) for name in ("model_input", "model_target"))
    return as_tensor(inputs), as_tensor(target), torch.from_numpy(w)


def as_tensor(array: np.ndarray) -> Tensor:
    """Share an array's memory, also where it may not be written, as in a memory map; nothing here writes to records."""
    if not array.flags.writeable:
        memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
        array = np.frombuffer(memory, array.dtype).reshape(array.shape)
    return torch.from_numpy(array)


def spread(vector: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """A vector as float32 of this shape, shared by stacked parties."""
    return torch.from_numpy(np.ascontiguousarray(vector, np.float32)).expand(shape)


def copied(vector: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """A vector as float32 of this shape, for each party its own, where torch lays tensors out, on which products may depend."""
    return torch.empty(shape).copy_(torch.from_numpy(np.array(vector, np.float32)))
