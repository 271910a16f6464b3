"""Frames: bodies one after the other over a socket or a pipe.

    frame   length of the body, 8 bytes, big-endian | body

A body is read into memory that is used as bytes arrive, not as a length is claimed, and is not copied again where it comes
in one piece. Both ends block; a socket's own timeout holds for each step.
"""

from __future__ import annotations

import socket
from typing import Protocol

from hedgerow.errors import MessageRefused

HEAD_BYTES = 8
MOST_BYTES = 1 << 30
"""The longest body that is accepted where nothing else is said."""
SMALL_BYTES = 1 << 14
"""Up to here length and body go out in one piece."""


class Source(Protocol):
    """The reading end of a pipe."""

    def read(self, n: int, /) -> bytes | None:
        """At most `n` bytes; b"" at the end."""


class Sink(Protocol):
    """The writing end of a pipe."""

    def write(self, data: bytes | memoryview, /) -> int | None:
        """Write, and say how many bytes were taken."""

    def flush(self) -> None:
        """Hand over what is buffered."""


def write(stream: socket.socket | Sink, body: bytes | bytearray | memoryview) -> None:
    """Write one frame.

    Raises
    ------
    OSError
        The other end is gone, or did not read within the socket's timeout: part of the frame may be on its way, so that the
        stream is of no further use.
    """
    view = memoryview(body).cast("B")
    head = len(view).to_bytes(HEAD_BYTES, "big")
    pieces: list[bytes | memoryview] = [head + view] if len(view) <= SMALL_BYTES else [head, view]
    for piece in pieces:
        if isinstance(stream, socket.socket):
            stream.sendall(piece)
            continue
        left = memoryview(piece)
        while left:
            left = left[stream.write(left) or 0 :]
    if not isinstance(stream, socket.socket):
        stream.flush()


def read(stream: socket.socket | Source, most: int = MOST_BYTES) -> bytes | None:
    """Read one frame.

    Returns
    -------
    bytes or None
        None where the stream ended or the other end was lost, between frames or within one: what was cut is lost.

    Raises
    ------
    MessageRefused (HR-242)
        The frame claims more than `most` bytes. None of them was read; the stream is of no further use.
    TimeoutError
        The socket's timeout passed.
    """
    head = _exactly(stream, HEAD_BYTES)
    if head is None:
        return None
    size = int.from_bytes(head, "big")
    if size > most:
        raise MessageRefused(
            f"a frame claims {size} bytes; at most {most} are read.",
            remedy="The other end does not speak in frames, or sends more than this end accepts.",
        )
    return _exactly(stream, size)


def _exactly(stream: socket.socket | Source, size: int) -> bytes | None:
    """So many bytes, or None where fewer come."""
    pieces: list[bytes] = []
    while size:
        try:
            piece = stream.recv(size, socket.MSG_WAITALL) if isinstance(stream, socket.socket) else stream.read(size)
        except ConnectionError:
            return None
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
