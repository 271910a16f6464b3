"""Local solvers: how a party descends on its own records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .correction import NOTHING, Correction
    from .descend import Descent, descend
    from .solver import Solver

__all__ = ["NOTHING", "Correction", "Descent", "Solver", "descend"]

lazily(__name__)
