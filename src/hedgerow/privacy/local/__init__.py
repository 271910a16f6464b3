"""Local privacy: each party says something noisy about what it holds, and nobody needs to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .bloom import Bloom
    from .mean import Duchi, RandomisedResponse, Signs
    from .reports import (
        CountMeanSketch,
        HadamardSketch,
        KRandomisedResponse,
        OptimisedUnary,
        Rappor,
        Reports,
        SymmetricUnary,
    )

__all__ = [
    "Bloom",
    "CountMeanSketch",
    "Duchi",
    "HadamardSketch",
    "KRandomisedResponse",
    "OptimisedUnary",
    "RandomisedResponse",
    "Rappor",
    "Reports",
    "Signs",
    "SymmetricUnary",
]

lazily(__name__)
