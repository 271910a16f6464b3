"""What a ledger is limited by, what it is priced by, and where it is kept: interfaces of budgets and durable records."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from .events import Charge, Debit, Unit

if TYPE_CHECKING:
    from .ledger import Entry


class Limit(Protocol):
    """A budget: says whether everything charged so far, and the next question, may be spent."""

    @property
    def unit(self) -> Unit: ...

    def admits(self, charges: Iterable[Charge]) -> bool: ...

    def running(self) -> Spending: ...

    def warn_of(self, units: int) -> None:
        """Warn where the limit protects nobody among so many units; 0 where that is not known."""


class Spending(Protocol):
    """What was charged so far under a limit, kept up to date debit by debit."""

    def would(self, debit: Debit) -> bool:
        """Whether one more debit stays within the limit: the same answer as `Limit.admits` gives for all charges."""

    def add(self, debit: Debit) -> None: ...

    @property
    def spent(self) -> float:
        """The epsilon of everything that was added."""


class Record(Protocol):
    """A durable copy of a ledger, such as `hedgerow.store.LedgerFile`."""

    @property
    def head(self) -> str:
        """Hash of the last entry, by which a copy can be compared."""

    def read(self) -> list[Entry]:
        """Return this run's entries so far, checked."""

    def transaction(self) -> AbstractContextManager[list[Entry]]:
        """Keep other writers out meanwhile; gives what other runs wrote and no transaction gave before."""

    def write(self, entry: Entry) -> None:
        """Append an entry, within a transaction; return when it cannot be lost."""
