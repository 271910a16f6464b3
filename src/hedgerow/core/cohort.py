"""Cohorts: who is asked, by which law, and which part of a partition they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    """

    members: Sequence[str] = ()
    sampling: Sampling = field(default_factory=Sampling)
    number: int = 0
    first: int | None = None
    part: Part | None = None

    @property
    def turn(self) -> tuple[int, int] | None:
        """(i, k) for the i-th of k groups that take turns, (0, 1) for everybody, None for any other cohort."""
        if self.sampling.kind == "all":
            return (0, 1)
        return (self.part.index, self.part.n_parts) if self.part is not None and self.part.partition == 0 else None
