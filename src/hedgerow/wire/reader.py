"""Reading values: a walk through the tokens of a head, and beside it through the body, without trust in either."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from types import FunctionType
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np

from hedgerow.core.arrays import Array

from .grammar import DEPTH, DTYPES, EDGE, LARGE, LONGEST, MAGIC, MOST_HEAD
from .names import Names, refused
from .travellers import KEPT, arrive


def read(raw: memoryview, names: Names, copy: bool) -> Any:
    """The value of a message, or any exception."""
    reader = Reader(raw, names, copy)
    value = reader.value(0)
    reader.end()
    return value


@lru_cache(maxsize=64)
def _arrived_once(name: str, raw: bytes, names: Names) -> Any:
    values = read(memoryview(raw), names, True)
    if type(values) is not dict:
        refused("has an object without fields")
    return arrive(names.traveller(name), values)


class Reader:
    """A walk through the tokens of a head, and beside it through the body."""

    def __init__(self, raw: memoryview, names: Names, copy: bool) -> None:
        if len(raw) < 8 or raw[:4] != MAGIC:
            refused("does not begin as one, or is of another version")
        size = int.from_bytes(raw[4:8], "little")
        if size > len(raw) - 8:
            refused("is cut off")
        if size > MOST_HEAD:
            refused(f"has a head of {size} bytes, and {MOST_HEAD} are the most")
        unpacker = msgpack.Unpacker(
            raw=False,
            max_buffer_size=max(1, size),
            max_array_len=0,
            max_map_len=0,
            max_ext_len=0,
            max_str_len=size,
            max_bin_len=size,
        )
        unpacker.feed(raw[8 : 8 + size])
        self.tokens: list[Any] = list(unpacker)
        if unpacker.tell() != size:
            refused("ends in the middle of a value")
        self.raw, self.names, self.copy = raw, names, copy
        self.next, self.at = 0, 8 + size
        if self.at != len(raw):
            self._step(0)

    def end(self) -> None:
        """Refuse what is left over."""
        if self.next != len(self.tokens) or self.at != len(self.raw):
            refused("has something left over")

    def _step(self, size: int) -> None:
        """Go past so many bytes of the body, and to the next edge, which is reached through zeros."""
        stop = self.at + size
        after = stop + -stop % EDGE
        if size < 0 or after > len(self.raw) or (after > stop and any(self.raw[stop:after])):
            refused("has fewer bytes than it says")
        self.at = after

    def token(self) -> Any:
        """The next token."""
        self.next += 1
        return self.tokens[self.next - 1]

    def count(self) -> int:
        """A number of values that follow, each at least one token."""
        found = self.token()
        if type(found) is not int or not 0 <= found <= len(self.tokens) - self.next:
            refused("counts more values than it has")
        return found

    def text(self) -> str:
        """A text."""
        found = self.token()
        if type(found) is not str:
            refused("has no text where one should be")
        return found

    def octets(self) -> bytes:
        """A byte string inside the head."""
        found = self.token()
        if type(found) is not bytes:
            refused("has no bytes where some should be")
        return found

    def taken(self, size: int) -> memoryview:
        """So many bytes of the body."""
        start = self.at
        self._step(size)
        return self.raw[start : start + size]

    def value(self, depth: int) -> Any:
        """The next value."""
        found = self.token()
        if type(found) is not bytes:
            if type(found) in _PLAIN:
                return found
            refused("has a token of an unknown kind")
        if depth > DEPTH:
            refused(f"has values in each other more than {DEPTH} deep")
        way = _MARKS.get(found)
        if way is None:
            refused("has an unknown mark")
        return way(self, depth + 1)

    def values(self, depth: int) -> list[Any]:
        """As many values as are counted first."""
        return [self.value(depth) for _ in range(self.count())]

    def _tuple(self, depth: int) -> tuple[Any, ...]:
        return tuple(self.values(depth))

    def _dict(self, depth: int) -> dict[Any, Any]:
        n = self.count()
        found = {self.value(depth): self.value(depth) for _ in range(n)}
        if len(found) != n:
            refused("has a key twice")
        return found

    def _set(self, depth: int) -> set[Any]:
        return set(self.values(depth))

    def _frozenset(self, depth: int) -> frozenset[Any]:
        return frozenset(self.values(depth))

    def _integer(self, depth: int) -> int:
        found = self.octets()
        if not 8 <= len(found) <= LONGEST:
            refused("has an integer of a wrong size")
        return int.from_bytes(found, "little", signed=True)

    def _bytes(self, depth: int) -> bytes:
        return self.octets()

    def _large(self, depth: int) -> bytes:
        size = self.token()
        if type(size) is not int or size < LARGE:
            refused("has bytes of a wrong size")
        return bytes(self.taken(size))

    def _array(self, depth: int) -> Array:
        dtype, shape, size = self._shape()
        return self._numbers(dtype, size).reshape(shape)

    def _turned(self, depth: int) -> Array:
        dtype, shape, size = self._shape()
        return self._numbers(dtype, size).reshape(shape[::-1]).T

    def _shape(self) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        code, n_axes = self.text(), self.token()
        if code not in DTYPES or type(n_axes) is not int or not 0 <= n_axes <= 32:
            refused("has an array of an unknown type or of too many axes")
        dtype, shape = np.dtype(code), tuple(self.token() for _ in range(n_axes))
        if not all(type(n) is int and n >= 0 for n in shape):
            refused("has an array of no shape")
        if math.prod(n for n in shape if n) * dtype.itemsize > max(len(self.raw), 1 << 20):
            refused("has an array that is larger than its bytes")
        return dtype, shape, math.prod(shape)

    def _numbers(self, dtype: np.dtype[Any], size: int) -> Array:
        part = self.taken(size * dtype.itemsize)
        found: Array = np.frombuffer(part, dtype) if size else np.empty(0, dtype)
        if dtype.kind == "b" and found.view(np.uint8).max(initial=0) > 1:
            refused("has a truth value that is neither")
        return found.copy() if self.copy or not found.flags.aligned else found

    def _scalar(self, depth: int) -> Any:
        code, octets = self.text(), self.octets()
        if code not in DTYPES or len(octets) != np.dtype(code).itemsize or (code == "|b1" and octets not in (b"\0", b"\1")):
            refused("has a number of an unknown type")
        return np.frombuffer(octets, code)[0]

    def _function(self, depth: int) -> Callable[..., Any]:
        return self.names.function(self.text())

    def _partial(self, depth: int) -> partial[Any]:
        function, arguments, settings = self.value(depth), self.value(depth), self.value(depth)
        if not isinstance(function, FunctionType) or type(arguments) is not tuple or type(settings) is not dict:
            refused("has a function with no settings")
        if not all(type(key) is str for key in settings):
            refused("has a function with no settings")
        return partial(function, *arguments, **settings)

    def _object(self, depth: int) -> Any:
        kind, n = self.names.traveller(self.text()), self.count()
        values = {self.text(): self.value(depth) for _ in range(n)}
        if len(values) != n:
            refused("has a field twice")
        return arrive(kind, values)

    def _once(self, depth: int) -> Any:
        name = self.text()
        if name not in KEPT:
            refused("keeps an object that is not kept")
        return _arrived_once(name, self.octets(), self.names)


_PLAIN = frozenset({type(None), bool, int, float, str})
"""Types of tokens that are values by themselves."""

_MARKS: dict[bytes, Callable[[Reader, int], Any]] = {
    b"t": Reader._tuple,
    b"l": Reader.values,
    b"d": Reader._dict,
    b"s": Reader._set,
    b"z": Reader._frozenset,
    b"i": Reader._integer,
    b"b": Reader._bytes,
    b"B": Reader._large,
    b"a": Reader._array,
    b"F": Reader._turned,
    b"n": Reader._scalar,
    b"f": Reader._function,
    b"p": Reader._partial,
    b"o": Reader._object,
    b"k": Reader._once,
}
"""How what follows a mark is read."""
