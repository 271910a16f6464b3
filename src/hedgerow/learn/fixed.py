"""Parameters that are not trained: they keep the module's values, and no message, clip or noise knows of them.

A module's `requires_grad` says which parameters are trained. `Model` lists those once; its flat vector, and so every update,
state, clip and noise, has their numbers alone. A party elsewhere makes the module again by its factory. Where that does not
give the same fixed values, as with layers that were loaded from a file, the values go along with the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.errors import ModelInvalid

Weights = Mapping[str, np.ndarray]
"""Parameters by name, as in a module's `state_dict`."""


def weights_of(given: Any) -> Weights:
    """The parameters by name of a state (`.weights`), or such a mapping itself.

    Raises
    ------
    ModelInvalid (HR-510)
        It is neither.
    """
    found = given if isinstance(given, Mapping) else getattr(given, "weights", None)
    if not isinstance(found, Mapping):
        raise ModelInvalid(
            f"the weights are a {type(given).__name__}.",
            remedy="Give a state of a program that trains, or a mapping from each parameter's name to its array.",
        )
    return found


def trained_weights(module: nn.Module, state: Any) -> dict[str, np.ndarray]:
    """Of a state (`.weights`), or of weights by name, those that the module trains: of a model with LoRA its adapters alone.

    They are what is worth keeping beside a pretrained model: `with_weights(module, them)` has them in their places, and a
    program goes on from them.

    Raises
    ------
    ModelInvalid (HR-510)
        One is missing or has another shape.
    """
    shapes = {name: value.shape for name, value in module.named_parameters() if value.requires_grad}
    return dict(zip(shapes, checked(weights_of(state), shapes), strict=True))


def checked(weights: Weights, shapes: Mapping[str, torch.Size]) -> list[np.ndarray]:
    """The named arrays as float32; refuse weights that lack one, or have one of another shape (HR-510)."""
    if missing := [name for name in shapes if name not in weights]:
        raise ModelInvalid(
            f"the weights lack {', '.join(map(repr, missing[:3]))} of this module.",
            remedy=f"They have {', '.join(map(repr, list(weights)[:3])) or 'none'}; give the module they were trained with.",
        )
    found = {name: np.asarray(weights[name], np.float32) for name in shapes}
    if wrong := [name for name, value in found.items() if value.shape != tuple(shapes[name])]:
        name = wrong[0]
        raise ModelInvalid(
            f"the weights of {name!r} have shape {found[name].shape}, and those of this module {tuple(shapes[name])}.",
            remedy="Give the module that they were trained with.",
        )
    return list(found.values())


def same(fixed: Mapping[str, Tensor], weights: Weights) -> None:
    """Refuse weights whose fixed parameters are not the module's (HR-510): a run would go on with the module's."""
    for name, value in fixed.items():
        if name in weights and not np.array_equal(value.numpy(), np.asarray(weights[name]), equal_nan=True):
            raise ModelInvalid(
                f"{name!r} is not trained (requires_grad is False), and its weights are not those of the module.",
                remedy="Load them first: module = hedgerow.learn.with_weights(module, weights).",
            )


def fixed_of(module: nn.Module) -> dict[str, Tensor]:
    """Parameters that are not trained, by name; copies."""
    return {name: value.detach().clone() for name, value in module.named_parameters() if not value.requires_grad}


def digest(fixed: Mapping[str, Tensor]) -> bytes:
    """Digest of fixed parameters, 16 bytes; none where all are trained."""
    made = hashlib.blake2b(digest_size=16)
    for name, value in fixed.items():
        made.update(f"{name} {value.dtype} {tuple(value.shape)};".encode())
        made.update(value.contiguous().numpy().tobytes())
    return made.digest() if fixed else b""


def told(fixed: Mapping[str, Tensor], again: nn.Module) -> dict[str, Any]:
    """What a party elsewhere is told of fixed parameters, of which its factory makes `again`: a digest, or else all values."""
    values = {} if digest(fixed_of(again)) == digest(fixed) else {name: value.numpy() for name, value in fixed.items()}
    return {"fixed": digest(fixed), "values": values}


def arrived(module: nn.Module, fixed: bytes, values: Weights) -> None:
    """Give a module that was made again its fixed values, and refuse it where they are still others (HR-510)."""
    own = dict(module.named_parameters())
    try:
        with torch.no_grad():
            for name, value in values.items():
                if own[name].requires_grad:
                    raise KeyError(name)
                own[name].copy_(torch.from_numpy(np.array(value)))
    except (KeyError, RuntimeError, TypeError, AttributeError) as error:
        raise ModelInvalid("what arrived is no model.", remedy="Both sides must run the same version of Hedgerow.") from error
    if digest(fixed_of(module)) != fixed:
        raise ModelInvalid(
            "the factory made other weights here for layers that are not trained.",
            remedy="Both sides must run the same version of it, and of PyTorch.",
        )
