"""Cutting a network in two: its first layers for a feature holder, its last ones for the label holder."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import nn

from hedgerow.errors import ModelInvalid
from hedgerow.learn import mlp
from hedgerow.learn.made import leaves_note


def cut(module: nn.Module, at: int) -> tuple[nn.Module, nn.Module]:
    """Cut a chain of layers: the first `at` of them, and the others.

    Parameters
    ----------
    module : torch.nn.Sequential
        `hr.learn.mlp(784, [128, 640], 10)` has the layers flatten, linear, ReLU, linear, ReLU, linear: the network of the
        thesis's Figure 3.1 is cut at 5. Parts of a module that a party elsewhere can make can be made there, too.
    at : int

    Returns
    -------
    bottom, top : torch.nn.Module
        With the module's weights.

    Raises
    ------
    ModelInvalid (HR-510)
        It is no chain, or has not so many layers.
    """
    if not isinstance(module, nn.Sequential) or not 0 < at < len(module):
        layers = f"{len(module)} layers" if isinstance(module, nn.Sequential) else f"a {type(module).__name__}"
        raise ModelInvalid(
            f"{layers} cannot be cut at {at}.",
            remedy="Give a torch.nn.Sequential, and leave a layer on either side. Other modules are cut by hand: splitnn takes "
            "two modules.",
        )
    return first_layers(module, at), last_layers(module, at)


@leaves_note
def feature_layers(n_inputs: int, hidden: Sequence[int], width: int, *, seed: int = 0) -> nn.Module:
    """Fully connected layers of a feature holder, with ReLU between them and behind them; made alike at a party elsewhere."""
    return nn.Sequential(mlp(n_inputs, hidden, width, seed=seed), nn.ReLU())


@leaves_note
def first_layers(module: nn.Sequential, at: int) -> nn.Module:
    """The first `at` layers of a chain, as a chain of its own."""
    return nn.Sequential(*copy.deepcopy(list(module)[:at]))


@leaves_note
def last_layers(module: nn.Sequential, at: int) -> nn.Module:
    """The layers of a chain behind the first `at`, as a chain of its own."""
    return nn.Sequential(*copy.deepcopy(list(module)[at:]))
