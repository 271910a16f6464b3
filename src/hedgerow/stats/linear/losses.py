"""The losses by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from typing import cast

from .binomial import BINOMIAL
from .corners import HINGE, check
from .gamma import GAMMA
from .gaussian import GAUSSIAN
from .huber import HUBER
from .loss import FamilyName, Loss, LossName
from .negative_binomial import negative_binomial
from .poisson import POISSON

FIXED = {loss.name: loss for loss in (GAUSSIAN, BINOMIAL, POISSON, GAMMA, HINGE, HUBER)}
SHAPED = {"negative binomial": negative_binomial, "check": check}
"""Losses that take a number: the dispersion of a negative binomial, the share of a quantile."""
USUAL = {"negative binomial": 1.0, "check": 0.5}


def loss_of(name: LossName, shape: float | None = None) -> Loss:
    """Return a loss; `shape` is the dispersion of a negative binomial (1 by default), or the share of a quantile (0.5)."""
    if name in FIXED:
        return FIXED[name]
    return SHAPED[name](float(USUAL[name] if shape is None else shape))


def family_of(name: LossName) -> FamilyName:
    """Return the family whose targets a loss reads: itself of a likelihood."""
    return cast(FamilyName, loss_of(name).reads or name)


LOSSES: dict[str, Loss] = FIXED | {name: loss_of(name) for name in SHAPED}
