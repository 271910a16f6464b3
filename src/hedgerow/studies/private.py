"""Private training record by record as programs of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .adapters import neural
from .listing import Listing


def per_record(algorithm: str, sentence: str) -> Listing:
    """List a program of `hedgerow.learn.records`."""
    listing = neural(algorithm, sentence)
    return replace(listing, path=f"hedgerow.learn.records:{algorithm}", alone=_as_long)


def _as_long(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """As many rounds on other records, with one number where parties had one each; nobody stops."""
    divisor = settings["batch_size"]
    one = {"rounds": rounds, "batch_size": sum(divisor) / len(divisor) if isinstance(divisor, list) else divisor}
    return dict(settings) | one | ({"stop_at": None} if "stop_at" in settings else {})
