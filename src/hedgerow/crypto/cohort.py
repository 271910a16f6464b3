"""Cohorts of hidden totals: how small they may be, who may be in them, and how one is written down."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import CohortTooSmall, KeyInvalid, MessageRefused, RangeExceeded, SettingsInvalid

from .fixedpoint import WholeEncoding

FLOOR = 3
"""Of two rows, whoever knows one knows the other from their total."""

LONGEST_NAME = 256
"""Bytes of a party's name."""


def numeric(**given: object) -> None:
    """Refuse settings that are no numbers."""
    wrong = {name: value for name, value in given.items() if isinstance(value, bool) or not isinstance(value, (int, float))}
    if wrong:
        words = ", ".join(f"{name}={value!r}" for name, value in wrong.items())
        raise SettingsInvalid(f"{words}: no number.", remedy="Give numbers, not text.")


def whole(**given: object) -> None:
    """Refuse settings that are no whole numbers; None stands for what is worked out."""
    wrong = {name: value for name, value in given.items() if value is not None and type(value) is not int}
    if wrong:
        words = ", ".join(f"{name}={value!r}" for name, value in wrong.items())
        raise SettingsInvalid(f"{words}: no whole number.", remedy="Give whole numbers.")


def lawful_least(least: int) -> None:
    """Refuse a minimum cohort below the floor."""
    if least < FLOOR:
        raise SettingsInvalid(
            f"least={least}: a total of so few rows shows one of them to whoever holds the others.",
            remedy=f"At least {FLOOR}; 10 or more is better.",
        )


def addressed(ids: Iterable[str], members: Collection[str], least: int) -> tuple[str, ...]:
    """The parties that are to be asked, or a refusal before anybody is."""
    found = tuple(ids)
    if len(set(found)) != len(found):
        raise KeyInvalid("a cohort names a party twice.", remedy="Name each party once.", asked=False)
    strange = [id for id in found if id not in members or not 0 < len(id.encode()) <= LONGEST_NAME]
    if strange:
        raise KeyInvalid(
            f"{strange[0][:40]!r} is not a member, or its name does not fit a message.",
            remedy=f"Ask members only; names have 1 to {LONGEST_NAME} bytes.",
            asked=False,
        )
    if len(found) < least:
        raise CohortTooSmall(
            f"a hidden total of {len(found)} parties, where {least} are needed.",
            remedy="Ask more parties, or lower `least` (never below 3).",
        )
    return found


def fits(encoding: WholeEncoding, asked: int) -> None:
    """Refuse, before anybody is asked, more parties than fixed point has room for."""
    if encoding.parties < asked:
        raise RangeExceeded(
            f"fixed point for {encoding.parties} parties, and {asked} are asked.",
            remedy="Encode for as many as are asked.",
            asked=False,
        )


def bitmap(mask: Array) -> bytes:
    """A mask of shape (n,), eight places to a byte."""
    return np.packbits(mask, bitorder="little").tobytes()


def mask_of(bits: bytes, n: int) -> Array:
    """The mask of shape (n,) that a bitmap stands for; refuses one of another length."""
    mask = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(bool)
    if len(bits) != -(-n // 8) or mask[n:].any():
        raise MessageRefused(f"a bitmap does not stand for {n} places.", remedy="Begin a new epoch.")
    return mask[:n]


def cut(whole: bytes, n: int, each: int) -> list[bytes]:
    """Cut bytes into n fields of `each`; refuses another length."""
    if len(whole) != n * each:
        raise MessageRefused(f"{len(whole)} bytes, where {n} fields of {each} were announced.", remedy="Start a new round.")
    return [whole[i : i + each] for i in range(0, n * each, each)] if each else [b""] * n
