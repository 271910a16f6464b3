"""Cohorts: who is asked, by which law, and which part of a partition they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .events import Sampling


class Part(NamedTuple):
    """One of several disjoint groups, to one of which each party belongs, whatever its data are.

    Attributes
    ----------
    partition : int
        Number of the partition; 0 is the one by which parties take turns.
    group : int
        Of the group, from 0.
    of : int
        Groups in the partition.
    """

    partition: int
    group: int
    of: int


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
        The group of a partition that they are.
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
        return (self.part.group, self.part.of) if self.part is not None and self.part.partition == 0 else None
