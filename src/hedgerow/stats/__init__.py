"""Statistics as sums: moments, counts, quantiles, and generalised linear models with inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .counts import (
        CountState,
        CrossState,
        HistogramState,
        Independence,
        bin_totals,
        contingency,
        counts,
        counts_of,
        cross_of,
        cross_totals,
        histogram,
        histogram_of,
        independence,
        level_totals,
    )
    from .derived import Derivation, derive
    from .design import Design, design, design_of
    from .firth import firth
    from .fit import Fit, fit_of
    from .fitted import Fitted
    from .frequencies import FrequencyState, frequencies
    from .glm import newton
    from .hidden.descent import HiddenState, hidden_gradient_descent
    from .hidden.sso import secure_scaling
    from .linear.sums import linear_sums
    from .losses.descent import DescentState, Sweep, gradient_descent, mean_loss, sweep
    from .losses.quantreg import quantile_lines, quantile_regression
    from .losses.robust import HuberState, RobustFit, huber_lines, huber_regression
    from .losses.smooth import SmoothState
    from .losses.svm import Margin, margin_of, margins, svm
    from .moments import (
        DeviationState,
        MeanState,
        Moments,
        centred_sums,
        correlation,
        correlation_of,
        mean_totals,
        means,
        means_of,
        moments,
        moments_of,
    )
    from .multinomial import multinomial_regression, softmax_newton
    from .multinomial_fit import MultinomialFit, classes_of, multinomial_fit
    from .negative_binomial import (
        joint_newton,
        negative_binomial_fit,
        negative_binomial_regression,
    )
    from .oracles import oracle_of
    from .penalty.cross_validation import Path, path_of
    from .penalty.path import PathState, cross_validated, penalty_path
    from .penalty.penalised import PenalisedFit, penalised, penalised_fit, penalised_regression
    from .quality.metrics import BinaryMetrics, Calibration, LinearMetrics, binary_metrics, calibration, linear_metrics
    from .quality.odds import odds_ratio_table
    from .quality.roc import Roc, roc
    from .quantiles import QuantileState, bisection, quantiles, quantiles_of
    from .regression import (
        gamma_regression,
        linear_regression,
        logistic_regression,
        poisson_regression,
        regression,
    )
    from .scaling import Scaling, rescale, scaling, standardise
    from .standard import raw_coefficients
    from .state import NewtonState
    from .survival import SurvivalState, survival_counts, survival_of, survival_totals

__all__ = [
    "BinaryMetrics",
    "Calibration",
    "CountState",
    "CrossState",
    "Derivation",
    "DescentState",
    "Design",
    "DeviationState",
    "Fit",
    "Fitted",
    "FrequencyState",
    "HiddenState",
    "HistogramState",
    "HuberState",
    "Independence",
    "LinearMetrics",
    "Margin",
    "MeanState",
    "Moments",
    "MultinomialFit",
    "NewtonState",
    "Path",
    "PathState",
    "PenalisedFit",
    "QuantileState",
    "RobustFit",
    "Roc",
    "Scaling",
    "SmoothState",
    "SurvivalState",
    "Sweep",
    "bin_totals",
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
    "cross_of",
    "cross_totals",
    "cross_validated",
    "derive",
    "design",
    "design_of",
    "firth",
    "fit_of",
    "frequencies",
    "gamma_regression",
    "gradient_descent",
    "hidden_gradient_descent",
    "histogram",
    "histogram_of",
    "huber_lines",
    "huber_regression",
    "independence",
    "joint_newton",
    "level_totals",
    "linear_metrics",
    "linear_regression",
    "linear_sums",
    "logistic_regression",
    "margin_of",
    "margins",
    "mean_loss",
    "mean_totals",
    "means",
    "means_of",
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
    "secure_scaling",
    "softmax_newton",
    "standardise",
    "survival_counts",
    "survival_of",
    "survival_totals",
    "svm",
    "sweep",
]

lazily(__name__, checks=True)
