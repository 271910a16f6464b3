"""Learning with a guarantee for each record: DP-SGD over pooled samples, and at each party under its own budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .clipped import clipped_gradients, clipped_sum
    from .clipping import Clipping
    from .dpsgd import RecordState, dpsgd
    from .own_budgets import OwnBudgetsState, local_dpsgd
    from .plan import RecordPlan
    from .rewrite import without_batch_norm

__all__ = [
    "Clipping",
    "OwnBudgetsState",
    "RecordPlan",
    "RecordState",
    "clipped_gradients",
    "clipped_sum",
    "dpsgd",
    "local_dpsgd",
    "without_batch_norm",
]

lazily(__name__)
