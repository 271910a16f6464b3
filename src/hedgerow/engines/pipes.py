"""Lines between processes of one machine: numbered messages over a Unix socket, large bodies in shared memory.

    4 bytes     length of the head, and with them one file descriptor for each body that is not in the message
    head        JSON: number, kind, sizes of the bodies, which of them come by descriptor
    bodies      the others, one after the other

A large body is written once into memory without a name and mapped by everybody who is sent its descriptor: it is not copied
for each, and the system frees it with its last reader, whatever dies. Nothing is left in a folder. Both ends are processes
of the same person, started from the same code; nothing is checked as it would have to be between organisations.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.errors import SystemUnsupported

from .rows import StateForm

LARGE = 1 << 16
"""Bytes from which on a body goes into shared memory."""

HEAD = struct.Struct("!I")
MOST_DESCRIPTORS = 8

Body = bytes | bytearray | memoryview


class Gone(Exception):
    """The process at the other end has ended."""


class Sheet:
    """Bytes in memory without a name, for any process that is sent the descriptor."""

    def __init__(self, size: int) -> None:
        self.size, self.descriptor = size, -1
        self.descriptor = _nameless()
        os.ftruncate(self.descriptor, size)

    @classmethod
    def of(cls, body: Body) -> Sheet:
        """A sheet with these bytes."""
        rest = memoryview(body).cast("B")
        sheet = cls(len(rest))
        while rest:
            rest = rest[os.write(sheet.descriptor, rest) :]
        return sheet

    def close(self) -> None:
        """Leave the sheet to those that have it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True)
class PipeMessage:
    """A message that came: what it is about, and its bodies."""

    number: int
    kind: str
    bodies: tuple[memoryview, ...]


class Pipe:
    """One end of a line."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, number: int, kind: str, bodies: Sequence[Body | Sheet] = ()) -> None:
        """Send a message; a sheet stays the caller's.

        Raises
        ------
        Gone
            The other end was closed.
        """
        own = [Sheet.of(body) if not isinstance(body, Sheet) and _size(body) >= LARGE else None for body in bodies]
        sent = [mine or body for mine, body in zip(own, bodies, strict=True)]
        sheets = [body for body in sent if isinstance(body, Sheet)]
        sizes = [body.size if isinstance(body, Sheet) else _size(body) for body in sent]
        head = json.dumps([number, kind, sizes, [isinstance(body, Sheet) for body in sent]]).encode()
        try:
            socket.send_fds(self.end, [HEAD.pack(len(head))], [sheet.descriptor for sheet in sheets])
            self.end.sendall(b"".join([head, *(body for body in sent if not isinstance(body, Sheet))]))
        except OSError as error:
            raise Gone from error
        finally:
            for mine in own:
                if mine is not None:
                    mine.close()

    def receive(self) -> PipeMessage:
        """Wait for a message.

        Raises
        ------
        Gone
            The other end was closed.
        """
        try:
            first, descriptors, _, _ = socket.recv_fds(self.end, HEAD.size, MOST_DESCRIPTORS)
            (length,) = HEAD.unpack(first if len(first) == HEAD.size else first + self._exactly(HEAD.size - len(first)))
            number, kind, sizes, shared = json.loads(bytes(self._exactly(length)))
            rest = self._exactly(sum(size for size, apart in zip(sizes, shared, strict=True) if not apart))
        except OSError as error:
            raise Gone from error
        bodies, start = [], 0
        for size, apart in zip(sizes, shared, strict=True):
            if apart:
                bodies.append(_mapped(descriptors.pop(0), size))
            else:
                bodies.append(rest[start : start + size])
                start += size
        return PipeMessage(number, kind, tuple(bodies))

    def _exactly(self, n: int) -> memoryview:
        body = bytearray(n)
        rest = memoryview(body)
        while rest:
            got = self.end.recv_into(rest)
            if not got:
                raise Gone
            rest = rest[got:]
        return memoryview(body).toreadonly()

    def close(self) -> None:
        """Close this end; whoever waits at the other sees it."""
        self.end.close()


def laid_out(arrays: Mapping[str, np.ndarray]) -> tuple[Sheet, str]:
    """Put arrays side by side on a sheet; with it comes, as JSON, where each of them lies."""
    sheet = Sheet(1)
    where = lay_out(arrays, sheet.descriptor)
    sheet.size = os.fstat(sheet.descriptor).st_size
    return sheet, where


def lay_out(arrays: Mapping[str, np.ndarray], descriptor: int) -> str:
    """The same into memory that there is, which gets the size that it needs."""
    form = StateForm.of(arrays)
    size = max(form.nbytes, 1)
    os.ftruncate(descriptor, size)
    with mmap.mmap(descriptor, size) as memory:
        everything = np.frombuffer(memory, np.uint8)
        for key, kind, shape, start, end in form.places:
            everything[start:end].view(kind).reshape(shape)[...] = arrays[key]
        del everything
    return json.dumps(form.parts)


def found_on(sheet: Body, about: str) -> dict[str, np.ndarray]:
    """The arrays on a sheet, without a copy."""
    parts = tuple((key, kind, tuple(shape)) for key, kind, shape in json.loads(about))
    return StateForm(parts).unpack(np.frombuffer(sheet, np.uint8))


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a line.

    Raises
    ------
    SystemUnsupported (HR-108)
        Sockets of this system carry no descriptors.
    """
    if not hasattr(socket, "AF_UNIX") or not hasattr(socket, "send_fds"):
        remedy = "Run parties by InProcess(), or on Linux or macOS."
        raise SystemUnsupported("this system has no sockets that carry descriptors.", remedy=remedy)
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("hedgerow")
    with tempfile.TemporaryFile() as file:  # not Linux: a file that has lost its name
        return os.dup(file.fileno())


def _mapped(descriptor: int, size: int) -> memoryview:
    try:
        flags: dict[str, Any] = {"flags": mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)}
        return memoryview(mmap.mmap(descriptor, size, prot=mmap.PROT_READ, **flags))
    finally:
        os.close(descriptor)


def _size(body: Any) -> int:
    return memoryview(body).nbytes
