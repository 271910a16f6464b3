"""Clipping: how far one record may move a sum of gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hedgerow.core.bound import Bound, l2, whole_step
from hedgerow.errors import SettingsInvalid

from .layers import TINY

LEAST, MOST = 1e-30, 1e30
"""Clips lie between these, as lengths of float32 gradients do."""

ROUNDING = 5e-6
"""By so much lengths are taken for longer than they were computed, so that rounding cannot hide that one is too long."""


@dataclass(frozen=True)
class Clipping:
    """Largest length of a record's gradient: of the whole, or one for each layer.

    Parameters
    ----------
    radii : tuple of float
        One for everything, or one for each layer that is trained, in the order of the module's parameters.
    grid : float, optional
        The step, where it is not the radius' own.
    """

    radii: tuple[float, ...]
    grid: float | None = None

    def __post_init__(self) -> None:
        if not self.radii or not all(LEAST <= radius <= MOST for radius in self.radii):
            raise SettingsInvalid(
                f"clip is {self.radii}.", remedy=f"A clip is a length from {LEAST:g} to {MOST:g}, such as 1.0."
            )
        if min(self.radii) < self.step:
            raise SettingsInvalid(
                f"clip is {self.radii}: one layer's is so small beside the others that no step of their sum fits in it.",
                remedy=f"Take at least {self.step:g} for each layer.",
            )

    @classmethod
    def of(cls, clip: float | Sequence[float]) -> Clipping:
        """From a number, or one number for each layer."""
        return cls(tuple(float(radius) for radius in clip) if isinstance(clip, Sequence) else (float(clip),))

    @property
    def radius(self) -> float:
        """Length within which the whole gradient of a record stays: sqrt(sum of the radii squared)."""
        return math.hypot(*self.radii)

    @property
    def step(self) -> float:
        """A power of two of which each coordinate of a record's clipped gradient is a whole multiple."""
        return whole_step(self.radius) if self.grid is None else self.grid

    def within(self, bound: Bound) -> Clipping:
        """The clip that keeps a bound per record too, whatever radii were asked for, in the steps of that bound."""
        share = bound.radius / self.radius
        radii = self.radii if share >= 1 else tuple(radius * share * (1 - 1e-15) for radius in self.radii)
        return Clipping(radii, bound.step)

    @property
    def bound(self) -> Bound:
        """How far a record moves the exact sum: one bound, one event, however many layers are clipped."""
        return l2(self.radius, unit="record", step=self.step)

    def factors(self, squares: Tensor, w: Tensor) -> Tensor:
        """By what each record's gradient is multiplied, so that w times it, shortened, is within the radius.

        Parameters
        ----------
        squares : shape (n, layers)
            Squared length of each record's gradient in each layer, finite.
        w : shape (n,)
            Weights of the records, none below zero.

        Returns
        -------
        shape (n, len(radii))
        """
        if len(self.radii) == 1:
            squares = squares.sum(1, keepdim=True)
        room = torch.tensor(self.radii, dtype=squares.dtype) / (1 + ROUNDING)
        return torch.minimum(w[:, None], room / squares.clamp(min=TINY).sqrt())
