"""Writing values: a walk through a value that lists the tokens of its head and the parts of its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import FunctionType
from typing import Any, NoReturn

import msgpack  # type: ignore[import-untyped]
import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import may_travel, name_of
from hedgerow.errors import NotNamed

from .grammar import DEPTH, DTYPES, EDGE, LARGE, LONGEST, MAGIC
from .travellers import KEPT, class_name, leave


def written(value: Any) -> bytes:
    """The bytes of a value."""
    writer = Writer()
    writer.write(value, 0)
    return writer.message()


class Writer:
    """Tokens of the head and parts of the body, as a value is walked through."""

    def __init__(self) -> None:
        self.tokens: list[Any] = []
        self.parts: list[Any] = []
        self.size = 0

    def message(self) -> bytes:
        """Everything that was written."""
        tokens = self.tokens
        try:
            packed = msgpack.packb(tokens, use_bin_type=True)
        except (UnicodeEncodeError, ValueError) as error:
            raise NotNamed(f"a text cannot travel: {error}.", remedy="Texts are Unicode without lone surrogates.") from error
        head = packed[1 if len(tokens) < 1 << 4 else 3 if len(tokens) < 1 << 16 else 5 :]
        if not self.parts:
            return b"".join((MAGIC, len(head).to_bytes(4, "little"), head))
        start = 8 + len(head)
        return b"".join((MAGIC, len(head).to_bytes(4, "little"), head, bytes(-start % EDGE), *self.parts))

    def write(self, value: Any, depth: int) -> None:
        """Write one value."""
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is float:
            self.tokens.append(value)
        elif kind is int:
            if -(1 << 63) <= value < 1 << 64:
                self.tokens.append(value)
            else:
                self._integer(value)
        elif depth > DEPTH:
            raise NotNamed(f"values lie in each other more than {DEPTH} deep.", remedy="Send a flatter value.")
        else:
            way = _WAYS.get(kind)
            if way is not None:
                way(self, value, depth + 1)
            else:
                self._other(value, kind, depth + 1)

    def _integer(self, value: int) -> None:
        size = value.bit_length() // 8 + 1
        if size > LONGEST:
            raise NotNamed(f"an integer of {size} bytes cannot travel.", remedy=f"At most {LONGEST} bytes.")
        self.tokens += (b"i", value.to_bytes(size, "little", signed=True))

    def _bytes(self, value: bytes, depth: int) -> None:
        if len(value) < LARGE:
            self.tokens += (b"b", value)
        else:
            self.tokens += (b"B", len(value))
            self._attach(value, len(value))

    def _attach(self, part: Any, size: int) -> None:
        """Put bytes into the body, and fill it up to the next edge."""
        self.parts.append(part)
        if size % EDGE:
            self.parts.append(bytes(-size % EDGE))

    def _tuple(self, value: Any, depth: int) -> None:
        self._several(b"t", value, depth)

    def _list(self, value: Any, depth: int) -> None:
        self._several(b"l", value, depth)

    def _several(self, mark: bytes, value: Any, depth: int) -> None:
        self.tokens += (mark, len(value))
        for part in value:
            self.write(part, depth)

    def _dict(self, value: Mapping[Any, Any], depth: int) -> None:
        self.tokens += (b"d", len(value))
        for key, part in value.items():
            self.write(key, depth)
            self.write(part, depth)

    def _set(self, value: Any, depth: int) -> None:
        self._several(b"s" if type(value) is set else b"z", sorted(value, key=written), depth)

    def _array(self, value: Array, depth: int) -> None:
        dtype = value.dtype.str
        if dtype not in DTYPES:
            raise NotNamed(
                f"an array of dtype {value.dtype} cannot travel.",
                remedy=f"Known: {', '.join(sorted(DTYPES))}; use array.astype.",
            )
        turned = value.flags.f_contiguous and not value.flags.c_contiguous
        flat = np.ascontiguousarray(value.T if turned else value)
        self.tokens += (b"F" if turned else b"a", dtype, value.ndim, *value.shape)
        self._attach(flat.reshape(-1).view(np.uint8).data if flat.nbytes >= LARGE else flat.tobytes(), flat.nbytes)

    def _partial(self, value: partial[Any], depth: int) -> None:
        self.tokens.append(b"p")
        self.write(value.func, depth)
        self.write(value.args, depth)
        self.write(value.keywords, depth)

    def _function(self, value: Callable[..., Any], depth: int) -> None:
        name = name_of(value)
        if not may_travel(value):
            raise NotNamed(
                f"{name} is not marked as something that may be asked of a party elsewhere.",
                remedy="Write @hedgerow.local above it, and let stations allow its package.",
            )
        self.tokens += (b"f", name)

    def _other(self, value: Any, kind: type, depth: int) -> None:
        if isinstance(value, np.generic):
            dtype = value.dtype.str
            if dtype not in DTYPES:
                _unknown(value)
            self.tokens += (b"n", dtype, value.tobytes())
        elif isinstance(value, type):
            self._function(value, depth)
        elif (name := class_name(kind)) is None:
            _unknown(value)
        elif name in KEPT:
            self.tokens += (b"k", name, _kept_bytes(value))
        else:
            self._fields(name, leave(value), depth)

    def _fields(self, name: str, fields: Mapping[str, Any], depth: int) -> None:
        self.tokens += (b"o", name, len(fields))
        for key, part in fields.items():
            self.tokens.append(key)
            self.write(part, depth)


_WAYS: dict[type, Callable[[Writer, Any, int], None]] = {
    tuple: Writer._tuple,
    list: Writer._list,
    dict: Writer._dict,
    set: Writer._set,
    frozenset: Writer._set,
    bytes: Writer._bytes,
    np.ndarray: Writer._array,
    partial: Writer._partial,
    FunctionType: Writer._function,
}
"""How values of these very types are written; subclasses are something else."""


def _unknown(value: object) -> NoReturn:
    kind = type(value)
    raise NotNamed(
        f"a value of type {kind.__module__}:{kind.__qualname__} has no form on the wire.",
        remedy="Numbers, texts, arrays, lists, dicts, and functools.partial of marked functions travel, and dataclasses that "
        "are marked with @hedgerow.core.question.travels.",
    )


class _Same:
    """An object as a key of a cache: by what it is, not by what it equals; 1 and 1.0 are different on the wire."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.held is other.held


def _kept_bytes(value: Any) -> bytes:
    return _packed_once(_Same(value))


@lru_cache(maxsize=64)
def _packed_once(key: _Same) -> bytes:
    return written(leave(key.held))
