"""Ledgers as they lie on a disk, in both formats: read for commands and reports, checked, and never changed.

FOLDER, *.jsonl   a run's own ledger, one line for each entry (`LedgerFile`)
*.sqlite          a ledger that runs share (`LedgerBase`)
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from hedgerow.core.ledger import Entry, Ledger, Limit, Record
from hedgerow.errors import LedgerDamaged, UnknownStudy

from .checkpoint import write_bytes
from .ledgerbase import LedgerBase, LedgerPair, read_rows
from .ledgerfile import LedgerFile, follow, lines_of

FILE = "ledger.jsonl"
"""Name of the ledger in a run folder."""


@dataclass(frozen=True)
class Chain:
    """A ledger whose chain holds.

    Attributes
    ----------
    path : Path
        The file.
    entries : tuple of Entry
        In the order in which they were written; those of a shared ledger are marked with their run.
    hashes : tuple of str
        The chain before the first entry, and after each.
    torn : bool
        Whether a crash, or a process that is writing now, left half a line at the end. Its question was not asked.
    """

    path: Path
    entries: tuple[Entry, ...]
    hashes: tuple[str, ...]
    torn: bool = False

    @property
    def head(self) -> str:
        """Hash of the last entry. Who keeps it elsewhere can tell later that no entry was removed from the end."""
        return self.hashes[-1]

    def since(self, head: str) -> int:
        """Return how many entries were written since the ledger had this head.

        Raises
        ------
        LedgerDamaged (HR-231)
            It never had: entries were removed from the end, or all of it was written anew.
        """
        if head not in self.hashes[1:]:
            raise LedgerDamaged(
                f"{self.path} never had the head {head}: entries at its end were removed, or all of it was written anew.",
                remedy="Restore the file from a copy; a ledger is never edited.",
            )
        return len(self.hashes) - 1 - self.hashes.index(head, 1)

    def ledger(self, limit: Limit | None = None) -> Ledger:
        """Return the entries as a ledger in memory, for an accountant."""
        ledger = Ledger(limit)
        ledger.others = list(self.entries)
        return ledger


def read_chain(path: Path) -> Chain:
    """Read and check the ledger of a run folder, or a ledger file of either format.

    Raises
    ------
    UnknownStudy (HR-102)
        There is none.
    LedgerDamaged (HR-231)
        With the number of the first damaged entry.
    """
    path = Path(path)
    found = path / FILE if path.is_dir() else path
    if not found.is_file():
        raise UnknownStudy(
            f"{path} holds no ledger.", remedy=f"Give a run folder, its {FILE}, or a ledger that runs share (*.sqlite)."
        )
    if found.suffix != ".jsonl":
        rows = read_rows(found)
        return Chain(found, tuple(row.entry() for row in rows[1:]), tuple(row.hash for row in rows))
    body, torn = lines_of(found)
    links = list(follow(body, found))
    return Chain(found, tuple(entry for entry, _ in links), ("", *(link for _, link in links)), torn)


def record_of(folder: Path, shared: Path | None = None) -> Record:
    """Return the record of a run folder: its own file, and where runs share a budget their common ledger before it.

    The folder keeps the random name under which the run is known to the shared ledger.
    """
    copy = LedgerFile(folder / FILE)
    if shared is None:
        return copy
    name = folder / "run"
    if not name.exists():
        write_bytes(name, secrets.token_hex(8).encode())
    return LedgerPair(LedgerBase(shared, name.read_text()), copy)
