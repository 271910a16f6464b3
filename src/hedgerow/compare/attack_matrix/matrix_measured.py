"""What the runs of a matrix measured: medians and ranges over seeds, by partition, act and rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from hedgerow.study.attack import AIMED
from hedgerow.study.study import Study

from .matrix_runs import MatrixRun

ACCURACY, SUCCESS = "accuracy", "success"
"""How the names of metrics end."""

PLAIN = "mean"
"""The rule that is no rule."""

LOST, GAINED = 0.05, 0.20
"""A rule holds against an act that takes at most so much accuracy from it, and lets a backdoor through at most so often."""


@dataclass(frozen=True)
class SeedSpread:
    """A median over seeds, and its range."""

    median: float
    least: float
    most: float
    n: int

    def __str__(self) -> str:
        if self.n == 1:
            return f"{100 * self.median:.1f}"
        return f"{100 * self.median:.1f} ({100 * self.least:.1f} to {100 * self.most:.1f})"


Place = tuple[str, str, str]
"""Partition, act, rule."""


@dataclass(frozen=True)
class MatrixMeasured:
    """What runs measured, by partition, act and rule.

    Attributes
    ----------
    partitions, acts, rules : tuple of str
    values : dict
        By metric and place, values by seed, those that are finite.
    """

    study: Study
    partitions: tuple[str, ...]
    acts: tuple[str, ...]
    rules: tuple[str, ...]
    values: dict[str, dict[Place, dict[int, float]]]

    @classmethod
    def of(cls, study: Study, runs: Sequence[MatrixRun]) -> MatrixMeasured:
        section = study.matrix
        assert section is not None
        values: dict[str, dict[Place, dict[int, float]]] = {}
        for run in runs:
            for name, value in run.metrics.items():
                if math.isfinite(value):
                    values.setdefault(name, {}).setdefault((run.partition, run.act, run.rule), {})[run.seed] = value
        partitions = tuple(one.name for one in section.partitions) or ("",)
        rules = tuple(rule.head for rule in section.rules_named)
        return cls(study, partitions, tuple(act.name for act in section.acts), rules, values)

    @property
    def clean(self) -> str:
        assert self.study.matrix is not None
        return self.study.matrix.clean

    @property
    def plain(self) -> str | None:
        """What the column of the mean is called, through the study's own channel."""
        assert self.study.matrix is not None
        rules = self.study.matrix.rules_named
        return next((rule.head for rule in rules if rule.name == PLAIN and rule.protection is None), None)

    @property
    def aimed(self) -> tuple[str, ...]:
        """Acts that want one answer; of others a model that says one class of everything would look like a success."""
        assert self.study.matrix is not None
        return tuple(act.name for act in self.study.matrix.acts if act.act in AIMED)

    def metric(self, end: str) -> str | None:
        """The first metric that ends so."""
        return next((name for name in self.values if name.endswith(end)), None)

    def at(self, end: str, partition: str, act: str, rule: str) -> SeedSpread | None:
        """A metric over seeds, None where no run measured it."""
        name = self.metric(end)
        found = self.values.get(name or "", {}).get((partition, act, rule), {})
        return spread(list(found.values()))

    def paired(self, end: str, one: Place, other: Place) -> SeedSpread | None:
        """One place's value less another's, seed by seed."""
        held = self.values.get(self.metric(end) or "", {})
        a, b = held.get(one, {}), held.get(other, {})
        return spread([a[seed] - b[seed] for seed in a if seed in b])


def spread(values: Sequence[float]) -> SeedSpread | None:
    """Median and range of values, None of none."""
    return SeedSpread(median(values), min(values), max(values), len(values)) if values else None


def price(found: MatrixMeasured, partition: str, rule: str) -> SeedSpread | None:
    """Accuracy of the mean less that of a rule, where nobody lies."""
    assert found.plain is not None
    return found.paired(ACCURACY, (partition, found.clean, found.plain), (partition, found.clean, rule))


def holds(found: MatrixMeasured, partition: str, act: str, rule: str) -> bool | None:
    """Whether a rule keeps its accuracy against an act, and the backdoor out; None where that was not measured."""
    lost = found.paired(ACCURACY, (partition, found.clean, rule), (partition, act, rule))
    gained = found.paired(SUCCESS, (partition, act, rule), (partition, found.clean, rule)) if act in found.aimed else None
    if lost is None:
        return None
    return lost.median <= LOST and (gained is None or gained.median <= GAINED)


def place_rows(study: Study, runs: Sequence[MatrixRun]) -> list[tuple[Any, ...]]:
    """(partition, act, rule, metric, runs, median, least, most) of each place."""
    found = MatrixMeasured.of(study, runs)
    rows = []
    for name, places in found.values.items():
        for (partition, act, rule), values in places.items():
            at = spread(list(values.values()))
            assert at is not None
            rows.append((partition, act, rule, name, at.n, at.median, at.least, at.most))
    return rows
