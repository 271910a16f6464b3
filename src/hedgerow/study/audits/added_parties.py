"""Canaries that are parties: each answers every question with a direction of its own, through the clip of every party."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bounds, blocks
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.party import Parties
from hedgerow.core.run import Run
from hedgerow.engines import InProcess
from hedgerow.engines.merging import merged
from hedgerow.errors import SettingsInvalid

from .added import hosted
from .canaries import Canaries
from .evidence import Drawn
from .totals import again

TIMES = 3.0
"""So many times as long as the bound is what a canary would add if nothing clipped it."""


@dataclass
class WithCanaries:
    """An engine whose parties include canaries, which answer by themselves.

    Attributes
    ----------
    engine : InProcess
        Of the other parties.
    names : tuple of str
        Of the canaries.
    inside : array of bool
        Which answer with their direction; the others answer zeros.
    seed : int
        Of the directions, which are public.
    """

    engine: InProcess
    names: tuple[str, ...]
    inside: Array
    seed: int

    def __post_init__(self) -> None:
        self._place = {name: c for c, name in enumerate(self.names)}
        self._all = (*self.engine.parties, *self.names)
        self._made: tuple[Any, Array] = (None, np.zeros(0))

    @property
    def held(self) -> Parties:
        """The other parties' records."""
        return self.engine.held

    @property
    def parties(self) -> Sequence[str]:
        return self._all

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask the others, and add what the canaries answer."""
        if outbox.step is not None:
            raise SettingsInvalid(
                f"{outbox.question.name} is added up by a protocol between parties, in which canaries take no part.",
                remedy='Audit the study with [protection.aggregation] mode = "simulated": clip and noise are the same.',
            )
        asked = [self._place[name] for name in outbox.ids if name in self._place]
        others = tuple(name for name in outbox.ids if name not in self._place)
        inboxes = [self.engine.exchange(replace(outbox, ids=others))] if others else []
        layout = next((one.layout for one in inboxes if one.layout), outbox.layout)
        if outbox.question.verb != "sum" or layout is None or outbox.release.bounds is None or not asked:
            return merged(outbox.question.name, outbox.ids, inboxes) if inboxes else Inbox(())
        which = np.array(asked)
        rows = self.directions(outbox.release.bounds, layout)[which] * self.inside[which][:, None]
        left = outbox.release.close(rows, layout, lambda k: outbox.stream(self.names[which[k]], "noise").entropy)
        came = Inbox(tuple(self.names[c] for c in asked), layout, left.sum(0, dtype=left.dtype))
        return merged(outbox.question.name, outbox.ids, [*inboxes, came])

    def directions(self, bounds: Bounds, layout: Layout) -> Array:
        """What each canary answers if it is in, shape (m, size): the same wherever bounds and shapes are the same."""
        key = (str(bounds), layout)
        if self._made[0] != key:
            made = np.random.default_rng([self.seed, layout.size]).standard_normal((len(self.names), layout.size))
            for part, bound in blocks(bounds, layout):
                made[:, part] *= TIMES * bound.radius / bound.size(made[:, part])
            self._made = key, made
        return self._made[1]


@dataclass(frozen=True)
class AddedParties:
    """Canaries that are parties."""

    engine: WithCanaries
    without: InProcess

    @classmethod
    def to(cls, run: Run, m: int, seed: int) -> AddedParties:
        """Add parties to a run, before it asks anything."""
        engine = hosted(run)
        chance = np.random.default_rng(seed)
        names = tuple(f"canary {c + 1}" for c in range(m))
        joined = WithCanaries(engine, names, Canaries.dealt(m, 1, chance).inside, seed)
        run.engine = joined
        return cls(joined, InProcess(threads=engine.threads).hosting(engine.held.fresh()))

    @property
    def inside(self) -> Array:
        return self.engine.inside

    def known(self, outbox: Outbox, answered: tuple[str, ...]) -> Array:
        """The total of a question without canaries and without noise, shape (d,)."""
        canaries = set(self.engine.names)
        return again(outbox, self.without, tuple(name for name in answered if name not in canaries))

    def rows(self, outbox: Outbox, layout: Layout, answered: tuple[str, ...]) -> Array:
        """What each canary answers if it is in, shape (m, size)."""
        if outbox.release.bounds is None:
            return np.zeros((len(self.inside), layout.size))
        return self.engine.directions(outbox.release.bounds, layout)

    def drawn(self, outbox: Outbox, answered: tuple[str, ...]) -> Drawn:
        """Which canaries were in the cohort, and how many parties answered."""
        joined, sampling = np.isin(np.array(self.engine.names), answered), outbox.question.cohort.sampling
        rate = sampling.rate if sampling.kind in ("poisson", "fixed") else 1.0
        return Drawn(joined, np.ones_like(joined), float(len(answered)), rate, sampling.kind != "fixed")
