"""Runs: the loop around a program, the checkpoints from which it resumes, and ledgers that a crash cannot shorten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .chain import Chain, read_chain, record_of
    from .checkpoint import Checkpoint, load_checkpoint, save_checkpoint
    from .drive import Run, drive, last
    from .ledgerbase import LedgerBase, LedgerPair
    from .ledgerfile import LedgerFile

__all__ = [
    "Chain",
    "Checkpoint",
    "LedgerBase",
    "LedgerFile",
    "LedgerPair",
    "Run",
    "drive",
    "last",
    "load_checkpoint",
    "read_chain",
    "record_of",
    "save_checkpoint",
]

lazily(__name__)
