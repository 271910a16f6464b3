"""Inputs whose slope points as the one that was seen: gradient inversion by cosine similarity (Geiping et al. 2020).

    x <- uniform in the box
    repeat:  h = gradient of the loss at (x, y), summed over the records
             L = 1 - <h, g> / (|h| |g|) + tv * TV(x)            TV: mean absolute difference between neighbouring pixels
             x <- Adam step along dL/dx, cut to the box         a tenth of the step in the last third

Source : Geiping et al., NeurIPS 2020, equation 4. Differs: Adam takes the slope and not its sign; the step falls once; x begins
         uniform and not normal, since inputs have declared ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.models import Model


@dataclass(frozen=True)
class CosineSearch:
    """A search for inputs.

    Parameters
    ----------
    steps : int
    restarts : int
        Searches from other beginnings, of which the best fit is kept.
    learning_rate : float
        Of Adam, in units of the box.
    variation : float
        Weight of total variation; of inputs that are no pictures it is left out.
    seed : int
    """

    steps: int = 200
    restarts: int = 1
    learning_rate: float = 0.1
    variation: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        whole = all(isinstance(one, Integral) and not isinstance(one, bool) for one in (self.steps, self.restarts, self.seed))
        real = all(isinstance(one, Real) for one in (self.learning_rate, self.variation))
        if (
            not whole
            or not real
            or min(self.steps, self.restarts) < 1
            or not 0 < self.learning_rate < np.inf
            or not 0 <= self.variation < np.inf
        ):
            raise SettingsInvalid(
                f"{self}.",
                remedy="Steps and restarts are whole and at least one, learning_rate is above zero, variation from zero.",
            )

    def inputs(
        self, slope: Array, model: Model, flat: Array, labels: Array, shape: tuple[int, ...], box: tuple[float, float]
    ) -> tuple[Array, float]:
        """The inputs of the best search, (records, *shape), and one minus the cosine that they reach.

        Parameters
        ----------
        slope, flat : arrays of shape (d,)
            What was seen, and the weights at which it was taken.
        labels : array of shape (records,)
        shape : tuple of int
            Of one record's input.
        box : (float, float)
            Least and largest number of an input.
        """
        wanted = torch.from_numpy(np.asarray(slope, np.float32))
        wanted = wanted / wanted.norm().clamp_min(1e-30)
        weights = torch.from_numpy(np.asarray(flat, np.float32)).requires_grad_()
        target = torch.from_numpy(np.asarray(labels, np.int64 if model.kind == "category" else np.float32))
        random = torch.Generator().manual_seed(self.seed)
        found = [self._search(wanted, model, weights, target, shape, box, random) for _ in range(self.restarts)]
        best, misfit = min(found, key=lambda one: one[1])
        return best.numpy().astype(np.float64), misfit

    def _search(
        self,
        wanted: Tensor,
        model: Model,
        weights: Tensor,
        target: Tensor,
        shape: tuple[int, ...],
        box: tuple[float, float],
        random: torch.Generator,
    ) -> tuple[Tensor, float]:
        low, high = box
        x = low + (high - low) * torch.rand((len(target), *shape), generator=random)
        x.requires_grad_()
        adam, pictures = Adam(x), len(shape) >= 2
        for step in range(self.steps):
            rate = self.learning_rate * (high - low) * (1.0 if step < 2 * self.steps // 3 else 0.1)
            loss = misfit_of(wanted, model, weights, x, target)
            if pictures and self.variation:
                loss = loss + self.variation * total_variation(x)
            (slope,) = torch.autograd.grad(loss, [x])
            x.data.sub_(rate * adam.direction(slope)).clamp_(low, high)
        return x.detach(), float(misfit_of(wanted, model, weights, x, target).detach())


class Adam:
    """The direction of Adam (Kingma and Ba 2015, Algorithm 1) with its usual constants; `torch.optim` imports a compiler."""

    def __init__(self, like: Tensor) -> None:
        self.mean, self.square, self.step = torch.zeros_like(like), torch.zeros_like(like), 0

    def direction(self, slope: Tensor) -> Tensor:
        self.step += 1
        self.mean = 0.9 * self.mean + 0.1 * slope
        self.square = 0.999 * self.square + 0.001 * slope**2
        return self.mean / (1 - 0.9**self.step) / ((self.square / (1 - 0.999**self.step)).sqrt() + 1e-8)


def misfit_of(wanted: Tensor, model: Model, weights: Tensor, x: Tensor, target: Tensor) -> Tensor:
    """One minus the cosine between a slope of length one and that of these inputs."""
    loss = model.losses(weights, x, target, scaled=True).sum()
    (own,) = torch.autograd.grad(loss, [weights], create_graph=True)
    return 1 - (own @ wanted) / own.norm().clamp_min(1e-30)


def total_variation(x: Tensor) -> Tensor:
    """Mean absolute difference between neighbours along the last two axes."""
    return x.diff(dim=-1).abs().mean() + x.diff(dim=-2).abs().mean()
