"""With whom, at which epsilon, at what price: forecasts before the first question, coalitions, games over epsilon, plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .forecast import Forecast, channel_variance, forecast
    from .owner_noise import mean_variance, variances
    from .pilot_estimate import PilotEstimate
    from .propagation import Propagation, average_weights, propagate

__all__ = [
    "Forecast",
    "PilotEstimate",
    "Propagation",
    "average_weights",
    "channel_variance",
    "forecast",
    "mean_variance",
    "propagate",
    "variances",
]

lazily(__name__)
