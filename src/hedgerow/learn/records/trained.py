"""Which parameters of a module are trained: their layers, and where they lie in the flat vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from hedgerow.errors import ModelInvalid, SettingsInvalid

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

    def __post_init__(self) -> None:
        if not self.names:
            raise ModelInvalid("no parameter of the module is trained.", remedy="Leave requires_grad on in at least one layer.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, value in self.model.module.named_parameters() if value.requires_grad)

    @cached_property
    def layers(self) -> tuple[int, ...]:
        owners = [name.rpartition(".")[0] for name in self.names]
        order = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
        return tuple(order[owner] for owner in owners)

    @property
    def n_layers(self) -> int:
        return max(self.layers) + 1

    @cached_property
    def where(self) -> dict[str, slice]:
        """Where each parameter of the model lies in its flat vector."""
        ends = accumulate((shape.numel() for shape in self.model.shapes), initial=0)
        return {name: slice(*part) for name, part in zip(self.model.names, pairwise(ends), strict=True)}

    @cached_property
    def shapes(self) -> dict[str, torch.Size]:
        """Of all parameters, by name."""
        return dict(zip(self.model.names, self.model.shapes, strict=True))

    @cached_property
    def indices(self) -> Tensor:
        """Indices of the trained coordinates in the flat vector, shape (d,)."""
        return torch.cat([torch.arange(self.where[name].start, self.where[name].stop) for name in self.names])

    def weights(self, flat: Tensor) -> dict[str, Tensor]:
        """Parameters by name, as views of a flat vector."""
        return {name: flat[part].view(self.shapes[name]) for name, part in self.where.items()}

    def check(self, clipping: Clipping) -> None:
        """Refuse a clip with another number of radii than there are trained layers."""
        if len(clipping.radii) not in (1, self.n_layers):
            raise SettingsInvalid(
                f"clip has {len(clipping.radii)} radii for {self.n_layers} layers.", remedy="Give one for each."
            )
