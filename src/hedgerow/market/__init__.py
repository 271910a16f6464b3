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
    from .price_search import best_price
    from .prices import LearnerTerms, OwnerTerms, PostedPrice, Supply, post
    from .propagation import Propagation, average_weights, propagate
    from .second_moments import PilotState, estimate_of, pilot_moments
    from .sum_noise import SumNoise, separation
    from .worst_case import worst_case
    from .worth import CoalitionWorth, leave_one_out, marginal_worth, sampled_shapley, shapley

__all__ = [
    "AsynchronousForecast",
    "CoalitionWorth",
    "Forecast",
    "LearnerTerms",
    "OwnerTerms",
    "PilotEstimate",
    "PilotState",
    "PostedPrice",
    "Prefix",
    "Propagation",
    "SumNoise",
    "Supply",
    "asynchronous",
    "average_weights",
    "best_prefix",
    "best_price",
    "best_weights",
    "channel_variance",
    "equal_excess",
    "estimate_of",
    "excess",
    "forecast",
    "leave_one_out",
    "marginal_worth",
    "mean_variance",
    "pilot_moments",
    "post",
    "precisions",
    "propagate",
    "sampled_shapley",
    "separation",
    "shapley",
    "variances",
    "weighted_excess",
    "worst_case",
]

lazily(__name__)
