"""Synthesizers: what a program found, from which records are drawn, as many as one likes and at no cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data.synthetic_table import Provenance, SyntheticTable
from hedgerow.errors import MixedUnits, SettingsInvalid
from hedgerow.privacy.statement import statement

from .codes import Codes
from .conditions import Conditions

MIXED = "mixed"
"""The unit of what was asked in several units, for none of which there is an epsilon."""

CONTINUED = "Training was continued from a given state, whose sums this ledger may not hold: no privacy is claimed."


@dataclass(frozen=True, eq=False, repr=False)
class Synthesizer(ABC):
    """What records are drawn from. Drawing asks nobody and costs nothing: it is post-processing of what was released.

    Attributes
    ----------
    codes : Codes
        How records are written as codes.
    provenance : Provenance
        What made it.
    """

    codes: Codes
    provenance: Provenance

    def __repr__(self) -> str:
        names = self.codes.names
        several = f"{len(names)} columns" if len(names) > 1 else f"the column {names[0]!r}"
        return f"{type(self).__name__}({self.provenance.method or 'records'} of {several}, {_cost(self.provenance)})"

    @abstractmethod
    def draw(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return the codes of made-up records: shape (rows, f)."""

    def sample(self, rows: int, *, where: Mapping[str, Any] | None = None, seed: int | None = None) -> SyntheticTable:
        """Return made-up records.

        Parameters
        ----------
        rows : int
            How many.
        where : mapping, optional
            Conditions that all of them satisfy (see `Conditions.of`): {"sex": "Female", "age": (40, 60)}.
        seed : int, optional
            The same seed gives the same records; None draws from the operating system.

        Raises
        ------
        SettingsInvalid (HR-511), MissingColumn (HR-403)
            `rows` is below one, `seed` below zero; a condition names what there is not, or has no probability at all.
        """
        refuse_undrawable(rows, seed)
        seed = None if seed is None else int(seed)
        rng = np.random.default_rng(seed)
        conditions = Conditions.of(self.codes, where)
        columns = self.records(int(rows), conditions, rng)
        about = replace(self.provenance, seed=seed, where=dict(where or {}))
        return SyntheticTable(columns, self.codes.schema, name="synthetic", source=_source(about), provenance=about)

    def records(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> dict[str, Array]:
        """Return lawful made-up records by column name; a synthesizer that draws values and not codes has its own."""
        return self.values(self.draw(rows, conditions, rng), conditions, rng)

    def values(self, drawn: Array, conditions: Conditions, rng: np.random.Generator) -> dict[str, Array]:
        """Return lawful values of codes, by column name."""
        return self.codes.values(drawn, rng, conditions.within)


def refuse_undrawable(rows: int, seed: int | None) -> None:
    """Refuse numbers by which no records can be drawn.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise SettingsInvalid(f"rows={rows!r}.", remedy="Give a whole number above zero.")
    if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
        raise SettingsInvalid(f"seed={seed!r}.", remedy="Give a whole number, zero or more; or none, to draw anew each time.")


def provenance(federation: Federation, method: str, *, delta: float | None = None, continued: bool = False) -> Provenance:
    """What is true of a table that is made now: everything that the federation's ledger holds is in it.

    Where the ledger holds questions of several units, none of them has an epsilon; the table is still a table.

    Parameters
    ----------
    continued : bool
        It began from a state that was given, which may hold sums that this ledger does not: then no epsilon is claimed.
    """
    if continued:
        return Provenance(method, privacy=CONTINUED)
    try:
        said = statement(federation.ledger, {"party": federation.size, "record": 0, "person": 0}, delta=delta)
    except MixedUnits:
        units = sorted({entry.unit for entry in (*federation.ledger.others, *federation.ledger.entries) if entry.unit})
        sentence = f"No epsilon is claimed: of the questions in the ledger some are bounded per {', some per '.join(units)}."
        return Provenance(method, unit=MIXED, privacy=sentence)
    private = said.private and np.isfinite(said.epsilon)
    return Provenance(method, said.epsilon if private else None, said.delta if private else None, said.unit, said.sentence)


def _source(about: Provenance) -> str:
    return f"Made-up records, by {about.method or 'a synthesizer'}: {_cost(about)}."


def _cost(about: Provenance) -> str:
    if about.epsilon is None:
        return "no privacy is claimed"
    return f"epsilon {about.epsilon:.4g} at delta {about.delta:g} per {about.unit}"
