"""Drawing from a network: conditions that hold exactly, by drawing again where they do not.

A network draws records that mostly have what is wanted. Those that have not are drawn again, up to `TRIES` times as many as
are wanted; then the condition is refused, so that no record ever breaks one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from ..conditions import Conditions
from ..synthesizer import Synthesizer
from .encoding import RowEncoding

TRIES = 200
"""So many draws are made for each record that is wanted, at most."""
LEAST = 100
"""So few records count as this many, for that limit."""
AT_ONCE = 1024


@dataclass(frozen=True, eq=False, repr=False)
class NetworkSynthesizer(Synthesizer):
    """What records are drawn from, of a network.

    Attributes
    ----------
    encoding : RowEncoding
    modes : array of shape (numbers, n_modes, 3)
    """

    encoding: RowEncoding
    modes: Array

    @abstractmethod
    def outputs(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return rows as `RowEncoding.decode` reads them, of which most satisfy the conditions."""

    def draw(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> Array:
        """Return the codes of made-up records: shape (rows, f)."""
        return self.codes.number(self.records(rows, conditions, rng))

    def records(self, rows: int, conditions: Conditions, rng: np.random.Generator) -> dict[str, Array]:
        """Return made-up records that satisfy the conditions, by column name.

        Raises
        ------
        SettingsInvalid (HR-511)
            After so many tries too few satisfy them.
        """
        kept: list[dict[str, Array]] = []
        found = tried = 0
        while found < rows:
            if tried >= TRIES * max(rows, LEAST):
                raise SettingsInvalid(
                    f"of {tried} draws {found} satisfy the conditions, and {rows} are wanted.",
                    remedy="Ask for a wider condition, or take a tree (hr.synth.tan), which draws under conditions exactly.",
                )
            share = max(found, 1) / tried if tried else 1.0
            size = int(np.clip((rows - found) / share, min(rows, AT_ONCE), 32 * AT_ONCE))
            made = self.encoding.decode(self.outputs(size, conditions, rng), self.modes)
            good = np.flatnonzero(self.satisfy(made, conditions))[: rows - found]
            kept.append({name: values[good] for name, values in made.items()})
            found, tried = found + len(good), tried + size
        return {name: np.concatenate([one[name] for one in kept]) for name in kept[0]}

    def satisfy(self, columns: Mapping[str, Array], conditions: Conditions) -> Array:
        """Whether each record satisfies the conditions, (n,)."""
        good = np.ones(len(next(iter(columns.values()))), bool)
        codes = self.codes.number(columns) if conditions.weights else None
        for j, weights in conditions.weights.items():
            if j in conditions.within:
                low, high = conditions.within[j]
                values = columns[self.codes.columns[j].name]
                good &= (values >= low) & (values <= high)
            elif codes is not None:
                good &= weights[codes[:, j]] > 0
        return good
