"""Terms: what one question multiplies, public and the same at every peer.

    kind        result                  rows at the parties        rows at the hub
    gram        X' X                    left                       -
    right       X' (Y + H)              left, right or nothing     H (n, c) or none, in a secret order
    weighted    X' diag(w) X            left                       w (n,), in a secret order

X stands for the left columns of all parties side by side, Y for the sum of the right rows of those that have some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.crypto.peers import HUB
from hedgerow.errors import ContributionInvalid, MessageRefused, SettingsInvalid

from .bits import Bits, Products
from .pads import framed
from .ring import Words, decode

HEAD = 32
"""Bytes of the digest of the terms, with which first letters begin."""


@dataclass(frozen=True)
class Terms:
    """One question of `cross`.

    Attributes
    ----------
    study : bytes
        What pads are named by; the same for all questions over one alignment.
    question : bytes
        Never the same for two questions of a study.
    names : tuple of str
        The parties, two or more, in the order of their columns.
    asked : Products
    bits : Bits
    holders : tuple of str
        Who has right rows of its own.
    """

    study: bytes
    question: bytes
    names: tuple[str, ...]
    asked: Products
    bits: Bits
    holders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names, asked = self.names, self.asked
        if len(names) < 2 or len(set(names)) < len(names) or HUB in names or len(asked.widths) != len(names):
            raise SettingsInvalid(
                f"products of the columns {asked.widths} of the parties {names}.",
                remedy=f"Two or more parties with names of their own, none of them {HUB!r}, each with a number of columns.",
            )
        lawful = asked.right or not (self.holders or (asked.hub_reach is not None and not asked.weighted))
        if not set(self.holders) <= set(names) or not lawful or (asked.right and asked.weighted):
            raise SettingsInvalid(
                f"right rows of {self.holders} with {asked.right} columns{' and weights' if asked.weighted else ''}.",
                remedy="Ask for left' left, for left' right, or for left' diag(weights) left.",
            )
        if asked.right and not self.holders and asked.hub_reach is None:
            raise SettingsInvalid("nobody has right rows.", remedy="Name their holders, or give rows of the hub.")

    @property
    def hub_columns(self) -> int:
        """Columns of the hub's rows: those of the right, or one of weights, or none."""
        return 0 if self.asked.hub_reach is None else 1 if self.asked.weighted else self.asked.right

    @property
    def everyone(self) -> tuple[str, ...]:
        return (*self.names, HUB)

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that stand for all of it."""
        words = repr((self.names, self.asked, self.bits, self.holders)).encode()
        return hashlib.sha256(framed(b"hedgerow cross", self.study, self.question, words)).digest()

    def body(self, letter: bytes, name: str) -> bytes:
        """A first letter without the digest of the terms; refused where it is of other terms."""
        if letter[:HEAD] != self.digest:
            raise MessageRefused(f"{name!r} answers another question.", remedy="Ask all parties the same question.")
        return letter[HEAD:]

    def width(self, name: str) -> int:
        """Columns of a party."""
        return self.asked.widths[self.names.index(name)]

    def columns(self, name: str) -> slice:
        """Where a party's columns are."""
        place = self.names.index(name)
        start = sum(self.asked.widths[:place])
        return slice(start, start + self.asked.widths[place])

    def opener(self, one: str, other: str) -> str:
        """Who of two parties opens its weighted columns to the other: who has fewer, else the first."""
        first, second = sorted((one, other), key=self.names.index)
        return second if self.width(second) < self.width(first) else first

    def flat(self, blocks: Words) -> Words:
        """The distinct numbers of a share (D, D) or (D, c)."""
        if self.asked.right:
            return blocks.reshape(-1)
        found: Words = blocks[np.triu_indices(len(blocks))]
        return found

    def result(self, numbers: Array) -> Array:
        """Flat numbers as the matrix that was asked for, of shape (D, D) or (D, c)."""
        d = sum(self.asked.widths)
        if self.asked.right:
            return numbers.reshape(d, self.asked.right)
        found = np.zeros((d, d), numbers.dtype)
        found[np.triu_indices(d)] = numbers
        found.T[np.triu_indices(d)] = numbers
        return found

    def decoded(self, total: Words) -> Array:
        """The result of a total without noise."""
        return self.result(decode(total, self.bits.total))


def refuse_shape(found: Sequence[int], due: Sequence[int], what: str) -> None:
    """Refuse an array of another shape than was announced, before anything leaves."""
    if tuple(found) != tuple(due):
        raise ContributionInvalid(
            f"{what} has the shape {tuple(found)}, and {tuple(due)} was announced.",
            remedy="Return one row for each common person, in the aligned order, and as many columns as for made-up people.",
        )
