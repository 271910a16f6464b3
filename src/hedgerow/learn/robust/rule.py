"""What a rule is: a function of the rows of parties, of which some may lie, in place of their mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from pydantic_core import core_schema

from hedgerow.errors import SettingsInvalid

Array = np.ndarray[Any, np.dtype[Any]]


LARGEST = 1e100
"""Numbers of a row beyond it count as numbers that are not finite: sums of squares of others are finite in double precision."""


@dataclass(frozen=True)
class Beside:
    """What a rule may use beside the rows of a round.

    Attributes
    ----------
    members : sequence of str
        Whose rows they are, in their order.
    parties : sequence of str
        All parties of the federation.
    memory : mapping from name to array
        What the rule kept of the rounds before; empty in the first.
    root : array of shape (d,), optional
        The server's own row, of its root records.
    rng : numpy.random.Generator
        The server's own randomness of this round.
    """

    members: Sequence[str] = ()
    parties: Sequence[str] = ()
    memory: Mapping[str, Array] = field(default_factory=dict)
    root: Array | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)


class Rule(ABC):
    """A frozen value that combines the rows of parties, (n, d), to one row, (d,).

    Every row counts alike, whatever number of records its party has: a party that lies could lie about that number too.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """A setting that may be a rule is checked to be one; its fields were checked when it was made."""
        return core_schema.is_instance_schema(cls, serialization=core_schema.to_string_ser_schema())

    @property
    @abstractmethod
    def name(self) -> str:
        """By which a study names it."""

    @property
    def expects(self) -> int | None:
        """How many rows it takes to be false, where it needs that number and it is known."""
        return None

    @property
    def needs_number(self) -> bool:
        """Whether it must be told how many rows may be false."""
        return False

    @property
    def root_records(self) -> Any:
        """The server's records with which it compares rows, or in a study their number; None where it needs none."""
        return None

    def with_root(self, table: Any) -> Self:
        """The same rule with the server's records."""
        return self

    @property
    def mixes(self) -> bool:
        """Whether its rows may be means of several parties' rows."""
        return True

    def largest(self, n: int) -> int:
        """The largest number of false rows among n for which it is defined."""
        return n

    @property
    def condition(self) -> str:
        """What `largest` follows from, f false rows among n."""
        return "f <= n"

    def expecting(self, f: int) -> Self:
        """The same rule for f false rows; those that need no number stay as they are."""
        return replace(self, f=f) if self.needs_number else self  # type: ignore[type-var]

    def __call__(self, rows: Array, beside: Beside | None = None) -> Array:
        """Combine rows of shape (n, d) to a row of shape (d,), in their own type.

        Raises
        ------
        SettingsInvalid (HR-511)
            The rule is not defined for so few rows.
        """
        lawful = in_float(rows)
        self.refuse(len(lawful))
        return self.combine(lawful, beside or Beside())

    @abstractmethod
    def combine(self, rows: Array, beside: Beside) -> Array:
        """What `__call__` does of finite rows, as many as the rule needs."""

    def kept(self, rows: Array, beside: Beside, found: Array) -> dict[str, Array]:
        """What it keeps for the next round, having found a row."""
        return {}

    def refuse(self, n: int, f: int | None = None) -> None:
        """Refuse a number of rows, of which f are false, for which the rule is not defined.

        Raises
        ------
        SettingsInvalid (HR-511)
        """
        f = (self.expects or 0) if f is None else f
        if n < 1 or not 0 <= f <= self.largest(n):
            most = self.largest(n)
            raise SettingsInvalid(
                f"the rule {self.name} over {n} rows with f = {f} of parties that lie: it needs {self.condition}.",
                remedy=f"Of {n} rows it takes f = {most} at most." if most >= 0 else "It needs more parties.",
            )


@dataclass(frozen=True)
class CountingRule(Rule):
    """A rule that must be told how many rows may be false.

    Attributes
    ----------
    f : int, optional
        How many; from `expect` where it is left out.
    """

    f: int | None = None

    @property
    def needs_number(self) -> bool:
        return True

    @property
    def expects(self) -> int | None:
        return self.f


def in_float(rows: Array) -> Array:
    """Rows as an array of floats of shape (n, d); a row with a number that is not finite or beyond `LARGEST` becomes zeros.

    Such a row is a lie or a mistake. One of them would decide every mean, and squares of numbers so large are not finite.
    """
    found = np.asarray(rows)
    found = found if np.issubdtype(found.dtype, np.floating) else found.astype(np.float64)
    if found.ndim != 2 or not len(found):
        raise SettingsInvalid(f"rows have the shape {found.shape}.", remedy="A rule takes one row for each party: (n, d).")
    largest = min(LARGEST, float(np.finfo(found.dtype).max))
    if found.size and not (-largest <= found.min() and found.max() <= largest):  # a nan is neither
        lawful = (np.abs(found) <= largest).all(1, keepdims=True)
        found = np.where(lawful, found, found.dtype.type(0))
    return found
