"""Modules in which each record is computed by itself, as a bound per record needs it."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.errors import ModelInvalid

from ..made import leaves_note
from ..models import Model, own_generator
from ..tasks.memory import left_in


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
            "the module draws random numbers, as dropout does, which the records of a batch would share.",
            remedy="Set the rate of dropout to zero; the noise of private training regularises as well.",
        )


def keeps_nothing(model: Model, x: Tensor, *, may_fail: bool = False) -> None:
    """Refuse a module that changes its buffers or weights, or draws random numbers, while it runs on some records.

    Parameters
    ----------
    x : Tensor
        The records, made up or not.
    may_fail : bool
        Whether records may be such that the module fails for them, which then tells nothing.

    Raises
    ------
    ModelInvalid (HR-510)
    """
    for left in reversed(range(3)):  # another thread may have drawn meanwhile
        module = copy.deepcopy(model.module)
        try:
            drew = _drew(model, module, model.scaled(x))
        except (RuntimeError, ValueError, IndexError):
            if may_fail:
                return
            raise
        for what, of in (("buffers", nn.Module.named_buffers), ("weights", nn.Module.named_parameters)):
            if _changed(dict(of(model.module)), dict(of(module))):
                raise ModelInvalid(
                    f"the module changes its {what} while it runs, so it would keep something of every record without noise.",
                    remedy="Use layers without running statistics, and embeddings without max_norm.",
                )
        if not drew:
            break
        if not left:
            raise ModelInvalid(
                "the module draws random numbers while it runs, which the records of a batch would share.",
                remedy="Leave dropout and other draws out of forward; the noise of private training regularises as well.",
            )

    def run(made: nn.Module, which: int) -> None:
        with suppress(Exception), torch.no_grad():
            model.applied(made, model.scaled(x if which == 0 else x.flip(0)))

    try:
        left = left_in(model.module, run)
    except Exception as error:  # whatever copying somebody's objects raises
        raise ModelInvalid(
            f"the module cannot be copied: {type(error).__name__}: {str(error)[:300]}",
            remedy="Each record has a copy of its own: leave files, locks and generators out of it.",
        ) from error
    if left:
        raise ModelInvalid(
            "the module keeps something of the records that it has seen in its attributes.",
            remedy="Compute from the records of a call alone; what is worth a look belongs in what forward returns.",
        )


def _drew(model: Model, module: nn.Module, x: Tensor) -> bool:
    """Whether a forward pass moves the global generators of torch, NumPy or Python."""
    with own_generator(np.random.default_rng(0)), torch.no_grad():
        before = _generators()
        model.applied(module, x)
        return _generators() != before


def _generators() -> tuple[object, ...]:
    state = np.random.get_state(legacy=False)["state"]
    return torch.get_rng_state().numpy().tobytes(), state["key"].tobytes(), state["pos"], random.getstate()


def _changed(before: Mapping[str, Tensor], now: Mapping[str, Tensor]) -> bool:
    return before.keys() != now.keys() or any(not _alike(value, now[name]) for name, value in before.items())


def _alike(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())
