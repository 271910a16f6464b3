"""The noise of an answer, as a guard looks at it: who adds it, and how much there is."""

from __future__ import annotations

from collections.abc import Iterable

from hedgerow.core.events import Event
from hedgerow.core.release import Release


def noise_at(release: Release) -> str:
    """Who adds noise to an answer."""
    if release.plan is not None:
        return "party"
    return "none" if release.mechanism is None else str(release.mechanism.at)


def noise_multiplier(release: Release, ids: Iterable[str] = ()) -> float:
    """Noise relative to the bound: the least of these parties' own, or of all parties' where none are named."""
    own = release.events_of(ids)
    return min((_multiplier(own.get(id, release.event)) for id in ids), default=_multiplier(release.event))


def _multiplier(event: Event) -> float:
    if event.kind == "pure":
        return 1.0 / event.epsilon if event.epsilon else 0.0
    return float(event.noise_multiplier)
