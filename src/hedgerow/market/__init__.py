"""With whom, at which epsilon, at what price: forecasts before the first question, coalitions, games over epsilon, plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .coalitions import Prefix, best_prefix, best_weights, equal_excess, excess, precisions, weighted_excess
    from .epsilon.insurance import FeasibleEpsilons, compensation, feasible_epsilons
    from .epsilon.leakage import database_leakage, leakage
    from .epsilon.meaning import Meaning, meaning
    from .epsilon.posterior import (
        advantage,
        advantage_of,
        epsilon_for_posterior,
        posterior,
        posterior_of_worlds,
        power,
        right_guess,
    )
    from .epsilon.utility import utility, utility_of_count
    from .forecasts.asynchronous import AsynchronousForecast, asynchronous
    from .forecasts.delta_method import ExpectedErrors, errors_from_moments, errors_of_last_step, errors_of_means
    from .forecasts.forecast import Forecast, channel_variance, forecast
    from .forecasts.heterogeneity import OwnerMoments, ask_owners
    from .forecasts.known_loss import KnownLoss
    from .forecasts.owner_noise import mean_variance, variances
    from .forecasts.pilot_estimate import PilotEstimate, PilotRows
    from .forecasts.propagation import Propagation, average_weights, propagate
    from .forecasts.second_moments import PilotState, estimate_of, pilot_moments
    from .forecasts.worst_case import worst_case
    from .plans.owner_offer import OwnerOffer
    from .plans.owners_plan import OwnersPlan, PlannedFitness, PlannedOwner
    from .plans.plan import ScaledForecast, fitness_of, plan, scaled
    from .plans.plan_page import write_plan
    from .prices.posted import LearnerTerms, OwnerTerms, PostedPrice, Supply, post
    from .prices.price_search import best_price
    from .prices.sum_noise import SumNoise, separation
    from .worth import CoalitionWorth, leave_one_out, marginal_worth, sampled_shapley, shapley

__all__ = [
    "AsynchronousForecast",
    "CoalitionWorth",
    "ExpectedErrors",
    "FeasibleEpsilons",
    "Forecast",
    "KnownLoss",
    "LearnerTerms",
    "Meaning",
    "OwnerMoments",
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
    "advantage",
    "advantage_of",
    "ask_owners",
    "asynchronous",
    "average_weights",
    "best_prefix",
    "best_price",
    "best_weights",
    "channel_variance",
    "compensation",
    "database_leakage",
    "epsilon_for_posterior",
    "equal_excess",
    "errors_from_moments",
    "errors_of_last_step",
    "errors_of_means",
    "estimate_of",
    "excess",
    "feasible_epsilons",
    "fitness_of",
    "forecast",
    "leakage",
    "leave_one_out",
    "marginal_worth",
    "mean_variance",
    "meaning",
    "pilot_moments",
    "plan",
    "post",
    "posterior",
    "posterior_of_worlds",
    "power",
    "precisions",
    "propagate",
    "right_guess",
    "sampled_shapley",
    "scaled",
    "separation",
    "shapley",
    "utility",
    "utility_of_count",
    "variances",
    "weighted_excess",
    "worst_case",
    "write_plan",
]

lazily(__name__)
