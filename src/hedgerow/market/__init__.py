"""With whom, at which epsilon, at what price: forecasts before the first question, coalitions, games over epsilon, plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .forecast import Forecast, channel_variance, forecast
    from .owner_noise import mean_variance, variances
    from .pilot_estimate import PilotEstimate, PilotRows
    from .propagation import Propagation, average_weights, propagate
    from .second_moments import PilotState, estimate_of, pilot_moments
    from .worst_case import worst_case

__all__ = [
    "Forecast",
    "PilotEstimate",
    "PilotRows",
    "PilotState",
    "Propagation",
    "average_weights",
    "channel_variance",
    "estimate_of",
    "forecast",
    "mean_variance",
    "pilot_moments",
    "propagate",
    "variances",
    "worst_case",
]

lazily(__name__)
