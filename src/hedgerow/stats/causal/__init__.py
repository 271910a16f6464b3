"""Effects of a treatment: weighting by propensity scores, with errors that know that scores were estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .effect import Balance, Effect
    from .weighting import CausalState, aipw, effect_of, ipw, overlap_weights, weighting_rounds

__all__ = ["Balance", "CausalState", "Effect", "aipw", "effect_of", "ipw", "overlap_weights", "weighting_rounds"]

lazily(__name__, checks=True)
