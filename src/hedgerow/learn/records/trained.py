"""The trained parameters of a model, and their layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hedgerow.errors import SettingsInvalid

from ..models import Model
from .clipping import Clipping


@dataclass(frozen=True, eq=False)
class Trained:
    """A model's trained parameters; the others keep their values and add nothing to lengths and sums.

    Attributes
    ----------
    names : tuple of str
        Trained parameters, in their order.
    layers : tuple of int
        The layer of each of them, counted from zero.
    """

    model: Model

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @cached_property
    def layers(self) -> tuple[int, ...]:
        owners = [name.rpartition(".")[0] for name in self.names]
        order = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
        return tuple(order[owner] for owner in owners)

    @property
    def n_layers(self) -> int:
        return max(self.layers) + 1

    @property
    def size(self) -> int:
        """Numbers of the flat vector."""
        return sum(shape.numel() for shape in self.model.shapes)

    @cached_property
    def shapes(self) -> dict[str, torch.Size]:
        """Of the trained parameters, by name."""
        return dict(zip(self.model.names, self.model.shapes, strict=True))

    def weights(self, flat: Tensor) -> dict[str, Tensor]:
        """All parameters by name: the trained ones as views of a flat vector, and the fixed ones."""
        parts = torch.split(flat, [shape.numel() for shape in self.model.shapes])
        trained = {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
        return trained | self.model.fixed

    def check(self, clipping: Clipping) -> None:
        """Refuse a clip with another number of radii than there are trained layers."""
        if len(clipping.radii) not in (1, self.n_layers):
            raise SettingsInvalid(
                f"clip has {len(clipping.radii)} radii for {self.n_layers} layers.", remedy="Give one for each."
            )
