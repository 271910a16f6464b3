"""Decision trees by sums of histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import Column, Table
from hedgerow.errors import SchemaInvalid
from hedgerow.trees import DecisionTree, decision_tree

from .base import FederatedEstimator
from .logistic import coded
from .plain_trees import plain_tree
from .records import table_of


class TreeFederated(FederatedEstimator):
    """What trees share; see `hedgerow.trees.decision_tree`."""

    fit_: DecisionTree

    def __init__(
        self,
        *,
        max_depth: int = 4,
        n_bins: int = 32,
        min_samples_leaf: float = 10,
        min_impurity_decrease: float = 0.0,
        features: Sequence[str] | None = None,
        target: str | None = None,
        parties: int = 1,
    ) -> None:
        self.max_depth, self.n_bins, self.min_samples_leaf = max_depth, n_bins, min_samples_leaf
        self.min_impurity_decrease, self.features, self.target, self.parties = min_impurity_decrease, features, target, parties

    def _fit(self, federation: Federation) -> None:
        self.fit_ = decision_tree(
            federation,
            depth=self.max_depth,
            n_bins=self.n_bins,
            min_records=self.min_samples_leaf,
            min_gain=self.min_impurity_decrease,
            features=self.features,
            target=self.target,
        )
        if bool(self.fit_.bins.classes) != self._classifies:
            found = self.fit_.bins.target
            kind = "Classifier" if self.fit_.bins.classes else "Regressor"
            raise SchemaInvalid(
                f"the target {found.name!r} is of kind {found.kind!r}.", remedy=f"Take FederatedDecisionTree{kind}.", asked=True
            )

    _classifies = False

    def _table(self, X: Array, names: list[str], target: Column, y: Array) -> Table:
        low, high = X.min(0), X.max(0)
        return table_of(X, names, target, y, np.stack([low, np.where(high > low, high, low + 1.0)]))

    def _reads(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.fit_.bins.features)

    @property
    def feature_importances_(self) -> Array:
        """Share of each feature in the total gain: shape (d,)."""
        return np.array(list(self.fit_.importance.values()))

    def get_depth(self) -> int:
        """Levels of splits."""
        return int(self.fit_.state.round)

    def to_sklearn(self) -> Any:
        """Return a fitted tree of scikit-learn that predicts the same.

        Scikit-learn reads records in single precision, so that a value which differs from a cut by less is sent as its rounded
        value is. Impurities of a regression tree are NaN: no party was asked for squares.

        Raises
        ------
        SchemaInvalid (HR-409)
            A feature is a category, whose words scikit-learn's tree does not read.
        """
        settings = {"max_depth": self.max_depth, "min_impurity_decrease": self.min_impurity_decrease}
        settings["min_samples_leaf"] = max(int(self.min_samples_leaf), 1)
        named = hasattr(self, "feature_names_in_")
        return plain_tree(self.fit_, getattr(self, "classes_", None), named=named, **settings)


class FederatedDecisionTreeClassifier(ClassifierMixin, TreeFederated):
    """A classification tree on public cut points, equal to that of the pooled records.

    Parameters
    ----------
    max_depth : int
        Levels of splits, and so questions to the parties.
    n_bins : int
        Bins of a number over its declared range; `fit(X, y)` takes the range from X.
    min_samples_leaf : float
        Weighted records that every leaf has; above zero.
    min_impurity_decrease : float
        As of scikit-learn.
    features, target : optional
        Columns of a federation; by default those with these roles.
    parties : int
        Simulated parties that `fit(X, y)` makes.

    Attributes
    ----------
    fit_ : hedgerow.trees.DecisionTree
        Prints as rules.
    classes_ : array of shape (K,)
    """

    _numeric = False
    _classifies = True

    def _column(self, name: str, y: Array) -> tuple[Column, Array]:
        column, codes, self._values = coded(name, y)
        return column, codes

    def _fit(self, federation: Federation) -> None:
        super()._fit(federation)
        target = self.fit_.bins.target
        known = np.array([0, 1]) if target.kind == "binary" else np.array(target.levels)
        self.classes_ = self._values if self._local else known

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class in the order of `classes_`: shape (n, K)."""
        frame = self._frame(X)
        return self.fit_.probabilities(frame)

    def predict(self, X: Any) -> Array:
        """The most probable class: shape (n,)."""
        best = self.predict_proba(X).argmax(1)
        chosen: Array = self.classes_[best]
        return chosen


class FederatedDecisionTreeRegressor(RegressorMixin, TreeFederated):
    """A regression tree on public cut points, equal to that of the pooled records; as `FederatedDecisionTreeClassifier`."""

    def _column(self, name: str, y: Array) -> tuple[Column, Array]:
        return Column(name, "number", role="target"), np.asarray(y, dtype=np.float64)

    def predict(self, X: Any) -> Array:
        """Mean of the leaf that each record reaches: shape (n,)."""
        frame = self._frame(X)
        return self.fit_.predict(frame)
