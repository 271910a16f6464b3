"""The `[comparison]` section of a study: a table of runs, each a change of the study, beside published numbers."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hedgerow.errors import suggestion

Take = Literal["best", "last", "rounds"]


class Variant(BaseModel):
    """A row or a column of the table: its name, and what it changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(description="heads the row or column, and names the run folders")
    set: dict[str, Any] = Field(
        default_factory=dict, description='changes by dotted key, e.g. { "program.mu" = 1.0 }; a section replaces a section'
    )

    @property
    def slug(self) -> str:
        """The name as a part of a folder's name."""
        return re.sub(r"[^\w.=+-]+", "-", self.name).strip("-.")


class ComparisonSection(BaseModel):
    """A table of runs: every row's changes with every column's."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rows: list[Variant] = Field(min_length=1, description="at least one")
    columns: list[Variant] = Field(min_length=1, description="at least one")
    measure: str = Field("", description='a metric of the runs, e.g. "test accuracy"; the first one by default')
    also: list[str] = Field(
        default_factory=list, description="further metrics, each with a table of its own, and a figure where rows have an axis"
    )
    seeds: int = Field(
        1, ge=1, le=100, description="runs of each cell, with this many seeds from its own on; tables have means and intervals"
    )
    take: Take = Field("best", description="its best value, its last, or the first round at which it reached the target")
    target: float | None = Field(None, description="rounds, bytes and seconds are shown until the measure reached it")
    axis: str = Field(
        "", description="of what the names of rows are numbers, e.g. epsilon: a figure has the measure against it"
    )
    alike: bool = Field(
        True,
        description="whether the measure is one number of one table of records in all runs, so that one of them is the best",
    )
    span: bool = Field(
        False, description="whether the page begins with the least and the most of the measure, as where no run is the best"
    )
    reference: str = Field("", description="a row with which the others are compared: by what share they fall short of it")
    choose: bool = Field(False, description="whether one of the runs is to be chosen: which is best, and what choosing costs")
    published: dict[str, dict[str, float]] = Field(
        default_factory=dict, description="numbers of a publication, by row and column"
    )
    source: str = Field("", description="where the published numbers stand")
    differs: str = Field("", description="what differs from the publication, in a sentence or two")
    tuned: str = Field("", description="on which records the settings of its runs were chosen, in a sentence for the table")
    collect: list[str] = Field(
        default_factory=list,
        description="tables and figures of the runs whose titles begin so stand on the comparison's page too, those of one "
        "title as one",
    )
    absent: Literal["refuse", "leave out"] = Field(
        "refuse", description="what to do with runs whose data are in no folder, as long as others' are"
    )
    quick: dict[str, Any] = Field(default_factory=dict, description="changes that `--quick` applies to every run")
    quick_rows: list[str] = Field(default_factory=list, description="rows that `--quick` takes; all by default")
    quick_columns: list[str] = Field(default_factory=list, description="columns that `--quick` takes; all by default")

    @property
    def changes(self) -> list[dict[str, Any]]:
        """All changes that rows, columns and `quick` make."""
        return [*(variant.set for variant in (*self.rows, *self.columns)), self.quick]

    @property
    def quickly(self) -> ComparisonSection:
        """The section with the rows and columns of a quick run, and one seed."""
        rows = [row for row in self.rows if row.name in (self.quick_rows or [row.name])]
        columns = [column for column in self.columns if column.name in (self.quick_columns or [column.name])]
        names = {column.name for column in columns}
        published = {
            row.name: {name: value for name, value in self.published[row.name].items() if name in names}
            for row in rows
            if row.name in self.published
        }
        return self.model_copy(update={"rows": rows, "columns": columns, "published": published, "seeds": 1})

    @property
    def places(self) -> dict[str, float]:
        """Where rows stand on the axis: those whose names are numbers above zero."""
        found = {row.name: _number(row.name) for row in self.rows if self.axis and row.name != self.reference}
        return {name: place for name, place in found.items() if place is not None}

    @model_validator(mode="after")
    def consistent(self) -> ComparisonSection:
        problems = [*_unlike("row", self.rows), *_unlike("column", self.columns)]
        if self.take == "rounds" and self.target is None:
            problems.append('take = "rounds" counts rounds until a target: give one, e.g. target = 0.9')
        if self.target is not None and not self.measure:
            problems.append('target needs the measure that is to reach it, e.g. measure = "test accuracy"')
        if self.reference:
            problems += _strangers("row", {self.reference: None}, self.rows, "reference")
        if self.axis and len(self.places) < 2:
            problems.append(f"the names of rows are no numbers above zero: {self.axis!r} is no axis for them")
        problems += _strangers("row", dict.fromkeys(self.quick_rows), self.rows, "quick_rows")
        problems += _strangers("column", dict.fromkeys(self.quick_columns), self.columns, "quick_columns")
        if self.reference and self.quick_rows and self.reference not in self.quick_rows:
            problems.append(f"quick_rows leaves out the reference {self.reference!r}, with which the others are compared")
        problems += _strangers("row", self.published, self.rows)
        for row, cells in self.published.items():
            problems += [f"{problem} (in row {row!r})" for problem in _strangers("column", cells, self.columns)]
        if self.published and not self.source:
            problems.append("published numbers need their source, such as a table of a paper")
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _unlike(kind: str, variants: list[Variant]) -> list[str]:
    """Why names cannot name folders: empty ones, and two that are written alike."""
    slugs = [variant.slug for variant in variants]
    empty = [f"{kind} name {variant.name!r} holds no letter or digit" for variant in variants if not variant.slug]
    twice = [v.name for i, v in enumerate(variants) if v.slug.lower() in {slug.lower() for slug in slugs[:i]}]
    return empty + [f"two {kind}s are called {name!r}, or nearly so: their runs would share a folder" for name in twice if name]


def _strangers(kind: str, given: dict[str, Any], variants: list[Variant], key: str = "published") -> list[str]:
    known = [variant.name for variant in variants]
    return [f"{key} names {kind} {name!r}, which is none. {suggestion(name, known)}" for name in given if name not in known]


def _number(name: str) -> float | None:
    try:
        found = float(name)
    except ValueError:
        return None
    return found if 0 < found < math.inf else None
