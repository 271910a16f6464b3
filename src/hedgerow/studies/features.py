"""Private training on features as a program of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .adapters import later, neural
from .listing import Listing

MODULE = "hedgerow.studies.feature_results"


def on_features(sentence: str) -> Listing:
    """List `hedgerow.learn.features.dpsgd_on_features`: the model reads features, and so does whoever measures it."""
    return replace(
        neural("dpsgd_on_features", sentence),
        path="hedgerow.learn.features:dpsgd_on_features",
        bind={"module": later(MODULE, "module_for", "neural")},
        watch=later(MODULE, "on_table", "neural"),
        score=later(MODULE, "accuracy", "neural"),
        ask=later(MODULE, "over_parties", "neural"),
        alone=_as_long,
    )


def _as_long(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """As many rounds on other records."""
    return dict(settings) | {"rounds": rounds}
