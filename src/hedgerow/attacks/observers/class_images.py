"""Model inversion: the record that a model takes for most typical of a class, found by gradient descent on its input.

    x      <- middle of the features' ranges
    repeat: x <- held(x - rate * gradient of (loss of the class at x + smooth * roughness of x))

What comes out is typical of a class and no record of anybody, unless a class is one person. So it is compared with the mean
record of the class, beside the mean of all records, which anybody knows who knows the population.

Source: Fredrikson, Jha and Ristenpart, CCS 2015, Algorithm 1 (MI-Face). Differs: a fixed number of steps of falling length, and
a penalty on neighbouring pixels in place of their denoising step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.training import with_weights

if TYPE_CHECKING:
    from torch import nn


@displayed
@dataclass(frozen=True, eq=False)
class ClassImage:
    """A record made from a model, beside what it should tell.

    Attributes
    ----------
    level : int
        The class.
    made, truth, usual : arrays of shape (d,)
        The inverted record; the mean record of the class; the mean of all records.
    attack, baseline : float
        Correlation over features of truth - usual with made - usual; and of truth with usual, which needs no model. The first
        is zero for a record that tells of the class no more than the population does.
    """

    level: int
    made: Array
    truth: Array
    usual: Array

    @property
    def attack(self) -> float:
        return _correlation(self.truth - self.usual, self.made - self.usual)

    @property
    def baseline(self) -> float:
        return _correlation(self.truth, self.usual)

    @property
    def likeness(self) -> float:
        """Correlation over features of truth with made, to be read beside the baseline."""
        return _correlation(self.truth, self.made)

    def __str__(self) -> str:
        return (
            f"class {self.level}: {self.likeness:.2f} alike with the model, {self.baseline:.2f} without it; "
            f"of what sets the class apart {self.attack:.2f}"
        )


def _correlation(a: Array, b: Array) -> float:
    a, b = np.ravel(a) - np.mean(a), np.ravel(b) - np.mean(b)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths > 0 else 0.0


def invert_class(
    state: Any,
    module: nn.Module,
    level: int,
    shape: Sequence[int],
    *,
    low: float = 0.0,
    high: float = 1.0,
    steps: int = 300,
    rate: float = 0.1,
    smooth: float = 0.0,
) -> Array:
    """Find the input that a model takes for most typical of a class.

    Parameters
    ----------
    state : state of a program, or mapping
        What was released.
    level : int
        Of a category its code; of a binary target 0 or 1.
    shape : sequence of int
        Of one record as the module reads it; the last two axes are those of an image where `smooth` is above zero.
    low, high : float
        Range of the numbers that the module reads.
    steps, rate : int, float
        Of the descent by signs of gradients, in parts of the range, falling to zero.
    smooth : float
        Weight of the squared differences between neighbouring pixels.

    Returns
    -------
    array of the given shape, float32

    Raises
    ------
    SettingsInvalid (HR-511)
        The model has no such class, does not read records of this shape, or a number is out of its range.
    """
    box = (low, high, rate, smooth)
    lawful = isinstance(level, Integral) and isinstance(steps, Integral) and steps >= 1 and all(np.isfinite(box)) and low < high
    if not lawful or not rate > 0 or smooth < 0 or not shape or any(not isinstance(one, Integral) or one < 1 for one in shape):
        raise SettingsInvalid(
            f"{level=}, {steps=}, {rate=}, {smooth=}, {low=}, {high=}, records of shape {tuple(shape)}.",
            remedy="Level, steps and shape are whole, a rate above zero, smooth from zero, low below high, and all finite.",
        )
    trained = with_weights(module, state).eval()
    x = torch.full((1, *shape), (low + high) / 2)
    with torch.no_grad():
        try:
            outputs = int(trained(x).reshape(-1).numel())
        except RuntimeError as error:
            raise SettingsInvalid(
                f"the module does not read a record of shape {tuple(shape)}: {error}.", remedy="Give the shape of one record."
            ) from error
    if not 0 <= level < max(outputs, 2) or steps < 1 or not low < high or (smooth and len(shape) < 2):
        raise SettingsInvalid(
            f"class {level} of {max(outputs, 2)}, {steps=}, a range from {low:g} to {high:g}, records of shape {tuple(shape)}.",
            remedy="Name a class of the model, and the range of what it reads; only images can be smooth.",
        )
    for step in range(steps):
        x = x.detach().requires_grad_(True)
        scores = trained(x).reshape(1, -1)
        scores = torch.cat([torch.zeros_like(scores), scores], 1) if outputs == 1 else scores
        loss = -torch.log_softmax(scores, 1)[0, level]
        if smooth:
            loss = loss + smooth * sum((x.diff(dim=axis) ** 2).sum() for axis in (-1, -2))
        (slope,) = torch.autograd.grad(loss, x)
        moved = x - rate * (high - low) * (1 - step / steps) * slope / slope.abs().max().clamp_min(1e-12)
        x = moved.clamp(low, high)
    return np.asarray(x.detach()[0].numpy())


def class_image(made: Array, records: Array, classes: Array, level: int) -> ClassImage:
    """Compare an inverted record with records (n, ...) as the module reads them, and their classes (n,).

    Raises
    ------
    SettingsInvalid (HR-511)
        No record is of the class, or shapes do not fit.
    """
    classes = np.asarray(classes)
    if classes.shape != np.shape(records)[:1] or not (classes == level).any():
        raise SettingsInvalid(
            f"{int((classes == level).sum())} of {len(records)} records, classes of shape {classes.shape}, are of {level!r}.",
            remedy="Give records and their classes, at least one of the class.",
        )
    rows = np.asarray(records, float).reshape(len(records), -1)
    if np.size(made) != rows.shape[1]:
        raise SettingsInvalid(
            f"an inverted record of {np.size(made)} numbers, and records of {rows.shape[1]}.",
            remedy="Give records as the module reads them.",
        )
    return ClassImage(level, np.ravel(made), rows[np.asarray(classes) == level].mean(0), rows.mean(0))
