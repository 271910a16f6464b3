"""Statistics as sums: moments, counts, quantiles, and generalised linear models with inference."""

from .counts import CountState, contingency, counts, counts_of, histogram, level_totals
from .design import Design, design
from .fit import Fit
from .frequencies import FrequencyState, frequencies, oracle_of
from .glm import newton, score_and_information
from .moments import DeviationState, Moments, centred_sums, correlation, correlation_of, moments, moments_of
from .quantiles import QuantileState, bisection, quantiles, quantiles_of
from .regression import design_of, fit_of, linear_regression, logistic_regression, regression
from .scaling import Scaling, rescale, scaling, standardise
from .state import NewtonState

__all__ = [
    "CountState",
    "Design",
    "DeviationState",
    "Fit",
    "FrequencyState",
    "Moments",
    "NewtonState",
    "QuantileState",
    "Scaling",
    "bisection",
    "centred_sums",
    "contingency",
    "correlation",
    "correlation_of",
    "counts",
    "counts_of",
    "design",
    "design_of",
    "fit_of",
    "frequencies",
    "histogram",
    "level_totals",
    "linear_regression",
    "logistic_regression",
    "moments",
    "moments_of",
    "newton",
    "oracle_of",
    "quantiles",
    "quantiles_of",
    "regression",
    "rescale",
    "scaling",
    "score_and_information",
    "standardise",
]
