"""Refusals: a letter of kind "refused" holds a code, and nothing else crosses."""

from __future__ import annotations

import re
from typing import Any

from hedgerow.errors import MessageRefused

from .envelope import Letter

CODE = re.compile(r"HR-\d{3}")


def is_code(found: Any) -> bool:
    """Whether something is a code of an error."""
    return isinstance(found, str) and CODE.fullmatch(found) is not None


def code_in(letter: Letter) -> str:
    """The code in a refusal.

    Raises
    ------
    MessageRefused (HR-242)
        There is none.
    """
    text = letter.parts[0].decode("ascii", "replace") if len(letter.parts) == 1 and len(letter.parts[0]) < 16 else ""
    if letter.kind != "refused" or not is_code(text):
        raise MessageRefused(f"{letter.sender} refused without a code.", remedy="Both ends run the same version.")
    return text
