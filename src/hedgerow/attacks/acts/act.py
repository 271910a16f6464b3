"""What an act is: a change of a party's own records, or of the row that it sends, and what the party knows when it makes it.

records    a lie in the data: what is made of them goes through the party's own clip, noise and masks
lie        a lie in the row: what the local function returned is changed, and goes through clip, noise and masks
forge      the row as it leaves is changed, behind the party's clip and noise; of hidden rows, before they are masked
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array, Layout

Kind = Literal["lie", "forge"]
Knows = Literal["own", "colluders", "all"]


@dataclass(frozen=True, eq=False)
class Moment:
    """When rows are changed.

    Attributes
    ----------
    rng : numpy.random.Generator
        Shared by the liars of a question.
    layout : Layout
        Of the numbers that an act changes.
    asked : int
        Parties that were asked, liars among them.
    released : array of shape (size,), optional
        The broadcast of the question, flat, where it is as long as a row.
    """

    rng: np.random.Generator
    layout: Layout
    asked: int
    released: Array | None = None


class RecordsAct(ABC):
    """A lie in a party's own records."""

    @abstractmethod
    def records(self, columns: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """Return the columns that change, of the same shapes; `columns` are one party's own."""


class RowsAct(ABC):
    """A change of the rows that liars send.

    Attributes
    ----------
    kind : {"lie", "forge"}
    knows : {"own", "colluders", "all"}
        Whose rows of this question a liar sees: its own, those of all liars, or those of all parties that were asked.
    """

    kind: Kind
    knows: Knows

    @abstractmethod
    def rows(self, own: Array, seen: Array, moment: Moment) -> Array:
        """Return what liars send, of shape (n_liars, size).

        Parameters
        ----------
        own : array of shape (n_liars, size)
            What they would have sent.
        seen : array of shape (n_seen, size)
            The honest rows that they know.
        """


Act = RecordsAct | RowsAct
