"""Privacy: mechanisms on an integer grid, accountants of the ledger, budgets that refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .accounting import epsilon
    from .budget import Budget
    from .choice import Exponential, NoisyMax, PermuteAndFlip, TruncatedGeometric, above_threshold, choose, choose_many
    from .guard import Guard
    from .mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, Noise, Skellam
    from .simulated_gaussian import SimulatedGaussian
    from .tree import Tree

__all__ = [
    "Budget",
    "DiscreteGaussian",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Guard",
    "Laplace",
    "Noise",
    "NoisyMax",
    "PermuteAndFlip",
    "SimulatedGaussian",
    "Skellam",
    "Tree",
    "TruncatedGeometric",
    "above_threshold",
    "choose",
    "choose_many",
    "epsilon",
]

lazily(__name__, checks=True)
