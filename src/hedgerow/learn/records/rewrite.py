"""Modules in which each record is computed by itself, as a bound per record needs it."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from hedgerow.errors import ModelInvalid

from ..made import leaves_note
from ..models import Model


@leaves_note
def without_batch_norm(module: nn.Module, groups: int = 32) -> nn.Module:
    """Return a copy of a module with GroupNorm in the place of every BatchNorm.

    Parameters
    ----------
    groups : int
        Most groups of a layer; a layer whose channels it does not divide has as many as divide both.

    Notes
    -----
    Scale and offset are kept. What BatchNorm knew of the mean and deviation of its inputs is left behind, so train it anew.
    """
    return _rewritten(copy.deepcopy(module), groups)


def _rewritten(module: nn.Module, groups: int) -> nn.Module:
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        channels = module.num_features
        normal = nn.GroupNorm(math.gcd(groups, channels), channels, eps=module.eps, affine=module.affine)
        if module.affine:
            normal.load_state_dict({"weight": module.weight.detach(), "bias": module.bias.detach()})
        return normal
    for name, child in module.named_children():
        setattr(module, name, _rewritten(child, groups))
    return module


def separate(module: nn.Module) -> None:
    """Refuse a module in which records meet, or that keeps something of them.

    Raises
    ------
    ModelInvalid (HR-510)
        With the rewrite that helps.
    """
    for name, part in module.named_modules():
        kind = type(part).__name__
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            raise ModelInvalid(
                f"layer {name!r} is {kind}: a record changes the gradients of all others in its batch, so no clip bounds it.",
                remedy="Replace it: module = hedgerow.learn.records.without_batch_norm(module).",
            )
        if getattr(part, "track_running_stats", False):
            raise ModelInvalid(
                f"layer {name!r} is {kind} with running statistics, which keep something of every record without noise.",
                remedy="Set track_running_stats=False, or use nn.GroupNorm.",
            )
    if Model(module, "number").stochastic:
        raise ModelInvalid(
            "the module has dropout, whose draws would be shared by the records of a batch.",
            remedy="Set its rate to zero; the noise of private training regularises as well.",
        )


def keeps_nothing(model: Model, x: Tensor) -> None:
    """Refuse a module that changes its buffers while it runs on some records, made up or not.

    Raises
    ------
    ModelInvalid (HR-510)
    """
    module = copy.deepcopy(model.module)
    with torch.no_grad():
        module(model.scaled(x))
    if any(not torch.equal(value, now) for value, now in zip(model.module.buffers(), module.buffers(), strict=True)):
        raise ModelInvalid(
            "the module changes its buffers while it runs, so it would keep something of every record without noise.",
            remedy="Use layers without running statistics.",
        )
