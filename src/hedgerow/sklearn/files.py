"""Fitted estimators of scikit-learn as JSON: parameters alone, so that no code in such a file can run.

A number is written so that it comes back to the bit. Nothing is unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from hedgerow.core.arrays import Array
from hedgerow.errors import ModelInvalid
from hedgerow.store import write_bytes

from .plain import described
from .plain_trees import LEAF, NODE_DTYPE, tree_with

FORMAT = 1
KINDS = {
    kind.__name__: kind
    for kind in (
        ElasticNet,
        Lasso,
        LinearRegression,
        LogisticRegression,
        Ridge,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
    )
}
"""What `save` takes."""
SETTINGS = ("C", "alpha", "l1_ratio", "fit_intercept", "max_depth", "min_samples_leaf", "min_impurity_decrease")
NODES = ("left_child", "right_child", "feature", "threshold", "impurity", "n_node_samples", "weighted_n_node_samples")


def save(estimator: Any, path: str | Path, about: Mapping[str, Any] | None = None) -> None:
    """Write the parameters of a fitted estimator to a JSON file, which `load` reads.

    Parameters
    ----------
    estimator
        One of `hedgerow.sklearn`, or a linear model or decision tree of scikit-learn that one of them became.
    about : mapping, optional
        What is told of it, such as its epsilon.

    Raises
    ------
    ModelInvalid (HR-510)
        An estimator of another kind.
    """
    write_bytes(Path(path), written(estimator, about))


def written(estimator: Any, about: Mapping[str, Any] | None = None) -> bytes:
    """What `save` writes."""
    plain = estimator.to_sklearn() if hasattr(estimator, "to_sklearn") else estimator
    name = type(plain).__name__
    if KINDS.get(name) is not type(plain):
        raise ModelInvalid(f"a {name} has no JSON form here.", remedy=f"One of {', '.join(KINDS)}, fitted.")
    told: dict[str, Any] = {"format": FORMAT, "estimator": name, "about": dict(about or {})}
    told["settings"] = {key: _number(value) for key, value in plain.get_params().items() if key in SETTINGS}
    told["n_features"] = int(plain.n_features_in_)
    told["features"] = list(getattr(plain, "feature_names_in_", [])) or None
    if hasattr(plain, "classes_"):
        told["classes"] = plain.classes_.tolist()
    if hasattr(plain, "tree_"):
        state = plain.tree_.__getstate__()
        told["nodes"] = {key: [_number(value) for value in state["nodes"][key].tolist()] for key in NODES}
        told["values"] = state["values"][:, 0, :].tolist()
    else:
        told |= {"coef": plain.coef_.tolist(), "intercept": np.asarray(plain.intercept_).tolist()}
    return (json.dumps(told, indent=1, allow_nan=False) + "\n").encode()


def load(path: str | Path) -> Any:
    """Return the estimator of scikit-learn that a file of `save` or of `hedgerow export --to sklearn` describes, fitted.

    Raises
    ------
    ModelInvalid (HR-510)
        The file describes none, or parameters that do not fit each other.
    """
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise ValueError(f"format {told['format']!r}")
        return _made(told)
    except FileNotFoundError:
        raise ModelInvalid(f"there is no file {str(path)!r}.", remedy="Write one: hedgerow export RUN --to sklearn.") from None
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelInvalid(
            f"{path} describes no estimator: {type(error).__name__} {error}.", remedy="Write it again with this version."
        ) from error


def _made(told: Mapping[str, Any]) -> Any:
    kind, n = KINDS[told["estimator"]], int(told["n_features"])
    settings = {key: float(value) if isinstance(value, str) else value for key, value in told["settings"].items()}
    if unknown := settings.keys() - set(SETTINGS):
        raise ValueError(f"settings {sorted(unknown)}")
    names = told["features"]
    if names is not None and (len(names) != n or not all(isinstance(name, str) for name in names)):
        raise ValueError("names of features do not fit")
    classes = np.array(told["classes"]) if "classes" in told else None
    if (classes is not None) != hasattr(kind, "predict_proba"):
        raise ValueError("classes do not fit")
    if "nodes" in told:
        made = tree_with(_nodes(told, n, classes), n, classes, **settings)
        if type(made) is not kind:
            raise ValueError("classes do not fit")
        return described(made, tuple(names or range(n)), names is not None)
    made = kind(**settings)
    coef, intercept = np.array(told["coef"], dtype=np.float64), np.array(told["intercept"], dtype=np.float64)
    rows = () if classes is None else (1,) if len(classes) == 2 else (len(classes),)
    if coef.shape != (*rows, n) or intercept.shape != rows:
        raise ValueError("coefficients do not fit")
    made.coef_, made.intercept_ = coef, intercept if rows else np.float64(intercept)
    if classes is not None:
        made.classes_ = classes
    return described(made, tuple(names or range(n)), names is not None)


def _nodes(told: Mapping[str, Any], n_features: int, classes: Array | None) -> dict[str, Any]:
    """Nodes as scikit-learn's `Tree` keeps them, checked: its compiled code follows children without looking."""
    values = np.array(told["values"], dtype=np.float64)
    nodes = np.zeros(len(values), NODE_DTYPE)
    for key in NODES:
        nodes[key] = [float(value) if isinstance(value, str) else value for value in told["nodes"][key]]
    left, right, at = nodes["left_child"], nodes["right_child"], np.arange(len(nodes))
    leaf = (left == LEAF) & (right == LEAF)
    inner = (left > at) & (right > at) & (left < len(nodes)) & (right < len(nodes))
    read = (nodes["feature"] >= 0) & (nodes["feature"] < n_features)
    sound = len(nodes) > 0 and bool((leaf | (inner & read)).all())
    if not sound or values.shape != (len(nodes), 1 if classes is None else len(classes)):
        raise ValueError("nodes do not fit")
    depth = np.zeros(len(nodes), np.int64)
    for i in np.flatnonzero(~leaf):
        children = [left[i], right[i]]
        depth[children] = np.maximum(depth[children], depth[i] + 1)
    return {
        "max_depth": int(depth.max()),
        "node_count": len(nodes),
        "nodes": nodes,
        "values": np.ascontiguousarray(values[:, None, :]),
    }


def _number(value: Any) -> Any:
    """A number as JSON has it; those that it has not as words."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
