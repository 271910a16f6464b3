"""Arrays as runs of bytes, and files of equally long rows that several threads write and read at any row."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

ALIGNMENT = 16


@dataclass(frozen=True)
class StateForm:
    """Keys, types and shapes of a state."""

    parts: tuple[tuple[str, str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> StateForm:
        return cls(tuple((key, value.dtype.str, value.shape) for key, value in arrays.items()))

    @cached_property
    def places(self) -> list[tuple[str, np.dtype[Any], tuple[int, ...], int, int]]:
        """Key, type, shape, first byte and end of each array."""
        found, start = [], 0
        for key, kind, shape in self.parts:
            end = start + int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
            found.append((key, np.dtype(kind), shape, start, end))
            start = -(-end // ALIGNMENT) * ALIGNMENT
        return found

    @cached_property
    def nbytes(self) -> int:
        return max((end for *_, end in self.places), default=0)

    def pack(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """One run of bytes that holds all arrays."""
        packed = np.zeros(self.nbytes, np.uint8)
        for key, _, _, start, end in self.places:
            packed[start:end] = np.ascontiguousarray(arrays[key]).reshape(-1).view(np.uint8)
        return packed

    def unpack(self, packed: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays, without a copy."""
        return {key: packed[start:end].view(kind).reshape(shape) for key, kind, shape, start, end in self.places}


def row_bytes(nbytes: int) -> int:
    """Length of the rows for so many bytes: at most a quarter more, so that there are few files, whatever shapes states have.

    The bytes at the end of a row are never written, and most file systems keep no room for them.
    """
    step = max(64, 1 << max(nbytes.bit_length() - 3, 0))
    return max(-(-nbytes // step), 1) * step


@dataclass
class RowFile:
    """An open file of rows of `size` bytes.

    Attributes
    ----------
    end : int
        Rows in the file.
    free : list of int
        Those before the end that nothing refers to. Guarded, like `take`, by a lock of the caller.
    """

    PATTERN: ClassVar[str] = "*.rows"

    path: Path
    size: int
    descriptor: int
    end: int = 0
    free: list[int] = field(default_factory=list)
    dirty: bool = False

    @classmethod
    def empty(cls, folder: Path, size: int) -> RowFile:
        """Make a file."""
        path = folder / f"{size}.rows"
        return cls(path, size, os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), dirty=True)

    @classmethod
    def holding(cls, folder: Path, size: int, used: np.ndarray, nbytes: np.ndarray) -> RowFile:
        """Open a file of which some rows are used, each with so many bytes; what follows the last row is cut off.

        Raises
        ------
        OSError
            The file is missing or too short.
        """
        path, end = folder / f"{size}.rows", int(used.max()) + 1
        rows = cls(path, size, os.open(path, os.O_RDWR), end, np.setdiff1d(np.arange(end), used)[::-1].tolist())
        length = os.fstat(rows.descriptor).st_size
        if length < (used * size + nbytes).max():
            rows.close()
            raise OSError(0, f"it has {length} bytes", str(path))
        if length > end * size:
            os.ftruncate(rows.descriptor, end * size)
        return rows

    def take(self) -> int:
        """A row that nothing refers to."""
        if self.free:
            return self.free.pop()
        self.end += 1
        return self.end - 1

    def write(self, row: int, packed: np.ndarray) -> None:
        """Write bytes at the start of a row."""
        self.dirty, rest, at = True, memoryview(packed), row * self.size
        while rest:
            done = os.pwrite(self.descriptor, rest, at)
            rest, at = rest[done:], at + done

    def read(self, row: int, packed: np.ndarray) -> bool:
        """Fill an array of bytes from the start of a row; return whether the file had as many."""
        rest, at = memoryview(packed), row * self.size
        while rest:
            done = os.preadv(self.descriptor, [rest], at)
            if done == 0:
                return False
            rest, at = rest[done:], at + done
        return True

    def synchronise(self) -> None:
        """Wait until what was written is on the disk."""
        if self.dirty:
            os.fsync(self.descriptor)
            self.dirty = False

    def close(self) -> None:
        os.close(self.descriptor)
