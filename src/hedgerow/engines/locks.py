"""A folder has one user at a time: the latest of this process, and no other process."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Protocol

from hedgerow.store.locks import lock_now


class User(Protocol):
    """Who uses a folder."""

    def give_up(self, reason: str) -> None:
        """Stop using the folder, and close what `locked` returned."""


_users: weakref.WeakValueDictionary[Path, User] = weakref.WeakValueDictionary()


def locked(folder: Path, user: User) -> int:
    """Take a folder, from an earlier user of this process if there is one; return the descriptor that holds the lock.

    Raises
    ------
    BlockingIOError
        Another process uses it.
    """
    before = _users.get(folder.resolve())
    if before is not None:
        before.give_up("a later run of this process uses these states")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock_now(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    _users[folder.resolve()] = user
    return descriptor
