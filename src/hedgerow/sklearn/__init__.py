"""Estimators with the interface of scikit-learn, fitted on a federation.

    model = FederatedLogisticRegression("malignant ~ mean_radius + mean_texture").fit(federation)
    model.predict_proba(frame)      model.score(frame, y)      model.to_sklearn()      model.fit_.summary()

`fit(X, y)` takes a table that the caller holds, as scikit-learn does, and makes one simulated party of it, or several.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from hedgerow.errors import MissingExtra
from hedgerow.lazy import lazily

if find_spec("sklearn") is None:
    raise MissingExtra("hedgerow.sklearn needs scikit-learn.", remedy="pip install 'hedgerow[data]'")

if TYPE_CHECKING:
    from .base import FederatedEstimator
    from .files import load, save
    from .linear import (
        FederatedElasticNet,
        FederatedLasso,
        FederatedLinearRegression,
        FederatedRidge,
    )
    from .logistic import FederatedLogisticRegression
    from .trees import FederatedDecisionTreeClassifier, FederatedDecisionTreeRegressor

__all__ = [
    "FederatedDecisionTreeClassifier",
    "FederatedDecisionTreeRegressor",
    "FederatedElasticNet",
    "FederatedEstimator",
    "FederatedLasso",
    "FederatedLinearRegression",
    "FederatedLogisticRegression",
    "FederatedRidge",
    "load",
    "save",
]

lazily(__name__)
