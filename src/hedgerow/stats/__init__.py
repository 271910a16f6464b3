"""Statistics as sums: moments, counts, quantiles, and generalised linear models with inference."""

from .counts import CountState, contingency, counts, counts_of, histogram, level_totals
from .design import Design, design
from .firth import FirthState, firth
from .fit import Fit
from .fitted import Fitted
from .frequencies import FrequencyState, frequencies, oracle_of
from .glm import newton, score_and_information
from .hidden.descent import HiddenState, hidden_gradient_descent
from .hidden.scaling import hidden_standardise
from .hidden.sso import secure_scaling
from .losses.descent import DescentState, Sweep, gradient_descent, mean_loss, sweep
from .losses.quantreg import quantile_lines, quantile_regression
from .losses.robust import HuberState, RobustFit, huber_lines, huber_regression
from .losses.smooth import SmoothState
from .losses.svm import Margin, margin_of, margins, svm
from .moments import DeviationState, Moments, centred_sums, correlation, correlation_of, moments, moments_of
from .multinomial import MultinomialState, softmax_newton
from .multinomial_fit import MultinomialFit, classes_of, multinomial_fit, multinomial_regression
from .negative_binomial import (
    NegativeBinomialState,
    joint_newton,
    negative_binomial_fit,
    negative_binomial_regression,
)
from .penalty.cross_validation import Path, cross_validated, path_of
from .penalty.path import PathState, penalty_path
from .penalty.penalised import PenalisedFit, PenalisedState, penalised, penalised_fit, penalised_regression
from .quality.metrics import BinaryMetrics, Calibration, LinearMetrics, binary_metrics, calibration, linear_metrics
from .quality.odds import odds_ratio_table
from .quality.roc import Roc, roc
from .quantiles import QuantileState, bisection, quantiles, quantiles_of
from .regression import (
    design_of,
    fit_of,
    gamma_regression,
    linear_regression,
    logistic_regression,
    poisson_regression,
    regression,
)
from .scaling import Scaling, rescale, scaling, standardise
from .standard import raw_coefficients
from .state import NewtonState

__all__ = [
    "BinaryMetrics",
    "Calibration",
    "CountState",
    "DescentState",
    "Design",
    "DeviationState",
    "FirthState",
    "Fit",
    "Fitted",
    "FrequencyState",
    "HiddenState",
    "HuberState",
    "LinearMetrics",
    "Margin",
    "Moments",
    "MultinomialFit",
    "MultinomialState",
    "NegativeBinomialState",
    "NewtonState",
    "Path",
    "PathState",
    "PenalisedFit",
    "PenalisedState",
    "QuantileState",
    "RobustFit",
    "Roc",
    "Scaling",
    "SmoothState",
    "Sweep",
    "binary_metrics",
    "bisection",
    "calibration",
    "centred_sums",
    "classes_of",
    "contingency",
    "correlation",
    "correlation_of",
    "counts",
    "counts_of",
    "cross_validated",
    "design",
    "design_of",
    "firth",
    "fit_of",
    "frequencies",
    "gamma_regression",
    "gradient_descent",
    "hidden_gradient_descent",
    "hidden_standardise",
    "histogram",
    "huber_lines",
    "huber_regression",
    "joint_newton",
    "level_totals",
    "linear_metrics",
    "linear_regression",
    "logistic_regression",
    "margin_of",
    "margins",
    "mean_loss",
    "moments",
    "moments_of",
    "multinomial_fit",
    "multinomial_regression",
    "negative_binomial_fit",
    "negative_binomial_regression",
    "newton",
    "odds_ratio_table",
    "oracle_of",
    "path_of",
    "penalised",
    "penalised_fit",
    "penalised_regression",
    "penalty_path",
    "poisson_regression",
    "quantile_lines",
    "quantile_regression",
    "quantiles",
    "quantiles_of",
    "raw_coefficients",
    "regression",
    "rescale",
    "roc",
    "scaling",
    "score_and_information",
    "secure_scaling",
    "softmax_newton",
    "standardise",
    "svm",
    "sweep",
]
