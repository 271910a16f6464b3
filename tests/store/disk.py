"""A disk that can fail: what the system is told to do is recorded, and any crash in between is made up from it.

`recording` puts a shim between SQLite and the system, and another below `os`. `Disk` replays what was recorded up to some point
and answers what a crash there may leave: all of it, when a process dies; when the power fails, any part of what was not synced.
"""

from __future__ import annotations

import ctypes
import os
import random
import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

Pointer = ctypes.c_void_p
Write = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, ctypes.c_int, ctypes.c_int64)
Truncate = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_int64)
Sync = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_int)
Open = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, Pointer, ctypes.c_int, Pointer)
Delete = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_char_p, ctypes.c_int)


class Methods(ctypes.Structure):
    """What SQLite can do with an open file."""

    _fields_ = (
        ("version", ctypes.c_int),
        *((name, Pointer) for name in ("close", "read", "write", "truncate", "sync", "size", "lock", "unlock")),
        *((name, Pointer) for name in ("reserved", "control", "sector", "device", "shm_map", "shm_lock", "shm_barrier")),
        *((name, Pointer) for name in ("shm_unmap", "fetch", "unfetch")),
    )


class System(ctypes.Structure):
    """What SQLite knows of a file system."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", Pointer),
        ("name", ctypes.c_char_p),
        ("data", Pointer),
        *((name, Pointer) for name in ("open", "delete", "access", "full", "dlopen", "dlerror", "dlsym", "dlclose")),
        *((name, Pointer) for name in ("random", "sleep", "time", "error", "time64", "set_call", "get_call", "next_call")),
    )


@contextmanager
def recording(*, lazy=False):
    """Give a list that grows with each operation of SQLite on files; `lazy` skips syncs, for speed, and records nothing."""
    import _sqlite3

    library = ctypes.CDLL(_sqlite3.__file__)
    if not hasattr(library, "sqlite3_vfs_find"):
        pytest.skip("the SQLite of this Python is sealed in")
    library.sqlite3_vfs_find.restype = ctypes.POINTER(System)
    system = library.sqlite3_vfs_find(None).contents
    shim = System.from_buffer_copy(system)
    shim.name = b"recording"
    log, kept, names = [], {}, {}
    open_file, delete_file = Open(system.open), Delete(system.delete)

    def opened(vfs, name, file, flags, out):
        code = open_file(vfs, name, file, flags, out)
        address = Pointer.from_address(file).value
        if code == 0 and address:
            names[file] = Path(ctypes.string_at(name).decode()).name if name else None  # SQLite keeps the pointer
            if names[file] and not lazy:
                log.append(("open", names[file]))
            if address not in kept:
                kept[address] = shimmed(address)
            Pointer.from_address(file).value = ctypes.addressof(kept[address][0])
        return code

    def shimmed(address):
        real = Methods.from_address(address)
        methods = Methods.from_buffer_copy(real)
        write, truncate, sync = Write(real.write), Truncate(real.truncate), Sync(real.sync)

        def written(file, data, size, offset):
            if not lazy and names.get(file):
                log.append(("write", names[file], offset, ctypes.string_at(data, size)))
            return write(file, data, size, offset)

        def truncated(file, size):
            if not lazy and names.get(file):
                log.append(("truncate", names[file], size))
            return truncate(file, size)

        def synced(file, flags):
            if lazy:
                return 0
            if names.get(file):
                log.append(("sync", names[file]))
            return sync(file, flags)

        calls = Write(written), Truncate(truncated), Sync(synced)
        for name, call in zip(("write", "truncate", "sync"), calls, strict=True):
            setattr(methods, name, ctypes.cast(call, Pointer).value)
        return methods, calls

    def deleted(vfs, name, folder):
        if not lazy:
            log.append(("delete", Path(name.decode()).name, bool(folder)))
        return delete_file(vfs, name, 0 if lazy else folder)

    calls = Open(opened), Delete(deleted)
    shim.open, shim.delete = (ctypes.cast(call, Pointer).value for call in calls)
    library.sqlite3_vfs_register(ctypes.byref(shim), 1)
    try:
        with below_os(log, lazy):
            yield log
    finally:
        library.sqlite3_vfs_register(ctypes.byref(system), 1)
        library.sqlite3_vfs_unregister(ctypes.byref(shim))


@contextmanager
def below_os(log, lazy):
    """Record what is done to files by `os`; `lazy` skips syncs."""
    real = {name: getattr(os, name) for name in ("open", "write", "ftruncate", "fsync", "replace", "unlink", "close")}
    names = {}

    def opened(path, *rest, **more):
        descriptor = real["open"](path, *rest, **more)
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            names[descriptor] = Path(path).name
            log.append(("open", Path(path).name))
        return descriptor

    def written(descriptor, data):
        if descriptor in names:
            log.append(("write", names[descriptor], os.lseek(descriptor, 0, os.SEEK_CUR), bytes(data)))
        return real["write"](descriptor, data)

    def truncated(descriptor, size):
        log.append(("truncate", names[descriptor], size))
        return real["ftruncate"](descriptor, size)

    def synced(descriptor):
        log.append(("sync", names[descriptor]) if descriptor in names else ("folder",))
        return real["fsync"](descriptor)

    def replaced(source, target):
        log.append(("replace", Path(source).name, Path(target).name))
        return real["replace"](source, target)

    def unlinked(path, **more):
        real["unlink"](path, **more)
        log.append(("delete", Path(path).name, False))

    def closed(descriptor):
        names.pop(descriptor, None)
        return real["close"](descriptor)

    calls = (opened, written, truncated, synced, replaced, unlinked, closed)
    patches = {"fsync": lambda descriptor: None} if lazy else dict(zip(real, calls, strict=True))
    with mock.patch.multiple(os, **patches):
        yield


@dataclass
class Inode:
    """The bytes of a file: what is surely on the disk, and what was written since."""

    safe: bytes = b""
    since: list = field(default_factory=list)

    def now(self):
        return applied(self.safe, self.since)


@dataclass
class Disk:
    """One folder: its names as they are, and as they surely will be after a power cut."""

    names: dict = field(default_factory=dict)
    safe_names: dict = field(default_factory=dict)
    unsynced_names: set = field(default_factory=set)

    def do(self, operation):
        kind, *rest = operation
        if kind == "open" and rest[0] not in self.names:
            self.names[rest[0]] = Inode()
            self.unsynced_names |= {rest[0]} if rest[0].endswith(("-journal", "-wal")) else set()
        elif kind in ("write", "truncate"):
            self.names[rest[0]].since.append((kind, *rest[1:]))
        elif kind == "sync":
            inode = self.names[rest[0]]
            inode.safe, inode.since = inode.now(), []
            if rest[0] in self.unsynced_names:  # SQLite syncs the folder with a new journal or log, not with a new database
                self.sync_names()
        elif kind == "replace":
            self.names[rest[1]] = self.names.pop(rest[0])
        elif kind == "delete":
            self.names.pop(rest[0], None)
            if rest[1]:
                self.sync_names()
        elif kind == "folder":
            self.sync_names()

    def sync_names(self):
        self.safe_names, self.unsynced_names = dict(self.names), set()

    def after_kill(self, half, rng):
        """Files after the process dies in the middle of an operation."""
        files = {name: inode.now() for name, inode in self.names.items()}
        if half and half[0] == "write":
            files[half[1]] = applied(files[half[1]], [("write", *torn(half[2:], rng))])
        return files

    def after_power_cut(self, rng):
        """Files after the power fails: of what was not synced, any part is lost, in any order."""
        files = {}
        for name in self.names.keys() | self.safe_names.keys():
            inode = rng.choice([self.names, self.safe_names]).get(name)
            if inode is None:
                continue
            if rng.random() < 0.5:
                kept = inode.since[: rng.randint(0, len(inode.since))]
            else:
                kept = [operation for operation in inode.since if rng.random() < 0.5]
            if kept and kept[-1][0] == "write" and rng.random() < 0.5:
                kept = [*kept[:-1], ("write", *torn(kept[-1][1:], rng))]
            files[name] = applied(inode.safe, kept)
        return files


def torn(write, rng):
    offset, data = write
    return offset, data[: rng.randint(0, len(data))]


def applied(body, operations):
    for kind, at, *rest in operations:
        if kind == "truncate":
            body = body[:at]
        else:
            [data] = rest
            body = body[:at].ljust(at, b"\0") + data + body[at + len(data) :]
    return body


def crashes(log, count, seed):
    """Give so many crashes: the number of releases before each, and the files that it leaves; kills and power cuts."""
    rng = random.Random(seed)
    points = sorted(rng.randrange(len(log)) for _ in range(count))
    disk, released, at = Disk(), 0, 0
    for point in points:
        for operation in log[at:point]:
            released += operation[0] == "released"
            disk.do(operation)
        at = point
        yield released, (disk.after_kill(log[point], rng) if rng.random() < 0.5 else disk.after_power_cut(rng))
