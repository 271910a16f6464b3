"""Messages of protocols: short lists with a strict form, parsed without trust.

    [version, name, value, ...]        msgpack, in the form's order, canonical

A message is taken only if it is what its form says: the version, the name, so many values, each of its type and within its
size, and the same bytes when packed again. Everything else is `MessageRefused`, whatever the bytes are; nothing larger than
the form allows is parsed at all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import msgpack  # type: ignore[import-untyped]

from hedgerow.errors import MessageRefused

VERSION = 1
"""Of the protocols of this room; another is refused."""

OVERHEAD = 9
"""Most bytes that msgpack puts before a value."""


class FieldKind(Protocol):
    """What a value may be."""

    @property
    def size(self) -> int:
        """Most bytes that it takes when packed."""

    def fits(self, value: object) -> bool:
        """Whether a value is of this kind."""


@dataclass(frozen=True)
class Octets:
    """Bytes: `least` to `most` of them."""

    least: int
    most: int

    @property
    def size(self) -> int:
        """Most bytes when packed."""
        return self.most + OVERHEAD

    def fits(self, value: object) -> bool:
        """Whether a value is bytes of such a length."""
        return type(value) is bytes and self.least <= len(value) <= self.most


@dataclass(frozen=True)
class Whole:
    """An integer from `least` to `most`."""

    least: int
    most: int

    @property
    def size(self) -> int:
        """Most bytes when packed."""
        return OVERHEAD

    def fits(self, value: object) -> bool:
        """Whether a value is such an integer; True and 1.0 are not."""
        return type(value) is int and self.least <= value <= self.most


@dataclass(frozen=True)
class Positive:
    """A real number of double precision, above zero and finite."""

    @property
    def size(self) -> int:
        """Most bytes when packed."""
        return OVERHEAD

    def fits(self, value: object) -> bool:
        """Whether a value is such a number; whole numbers and true are not."""
        return type(value) is float and 0.0 < value < float("inf")


@dataclass(frozen=True)
class Words:
    """Text of 1 to `most` bytes in UTF-8."""

    most: int = 256

    @property
    def size(self) -> int:
        """Most bytes when packed."""
        return self.most + OVERHEAD

    def fits(self, value: object) -> bool:
        """Whether a value is such a text."""
        return type(value) is str and len(value) > 0 and len(value.encode("utf-8", "replace")) <= self.most


@dataclass(frozen=True)
class Several:
    """A list of up to `most` values of one kind."""

    of: FieldKind
    most: int

    @property
    def size(self) -> int:
        """Most bytes when packed."""
        return self.most * self.of.size + OVERHEAD

    def fits(self, value: object) -> bool:
        """Whether a value is such a list."""
        return type(value) is list and len(value) <= self.most and all(map(self.of.fits, value))


def exactly(n: int) -> Octets:
    """So many bytes."""
    return Octets(n, n)


class MessageForm:
    """The form of one message.

    Parameters
    ----------
    name : str
        Of the message, part of its bytes.
    **kinds : Kind
        What its values are, in order.

    Examples
    --------
    >>> hello = MessageForm("hello", round=Whole(1, 9), key=exactly(2))
    >>> hello.unpack(hello.pack(round=3, key=b"ab"))
    (3, b'ab')
    """

    def __init__(self, name: str, **kinds: FieldKind) -> None:
        self.name, self.kinds = name, kinds
        self.most = 3 * OVERHEAD + len(name.encode()) + sum(kind.size for kind in kinds.values())
        self._checks = [(field, kind.fits) for field, kind in kinds.items()]

    def pack(self, **values: Any) -> bytes:
        """Write a message.

        Raises
        ------
        MessageRefused (HR-242)
            A value is not what the form says; nothing was sent.
        """
        row = [values.pop(field, None) for field in self.kinds]
        if values:
            self._refuse(f"has no {', '.join(values)}")
        self._check(row)
        return bytes(msgpack.packb([VERSION, self.name, *row], use_bin_type=True))

    def unpack(self, message: bytes) -> tuple[Any, ...]:
        """Read a message: its values in the form's order.

        Raises
        ------
        MessageRefused (HR-242)
            The bytes are not exactly such a message.
        """
        if type(message) is not bytes:
            self._refuse(f"is not bytes but {type(message).__name__}")
        if len(message) > self.most:
            self._refuse(f"has {len(message)} bytes, and {self.most} are the most")
        try:
            parts = msgpack.unpackb(message, raw=False, use_list=True, strict_map_key=True, ext_hook=_no_extension)
        except Exception:  # whatever a parser makes of hostile bytes, they are refused
            self._refuse("cannot be parsed")
        if type(parts) is not list or len(parts) != len(self.kinds) + 2:
            self._refuse(f"is not a list of {len(self.kinds) + 2} values")
        version, name, *row = parts
        if type(version) is not int or version != VERSION:
            self._refuse(f"has a version other than {VERSION}")
        if type(name) is not str or name != self.name:
            self._refuse("has another name")
        self._check(row)
        if not _is_canonical(message, parts):
            self._refuse("is not in its canonical form")
        return tuple(row)

    def _check(self, row: list[Any]) -> None:
        for value, (field, fits) in zip(row, self._checks, strict=True):
            if not fits(value):
                self._refuse(f"has no valid {field}")

    def _refuse(self, why: str) -> NoReturn:
        raise MessageRefused(f"a message {self.name!r} {why}.", remedy="Both sides must run the same version of the protocol.")


def digest(label: str, *parts: bytes) -> bytes:
    """SHA-256 of a label and parts, each with its length before it, so that no two lists have the same bytes; 32 bytes."""
    state = hashlib.sha256(b"hedgerow/" + label.encode() + b"\0")
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


LARGE = 1 << 12
"""Bytes from which a value is compared by its header: what follows was read from that very place."""


def _is_canonical(message: bytes, parts: list[Any]) -> bool:
    """Whether a message is what packing its parts would give, without writing large values again."""
    if len(message) < LARGE:
        return bool(msgpack.packb(parts, use_bin_type=True) == message)
    at, packer = 0, msgpack.Packer(use_bin_type=True)
    for part in (None, *parts):
        if part is None:
            head, size = packer.pack_array_header(len(parts)), 0
        elif type(part) is bytes and len(part) >= LARGE:
            size = len(part)
            head = b"\xc5" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xc6" + size.to_bytes(4, "big")
        else:
            head, size = msgpack.packb(part, use_bin_type=True), 0
        if not message.startswith(head, at):
            return False
        at += len(head) + size
    return at == len(message)


def _no_extension(code: int, data: bytes) -> NoReturn:
    raise ValueError("extension types are not part of any form")
