"""Canaries in a simulation: who holds them, what each adds to a total, and which were in a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.columns import Rows
from hedgerow.core.engine import Outbox
from hedgerow.core.party import Parties
from hedgerow.core.run import Run
from hedgerow.data import Schema
from hedgerow.engines import InProcess
from hedgerow.errors import SettingsInvalid

from .canaries import MARK, Canaries, alone, extreme_records, with_records
from .evidence import Drawn
from .totals import again


class Added(Protocol):
    """Canaries of one unit, added to the parties of a run."""

    @property
    def inside(self) -> Array:
        """Which of them are in, shape (m,)."""

    def known(self, outbox: Outbox, answered: tuple[str, ...]) -> Array:
        """The total of a question without canaries and without noise, shape (d,)."""

    def rows(self, outbox: Outbox, layout: Layout, answered: tuple[str, ...]) -> Array:
        """What each canary adds before any clip of a party, shape (m, d)."""

    def drawn(self, outbox: Outbox, answered: tuple[str, ...]) -> Drawn:
        """Who was in the sample."""


@dataclass(frozen=True)
class AddedRecords:
    """Canaries that are records.

    Attributes
    ----------
    held, without : Parties
        With the canaries that are in; with all of them left out.
    single : InProcess
        With each canary at a party of its own.
    records : mapping from column to array
        Of the canaries.
    """

    canaries: Canaries
    held: Parties
    without: InProcess
    single: InProcess
    records: Mapping[str, Array]

    @classmethod
    def to(cls, run: Run, schema: Schema, m: int, chance: np.random.Generator) -> AddedRecords:
        """Add records to the parties of a run, before it asks anything."""
        engine = hosted(run)
        canaries = Canaries.dealt(m, len(engine.held), chance)
        records = extreme_records(schema, engine.held.columns, m, chance)
        held = with_records(engine.held, records, canaries, inside=True)
        plain = InProcess(threads=engine.threads)
        without = plain.hosting(with_records(engine.held, records, canaries, inside=False))
        made = cls(canaries, held, without, InProcess(threads=1).hosting(alone(records, m)), records)
        run.engine = engine.hosting(held)
        return made

    @property
    def inside(self) -> Array:
        return self.canaries.inside

    def known(self, outbox: Outbox, answered: tuple[str, ...]) -> Array:
        """The total of a question without canaries and without noise, shape (d,)."""
        return again(outbox, self.without, answered)

    def rows(self, outbox: Outbox, layout: Layout, answered: tuple[str, ...]) -> Array:
        """What each canary's record adds, asked about alone."""
        found = again(outbox, self.single, tuple(self.single.parties), rows=True, sampled=False)
        return found * self._there(answered)[:, None]

    def drawn(self, outbox: Outbox, answered: tuple[str, ...]) -> Drawn:
        """Which records joined; of the others how many."""
        there, sampling = self._there(answered), outbox.question.cohort.sampling
        at = [self.held.position[name] for name in answered]
        if sampling.kind != "records":
            return Drawn(there, there, sum(float((self.held[i].w > 0).sum()) for i in at))
        joined, took_part = np.zeros(len(self.canaries), bool), 0.0
        for i, name in zip(at, answered, strict=True):
            stream = outbox.streams.recalled(outbox.question.place_of_cohort, name, "records")
            sample = self.held.sampled(i, sampling.rate, stream)
            marks = np.asarray(sample.columns[MARK])
            joined[marks[marks >= 0]] = True
            took_part += float((sample.w > 0).sum())
        return Drawn(joined, there, took_part, sampling.rate)

    def _there(self, answered: tuple[str, ...]) -> Array:
        return np.isin(np.array(self.held.ids)[self.canaries.party], answered)


def hosted(run: Run) -> InProcess:
    """The engine of a simulation that an audit can add canaries to.

    Raises
    ------
    SettingsInvalid (HR-511)
        Parties are in other processes, or hold each other's records.
    """
    engine = run.engine
    if not isinstance(engine, InProcess):
        raise SettingsInvalid(
            f"an audit adds canaries to parties of this process, and the engine is {type(engine).__name__}.",
            remedy='Audit it with engine.name = "in-process": the numbers are the same.',
        )
    if type(engine.held) is not Parties or any(isinstance(column, Rows) for column in engine.held.columns.values()):
        raise SettingsInvalid(
            "some records are held by several parties, so that one canary more would be several.",
            remedy="Audit it without copies: --set partition.copies=1.",
        )
    return replace(engine)
