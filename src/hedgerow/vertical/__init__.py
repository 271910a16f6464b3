"""Vertical learning: parties hold different columns of the same people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.crypto.cross import ColumnReach
    from hedgerow.crypto.psi import X25519, Agrawal, JoinSums
    from hedgerow.crypto.psi.kkrt import KKRT

    from .aligned import Aligned
    from .associations import PrincipalAxes, correlation, pca, vif
    from .cross import Factors
    from .glm import logistic_regression, poisson_regression
    from .groups import CrossTable, contingency, means
    from .hidden_sums import HiddenMeans, hidden_means
    from .leaks import LabelDP
    from .linear import lasso, linear_regression, ridge
    from .predict import predict
    from .split import SplitNetwork, SplitState, cut, evaluate, splitnn

__all__ = [
    "KKRT",
    "X25519",
    "Agrawal",
    "Aligned",
    "ColumnReach",
    "CrossTable",
    "Factors",
    "HiddenMeans",
    "JoinSums",
    "LabelDP",
    "PrincipalAxes",
    "SplitNetwork",
    "SplitState",
    "contingency",
    "correlation",
    "cut",
    "evaluate",
    "hidden_means",
    "lasso",
    "linear_regression",
    "logistic_regression",
    "means",
    "pca",
    "poisson_regression",
    "predict",
    "ridge",
    "splitnn",
    "vif",
]

lazily(__name__, checks=True)
