"""A folder has one user at a time: the latest of this process, and no other process."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hedgerow.store.locks import lock_file

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = "lock"


class User(Protocol):
    """Who uses a folder."""

    def give_up(self, reason: str) -> None:
        """Stop using the folder, and release what `locked` returned."""


_users: weakref.WeakValueDictionary[Path, User] = weakref.WeakValueDictionary()


def locked(folder: Path, user: User) -> BaseFileLock:
    """Take a folder, from an earlier user of this process if there is one; return what gives it back.

    Raises
    ------
    BlockingIOError
        Another process uses it.
    """
    before = _users.get(folder.resolve())
    if before is not None:
        before.give_up("a later run of this process uses these states")
    lock = lock_file(folder / LOCK)
    _users[folder.resolve()] = user
    return lock
