"""Bucketing: any rule, over means of s random rows.

    shuffle the rows; bucket k is the mean of rows k s .. k s + s - 1; then the rule over the ceil(n / s) buckets

A false row spoils one bucket, so f false rows are a share s f / n of the buckets. Means differ less than rows do, which is what
the rules need where parties differ.

Needs  : what the rule needs, of ceil(n / s) rows of which f are false.
Source : Karimireddy et al., ICLR 2022, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from hedgerow.errors import SettingsInvalid

from .columns import Median
from .positive import positive
from .rule import Array, Beside, Rule


@dataclass(frozen=True)
class Bucketing(Rule):
    """A rule over means of `size` random rows (Karimireddy et al. 2022, Algorithm 1).

    Attributes
    ----------
    size : int
        Rows in a bucket, s; the last one may have fewer.
    of : Rule
        Over the buckets; the median by default.
    """

    size: int = 2
    of: Rule = field(default_factory=Median)

    def __post_init__(self) -> None:
        positive(size=self.size)
        if not self.of.mixes:
            raise SettingsInvalid(
                f"buckets of several parties under the rule {self.of.name}.",
                remedy=f"{self.of.name} needs the rows of single parties; bucket the median, or another rule of rows.",
            )

    @property
    def name(self) -> str:
        return f"bucketing of {self.of.name}"

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
        return f"{self.of.condition} for n = the number of rows over {self.size}, rounded up"

    def largest(self, n: int) -> int:
        return self.of.largest(-(-n // self.size))

    def expecting(self, f: int) -> Self:
        return replace(self, of=self.of.expecting(f))

    def buckets(self, rows: Array, rng: np.random.Generator) -> Array:
        """Means of rows in random order, (ceil(n / size), d)."""
        order, firsts = rng.permutation(len(rows)), range(0, len(rows), self.size)
        return np.stack([rows[order[k : k + self.size]].mean(0) for k in firsts])

    def combine(self, rows: Array, beside: Beside) -> Array:
        return self.of(self.buckets(rows, beside.rng), beside)

    def kept(self, rows: Array, beside: Beside, found: Array) -> dict[str, Array]:
        return self.of.kept(rows, beside, found)
