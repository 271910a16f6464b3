"""What federated training algorithms share: settings checked before anybody is asked, cohorts, the mean of updates."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import nn
from torch.func import grad, vmap

from hedgerow.core.bound import Bound
from hedgerow.core.federation import Federation
from hedgerow.core.party import Local
from hedgerow.errors import SettingsInvalid

from .models import Model, Weights, model_for
from .solver import Solver, mean_loss
from .tensors import blank, prepared

log = logging.getLogger("hedgerow.learn")

Weighting = Literal["records", "uniform", "expected"]


@dataclass(frozen=True)
class Training:
    """A federation, a model and a solver that fit each other.

    Attributes
    ----------
    federation : Federation
        With `model_input` and `model_target` prepared at each party.
    weighting : {"records", "uniform", "expected"}
        How parties count; "expected" divides by the expected size of the cohort, and sends no weight.
    """

    federation: Federation
    model: Model
    solver: Solver
    weighting: Weighting
    rate: float | None = None
    size: int | None = None

    @classmethod
    def of(
        cls,
        federation: Federation,
        module: nn.Module,
        *,
        features: Sequence[str] | None = None,
        weighting: Weighting | None = None,
        rounds: int = 1,
        rate: float | None = None,
        size: int | None = None,
        **solver: Any,
    ) -> Training:
        """Check everything before any party is asked.

        Raises
        ------
        ModelInvalid (HR-510), SettingsInvalid (HR-511)
        """
        clip = federation.channel.clip
        weighed = federation.channel.open or (isinstance(clip, Mapping) and "n" in clip)
        weighting = weighting or ("records" if weighed else "expected")
        found, problems = Solver(**solver), [] if rounds >= 1 else [f"rounds is {rounds}"]
        if weighting not in get_args(Weighting):
            problems.append(f"weighting is {weighting!r}, not one of {', '.join(get_args(Weighting))}")
        if problems := found.problems() + problems:
            raise SettingsInvalid("; ".join(problems) + ".", remedy="Counts are at least one, rates are above zero.")
        if isinstance(clip, Bound) and weighting != "expected":
            raise SettingsInvalid(
                f"weighting by {weighting} sends an update and its weight, and one clip cannot fit both.",
                remedy="Clip each: protect(clip={'update': l2(1.0), 'n': linf(500)}), or leave weighting out.",
            )
        made_up = blank(federation.schema, features)
        model = model_for(module, federation.schema, made_up["model_input"])
        model = replace(model, stackable=can_be_stacked(model, made_up))
        return cls(prepared(federation, features), model, found, weighting, rate, size)

    def cohort(self) -> Federation:
        """The parties of the next round: everybody, or a sample by `rate` or `size`."""
        return self.federation if self.rate is self.size is None else self.federation.sample(rate=self.rate, size=self.size)

    def ask(self, local: Local, **settings: Any) -> Local:
        """A local function with this training's model, solver and weighting."""
        return partial(local, model=self.model, solver=self.solver, weighting=self.weighting, **settings)


def at_least(least: float, **settings: float) -> None:
    """Refuse settings below a value, or not finite."""
    if wrong := [f"{name} is {value}" for name, value in settings.items() if not (np.isfinite(value) and value >= least)]:
        raise SettingsInvalid("; ".join(wrong) + ".", remedy=f"It is a number of at least {least:g}.")


def above(limit: float, **settings: float) -> None:
    """Refuse settings that are not above a value, or not finite."""
    if wrong := [f"{name} is {value}" for name, value in settings.items() if not (np.isfinite(value) and value > limit)]:
        raise SettingsInvalid("; ".join(wrong) + ".", remedy=f"It is a number above {limit:g}.")


def can_be_stacked(model: Model, made_up: Mapping[str, np.ndarray]) -> bool:
    """Whether many parties' copies of a module can be trained in one call."""
    if model.stochastic:
        return False
    x, target = (torch.from_numpy(made_up[name])[None] for name in ("model_input", "model_target"))
    weights = torch.from_numpy(model.initial)[None]
    try:
        vmap(grad(mean_loss), in_dims=(0, 0, 0, 0, None))(weights, x, target, torch.ones(1, 2), model)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        log.info("%s cannot be stacked (%s): parties train one by one", type(model.module).__name__, str(error).split("\n")[0])
        return False
    return True


def mean_of(total: Mapping[str, np.ndarray], cohort: Federation, key: str = "update") -> np.ndarray:
    """Divide a total by the total weight, or by the cohort's expected size where no weight was sent."""
    weight = max(float(total["n"]), 1e-12) if "n" in total else cohort.expected_size
    return (total[key] / weight).astype(np.float32)


def with_weights(module: nn.Module, state: Any) -> nn.Module:
    """Return a copy of a module with the weights of a state (`.weights`) or of a mapping from name to array."""
    weights: Weights = getattr(state, "weights", state)
    return Model(module, "number").with_weights(weights)
