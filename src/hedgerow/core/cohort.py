"""Cohorts: who is asked, by which law, and which part of a partition they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from hedgerow.errors import BudgetInvalid

from .arrays import Array
from .events import Part, Sampling


@dataclass(frozen=True)
class Cohort:
    """The parties that a question is put to.

    Attributes
    ----------
    members : sequence of str
        Their names; a party that is asked is not told them.
    sampling : Sampling
        The law by which they were drawn, and its rate.
    number : int
        Of the cohort; 0 is everybody. Questions to one cohort compose inside one sampling event.
    first : int, optional
        The first so many answers count; the others are spare.
    part : Part, optional
        Which group of a partition they are; partition 0 is the one by which parties take turns.
    branch : str
        In which they were drawn, and their number and that of the partition counted; questions of any branch may ask them.
    """

    members: Sequence[str] = ()
    sampling: Sampling = field(default_factory=Sampling)
    number: int = 0
    first: int | None = None
    part: Part | None = None
    branch: str = ""

    @property
    def turn(self) -> tuple[int, int] | None:
        """(i, k) for the i-th of k groups that take turns, (0, 1) for everybody, None for any other cohort."""
        if self.sampling.kind == "all":
            return (0, 1)
        return (self.part.index, self.part.n_parts) if self.part is not None and self.part.partition == 0 else None


def groups_of(names: Sequence[str], groups: int, key: bytes, *, balanced: bool) -> Array:
    """Return each party's group, from 0; by its name alone, or where they are balanced by its place among all names.

    Groups are alike likely for each party. Which of balanced groups have one party more is drawn too.
    """

    def drawn(word: str, person: bytes = b"") -> bytes:
        return blake2b(word.encode(), key=key, digest_size=16, person=person).digest()

    if not balanced:
        return np.array([int.from_bytes(drawn(name), "little") % groups for name in names])
    labels = np.array(sorted(range(groups), key=lambda k: drawn(str(k), b"group")))
    own = np.empty(len(names), np.int64)
    own[sorted(range(len(names)), key=lambda i: drawn(names[i]))] = labels[np.arange(len(names)) % groups]
    return own


def check_sampling(
    rate: float | None,
    size: int | None,
    spare: int,
    records: float | None,
    every: int | None,
    *,
    n: int,
    of_cohort: bool,
) -> None:
    """Refuse a way of sampling n parties that has no known cost: exactly one way is given, and its number is possible."""
    asked = {"rate": rate, "size": size, "records": records, "every": every}
    given = {name: value for name, value in asked.items() if value is not None}
    lawful = {
        "rate": 0 < (rate or 0) <= 1,
        "records": 0 < (records or 0) <= 1,
        "every": 0 < (every or 0) <= n,
        "size": 0 < (size or 0) <= (size or 0) + spare <= n,
    }
    if of_cohort or len(given) != 1 or not lawful[next(iter(given))] or (spare and size is None):
        words = ", ".join(f"{name}={value!r}" for name, value in {**given, "spare": spare}.items() if value or name in given)
        raise BudgetInvalid(
            f"sample({words}) of {'a cohort' if of_cohort else f'{n} parties'} has no known cost.",
            remedy="Sample from the federation, by sample(rate=0.1), a rate in (0, 1], by sample(size=50) or "
            "sample(every=5), at most all, or by sample(records=0.01).",
        )
