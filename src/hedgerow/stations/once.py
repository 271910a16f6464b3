"""What the parties of a station have answered within protocols, so that none of them ever answers twice.

All parties share one file for each study. What they write while one question is answered is flushed together, before the
answer leaves; for thousands of parties that is one wait for the disk and not thousands.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hedgerow.crypto.journal import Journal
from hedgerow.errors import CannotWrite, MessageRefused


class Answered:
    """The journals of a station's parties for one study.

    Parameters
    ----------
    path : Path or None
        The file; None keeps them in memory, for simulations and tests.
    """

    def __init__(self, path: Path | None) -> None:
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path, self._journal = path, Journal(path)
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror}.", remedy="Make room; then ask again.") from error
        self._waiting: dict[str, bytes] = {}

    def of(self, party: str) -> _PartyJournal:
        """The journal of one party, as a protocol's side wants it."""
        return _PartyJournal(self, party)

    def flush(self) -> None:
        """Wait until everything that was written is on the disk.

        Raises
        ------
        CannotWrite (HR-104)
            What was computed must not leave.
        """
        if not self._waiting:
            return
        try:
            self._journal.write_all(self._waiting)
        except MessageRefused as error:
            self._reopen()
            raise CannotWrite(error.reason, remedy=error.remedy, asked=True) from error
        self._waiting = {}

    def _reopen(self) -> None:
        """Open the file again, as a restart would: a journal that could not be written does not trust itself any more."""
        if self._path is None:
            return
        self._journal.close()
        with suppress(MessageRefused, OSError):  # then the next flush tries again
            self._journal = Journal(self._path)

    def close(self) -> None:
        """Release the file."""
        self._journal.close()

    def seen(self, key: str) -> bytes | None:
        """The digest under a key."""
        return self._waiting.get(key) or self._journal.seen(key)

    def add(self, entries: Mapping[str, bytes]) -> None:
        """Keep entries for the next flush; refuse a second digest under a key."""
        for key, digest in entries.items():
            if (self.seen(key) or digest) != digest:
                raise MessageRefused(
                    f"{key!r} was answered before, to another question.", remedy="One answer is given per round."
                )
        self._waiting |= {key: bytes(digest) for key, digest in entries.items() if self.seen(key) is None}


class _PartyJournal:
    """One party's part."""

    __slots__ = ("_all", "_party")

    def __init__(self, every: Answered, party: str) -> None:
        self._all, self._party = every, party

    def seen(self, key: str) -> bytes | None:
        return self._all.seen(f"{self._party}/{key}")

    def write(self, key: str, digest: bytes) -> None:
        self.write_all({key: digest})

    def write_all(self, entries: Mapping[str, bytes]) -> None:
        self._all.add({f"{self._party}/{key}": digest for key, digest in entries.items()})
