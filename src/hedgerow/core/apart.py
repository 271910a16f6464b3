"""Parties apart: each holds columns of its own, and after an alignment its rows in the order that the parties agreed on.

An alignment is a preparation whose setting came out of a protocol between the parties: it names an entry of the party's desk,
which has the positions of the common records. Neither order nor positions leave the party.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.errors import NotAligned

from .arrays import Array
from .columns import Placed, Rows
from .party import Parties, Party
from .question import Preparation, travels


@travels
def aligned_rows(columns: Mapping[str, Array], *, alignment: str) -> Mapping[str, Array]:
    """Name an alignment, as the first preparation of a question's view; parties put their rows in its order."""
    raise NotAligned(f"the alignment {alignment!r} is no preparation of columns.", remedy="It comes first in a view.")


def alignment_of(view: tuple[Preparation, ...]) -> str | None:
    """The alignment that a view begins with, if it does."""
    if view and view[0].function is aligned_rows:
        return str(dict(view[0].settings)["alignment"])
    return None


def alignment(name: str) -> Preparation:
    """The preparation that puts rows in the order of an alignment."""
    return Preparation(aligned_rows, (("alignment", name),))


class PartiesApart(Parties):
    """Parties of one process with columns of their own.

    Parameters
    ----------
    tables : mapping from party to columns
        Each a mapping from name to array of shape (n_records, ...); parties may hold different numbers of records.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, Array]]) -> None:
        sizes = [len(next(iter(columns.values()))) if columns else 0 for columns in tables.values()]
        super().__init__(tuple(tables), {}, sizes)
        self.tables = {id: dict(columns) for id, columns in tables.items()}

    def __getitem__(self, i: Any) -> Any:
        return Party(self.ids[i], self.tables[self.ids[i]], np.ones(int(self.sizes[i])))

    def stack(self, which: Array) -> Party:
        """Refused: columns of different parties do not stack."""
        raise NotAligned("parties with columns of their own were stacked.", remedy="Leave `stackable` out.")

    pool = stack

    def prepared(self, preparations: tuple[Any, ...], *, together: bool, singly: bool = False) -> Parties:
        """The parties with their rows in the order of an alignment; other preparations are of one schema, and are refused."""
        return prepared_apart(self, preparations)


class AlignedParties(Parties):
    """Parties whose records are those that all have in common, in one order.

    Parameters
    ----------
    before : Parties
    name : str
        Of the alignment.
    """

    def __init__(self, before: Parties, name: str) -> None:
        super().__init__(before.ids, {}, [0] * len(before.ids))
        self._before, self._name = before, name
        self._made: dict[int, Party] = {}
        before._same(self)

    def __getitem__(self, i: Any) -> Any:
        i = int(i)
        if i not in self._made:
            id = self.ids[i]
            entry = self.desks[id].get(f"alignment {self._name}")
            if entry is None:
                raise NotAligned(f"{id} keeps no alignment {self._name!r}.", remedy="Align the parties first: align(on=...).")
            rows = np.asarray(entry["rows"])
            columns = Placed(Rows(self._before[i].columns, rows))  # once: a training asks thousands of questions
            self._made[i] = Party(id, columns, np.ones(len(rows)))
        found = self._made[i]
        return Party(found.id, found.columns, found.w)

    def stack(self, which: Array) -> Party:
        """Refused: columns of different parties do not stack."""
        raise NotAligned("aligned parties were stacked.", remedy="Leave `stackable` out.")

    pool = stack


def prepared_apart(held: Parties, preparations: tuple[Any, ...]) -> Parties:
    """Parties with their rows in the order of an alignment."""
    if not preparations:
        return held
    name = alignment_of(preparations)
    if name is None or len(preparations) > 1:
        raise NotAligned(
            "parties with columns of their own were asked to prepare columns.",
            remedy="Prepare them in the local function, which knows whose columns it reads.",
        )
    if name not in held.aligned:
        held.aligned[name] = AlignedParties(held, name)
    made: Parties = held.aligned[name]
    return made


aligned_rows.rearranges = prepared_apart  # type: ignore[attr-defined]


def columns_apart(federation: Any) -> bool:
    """Whether parties of a federation hold columns of their own, of some of the same people."""
    from .federation import inside  # which itself imports from here

    return bool(inside(federation).run.schemas)
