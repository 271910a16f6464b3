"""Frozen layers: parameters that keep their values, so that only the others are trained, clipped and noised.

    freeze(net, "conv1", "conv2")              these layers and everything in them
    freeze(net, but=["output"])                everything else

Noise grows with the number of trained parameters, while a layer that was trained elsewhere, on public records, costs
nothing. Programs train the parameters that have `requires_grad`; the released weights hold all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Collection

from torch import nn

from hedgerow.errors import ModelInvalid, suggestion

from ..made import leaves_note


@leaves_note
def freeze(module: nn.Module, *layers: str, but: Collection[str] = ()) -> nn.Module:
    """Return a copy of a module with some layers frozen.

    Parameters
    ----------
    *layers : str
        Names of layers, or of parameters, as `named_modules()` and `named_parameters()` give them.
    but : collection of str
        Instead: the layers that are trained; all others are frozen.

    Raises
    ------
    ModelInvalid (HR-510)
        A name is no layer, or nothing is left to train.
    """
    module = copy.deepcopy(module)
    parameters = dict(module.named_parameters())
    known = {*parameters, *(name for name, _ in module.named_modules() if name)}
    if bool(layers) == bool(but):
        raise ModelInvalid(
            f"freeze was given {len(layers)} layers to freeze and {len(but)} to train.", remedy="Name the ones or the others."
        )
    for name in (*layers, *but):
        if name not in known:
            raise ModelInvalid(f"{type(module).__name__} has no layer {name!r}.", remedy=suggestion(name, known))
    for name, value in parameters.items():
        named = any(name == one or name.startswith(f"{one}.") for one in (*layers, *but))
        value.requires_grad_(named if but else value.requires_grad and not named)
    if not trained(module):
        raise ModelInvalid("every layer is frozen.", remedy="Leave at least one to train, e.g. the last.")
    return module


def trained(module: nn.Module) -> tuple[str, ...]:
    """Names of the parameters that are trained."""
    return tuple(name for name, value in module.named_parameters() if value.requires_grad)
