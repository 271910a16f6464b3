"""With whom, at which epsilon, at what price: forecasts before the first question, coalitions, games over epsilon, plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .asynchronous import AsynchronousForecast, asynchronous
    from .coalitions import Prefix, best_prefix, best_weights, equal_excess, excess, precisions, weighted_excess
    from .forecast import Forecast, channel_variance, forecast
    from .known_loss import KnownLoss
    from .owner_noise import mean_variance, variances
    from .owner_offer import OwnerOffer
    from .owners_plan import OwnersPlan, PlannedFitness, PlannedOwner
    from .pilot_estimate import PilotEstimate, PilotRows
    from .plan import ScaledForecast, fitness_of, plan, scaled
    from .plan_page import write_plan
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
    "KnownLoss",
    "LearnerTerms",
    "OwnerOffer",
    "OwnerTerms",
    "OwnersPlan",
    "PilotEstimate",
    "PilotRows",
    "PilotState",
    "PlannedFitness",
    "PlannedOwner",
    "PostedPrice",
    "Prefix",
    "Propagation",
    "ScaledForecast",
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
    "fitness_of",
    "forecast",
    "leave_one_out",
    "marginal_worth",
    "mean_variance",
    "pilot_moments",
    "plan",
    "post",
    "precisions",
    "propagate",
    "sampled_shapley",
    "scaled",
    "separation",
    "shapley",
    "variances",
    "weighted_excess",
    "worst_case",
    "write_plan",
]

lazily(__name__)
