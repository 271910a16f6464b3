"""The journal of a party: what it has answered, on disk before the answer leaves.

A party gives one answer to each question of a protocol, ever. An answer given twice, to two different questions with one
name, can show what each alone hides; so the name and a digest are written and flushed first, and a party that was
restarted in between remembers.

A line holds one entry and ends with a check of itself. A last line that is cut short was being written when the machine
stopped: its answer had not left, and it is dropped. Any other damage is refused, for the party can no longer know what it
has answered. The file is locked while it is open, so that two processes cannot both believe they answer first.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from hedgerow.errors import MessageRefused

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

_CHECK_BYTES = 8


class Journal:
    """An append-only list of keys with digests.

    Parameters
    ----------
    path : Path or str or None
        The file, made when missing, readable by its owner alone; None keeps the list in memory, for simulations and tests.

    Raises
    ------
    MessageRefused (HR-242)
        The file is damaged elsewhere than at its end, or another journal has it open.
    """

    __slots__ = ("_descriptor", "_entries", "_lock", "_process", "_usable", "path")

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._entries: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._usable = True
        self._process = os.getpid()
        self._descriptor: int | None = None if self.path is None else self._open(self.path)

    def seen(self, key: str) -> bytes | None:
        """Return the digest that was written for `key`, or None."""
        return self._entries.get(key)

    def write(self, key: str, digest: bytes) -> None:
        """Write one entry; return when it is on the disk. Writing the same entry again does nothing.

        Raises
        ------
        MessageRefused (HR-242)
            `key` was written before with another digest, or the journal is closed or could not be written.
        """
        self.write_all({key: digest})

    def write_all(self, entries: Mapping[str, bytes]) -> None:
        """Write several entries with one flush; either all can be written or none is."""
        with self._lock:
            self._refuse_unusable()
            for key, digest in entries.items():
                if self._entries.get(key, digest) != digest:
                    raise MessageRefused(
                        f"{key!r} was answered before, to another question.",
                        remedy="One answer is given per round. Start a new round.",
                    )
            new = {key: bytes(digest) for key, digest in entries.items() if key not in self._entries}
            if self._descriptor is not None and new:
                self._append(self._descriptor, b"".join(_line(key, digest) for key, digest in new.items()))
            self._entries.update(new)

    def close(self) -> None:
        """Release the file; the journal refuses to write from then on."""
        with self._lock:
            self._usable = False
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def __len__(self) -> int:
        return len(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def __repr__(self) -> str:
        return f"Journal({self.path or 'in memory'}, {len(self)} entries)"

    def _refuse_unusable(self) -> None:
        """Refuse what a closed or broken journal cannot promise."""
        if not self._usable or (self.path is not None and self._process != os.getpid()):
            raise MessageRefused(
                f"the journal {self.path or 'in memory'} is closed, could not be written, or belongs to another process.",
                remedy="Answer nothing until a journal can be opened at its place.",
            )

    def _open(self, path: Path) -> int:
        """Return a locked descriptor at the end of the file's last whole line, having read what is before."""
        if fcntl is None:
            raise MessageRefused("journals on disk need a POSIX system.", remedy="Keep the journal in memory, for tests only.")
        made = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MessageRefused(
                    f"the journal {path} is open elsewhere.", remedy="One process answers for a party; stop the other."
                ) from None
            with open(descriptor, "rb", closefd=False) as file:
                raw = file.read()
            whole = raw.rfind(b"\n") + 1
            for number, line in enumerate(raw[:whole].splitlines(keepends=True), 1):
                self._recall(line, number, path)
            if whole < len(raw):
                os.ftruncate(descriptor, whole)
                os.fsync(descriptor)
            os.lseek(descriptor, whole, os.SEEK_SET)
            if made:
                _flush_folder(path.parent)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _recall(self, line: bytes, number: int, path: Path) -> None:
        """Add one line of the file to the entries."""
        try:
            key, digest, _ = json.loads(line)
            if line == _line(key, bytes.fromhex(digest)) and key not in self._entries:
                self._entries[key] = bytes.fromhex(digest)
                return
        except (ValueError, TypeError, AttributeError):
            pass  # no such line was ever written here: refused below
        raise MessageRefused(
            f"line {number} of the journal {path} is damaged or repeated.",
            remedy="Restore the file from its disk; without it, enrol the party anew with new keys.",
        )

    def _append(self, descriptor: int, raw: bytes) -> None:
        """Write and flush, or take back what was written; where neither works, never write again."""
        start = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            written = 0
            while written < len(raw):
                written += os.write(descriptor, raw[written:])
            os.fsync(descriptor)
        except OSError as error:
            self._usable = False
            try:
                os.ftruncate(descriptor, start)
                os.lseek(descriptor, start, os.SEEK_SET)
                os.fsync(descriptor)
                self._usable = True
            except OSError:
                pass  # what is on disk is unknown: the journal stays unusable
            raise MessageRefused(
                f"the journal {self.path} could not be written: {error.strerror}.",
                remedy="Nothing was answered. Make room, then ask again.",
            ) from error


def _line(key: str, digest: bytes) -> bytes:
    """Return an entry as one line: key, digest and check."""
    body = [key, digest.hex()]
    check = hashlib.blake2b(json.dumps(body).encode(), digest_size=_CHECK_BYTES).hexdigest()
    return json.dumps([*body, check]).encode() + b"\n"


def _flush_folder(folder: Path) -> None:
    """Make the name of a new file as lasting as its contents."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
