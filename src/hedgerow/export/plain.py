"""Estimators of scikit-learn from a run folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import CheckpointMismatch
from hedgerow.stats import classes_of, design_of
from hedgerow.stats.design import Design
from hedgerow.trees import DecisionTree, TreeState
from hedgerow.trees.results import tree_of

if TYPE_CHECKING:
    from .folder import RunFolder

BINARY = ("logistic_regression", "firth_regression")


def estimator(run: RunFolder) -> Any:
    """Return a fitted estimator of scikit-learn that predicts what the run's model predicts.

    Raises
    ------
    StudyInvalid (HR-101)
        The run's program has no such model.
    FormulaInvalid (HR-310), SchemaInvalid (HR-409)
        As `to_sklearn` of the estimators in `hedgerow.sklearn`.
    """
    from hedgerow.sklearn import plain
    from hedgerow.sklearn.logistic import words_of

    name, settings = run.study.program.name, run.settings
    if name == "decision_tree":
        return _tree(run)
    if name == "multinomial_regression":
        spec = classes_of(run.schema, settings["formula"], weights=settings["weights"])
        coef = _fitting(run, [f"{term} ({level})" for level in spec.response.labels for term in spec.names])  # type: ignore[union-attr]
        return plain.logistic(spec, coef.reshape(-1, spec.size), words_of(spec), C=np.inf)
    family = "binomial" if name in BINARY else "gaussian" if name == "linear_regression" else settings.get("family")
    if name not in (*BINARY, "linear_regression", "penalised_regression") or family not in ("binomial", "gaussian"):
        raise run.no("estimator of scikit-learn here")
    spec = _design(run, family)
    coef = _fitting(run, list(spec.names))
    if family == "gaussian":
        same = name == "penalised_regression" and not settings["standardised"]  # scikit-learn penalises columns as they are
        keys = {"alpha": "penalty", "l1_ratio": "l1_ratio"} if same else {}
        return plain.linear(spec, coef, {key: settings[given] for key, given in keys.items()})
    return plain.logistic(spec, coef, words_of(spec), C=np.inf)


def _design(run: RunFolder, family: Any) -> Design:
    given = {key: run.settings.get(key) for key in ("offset", "weights")}
    return design_of(run.schema, run.settings["formula"], family, **given)


def _fitting(run: RunFolder, names: list[str]) -> Array:
    """Coefficients, where they are those of a design with these names."""
    coef = run.coef()
    if list(run.coefficients) != names:
        raise CheckpointMismatch(
            f"{run.path / 'coefficients.csv'} has other terms than the study's formula.", remedy="Run the study again."
        )
    return coef


def _tree(run: RunFolder) -> Any:
    from hedgerow.sklearn.plain_trees import plain_tree

    settings = run.settings
    if not run.arrays:
        raise run.no("tree")
    grown: DecisionTree = tree_of(settings, TreeState(round=settings["depth"], **run.arrays), run.schema)
    words = grown.bins.classes
    classes = None if not words else np.array([0, 1]) if grown.bins.target.kind == "binary" else np.array(words)
    return plain_tree(grown, classes, max_depth=settings["depth"])
