"""A journal in a file of JSON lines, which one process writes and a person can read.

    {"round": 1, ..., "hash": "0f3a..."}    an entry, and the hash that chains it; see `hedgerow.store.links`

An entry is on the disk when `append` returns. A last line that is cut short was being written when the process or the machine
stopped, and is dropped: what it was to stand for did not happen. Anything else that breaks the chain is refused.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hedgerow.errors import CannotWrite

from .links import ChainLink, follow, linked
from .locks import lock, lock_now
from .snapshot import sync_folder, write_all

_LINE = re.compile(r'(\{.*), "hash": "([0-9a-f]{32})"\}', re.DOTALL)


class Lines:
    """A file of entries.

    Parameters
    ----------
    path : Path
        Made with the first entry.
    held : bool
        Keep the file from now on until `close`, so that no other process reads it as its own; it is then readable by its
        owner alone, and made at once. Otherwise whoever appends refuses a file that another process wrote to since it was
        read.

    Raises
    ------
    OSError
        The file cannot be held; a BlockingIOError where somebody else holds it.
    """

    def __init__(self, path: Path, *, held: bool = False) -> None:
        self.path = Path(path)
        self.head, self._number, self._size = "", 0, 0
        self._failed = b""
        self._process = os.getpid()
        self._descriptor: int | None = None
        if held:
            made = not self.path.exists()
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                lock_now(self._descriptor)
            except OSError:
                os.close(self._descriptor)
                raise
            self._close = weakref.finalize(self, os.close, self._descriptor)
            if made:
                sync_folder(self.path.parent)

    def read(self) -> list[ChainLink]:
        """Read all entries, check their chain, and drop a last line that was cut short.

        Raises
        ------
        LedgerDamaged (HR-231)
            A line was changed, lost or added.
        CannotWrite (HR-104)
            The file cannot be read, or not be gone on with.
        """
        if not self.path.exists():
            return []
        try:
            with self._opened() as descriptor:
                raw = _content(descriptor)
                links = _links(raw, self.path)
                size = _whole(raw)
                if size < len(raw):
                    os.ftruncate(descriptor, size)
                    os.fsync(descriptor)
        except OSError as error:
            raise CannotWrite(f"{self.path}: {error.strerror}.", remedy="Correct its permissions.", asked=False) from error
        self._number, self._size, self.head = len(links), size, links[-1].hash if links else ""
        return links

    def append(self, *texts: str) -> None:
        """Append entries, and wait until all of them are on the disk.

        Raises
        ------
        CannotWrite (HR-104)
            None of them is in the file; or another process wrote to it since this one read it.
        """
        head, lines = self.head, []
        for text in texts:
            head = linked(head, (), text)
            lines.append(f'{text[:-1]}, "hash": "{head}"}}\n')
        raw = "".join(lines).encode()
        try:
            with self._opened() as descriptor:
                self._continue(descriptor)
                try:
                    write_all(descriptor, raw)
                    os.fsync(descriptor)
                    if self._size == 0 and self._descriptor is None:
                        sync_folder(self.path.parent)
                except OSError:
                    self._failed = raw
                    with suppress(OSError):
                        os.ftruncate(descriptor, self._size)
                    raise
        except OSError as error:
            remedy = "Make room or choose another folder, then resume."
            raise CannotWrite(f"{self.path}: {error.strerror}; nothing was asked.", remedy=remedy, asked=False) from error
        self._number, self._size, self.head = self._number + len(texts), self._size + len(raw), head

    def close(self) -> None:
        """Release a file that is held."""
        if self._descriptor is not None:
            self._close()
            self._descriptor = -1

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The file, of which no other process reads or writes half a line meanwhile."""
        if self._process != os.getpid():
            raise CannotWrite(f"{self.path} belongs to another process, which opened it.", asked=False)
        if self._descriptor is not None:
            yield self._descriptor
            return
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            lock(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _continue(self, descriptor: int) -> None:
        """Go to the end; drop what a failed write left there, and refuse a file that another process wrote to."""
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size > self._size:
            os.lseek(descriptor, self._size, os.SEEK_SET)
            left = os.read(descriptor, size - self._size)
            if b"\n" not in left or self._failed.startswith(left):
                os.ftruncate(descriptor, self._size)
                size = os.lseek(descriptor, self._size, os.SEEK_SET)
        if size != self._size:
            raise CannotWrite(
                f"{self.path} was written by another process since this one read it; nothing was asked.",
                remedy="Let one process continue a run. Runs that share a budget keep their entries in a LedgerBase.",
                asked=False,
            )


def read_lines(path: Path) -> tuple[list[ChainLink], bool]:
    """Read and check a file of lines, and tell whether a line at its end was cut short. Changes nothing.

    Raises
    ------
    LedgerDamaged (HR-231)
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        lock(descriptor, shared=True)
        raw = _content(descriptor)
    finally:
        os.close(descriptor)
    return _links(raw, path), _whole(raw) < len(raw)


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        return file.read()


def _whole(raw: bytes) -> int:
    """Where the whole lines end. A last line in which a power cut left a hole of zeros is none."""
    end = raw.rfind(b"\n") + 1
    start = raw.rfind(b"\n", 0, max(end - 1, 0)) + 1
    return start if b"\0" in raw[start:end] else end


def _links(raw: bytes, path: Path) -> list[ChainLink]:
    """The entries of whole lines, checked."""
    lines = raw[: _whole(raw)].decode(errors="replace").split("\n")[:-1]
    parts = (_LINE.fullmatch(line) for line in lines)
    found = ((n, (), part[1] + "}", part[2]) if part else (n, (), "", "") for n, part in enumerate(parts, 1))
    return [ChainLink(*each) for each in follow(found, path, 1, "")]
