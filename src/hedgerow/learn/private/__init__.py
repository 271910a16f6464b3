"""Learning that hides whether a party took part: private clips, growing cohorts, budgets by plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .clipping import Split, followed, in_units_of_the_clip
    from .dp_fedavg import PrivateState, delta_threshold, dp_fedavg
    from .geyer import claimed_delta, geyer
    from .schedules import BudgetedSchedule, ScheduledGaussian, grown, plan
    from .views import slopes, step_of

__all__ = [
    "BudgetedSchedule",
    "PrivateState",
    "ScheduledGaussian",
    "Split",
    "claimed_delta",
    "delta_threshold",
    "dp_fedavg",
    "followed",
    "geyer",
    "grown",
    "in_units_of_the_clip",
    "plan",
    "slopes",
    "step_of",
]

lazily(__name__)
