"""Listings of programs that hide parties: DP-FedAvg and Geyer's algorithm, with what they know besides accuracy by round."""

from __future__ import annotations

from typing import Any

from hedgerow.errors import SettingsInvalid

from .adapters import MODEL, classifies, few_passes, later
from .listing import Listing, Settings

MODULE = "hedgerow.studies.geyer"


def private(algorithm: str, sentence: str, **fixed: Any) -> Listing:
    """List a program of `hedgerow.learn.private`."""
    return Listing(
        f"hedgerow.learn.private:{algorithm}",
        sentence,
        instead=MODEL,
        fixed=fixed,
        bind={"module": later(MODULE, "module_of_inputs", "neural")},
        outcome=later("hedgerow.studies.neural", "outcome", "neural"),
        watch=later(MODULE, "watched", "neural"),
        score=later(MODULE, "accuracy", "neural"),
        alone=without_schedule,
        metric=lambda schema: ("accuracy", True) if classifies(schema) else ("mean squared error", False),
    )


def without_schedule(settings: Settings, rounds: int) -> dict[str, Any]:
    """Settings of a baseline: everybody in every round, and nothing measured besides."""
    plain = {"last_rate": None, "rates": None, "quantile": None, "clip": 1e6, "delta_at": None, "spread_every": 0}
    plain |= {"parties": 1, "last_parties": None}
    few = few_passes(settings, rounds)
    if "parties" in settings:
        raise SettingsInvalid("geyer has no baseline of one party.", remedy="baselines = false")
    return {name: plain.get(name, value) for name, value in few.items()}
