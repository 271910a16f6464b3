"""A ledger on disk: one JSON line for each entry, chained by hashes, on the disk before the question leaves.

So a crash can leave a debit without a release, but never a release without a debit. The file belongs to one run: a process
that finds lines of another one refuses to go on. Runs that share a budget keep a `LedgerBase`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hedgerow.core.ledger import Entry
from hedgerow.errors import CannotWrite, LedgerDamaged

from .checkpoint import sync_folder

try:
    from fcntl import LOCK_EX, LOCK_SH, flock
except ImportError:  # a system without such locks: two processes in one run folder are found by the length of the file alone
    flock = None  # type: ignore[assignment]
    LOCK_EX = LOCK_SH = 0


@dataclass
class LedgerFile:
    """A file of entries, for `Ledger.attach`; an existing file is read, checked and continued."""

    path: Path
    head: str = field(default="", init=False)
    """Hash of the last line, as far as this object has read or written; "" before the first."""

    _size: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    def read(self) -> list[Entry]:
        """Read the entries, check their chain, and drop a last line that a crash cut short: its question was never asked.

        Raises
        ------
        LedgerDamaged (HR-231)
            A line was changed, lost or added.
        """
        if not self.path.exists():
            return []
        body, torn = lines_of(self.path)
        chain = list(follow(body, self.path))
        if torn:
            self._drop(len(body))
        self._size, self.head = len(body), chain[-1][1] if chain else ""
        return [entry for entry, _ in chain]

    @contextmanager
    def transaction(self) -> Iterator[list[Entry]]:
        """No other run writes here, so there is nothing to wait for; `write` refuses if one did."""
        yield []

    def write(self, entry: Entry) -> None:
        """Append an entry and wait until it is on the disk.

        Raises
        ------
        CannotWrite (HR-104)
            The file is as it was before; or another process wrote to it.
        """
        text = json.dumps({"previous": self.head, **entry.to_json()})
        link = hash_of(text)
        body = f"{text[:-1]}{_signed(link)}\n".encode()
        try:
            with self.path.open("a+b", buffering=0) as file:
                _lock(file, LOCK_EX)
                self._alone(file)
                try:
                    if file.write(body) != len(body):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):
                        file.truncate(self._size)
                    raise
            if self._size == 0:
                sync_folder(self.path.parent)
        except OSError as error:
            remedy = "Make room or choose another folder, then resume."
            raise CannotWrite(f"{self.path}: {error.strerror}; nothing was asked.", remedy=remedy, asked=False) from error
        self._size, self.head = self._size + len(body), link

    def _alone(self, file: IO[bytes]) -> None:
        """Refuse a file that grew or shrank meanwhile; what a failed write left behind is dropped."""
        size = file.seek(0, os.SEEK_END)
        if size > self._size:
            file.seek(self._size)
            if b"\n" not in file.read():
                file.truncate(self._size)
                return
        if size != self._size:
            raise CannotWrite(
                f"{self.path} was written by another process since this one read it; nothing was asked.",
                remedy="Let one process continue a run. Runs that share a budget keep their entries in a LedgerBase.",
                asked=False,
            )

    def _drop(self, size: int) -> None:
        """Cut off a torn last line, unless somebody is just writing it."""
        with self.path.open("r+b") as file:
            _lock(file, LOCK_EX)
            file.seek(size)
            if b"\n" not in file.read():
                file.truncate(size)
                os.fsync(file.fileno())


def lines_of(path: Path) -> tuple[bytes, bool]:
    """The complete lines of a file, and whether a torn one comes after them. Changes nothing."""
    with path.open("rb") as file:
        _lock(file, LOCK_SH)
        body = file.read()
    complete = body[: body.rfind(b"\n") + 1]
    return complete, complete != body


def follow(body: bytes, path: Path) -> Iterator[tuple[Entry, str]]:
    """Check a chain line by line; gives each entry and the hash of its line.

    Raises
    ------
    LedgerDamaged (HR-231)
        With the number of the first damaged line.
    """
    previous = ""
    for number, raw in enumerate(body.split(b"\n")[:-1], 1):
        try:
            line = raw.decode()
            found = json.loads(line)
            link = found.pop("hash", None)
            text = line if link is None else line.removesuffix(_signed(link)) + "}"  # early versions wrote no hash
            if link not in (None, hash_of(text)):
                raise ValueError("it is not as it was written")
            if found.pop("previous") != previous:
                raise ValueError(f"it does not continue line {number - 1}; a line was changed, lost or added")
            entry = Entry.from_json(found)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            remedy = "Restore the file from a copy; a ledger is never edited."
            raise LedgerDamaged(f"line {number} of {path}: {error}.", remedy=remedy) from error
        previous = hash_of(text)
        yield entry, previous


def hash_of(text: str) -> str:
    """The link of the chain after an entry: 128 bits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _signed(link: str) -> str:
    """The end of a line: the hash of what comes before it."""
    return f', "hash": "{link}"}}'


def _lock(file: IO[bytes], how: int) -> None:
    if flock is not None:
        with suppress(OSError):  # a network file system without locks
            flock(file.fileno(), how)
