"""Locks of files and folders among the processes of one machine, until they are given back or the process ends.

A folder is held by a lock file in it (`lock_file`). A journal is locked itself, by its descriptor: `filelock` would empty what
it locks, and a second file beside each ledger could be left behind when a ledger is copied.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.errors import SystemUnsupported

if TYPE_CHECKING:
    from filelock import BaseFileLock

try:
    import fcntl
except ImportError:  # not a system of the POSIX family
    fcntl = None  # type: ignore[assignment]


def require_posix(what: str) -> None:
    """Refuse, on a system without the locks, the sockets and the owners of files of the POSIX family, what stands on them.

    Raises
    ------
    SystemUnsupported (HR-108)
    """
    if fcntl is None or not hasattr(socket, "AF_UNIX") or not hasattr(os, "geteuid"):
        raise SystemUnsupported(
            f"{what} needs Linux or macOS: their locks, sockets and owners of files.",
            remedy="Run it there, or in a Linux container. Simulations (hedgerow run, hr.simulate) run on Windows as well.",
        )


def lock_file(path: Path, *, wait: bool = False) -> BaseFileLock:
    """Take a lock file, which is made where it is missing and stays; `release()` gives it back, as does the process's end.

    Raises
    ------
    BlockingIOError
        Somebody else holds it, and this is not to wait.
    OSError
        It cannot be made.
    """
    from filelock import FileLock, Timeout

    found = FileLock(path, timeout=-1 if wait else 0, mode=0o600, thread_local=False)
    try:
        found.acquire()
    except Timeout:
        raise BlockingIOError(errno.EWOULDBLOCK, "held by another process", str(path)) from None
    return found


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
