"""Groups of secure sums: a rule over the means of G groups, of which the server sees the sums alone.

    every round   a new random partition of the parties into G groups, which is public
                  one sum of each group                                            sum, through the channel
                  the rule over the G means

A party that lies spoils its group. A party is in one group, so a partition is charged once, whatever G is (parallel
composition). How much that is per party follows from how groups are drawn:

    by name    each party by itself, so that one party more moves no other: a round costs what one sum of all costs. Sizes
               differ; a group without parties is asked, is noise alone, and is left out.
    balanced   sizes differ by one at most, and a group follows from all names together: neighbours differ in what a party
               contributes, which is twice as far. Per record it costs what one sum costs.

Needs  : G > 2 f for a median, or what the rule needs of G rows with f false ones; and no group under the least number of
         parties of which the channel makes a total. With groups of m at least, n parties allow f < n / (2 m): of SecAgg's 3,
         f < n / 6.
Noise  : the median of G means, behind a mechanism, has about 1.25 sqrt(G) times the noise of the mean of all. Each sum has the
         same noise and is divided by n / G in place of n, which is G times the noise. A mean of G such values would have
         sqrt(G) times, and the median of many normal values deviates by 1.25 = sqrt(pi / 2) of what their mean does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from hedgerow.core.channel import Protection
from hedgerow.errors import SettingsInvalid

from .columns import Median
from .rule import Array, Beside, Rule


@dataclass(frozen=True)
class Groups(Rule):
    """A rule over means of `groups` groups of parties, whose sums are asked through the channel.

    Attributes
    ----------
    groups : int
        Number of groups, G.
    of : Rule
        Over the groups' means; the median by default.
    balanced : bool, optional
        Whether groups have equal sizes. By default behind an aggregation that hides rows, which makes no total of few parties,
        and where no noise is charged; elsewhere groups are drawn by name.
    """

    groups: int
    of: Rule = field(default_factory=Median)
    balanced: bool | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.groups, int) and not isinstance(self.groups, bool)
        if self.balanced not in (None, True, False):
            raise SettingsInvalid(f"balanced is {self.balanced!r}.", remedy="It is true or false.")
        if not whole or self.groups < 2:
            raise SettingsInvalid(f"groups is {self.groups!r}.", remedy="It is a number of groups, at least two.")
        if not self.of.mixes:
            raise SettingsInvalid(
                f"groups of parties under the rule {self.of.name}.",
                remedy=f"{self.of.name} needs the rows of single parties; take the median of groups, or another rule of rows.",
            )

    @property
    def name(self) -> str:
        return f"{self.of.name} of {self.groups} groups"

    @property
    def mixes(self) -> bool:
        return False

    @property
    def needs_number(self) -> bool:
        return self.of.needs_number

    @property
    def expects(self) -> int | None:
        return self.of.expects

    @property
    def root_records(self) -> Any:
        return self.of.root_records

    def with_root(self, table: Any) -> Self:
        return replace(self, of=self.of.with_root(table))

    @property
    def condition(self) -> str:
        return f"{self.of.condition} for n = {self.groups} groups, as each party that lies spoils one"

    def largest(self, n: int) -> int:
        return self.of.largest(self.groups)

    def splits_evenly(self, protection: Protection) -> bool:
        """Whether groups have equal sizes, behind this protection."""
        return protection.hides_rows or not protection.noisy if self.balanced is None else self.balanced

    def expecting(self, f: int) -> Self:
        return replace(self, of=self.of.expecting(f))

    def refuse_groups(self, n: int, f: int | None = None, least: int = 0) -> None:
        """Refuse n parties with f liars whose groups do not outvote them, or have fewer than `least` parties.

        Raises
        ------
        SettingsInvalid (HR-511)
            Says the largest f that n parties allow.
        """
        f, least = (self.expects or 0) if f is None else f, max(least, 1)
        most = self.of.largest(n // least)
        words = f"groups of {least}" if least > 1 else "groups of one party"
        allowed = (
            f"{n} parties in {words} at least allow f = {most}, with {n // least} groups."
            if most >= 0
            else f"{n} parties in {words} at least are too few for any f."
        )
        if n // self.groups < least:
            raise SettingsInvalid(
                f"{self.groups} groups of {n} parties have {n // self.groups} parties, and the channel makes no total of fewer "
                f"than {least}.",
                remedy=f"Take fewer groups, {n // least} at most. {allowed}",
            )
        if f > self.of.largest(self.groups):
            raise SettingsInvalid(
                f"{self.groups} groups with f = {f} parties that lie: each spoils one group, and {self.of.name} needs "
                f"{self.of.condition}, n being the number of groups.",
                remedy=f"{allowed} More than that can be held against only by a rule that sees rows.",
            )
        self.of.refuse(self.groups, f)

    def combine(self, rows: Array, beside: Beside) -> Array:
        return self.of(rows, beside)

    def kept(self, rows: Array, beside: Beside, found: Array) -> dict[str, Array]:
        return self.of.kept(rows, beside, found)
