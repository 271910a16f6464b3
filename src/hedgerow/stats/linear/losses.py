"""The losses by name. A new one is a file of its own and its name here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal

from .corners import check
from .loss import Loss
from .negative_binomial import negative_binomial
from .smoothed import smoothed_check

FILES = (
    "gaussian",
    "binomial",
    "poisson",
    "gamma",
    "corners",
    "huber",
)
"""Files of this package whose losses are in the table."""
MODULES = [import_module(f"{__package__}.{file}") for file in FILES]
FIXED = {loss.name: loss for module in MODULES for loss in vars(module).values() if isinstance(loss, Loss)}
SHAPED = {"negative binomial": negative_binomial, "check": check, "smoothed check": smoothed_check}
"""Losses that take a number: the dispersion of a negative binomial, the share of a quantile."""
USUAL = {"negative binomial": 1.0, "check": 0.5, "smoothed check": 0.5}
LOSSES: dict[str, Loss] = FIXED | {name: make(USUAL[name]) for name, make in SHAPED.items()}

if TYPE_CHECKING:
    FamilyName = str
    LossName = str
else:  # names that a study may give are those of the table
    FamilyName = Literal[tuple(name for name, loss in LOSSES.items() if not loss.reads)]
    LossName = Literal[tuple(sorted(LOSSES, key=lambda name: bool(LOSSES[name].reads)))]


def loss_of(name: LossName, shape: float | None = None) -> Loss:
    """Return a loss; `shape` is the dispersion of a negative binomial (1 by default), or the share of a quantile (0.5)."""
    if name in FIXED:
        return FIXED[name]
    return SHAPED[name](float(USUAL[name] if shape is None else shape))


def family_of(name: LossName) -> FamilyName:
    """Return the family whose targets a loss reads: itself of a likelihood."""
    return loss_of(name).reads or name
