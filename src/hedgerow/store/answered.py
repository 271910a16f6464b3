"""What parties have answered within protocols, on disk before the answer leaves, so that none of them ever answers twice.

An answer given twice, to two different questions with one name, can show what each alone hides. So the name and a digest are
written first, and a party that was restarted in between remembers.

The parties of one process share a file (`of`). With `gather`, what they write while one question is answered is written
together by `flush`, before the answer leaves: for thousands of parties that is one wait for the disk and not thousands.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from hedgerow.errors import CannotWrite, LedgerDamaged, MessageRefused

from .lines import Lines


class Answered:
    """An append-only list of keys with digests.

    Parameters
    ----------
    path : Path or str or None
        The file, made when missing, readable by its owner alone, and held until `close`: two processes cannot both believe
        that they answer first. None keeps the list in memory, for simulations and tests.
    gather : bool
        Write nothing before `flush`.

    Raises
    ------
    MessageRefused (HR-242)
        The file is damaged elsewhere than at its end, or open elsewhere.
    CannotWrite (HR-104)
        It cannot be made.
    """

    def __init__(self, path: Path | str | None = None, *, gather: bool = False) -> None:
        self.path, self._gather, self._prefix, self._closed = None if path is None else Path(path), gather, "", [False]
        self._known: dict[str, bytes] = {}
        self._waiting: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._lines = None if self.path is None else self._opened(self.path)

    def of(self, party: str) -> Self:
        """One party's part of the list."""
        part = copy.copy(self)
        part._prefix = f"{self._prefix}{party}/"
        return part

    def seen(self, key: str) -> bytes | None:
        """Return the digest that was written for `key`, or None."""
        key = self._prefix + key
        return self._waiting.get(key) or self._known.get(key)

    def write(self, key: str, digest: bytes) -> None:
        """Write one entry; return when it is on the disk, or gathered. Writing the same entry again does nothing.

        Raises
        ------
        MessageRefused (HR-242)
            `key` was written before with another digest, or the list is closed or could not be written.
        """
        self.write_all({key: digest})

    def write_all(self, entries: Mapping[str, bytes]) -> None:
        """Write several entries together; either all can be written or none is."""
        with self._lock:
            if self._closed[0]:
                raise MessageRefused(f"the list {self.path or 'in memory'} of answers is closed.", remedy="Answer nothing.")
            for key, digest in entries.items():
                if (self.seen(key) or digest) != digest:
                    raise MessageRefused(
                        f"{self._prefix + key!r} was answered before, to another question.",
                        remedy="One answer is given per round. Start a new round.",
                    )
            self._waiting |= {self._prefix + key: bytes(digest) for key, digest in entries.items() if self.seen(key) is None}
            if self._gather:
                return
            try:
                self._flush()
            except CannotWrite as error:
                self._waiting.clear()
                raise MessageRefused(error.reason, remedy="Nothing was answered. Make room, then ask again.") from error

    def flush(self) -> None:
        """Wait until everything that was written is on the disk.

        Raises
        ------
        CannotWrite (HR-104)
            What was computed must not leave.
        """
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Release the file; nothing can be written from then on."""
        with self._lock:
            self._closed[0] = True
            if self._lines is not None:
                self._lines.close()

    def __len__(self) -> int:
        return len(self._known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Answered({self.path or 'in memory'}, {len(self)} entries)"

    def _flush(self) -> None:
        if self._lines is not None and self._waiting:
            self._lines.append(*(json.dumps({"key": key, "digest": digest.hex()}) for key, digest in self._waiting.items()))
        self._known |= self._waiting
        self._waiting.clear()

    def _opened(self, path: Path) -> Lines:
        remedy = "Restore the file from its disk; without it, enrol the party anew with new keys."
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lines = Lines(path, held=True)
            for link in lines.read():
                found = json.loads(link.text)
                if found["key"] in self._known:
                    raise LedgerDamaged(f"entry {link.number} of {path} is repeated.")
                self._known[found["key"]] = bytes.fromhex(found["digest"])
        except BlockingIOError:
            raise MessageRefused(
                f"{path} is open elsewhere.", remedy="One process answers for a party; end the other."
            ) from None
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror}.", remedy="Make room; then ask again.") from error
        except (LedgerDamaged, ValueError, KeyError, TypeError) as error:
            raise MessageRefused(str(getattr(error, "reason", error)), remedy=remedy) from error
        return lines
