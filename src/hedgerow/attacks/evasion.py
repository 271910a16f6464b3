"""Evasion: how often a trained model errs on records that are moved by a little, each within its declared ranges.

FGSM    x + r sign(d loss / dx)                                               one step (Goodfellow et al. 2015)
PGD     several shorter steps from a random point of the ball, projected      (Madry et al. 2018); of several starts the worst

A record withstands a radius if it is classified rightly where it is, and where every start of the attack has moved it. What was
found within a smaller radius counts for a larger one too, so that accuracy never rises with the radius. Accuracy under an
attack is at least the accuracy under the best one: another attack may find more.

Releases : nothing; no party is asked. Whoever attacks knows the model.
Source   : Goodfellow, Shlens and Szegedy, ICLR 2015, section 4; Madry et al., ICLR 2018, section 2.1. Differs: coordinates also
           stay within the declared ranges of their columns, and those of categories, of 0/1 columns and of columns without a
           range do not move; columns of several units are moved by the same share of their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.randomness import Streams
from hedgerow.data import Table
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.descent.adversary import Adversary, room_of
from hedgerow.learn.descent.work import tensors
from hedgerow.learn.evaluate import on_server
from hedgerow.learn.local import SCORED_AT_ONCE
from hedgerow.learn.models import Model, Weights, hits
from hedgerow.learn.scale import Scale

from .observers.rates import Rate, clopper_pearson

Method = Literal["fgsm", "pgd"]


@displayed
@dataclass(frozen=True, eq=False)
class Evasion:
    """How a model stands against records that are moved.

    Attributes
    ----------
    method : {"fgsm", "pgd"}
    radii : tuple of float
        In increasing order, in units in which the module reads its features: 0.1 is a tenth of a declared range from zero.
    withstood : array of bool, shape (radii, n)
        Which records are classified rightly at each radius.
    rightly : array of bool, shape (n,)
        Which are where they are.
    moves : float
        Share of the coordinates of the module's input that the attack moves.
    """

    method: Method
    radii: tuple[float, ...]
    withstood: Array
    rightly: Array
    moves: float

    def accuracy(self, radius: float = 0.0, level: float = 0.95) -> Rate:
        """Accuracy where records are moved by at most one of the radii, or by nothing, with an exact interval for a share.

        Raises
        ------
        SettingsInvalid (HR-511)
            The attack was not made with this radius.
        """
        if radius == 0:
            found = self.rightly
        elif radius in self.radii:
            found = self.withstood[self.radii.index(radius)]
        else:
            raise SettingsInvalid(f"no attack with radius {radius:g} was made.", remedy=f"There are {list(self.radii)}.")
        return clopper_pearson(int(found.sum()), len(found), level)

    def rows(self, level: float = 0.95) -> list[tuple[float, float, float, float]]:
        """(radius, accuracy, low, high) of each radius, that of 0 first."""
        found = [(radius, self.accuracy(radius, level)) for radius in (0.0, *self.radii)]
        return [(radius, rate.value, rate.low, rate.high) for radius, rate in found]

    def __str__(self) -> str:
        lines = [f"{self.method.upper()} on {len(self.rightly)} records, {self.moves:.0%} of the inputs move"]
        return "\n".join([*lines, *(f"radius {radius:<6g} accuracy {self.accuracy(radius)}" for radius in (0.0, *self.radii))])


def evade(
    table: Table,
    module: nn.Module,
    weights: Weights | Any,
    radii: Sequence[float] | float,
    *,
    method: Method = "pgd",
    steps: int = 20,
    step: float | None = None,
    starts: int = 1,
    seed: int = 0,
    features: Sequence[str] | None = None,
    scale: Scale | None = None,
) -> Evasion:
    """Move the records of a table so that a trained model errs on them, and count on how many it does.

    Parameters
    ----------
    table : Table
        Records with the target, such as a test table; those that lack a value are left out.
    module : torch.nn.Module
    weights : mapping or state
        Parameters by name, or a state of a program that trains (`.weights`).
    radii : sequence of float, or one
        How far a coordinate may be moved, in the units in which the module reads it.
    method : {"fgsm", "pgd"}
        One step to the edge of the ball, or `steps` from a random point within it.
    steps : int
        Of "pgd".
    step : float, optional
        Length of a step of "pgd" in radii; by default 2.5 divided by the steps.
    starts : int
        Random starts of "pgd"; the worst counts.
    seed : int
        Of the random starts.
    features, scale
        As of `hedgerow.learn.evaluate_on`.

    Returns
    -------
    Evasion

    Raises
    ------
    SettingsInvalid (HR-511)
        The target has no classes; a radius, a number of steps or of starts is not above zero; no column moves; a task names the
        inputs.
    ModelInvalid (HR-510)
        The weights do not fit the module.
    """
    wanted = _radii(radii)
    lawful = method in ("fgsm", "pgd") and not isinstance(starts, bool) and isinstance(starts, Integral) and starts >= 1
    if not lawful or not isinstance(seed, Integral) or seed < 0:
        raise SettingsInvalid(
            f"method is {method!r}, starts is {starts!r}, seed is {seed!r}.",
            remedy='The method is "fgsm" or "pgd", starts are at least one, and a seed is a whole number from zero.',
        )
    model, reading, columns, w = on_server(table, module, weights, features, scale)
    if model.kind not in ("category", "binary"):
        raise SettingsInvalid(
            "evasion is counted in errors of classes, and the target is a number.", remedy="Give a target with classes."
        )
    if not len(w):
        raise SettingsInvalid("the table has no records.", remedy="Give at least one that lacks no value.")
    room = room_of(reading, table.schema)
    alone = {"steps": 1, "step": 1.0, "random_start": False}
    several = {"steps": int(steps) if isinstance(steps, Integral) and not isinstance(steps, bool) else steps, "step": step}
    unit = Adversary(1.0, room=room, **(alone if method == "fgsm" else several))  # type: ignore[arg-type]
    flat, (x, target, _) = torch.from_numpy(model.flat(weights)), tensors(Party("server", columns, w))
    rightly, found = np.zeros(len(x), bool), np.zeros((len(wanted), len(x)), bool)
    rng = Streams(int(seed)).stream(0, "server", "evasion").generator
    with model.at_rest():
        for start in range(0, len(x), SCORED_AT_ONCE):
            rows = slice(start, start + SCORED_AT_ONCE)
            inputs, wants = model.scaled(x[rows]), target[rows]
            losses, right = partial(_losses, model, flat, wants), partial(_right, model, flat, wants)
            rightly[rows] = stands = right(inputs)
            for k, radius in enumerate(wanted):
                adversary = unit.within(radius)
                for _ in range(starts if adversary.random_start else 1):
                    stands = stands & right(adversary.moved(losses, inputs, rng.random))
                found[k, rows] = stands
    moves = sum(width for width, low, _ in room if low is not None) / sum(width for width, _, _ in room)
    return Evasion(method, wanted, found, rightly, moves)


def _radii(radii: Sequence[float] | float) -> tuple[float, ...]:
    given: list[Any] = [radii] if isinstance(radii, Real) else list(radii)
    lawful = [isinstance(one, Real) and not isinstance(one, bool) and 0 < one < np.inf for one in given]
    if not lawful or not all(lawful):
        raise SettingsInvalid(
            f"radii are {given!r}.",
            remedy="Give numbers above zero, in units of the module's input, such as [0.05, 0.1].",
        )
    return tuple(sorted({float(one) for one in given}))


def _losses(model: Model, flat: Tensor, target: Tensor, x: Tensor) -> Tensor:
    return model.losses(flat, x, target, scaled=True)


def _right(model: Model, flat: Tensor, target: Tensor, x: Tensor) -> Array:
    with torch.no_grad():
        return hits(model.kind, model.outputs(flat, x, scaled=True), target).numpy() > 0.5
