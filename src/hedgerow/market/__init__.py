"""With whom, at which epsilon, at what price: forecasts before the first question, coalitions, games over epsilon, plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .asynchronous import AsynchronousForecast, asynchronous
    from .coalitions import Prefix, best_prefix, best_weights, equal_excess, excess, precisions, weighted_excess
    from .forecast import Forecast, channel_variance, forecast
    from .owner_noise import mean_variance, variances
    from .pilot_estimate import PilotEstimate
    from .propagation import Propagation, average_weights, propagate
    from .worth import CoalitionWorth, leave_one_out, marginal_worth, sampled_shapley, shapley

__all__ = [
    "AsynchronousForecast",
    "CoalitionWorth",
    "Forecast",
    "PilotEstimate",
    "Prefix",
    "Propagation",
    "asynchronous",
    "average_weights",
    "best_prefix",
    "best_weights",
    "channel_variance",
    "equal_excess",
    "excess",
    "forecast",
    "leave_one_out",
    "marginal_worth",
    "mean_variance",
    "precisions",
    "propagate",
    "sampled_shapley",
    "shapley",
    "variances",
    "weighted_excess",
]

lazily(__name__)
