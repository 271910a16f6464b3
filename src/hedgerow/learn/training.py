"""What federated training algorithms share: checked settings, a local solver that fits the module, the mean of updates."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import nn
from torch.func import grad, vmap

from hedgerow.core.bound import Bound
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from .local import local_sgd, local_sgd_alone, mean_loss
from .models import Model, Weights, model_for
from .tensors import blank, prepared

log = logging.getLogger("hedgerow.learn")

Weighting = Literal["records", "uniform", "expected"]


def prepare_training(
    federation: Federation,
    module: nn.Module,
    features: Sequence[str] | None,
    *,
    epochs: int,
    batch_size: int | None,
    learning_rate: float,
    weighting: Weighting | None = None,
) -> tuple[Federation, Model, Any]:
    """Check everything before any party is asked; return the prepared federation, the model and the local solver."""
    weighting = weighting or ("records" if federation.channel.open else "expected")
    wrong = [
        (epochs < 1, f"epochs is {epochs}"),
        (batch_size is not None and batch_size < 1, f"batch_size is {batch_size}"),
        (not (np.isfinite(learning_rate) and learning_rate > 0), f"learning_rate is {learning_rate}"),
        (weighting not in get_args(Weighting), f"weighting is {weighting!r}, not one of {', '.join(get_args(Weighting))}"),
    ]
    if problems := [text for bad, text in wrong if bad]:
        raise SettingsInvalid("; ".join(problems) + ".", remedy="Counts are at least one, rates are above zero.")
    if isinstance(federation.channel.clip, Bound) and weighting != "expected":
        raise SettingsInvalid(
            f"weighting by {weighting} sends an update and its weight, and one clip cannot fit both.",
            remedy="Clip each: protect(clip={'update': l2(1.0), 'n': linf(500)}), or leave weighting out.",
        )
    made_up = blank(federation.schema, features)
    model = model_for(module, federation.schema, made_up["model_input"])
    solver = local_sgd if stackable(model, made_up) else local_sgd_alone
    train = partial(solver, model=model, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, weighting=weighting)
    return prepared(federation, features), model, train


def stackable(model: Model, made_up: Mapping[str, np.ndarray]) -> bool:
    """Whether many parties' copies of a module can be trained in one call."""
    if model.stochastic:
        return False
    x, target = torch.from_numpy(made_up["model_input"])[None], torch.from_numpy(made_up["model_target"])[None]
    try:
        vmap(grad(mean_loss), in_dims=(0, 0, 0, 0, None))(
            torch.from_numpy(model.initial)[None], x, target, torch.ones(1, 2), model
        )
    except (RuntimeError, ValueError, NotImplementedError) as error:
        log.info("%s cannot be stacked (%s): parties train one by one", type(model.module).__name__, str(error).split("\n")[0])
        return False
    return True


def mean_update(total: Mapping[str, np.ndarray], cohort: Federation) -> np.ndarray:
    """Divide the total update by the total weight, or by the cohort's expected size where no weight was sent."""
    weight = max(float(total["n"]), 1e-12) if "n" in total else cohort.expected_size
    return (total["update"] / weight).astype(np.float32)


def with_weights(module: nn.Module, state: Any) -> nn.Module:
    """Return a copy of a module with the weights of a state (`.weights`) or of a mapping from name to array."""
    weights: Weights = getattr(state, "weights", state)
    return Model(module, "number").with_weights(weights)
