"""Findings: what was released once for all programs of a run, such as how many records a model leaves out.

They are plain values, as JSON has them, under a name and a key; checkpoints hold them, so that a run which goes on does not
ask again.
"""

from __future__ import annotations

import json
from typing import Any

from .federation import Federation, inside


def findings(federation: Federation, about: str) -> dict[str, Any]:
    """Return what was noted about something, by key: a copy."""
    found: dict[str, Any] = json.loads(json.dumps(inside(federation).run.findings.get(about, {})))
    return found


def note(federation: Federation, about: str, key: str, value: Any) -> None:
    """Note a plain value."""
    inside(federation).run.findings.setdefault(about, {})[key] = json.loads(json.dumps(value))


def is_simulated(federation: Federation) -> bool:
    """Whether randomness follows from a seed, as only in a simulation, whose user holds all records."""
    return inside(federation).run.streams.seed is not None


def disclosure_limit(federation: Federation) -> float | None:
    """How many exact numbers may be asked for each value held; None where no rule holds."""
    held = inside(federation).run.holdings
    return None if held is None or held.disclosure is None else held.disclosure.most
