"""Survival: counts and Kaplan-Meier curves, log-rank tests, and regressions of hazards by sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .counts import (
        SurvivalState,
        groups_of,
        kaplan_meier,
        median_survival,
        survival_counts,
        survival_curve,
        survival_interval,
        survival_of,
        survival_plot,
        survival_tally,
        survival_totals,
    )
    from .cox import cox, cox_newton
    from .cox_fit import CoxFit, cox_fit
    from .design import SurvivalDesign, read_survival
    from .log_rank import LogRank, LogRankState, log_rank, log_rank_of, log_rank_totals
    from .piecewise import piecewise_exponential, piecewise_newton
    from .piecewise_fit import PiecewiseFit, piecewise_fit
    from .pooled import pooled_cox_sharing_records
    from .schoenfeld import schoenfeld

__all__ = [
    "CoxFit",
    "LogRank",
    "LogRankState",
    "PiecewiseFit",
    "SurvivalDesign",
    "SurvivalState",
    "cox",
    "cox_fit",
    "cox_newton",
    "groups_of",
    "kaplan_meier",
    "log_rank",
    "log_rank_of",
    "log_rank_totals",
    "median_survival",
    "piecewise_exponential",
    "piecewise_fit",
    "piecewise_newton",
    "pooled_cox_sharing_records",
    "read_survival",
    "schoenfeld",
    "survival_counts",
    "survival_curve",
    "survival_interval",
    "survival_of",
    "survival_plot",
    "survival_tally",
    "survival_totals",
]

lazily(__name__)
