"""Values on the wire: what a question or an answer is made of, as bytes, without pickle.

    "HGV" 1 | length of the head, 4 bytes | head | body

The head is a row of msgpack scalars, in which a byte string is always a mark:

    None, True, 7, 0.5, "text"         themselves
    b"t" 2 value value                 a tuple; b"l" a list, b"d" a dict (keys and values in turn), b"s" and b"z" sets
    b"a" "<f8" 2 3 4                   an array of shape (3, 4), whose numbers are next in the body; b"F" in Fortran's order
    b"n" "<f4" b"...."                 a scalar of numpy
    b"b" b"..." , b"B" 70000           bytes, here or next in the body
    b"i" b"..."                        an integer of more than 64 bits
    b"f" "module:name"                 a function that is marked, by its name
    b"p" value value value             functools.partial: function, arguments, settings
    b"o" "module:Class" 1 "name" value an object of a class that travels, by its fields
    b"k" "module:Class" b"..."         the same, as a message in itself: the same bytes are the same object

The body has each array's numbers, little-endian, from a multiple of 16 bytes on. The same value gives the same bytes, and a
value comes back exactly: types, order of keys, every bit of a number. Whatever bytes come in, reading ends with a value or
with `MessageRefused`; nothing is allocated that the bytes do not pay for.

Source: the tensors-behind-a-header layout follows safetensors; nothing else is shared with it.
"""

from __future__ import annotations

from typing import Any

from hedgerow.errors import MessageRefused

from .grammar import DEPTH, DTYPES, MAGIC, MOST
from .names import HEDGEROW, Names, refused
from .reader import read
from .writer import written

__all__ = ["DEPTH", "DTYPES", "HEDGEROW", "MAGIC", "MOST", "Names", "pack", "unpack"]


def pack(value: Any) -> bytes:
    """Write a value.

    Raises
    ------
    NotNamed (HR-224)
        Something in it has no form on the wire; nothing was sent.
    """
    return written(value)


def unpack(raw: bytes | bytearray | memoryview, names: Names = HEDGEROW, most: int = MOST, *, copy: bool = True) -> Any:
    """Read a value.

    Parameters
    ----------
    names : Names
        Whose functions and classes may be named.
    most : int
        Bytes that a message may have.
    copy : bool
        Whether arrays are the reader's own, and may be written to; otherwise they are views of `raw`.

    Raises
    ------
    MessageRefused (HR-242)
        Whatever the bytes are, if they are no message.
    """
    try:
        if len(raw) > most:
            refused(f"has {len(raw)} bytes, and {most} are the most")
        return read(memoryview(raw).cast("B"), names, copy)
    except MessageRefused:
        raise
    except Exception as error:  # whatever a constructor or a parser makes of hostile bytes
        raise MessageRefused(
            f"a message cannot be read ({type(error).__name__}).", remedy="Both sides must run the same version of Hedgerow."
        ) from error
