"""Learning with a guarantee for each record: DP-SGD over pooled samples, and at each party under its own budget."""

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
