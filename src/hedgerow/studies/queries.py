"""Gradient queries as programs of a study: the keys by which a file names losses, inputs and owners' epsilons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from .adapters import later
from .listing import Listing

_INPUTS: dict[str, tuple[Any, Any]] = {
    "model": (Literal["linear", "logistic", "svm"], Field("linear", description="regression, or a linear classifier")),
    "ridge": (float | None, Field(None, description="weight of |theta|^2 / 2; none, and 1 for svm, if not given")),
    "centre": (
        list[float],
        Field([], description="public constants, one for each feature; declared ranges serve where none is given"),
    ),
    "spread": (list[float], Field([], description="by which features are divided; goes with centre")),
    "projection": (list[list[float]], Field([], description="rows of public coefficients, such as principal components")),
    "radius": (float | None, Field(None, description="rows are divided by it and shortened to length 1; else cut to [-1, 1]")),
    "constant": (float, Field(0.0, description="append a coordinate of this value, for an intercept")),
    "target_centre": (float, Field(0.0, description="public constant; goes with centre")),
    "target_spread": (float, Field(1.0, description="by which the target is divided and then cut to [-1, 1]")),
}
"""Keys of inputs and loss."""

_OWNERS: dict[str, tuple[Any, Any]] = {
    "rule": (
        Literal["algorithm-2", "algorithm-1", "strongly-convex"],
        Field("algorithm-2", description="steps and average"),
    ),
    "step": (float, Field(1.0, description="the first step: about one over the largest curvature")),
    "box": (float, Field(1.0, description="largest absolute value of a coefficient")),
    "convexity": (float, Field(0.0, description='least curvature, for "strongly-convex"')),
    "epsilons": (
        dict[str, float],
        Field({}, description="each owner's epsilon over all rounds; none leaves noise to [protection]"),
    ),
    "noise": (Literal["laplace", "gaussian"], Field("laplace", description="of the owners' answers")),
    "neighbours": (Literal["replace-one", "add-remove"], Field("replace-one", description="for whom epsilons hold")),
    "delta": (float, Field(1e-6, description="for Gaussian noise")),
}
"""Keys of steps and owners' noise."""

_RESULTS = "hedgerow.studies.query_results"


def single() -> Listing:
    """List gradient queries."""
    return Listing(
        "hedgerow.learn.queries:gradient_queries",
        "Linear models by noisy gradients, each owner under an epsilon of its own (Wu 2019, Algorithms 1 and 2).",
        instead={**_INPUTS, **_OWNERS},
        bind=_bound("loss", "spec", "steps", "answers"),
        outcome=later(_RESULTS, "model", "neural"),
        watch=later(_RESULTS, "watch", "neural"),
    )


def trials() -> Listing:
    """List repeated gradient queries over epsilons, shares of records and horizons."""
    return Listing(
        "hedgerow.learn.queries:query_trials",
        "Gradient queries many times over, to see what noise costs: slopes by epsilon, records and horizon (Wu 2019).",
        instead=_INPUTS,
        bind=_bound("loss", "spec"),
        outcome=later(_RESULTS, "trials", "neural"),
    )


def _bound(*names: str) -> Mapping[str, Any]:
    return {name: later(_RESULTS, f"{name}_for", "neural") for name in names}
