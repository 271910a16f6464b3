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
    from .sum_noise import SumNoise, separation
    from .worth import CoalitionWorth, leave_one_out, marginal_worth, sampled_shapley, shapley

__all__ = [
    "AsynchronousForecast",
    "CoalitionWorth",
    "Forecast",
    "LearnerTerms",
    "OwnerTerms",
    "PilotEstimate",
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
    "excess",
    "forecast",
    "leave_one_out",
    "marginal_worth",
    "mean_variance",
    "post",
    "precisions",
    "propagate",
    "sampled_shapley",
    "separation",
    "shapley",
    "variances",
    "weighted_excess",
]

lazily(__name__)
