"""Everything that is kept on disk: journals and snapshots, ledgers and checkpoints, and the loop around a program.

A journal (`Journal` in a database, `Lines` in a file that a person reads) is append-only and chained by hashes; a snapshot
replaces a file in one step. Both say when something cannot be lost any more: `hedgerow.store.database` states the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .answered import Answered
    from .checkpoint import Checkpoint, load_checkpoint, save_checkpoint
    from .database import Database
    from .drive import Driven, drive, last
    from .journal import Journal, JournalTable
    from .ledgers import Chain, LedgerBase, LedgerFile, LedgerPair, read_chain, record_of
    from .lines import Lines
    from .snapshot import read_arrays, sync_folder, write_arrays, write_bytes

__all__ = [
    "Answered",
    "Chain",
    "Checkpoint",
    "Database",
    "Driven",
    "Journal",
    "JournalTable",
    "LedgerBase",
    "LedgerFile",
    "LedgerPair",
    "Lines",
    "drive",
    "last",
    "load_checkpoint",
    "read_arrays",
    "read_chain",
    "record_of",
    "save_checkpoint",
    "sync_folder",
    "write_arrays",
    "write_bytes",
]

lazily(__name__)
