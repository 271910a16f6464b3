"""With whom, at which epsilon, at what price: forecasts before the first question, coalitions, games over epsilon, plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .asynchronous import AsynchronousForecast, asynchronous
    from .coalitions import Prefix, best_prefix, best_weights, equal_excess, excess, precisions, weighted_excess
    from .delta_method import ExpectedErrors, errors_from_moments, errors_of_last_step, errors_of_means
    from .forecast import Forecast, channel_variance, forecast
    from .heterogeneity import OwnerMoments, ask_owners
    from .insurance import FeasibleEpsilons, compensation, feasible_epsilons
    from .known_loss import KnownLoss
    from .leakage import database_leakage, leakage
    from .meaning import Meaning, meaning
    from .owner_noise import mean_variance, variances
    from .owner_offer import OwnerOffer
    from .owners_plan import OwnersPlan, PlannedFitness, PlannedOwner
    from .pilot_estimate import PilotEstimate, PilotRows
    from .plan import ScaledForecast, fitness_of, plan, scaled
    from .plan_page import write_plan
    from .posterior import advantage, advantage_of, epsilon_for_posterior, posterior, posterior_of_worlds, power, right_guess
    from .price_search import best_price
    from .prices import LearnerTerms, OwnerTerms, PostedPrice, Supply, post
    from .propagation import Propagation, average_weights, propagate
    from .second_moments import PilotState, estimate_of, pilot_moments
    from .sum_noise import SumNoise, separation
    from .utility import utility, utility_of_count
    from .worst_case import worst_case
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
