"""Inputs that are moved within a small ball so that a model errs on them: for adversarial training, and for evasion.

    x_0  <- x + U(-r, r), or x where there is no random start
    x_k  <- P(x_{k-1} + a sign(d loss(x_{k-1}, y) / dx)),  k = 1 .. steps
    P(z) :  within r of x in every coordinate, and within the declared range of its column

Coordinates are those of the module's input, as `scale` brings features there: a column with a range from 0 has 1 at its upper
end, so that a radius of 0.1 is a tenth of the range. Indicators of categories, 0/1 columns and columns without a declared range
stay as they are.

Source: one step of length r without a random start is the fast gradient sign method (Goodfellow, Shlens and Szegedy, ICLR 2015,
section 4); several with one are projected gradient descent (Madry et al., ICLR 2018, section 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.errors import SettingsInvalid, suggestion

if TYPE_CHECKING:
    from hedgerow.data import Column, Schema

    from ..reading import Reading

MOVES = ("number", "integer")
"""Kinds of columns whose values are moved."""

STEP = 2.5
"""Length of all steps together, in radii, where no step is given: as in the experiments of Madry et al. 2018."""

Room = tuple[int, float | None, float | None]
"""Adjacent coordinates of an input: how many, and the least and largest value; None twice where they do not move."""


@dataclass(frozen=True)
class Adversary:
    """Who moves inputs.

    Parameters
    ----------
    radius : float
        The largest move of a coordinate, in the units in which the module reads it.
    steps : int
    step : float, optional
        Length of each; by default 2.5 radii divided by the steps.
    random_start : bool
        Whether the first step begins at a random point of the ball.
    room : tuple of (int, float, float)
        Ranges of the input's coordinates; see `room_of`.
    """

    radius: float
    steps: int = 7
    step: float | None = None
    random_start: bool = True
    room: tuple[Room, ...] = ()

    def __post_init__(self) -> None:
        numbers = [self.radius, *([] if self.step is None else [self.step])]
        lawful = all(_is_number(one) and math.isfinite(one) and one > 0 for one in numbers)
        if not lawful or isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise SettingsInvalid(
                f"inputs are moved with radius {self.radius!r}, steps {self.steps!r} and step {self.step!r}.",
                remedy="Radius and step are numbers above zero, in units of the module's input, and steps are at least one.",
            )

    @classmethod
    def of(cls, given: Mapping[str, Any], reading: Reading, schema: Schema) -> Adversary:
        """By the setting `adversarial` of a program.

        Raises
        ------
        SettingsInvalid (HR-511)
            An unknown key, no radius, or a model none of whose inputs moves.
        """
        known = [one.name for one in fields(cls) if one.name != "room"]
        for name in given:
            if name not in known:
                raise SettingsInvalid(f"adversarial has no setting {name!r}.", remedy=suggestion(name, known))
        if "radius" not in given:
            raise SettingsInvalid(
                "adversarial training needs a radius.", remedy="For example adversarial = { radius = 0.1, steps = 7 }."
            )
        return cls(**given, room=room_of(reading, schema))

    def moved(
        self, loss: Callable[[Tensor], Tensor], x: Tensor, uniform: Callable[[tuple[int, ...]], np.ndarray] | None = None
    ) -> Tensor:
        """Inputs near `x`, of shape (n, ...), at which the loss of each record is large; of each, by its own values alone.

        Parameters
        ----------
        loss : callable
            From inputs of shape (n, ...) to losses of shape (n,), each of which depends on its own input.
        uniform : callable, optional
            Draws an array of this shape evenly from [0, 1); only for a random start.
        """
        least, most = self.bounds(x)
        at = x
        if self.random_start and uniform is not None:
            drawn = torch.from_numpy(np.asarray(uniform(tuple(x.shape)), np.float32)).to(x.device)
            at = torch.clamp(x + (2 * drawn - 1) * self.radius, least, most)
        length = STEP * self.radius / self.steps if self.step is None else self.step
        for _ in range(self.steps):
            at = at.detach().requires_grad_()
            with torch.enable_grad():
                slope = torch.autograd.grad(loss(at).sum(), at)[0]
            at = torch.clamp(at.detach() + length * slope.sign(), least, most)
        return at.detach()

    def bounds(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Least and largest values that coordinates of inputs may take, of the shape of `x`.

        A value that lies outside its range already moves inwards or stays.
        """
        low, high = (torch.from_numpy(ends).to(x.device) for ends in self._ends)
        if low.numel() == 1:
            low, high = low.expand(x.shape[1:]), high.expand(x.shape[1:])
        low, high = low.reshape(x.shape[1:]), high.reshape(x.shape[1:])
        stays = torch.isnan(low)
        least = torch.where(stays, x, torch.minimum(torch.maximum(x - self.radius, low), x))
        return least, torch.where(stays, x, torch.maximum(torch.minimum(x + self.radius, high), x))

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        widths = [width for width, _, _ in self.room]
        return tuple(np.repeat(np.array([room[k] for room in self.room], np.float32), widths) for k in (1, 2))  # type: ignore[return-value]

    def within(self, radius: float) -> Adversary:
        """The same with another radius; a step that was given keeps its share of the radius."""
        step = None if self.step is None else self.step * radius / self.radius
        return replace(self, radius=radius, step=step)


def room_of(reading: Reading, schema: Schema) -> tuple[Room, ...]:
    """The ranges of a module's input, coordinate by coordinate; one triple of width 1 for a single array-shaped column.

    Raises
    ------
    SettingsInvalid (HR-511)
        No column moves; a task has inputs of its own.
    """
    if reading.task is not None:
        raise SettingsInvalid(
            "inputs are moved of a module that reads the features by itself, and a task names its inputs.",
            remedy="Leave the task out, or give the module one array.",
        )
    columns = [schema[name] for name in reading.features]
    alone = len(columns) == 1 and bool(columns[0].shape) and columns[0].kind != "category"
    found = []
    for column, span in zip(columns, reading.ranges, strict=True):
        if column.kind == "category":
            found.append((max(1, len(column.levels)), None, None))
            continue
        taken = (reading.low, 1 / reading.by) if alone else span or (0.0, 1.0)
        found.append((1 if alone else math.prod(column.shape), *_ends(column, reading, taken)))
    if all(low is None for _, low, _ in found):
        raise SettingsInvalid(
            f"no column that the module reads can be moved: {', '.join(reading.features[:6])}.",
            remedy="Numbers and integers with a declared range move; declare ranges, such as data.ranges in a study.",
        )
    return tuple(found)


def _ends(column: Column, reading: Reading, taken: tuple[float, float]) -> tuple[float, float] | tuple[None, None]:
    """A column's declared range as the module reads it, None where its values stay as they are."""
    tokens = column.kind == "integer" and reading.scale == "numbers"
    if column.kind not in MOVES or tokens or column.low is None or column.high is None:
        return None, None
    return (column.low - taken[0]) / taken[1], (column.high - taken[0]) / taken[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
