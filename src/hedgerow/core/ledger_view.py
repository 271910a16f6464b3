"""Ledgers to read: copies of entries, for whoever may not write them."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from hedgerow.display import displayed

from .events import Charge, Unit
from .ledger import Entry, Ledger, grouped
from .ledger_frame import frame_of
from .limits import Limit

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")


@displayed
class LedgerView:
    """A ledger as those see it who may not write it; it has no attribute by which the ledger could be reached."""

    __slots__ = ("__weakref__",)

    def __init__(self, ledger: Ledger) -> None:
        _VIEWED[self] = ledger

    @property
    def entries(self) -> list[Entry]:
        """What was asked by this run: copies."""
        return self.since(0)

    @property
    def own(self) -> list[Entry]:
        """What was asked by this run, also what it expects to ask once more after a resumption: copies."""
        return list(map(_shown, _VIEWED[self].own))

    @property
    def others(self) -> list[Entry]:
        """What other runs wrote to a shared record: copies."""
        return list(map(_shown, _VIEWED[self].others))

    @property
    def limit(self) -> Limit | None:
        return copy(_VIEWED[self].limit)

    @property
    def head(self) -> str:
        """Hash of the last entry of a durable record, by which a copy can be compared; "" without a record."""
        record = _VIEWED[self].record
        return "" if record is None else record.head

    def charges(self, unit: Unit) -> list[Charge]:
        """The events of all runs by run and cohort, for an accountant."""
        return grouped(map(_shown, _VIEWED[self].released), unit)

    def epsilon(self, *, delta: float | None = None, unit: Unit | None = None, accountant: str | None = None) -> float:
        """Epsilon of everything asked so far; see `Ledger.epsilon`."""
        return _VIEWED[self].epsilon(delta=delta, unit=unit, accountant=accountant)

    def since(self, length: int) -> list[Entry]:
        """What was asked by this run once its ledger had a length: copies."""
        return list(map(_shown, _VIEWED[self].entries[length:]))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each question of this run, as `Ledger.to_frame`."""
        return frame_of(self.entries, _VIEWED[self].judged)

    def uses(self, key: str) -> int:
        """How many questions have this key."""
        return _VIEWED[self].uses(key, since_start=False)

    def __len__(self) -> int:
        return len(_VIEWED[self])


_VIEWED: WeakKeyDictionary[LedgerView, Ledger] = WeakKeyDictionary()


def _shown(entry: Entry) -> Entry:
    """A copy of an entry, and of everything in it that could be changed."""
    part = None if entry.part is None else _copied(entry.part)
    shown = _copied(entry)
    vars(shown).update(event=_copied(entry.event), sampling=_copied(entry.sampling), part=part)
    return shown


def _copied(value: T) -> T:
    """What `copy` makes of a frozen value, in a quarter of the time: a ledger has many entries."""
    made: T = object.__new__(type(value))
    vars(made).update(vars(value))
    return made
