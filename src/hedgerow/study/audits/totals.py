"""A mechanism without noise: what parties contribute through the same clip, as an auditor of a simulation may ask for it again.

It stands in the place of a mechanism, so that parties compute as they do behind noise, and each record is held to its bound as
there. What comes back are contributions in their own units, clipped to the bound that was charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bounds, blocks, unit_of
from hedgerow.core.engine import Outbox
from hedgerow.core.events import Event, Sampling
from hedgerow.core.mechanism import Mechanism, Position
from hedgerow.core.randomness import Entropy
from hedgerow.engines import InProcess


@dataclass(frozen=True)
class WithoutNoise(Mechanism):
    """A mechanism as another one, but for its noise.

    Parameters
    ----------
    of : Mechanism
    """

    of: Mechanism

    @property
    def at(self) -> Position:
        return "server"

    @property
    def record_step(self) -> float | None:
        return self.of.record_step

    def event(self, bounds: Bounds) -> Event:
        """Nothing is hidden."""
        return Event("nonprivate")

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Everything fits."""

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Rows of shape (parties, size), clipped where the bound is of a party; those not finite are zeros."""
        rows = np.where(np.isfinite(rows).all(-1, keepdims=True), rows, 0.0).astype(np.float64)
        return clipped(rows, bounds, layout) if unit_of(bounds) == "party" else rows

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """The total as it is."""
        return total


def clipped(rows: Array, bounds: Bounds, layout: Layout) -> Array:
    """Rows of shape (n, size), each within the bounds that were charged."""
    return np.concatenate([bound.clip(rows[:, part]) for part, bound in blocks(bounds, layout)], axis=-1)


def again(outbox: Outbox, engine: InProcess, ids: tuple[str, ...], *, rows: bool = False, sampled: bool = True) -> Array:
    """Ask parties once more what they answered, without noise; shape (size,), or (n, size) of rows.

    Parameters
    ----------
    engine : InProcess
        With the parties that are asked; none drops out.
    sampled : bool
        Whether each of their records joins as it did; all do where it is false.
    """
    release, question = outbox.release, outbox.question
    if release.mechanism is not None:
        release = replace(release, mechanism=WithoutNoise(release.mechanism))
    if not sampled and question.cohort.sampling.kind == "records":
        question = replace(question, cohort=replace(question.cohort, sampling=Sampling()))
    plain = replace(outbox, ids=ids, question=question, release=release, keep_rows=rows, step=None, protocol=None)
    inbox = engine.exchange(plain)
    found = inbox.rows if rows else inbox.total
    if found is None:
        size = outbox.layout.size if outbox.layout else 0
        return np.zeros((0, size) if rows else size)
    return found
