"""Statistics as sums: moments, counts, quantiles, and generalised linear models with inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .causal.effect import Balance, Effect
    from .causal.weighting import CausalState, aipw, ipw, overlap_weights, weighting_rounds
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
    from .imputation.imputed import Imputed, ImputedState, impute, imputed_fit, imputed_rounds
    from .imputation.pooled import PooledFit, rubin
    from .knots import knots_of
    from .linear.sums import linear_sums
    from .losses.descent import DescentState, Sweep, gradient_descent, mean_loss, sweep
    from .losses.quantreg import quantile_lines, quantile_regression
    from .losses.robust import HuberState, RobustFit, huber_lines, huber_regression
    from .losses.smooth import SmoothState
    from .losses.svm import Margin, margin_of, margins, svm
    from .meta.analysis import MetaState, meta_analysis, meta_rounds
    from .meta.combining import combine_estimates
    from .meta.effect import CombinedEffect
    from .meta.result import MetaAnalysis, SiteRow, meta_of
    from .meta.site_effects import SiteEffectsFit, site_effects_fit, within_sites, within_sites_newton
    from .mixed.fit import MixedFit, mixed_fit
    from .mixed.linear import MixedLinearState, mixed_linear, reml
    from .mixed.logistic import laplace_newton, mixed_logistic
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
    from .negative_binomial import joint_newton, negative_binomial_fit, negative_binomial_regression
    from .oracles import oracle_of
    from .penalty.cross_validation import Path, path_of
    from .penalty.path import PathState, cross_validated, penalty_path
    from .penalty.penalised import PenalisedFit, penalised, penalised_fit, penalised_regression
    from .quality.benefit import NetBenefit, net_benefit
    from .quality.by_site import SiteQuality, quality_by_site
    from .quality.calibration import Calibration, calibration
    from .quality.calibration_line import CalibrationLine, calibration_line
    from .quality.left_out import SitesLeftOut, leave_one_site_out
    from .quality.metrics import BinaryMetrics, LinearMetrics, binary_metrics, linear_metrics
    from .quality.odds import odds_ratio_table
    from .quality.prediction import PredictionQuality, prediction_quality
    from .quality.roc import Roc, roc
    from .quantiles import QuantileState, bisection, quantiles, quantiles_of
    from .regression import gamma_regression, linear_regression, logistic_regression, poisson_regression, regression
    from .scaling import Scaling, rescale, scaling, standardise
    from .screen import ScreenState, screen, screen_rounds
    from .screen_results import Screen
    from .standard import raw_coefficients
    from .state import NewtonState
    from .survival.counts import (
        SurvivalState,
        median_survival,
        survival_counts,
        survival_curve,
        survival_of,
        survival_plot,
        survival_totals,
    )
    from .survival.cox import cox, cox_newton
    from .survival.cox_fit import CoxFit, cox_fit
    from .survival.design import SurvivalDesign
    from .survival.log_rank import LogRank, LogRankState, log_rank, log_rank_of, log_rank_totals
    from .survival.piecewise import piecewise_exponential, piecewise_newton
    from .survival.piecewise_fit import PiecewiseFit, piecewise_fit
    from .survival.pooled import pooled_cox_sharing_records
    from .survival.schoenfeld import schoenfeld
    from .table_cells import TableOne
    from .table_one import TableState, table_of, table_one, table_totals

__all__ = [
    "Balance",
    "BinaryMetrics",
    "Calibration",
    "CalibrationLine",
    "CausalState",
    "CombinedEffect",
    "CountState",
    "CoxFit",
    "CrossState",
    "Derivation",
    "DescentState",
    "Design",
    "DeviationState",
    "Effect",
    "Fit",
    "Fitted",
    "FrequencyState",
    "HiddenState",
    "HistogramState",
    "HuberState",
    "Imputed",
    "ImputedState",
    "Independence",
    "LinearMetrics",
    "LogRank",
    "LogRankState",
    "Margin",
    "MeanState",
    "MetaAnalysis",
    "MetaState",
    "MixedFit",
    "MixedLinearState",
    "Moments",
    "MultinomialFit",
    "NetBenefit",
    "NewtonState",
    "Path",
    "PathState",
    "PenalisedFit",
    "PiecewiseFit",
    "PooledFit",
    "PredictionQuality",
    "QuantileState",
    "RobustFit",
    "Roc",
    "Scaling",
    "Screen",
    "ScreenState",
    "SiteEffectsFit",
    "SiteQuality",
    "SiteRow",
    "SitesLeftOut",
    "SmoothState",
    "SurvivalDesign",
    "SurvivalState",
    "Sweep",
    "TableOne",
    "TableState",
    "aipw",
    "bin_totals",
    "binary_metrics",
    "bisection",
    "calibration",
    "calibration_line",
    "centred_sums",
    "classes_of",
    "combine_estimates",
    "contingency",
    "correlation",
    "correlation_of",
    "counts",
    "counts_of",
    "cox",
    "cox_fit",
    "cox_newton",
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
    "impute",
    "imputed_fit",
    "imputed_rounds",
    "independence",
    "ipw",
    "joint_newton",
    "knots_of",
    "laplace_newton",
    "leave_one_site_out",
    "level_totals",
    "linear_metrics",
    "linear_regression",
    "linear_sums",
    "log_rank",
    "log_rank_of",
    "log_rank_totals",
    "logistic_regression",
    "margin_of",
    "margins",
    "mean_loss",
    "mean_totals",
    "means",
    "means_of",
    "median_survival",
    "meta_analysis",
    "meta_of",
    "meta_rounds",
    "mixed_fit",
    "mixed_linear",
    "mixed_logistic",
    "moments",
    "moments_of",
    "multinomial_fit",
    "multinomial_regression",
    "negative_binomial_fit",
    "negative_binomial_regression",
    "net_benefit",
    "newton",
    "odds_ratio_table",
    "oracle_of",
    "overlap_weights",
    "path_of",
    "penalised",
    "penalised_fit",
    "penalised_regression",
    "penalty_path",
    "piecewise_exponential",
    "piecewise_fit",
    "piecewise_newton",
    "poisson_regression",
    "pooled_cox_sharing_records",
    "prediction_quality",
    "quality_by_site",
    "quantile_lines",
    "quantile_regression",
    "quantiles",
    "quantiles_of",
    "raw_coefficients",
    "regression",
    "reml",
    "rescale",
    "roc",
    "rubin",
    "scaling",
    "schoenfeld",
    "screen",
    "screen_rounds",
    "secure_scaling",
    "site_effects_fit",
    "softmax_newton",
    "standardise",
    "survival_counts",
    "survival_curve",
    "survival_of",
    "survival_plot",
    "survival_totals",
    "svm",
    "sweep",
    "table_of",
    "table_one",
    "table_totals",
    "weighting_rounds",
    "within_sites",
    "within_sites_newton",
]

lazily(__name__, checks=True)
