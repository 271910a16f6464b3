"""Multiple imputation by chained equations, by sums: copies are completed at the parties, and pooled by Rubin's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .imputed import Imputed, ImputedState, impute, imputed_fit, imputed_rounds
    from .pooled import PooledFit, rubin

__all__ = ["Imputed", "ImputedState", "PooledFit", "impute", "imputed_fit", "imputed_rounds", "rubin"]

lazily(__name__, checks=True)
