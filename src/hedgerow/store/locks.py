"""Locks of files and folders among the processes of one machine, until the descriptor is closed or the process ends."""

from __future__ import annotations

import errno
from contextlib import suppress

try:
    import fcntl
except ImportError:  # not a system of the POSIX family
    fcntl = None  # type: ignore[assignment]


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Wait until no other process holds what is open; where a file system knows no locks, go on without."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def lock_now(descriptor: int) -> None:
    """Take what is open for this process alone.

    Raises
    ------
    BlockingIOError
        Somebody else holds it.
    OSError
        The system or the file system knows no locks.
    """
    if fcntl is None:
        raise OSError(errno.ENOLCK, "this system knows no locks of files")
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
