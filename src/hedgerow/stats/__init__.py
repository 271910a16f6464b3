"""Statistics as sums: moments, counts, quantiles, and generalised linear models with inference."""

from .counts import contingency, counts, histogram
from .design import Design, design
from .fit import Fit
from .glm import newton, score_and_information
from .moments import DeviationState, Moments, centred_sums, correlation, moments
from .quantiles import QuantileState, bisection, quantiles
from .regression import design_of, fit_of, linear_regression, logistic_regression
from .scaling import Scaling, rescale, scaling, standardise
from .state import NewtonState

__all__ = [
    "Design",
    "DeviationState",
    "Fit",
    "Moments",
    "NewtonState",
    "QuantileState",
    "Scaling",
    "bisection",
    "centred_sums",
    "contingency",
    "correlation",
    "counts",
    "design",
    "design_of",
    "fit_of",
    "histogram",
    "linear_regression",
    "logistic_regression",
    "moments",
    "newton",
    "quantiles",
    "rescale",
    "scaling",
    "score_and_information",
    "standardise",
]
