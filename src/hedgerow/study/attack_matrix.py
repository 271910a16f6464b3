"""The section [matrix] of a study: acts of parties that lie, rules that are to hold against them, partitions, and seeds.

Every act meets every rule on every partition, each with several seeds. What all cells share stands in the sections [attack],
[program], [partition] and [protection] of the study; an act, a rule or a partition says what differs. A rule may have a
section [protection] of its own, as a mean whose rows go through a channel that holds them to a clip.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .section import Section

OWN_OF_A_RULE = ("label", "expect")
"""Keys beside a rule that are not its settings."""


class MatrixAct(BaseModel):
    """An act: keys of [attack] that differ from the study's, and a name for the table."""

    model_config = ConfigDict(extra="allow", frozen=True)
    label: str = Field("", description="heads the row; by default the act and its strength")
    act: str = Field(description="as attack.act")

    @property
    def name(self) -> str:
        strength = (self.model_extra or {}).get("strength")
        return self.label or self.act.replace("-", " ") + ("" if strength is None else f" {strength:g}")

    @property
    def keys(self) -> dict[str, Any]:
        return {"act": self.act, **(self.model_extra or {})}


class MatrixRule(BaseModel):
    """A rule: its name and settings, how many parties it expects to lie, and a name for the table."""

    model_config = ConfigDict(extra="allow", frozen=True)
    label: str = Field("", description="heads the column; by default the rule's name")
    name: str = Field(description="as program.rule")
    protection: dict[str, Any] | None = Field(None, description="a section [protection] of this column's own")
    expect: float | None = Field(None, description="share or number of parties that it expects to lie; program.expect else")

    @property
    def head(self) -> str:
        return self.label or self.name.replace("-", " ")

    @property
    def rule(self) -> Any:
        return {"name": self.name, **self.model_extra} if self.model_extra else self.name


class MatrixPartition(BaseModel):
    """A partition: the whole section [partition], and a name for the table."""

    model_config = ConfigDict(extra="allow", frozen=True)
    label: str = Field("", description="heads the table; by default the partitioner's name")
    by: str = Field(description="as partition.by")

    @property
    def name(self) -> str:
        return self.label or self.by.replace("_", " ")

    @property
    def keys(self) -> dict[str, Any]:
        return {"by": self.by, **(self.model_extra or {})}


class MatrixSection(Section):
    """Acts by rules, on partitions, with several seeds."""

    acts: tuple[MatrixAct, ...] = Field(min_length=1, description='rows; { act = "none" } is the clean twin of the others')
    rules: tuple[MatrixRule | str, ...] = Field(min_length=1, description='columns; "mean" is what no rule at all is')
    partitions: tuple[MatrixPartition, ...] = Field(
        (), description="how records are spread, a table for each; as [partition] says if none is given"
    )
    seeds: int = Field(5, ge=1, description="runs of each cell, with the study's seed and those after it")
    last: int = Field(5, ge=1, description="rounds at the end of a run over which its metrics are averaged")

    @model_validator(mode="after")
    def named_apart(self) -> MatrixSection:
        found = []
        for what, names in (
            ("acts", [act.name for act in self.acts]),
            ("rules", [rule.head for rule in self.rules_named]),
            ("partitions", [one.name for one in self.partitions]),
        ):
            found += [
                f"two {what} are called {name!r}: give them labels" for name in dict.fromkeys(names) if names.count(name) > 1
            ]
        if sum(act.act == "none" for act in self.acts) != 1:
            found.append('one of the acts is { act = "none" }: what a rule costs, and what an act achieves, is seen beside it')
        if found:
            raise ValueError("; ".join(found))
        return self

    @property
    def rules_named(self) -> tuple[MatrixRule, ...]:
        return tuple(MatrixRule.model_validate({"name": rule}) if isinstance(rule, str) else rule for rule in self.rules)

    @property
    def clean(self) -> str:
        """The name of the row in which nobody lies."""
        return next(act.name for act in self.acts if act.act == "none")

    @property
    def runs(self) -> int:
        """How many runs the matrix has."""
        return len(self.acts) * len(self.rules) * max(1, len(self.partitions)) * self.seeds

    def changes(
        self, attack: Mapping[str, Any], expect: float | None
    ) -> Iterator[tuple[tuple[str, str, str, int], dict[str, Any]]]:
        """((act, rule, partition, number of the seed), changes of the study by section and key), a seed after the other.

        A section `protection` is among the changes where a rule has one.

        Parameters
        ----------
        attack : mapping
            The study's [attack], of which acts are changes.
        expect : float, optional
            The study's program.expect, which holds for every rule but the mean: it holds against nobody who lies.
        """
        own: list[tuple[str, dict[str, Any]]] = [(one.name, {"partition": one.keys}) for one in self.partitions]
        for k, (partition, spread), rule, act in product(range(self.seeds), own or [("", {})], self.rules_named, self.acts):
            wanted = expect if rule.expect is None and rule.name != "mean" else rule.expect
            program = {"rule": rule.rule} | ({} if wanted is None else {"expect": wanted})
            own_channel = {} if rule.protection is None else {"protection": rule.protection}
            changed = {**spread, **own_channel, "attack": {**attack, **act.keys}, "program": program}
            yield (act.name, rule.head, partition, k), changed
