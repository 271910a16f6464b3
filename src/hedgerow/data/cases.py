"""Complete cases: each model leaves out the records that lack a value that it reads, and says how many.

    complete   w <- 0 where a value is missing, which a lawful one replaces       at the party, record by record
    cases      one cell: complete, or the first column that is missing            sum, once for each set of columns
               besides, where sums are exact: for each column, how many lack it

Whether a record is complete is a function of that record alone, and one that is left out adds zeros to every sum, so bounds
per record hold as they are. Columns whose values may be missing are declared so (`Column.optional`); where there are none,
nothing is prepared and nothing is asked.

Releases : the counts above, each record adding 1 to one cell of `first` and at most 1 to each number of `each`; through noise
           `first` alone. Nothing where a channel clips per party, where several questions share its noise, or where exact
           sums are under a budget.
Unit     : record. Counts are of records, whatever they weigh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hedgerow.core.bound import Bounds, l1, linf
from hedgerow.core.disclosure import rounded
from hedgerow.core.federation import Federation
from hedgerow.core.findings import findings, is_simulated, note
from hedgerow.core.party import PRESENT, Party
from hedgerow.core.question import elementwise, local, minds_missing, travels
from hedgerow.core.whole import held
from hedgerow.errors import NotFinite

from .column import Column
from .schema import Schema
from .table import Table

FOUND = "records left out"
"""Under this name a federation's findings hold what is known of complete cases, by set of columns."""


@travels
@elementwise
@minds_missing
def complete(columns: Mapping[str, np.ndarray], *, read: tuple[Column, ...]) -> dict[str, np.ndarray]:
    """Prepare columns without missing values: a lawful value stands in, and the record has weight zero."""
    made: dict[str, np.ndarray] = {}
    present = np.asarray(columns[PRESENT]) if PRESENT in columns else None
    for column in read:
        values = np.asarray(columns[column.name])
        lost = column.lacks(values)
        present = ~lost if present is None else present & ~lost
        absent = values < 0 if column.kind == "category" else ~np.isfinite(values)
        made[column.name] = np.where(absent, np.asarray(column.stand_in, values.dtype), values)
    return made if present is None else made | {PRESENT: present}


@minds_missing
@local(additive=True, stackable=True, holds=True)
def cases(
    broadcast: None, party: Party, rng: Any, *, read: tuple[Column, ...], each: bool, bounds: Bounds | None = None
) -> dict[str, np.ndarray]:
    """Count records: `first` (k + 1,), complete ones and those of which column i is the first that is missing; `each` (k,)."""
    there = np.where(party.w == 0, 0.0, 1.0)
    lost = [column.lacks(np.asarray(party[column.name])) for column in read]
    found = np.zeros(there.shape, np.intp)
    for i in reversed(range(len(read))):
        found = np.where(lost[i], i + 1, found)
    w = held(there, bounds, "first")
    counts = {"first": np.stack([(w * (found == i)).sum(-1) for i in range(len(read) + 1)], axis=-1)}
    if each:
        w = held(there, bounds, "each")
        counts["each"] = np.stack([(w * one).sum(-1) for one in lost], axis=-1)
    return counts


@dataclass(frozen=True)
class LeftOut:
    """How many records a model leaves out, and why.

    Attributes
    ----------
    columns : tuple of str
        All columns that the model reads.
    optional : tuple of str
        Those of them whose values may be missing.
    counts : tuple of float
        Complete records, and those of which each optional column is the first that is missing; noisy behind noise. Empty
        where it was not asked.
    each : tuple of float
        How many records lack each optional column; empty behind noise.
    exact : bool
        Whether people may be shown the counts as they are: in a simulation, and behind noise.
    """

    columns: tuple[str, ...]
    optional: tuple[str, ...]
    counts: tuple[float, ...] = ()
    each: tuple[float, ...] = ()
    exact: bool = True

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> LeftOut:
        """From plain values."""
        return cls(**{name: tuple(value) if isinstance(value, Sequence) else value for name, value in found.items()})

    @property
    def known(self) -> bool:
        """Whether it was asked."""
        return bool(self.counts)

    @property
    def complete(self) -> float:
        return self.counts[0]

    @property
    def records(self) -> float:
        return sum(self.counts)

    @property
    def left_out(self) -> float:
        return sum(self.counts[1:])

    def shown(self, count: float) -> int:
        """A count as people see it: a multiple of 5 where records are elsewhere, so that nested models give no differences."""
        return round(count) if self.exact else rounded(round(count))

    def sentence(self) -> str:
        """In words: `complete 1 234 of 1 300`."""
        if not self.known:
            return "records that lack a value are left out; how many was not asked"
        about = "" if self.exact else "about "
        return f"complete {about}{_grouped(self.shown(self.complete))} of {about}{_grouped(self.shown(self.records))}"


def complete_cases(federation: Federation, names: Sequence[str] | None = None, *, count: bool = True) -> Federation:
    """Return the federation of which records that lack a value of some columns have weight zero.

    Parameters
    ----------
    names : sequence of str, optional
        The columns that a model reads: target, weight, features, and all that its formula names. By default every feature,
        target, weight and offset of the schema.
    count : bool
        Whether to ask how many are left out, once for each set of columns.

    Returns
    -------
    Federation
        Itself where no value of these columns may be missing.

    Releases
    --------
    Counts of complete records and of missing values by column; see the module.

    Raises
    ------
    NotFinite (HR-404)
        Sums are exact, and no record is complete.
    """
    schema: Schema | None = federation.schema
    if schema is None:
        return federation
    roles = ("feature", "target", "weight", "offset")
    named = [column.name for column in schema if column.role in roles] if names is None else list(names)
    read = columns_of(schema, named)
    optional = tuple(column for column in read if column.optional)
    if not optional:
        return federation
    known = findings(federation, FOUND)
    key = ", ".join(column.name for column in read)
    asked = key in known and bool(known[key]["counts"])
    if not asked and not federation.is_cohort:
        found = _counted(federation, optional) if count and may_count(federation) else {"counts": [], "each": []}
        columns = {"columns": [column.name for column in read], "optional": [column.name for column in optional]}
        about = columns | found | {"exact": is_simulated(federation) or federation.protection.noisy}
        note(federation, FOUND, key, about)
        if federation.protection.exact:
            _refuse_none(LeftOut.of(about))
    declares = tuple(replace(column, optional=False) for column in optional)
    return federation.prepare(complete, declares=declares, read=optional)


def columns_of(schema: Schema, names: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a model in the order of the schema, the weight of the records included."""
    weight = [] if schema.weight is None else [schema.weight]
    wanted = {schema[name].name for name in [*names, *weight]}
    return tuple(column for column in schema if column.name in wanted)


def may_count(federation: Federation) -> bool:
    """Whether counts can be asked: exactly without a budget, or through noise that each question has for itself."""
    protection = federation.protection
    if protection.clip is not None or federation.is_cohort:
        return False
    return not protection.shared if protection.noisy else federation.ledger.limit is None


def _counted(federation: Federation, optional: tuple[Column, ...]) -> dict[str, Any]:
    """Ask for the counts, aside from the program that follows."""
    exact = federation.protection.exact
    bounds = {"first": l1(1.0, "record")} | ({"each": linf(1.0, "record")} if exact else {})
    found = federation.aside().sum(partial(cases, read=optional, each=exact), bound=bounds)
    return {"counts": found["first"].tolist(), "each": found["each"].tolist() if exact else []}


def _refuse_none(found: LeftOut) -> None:
    """Refuse a model of which no record is complete, before its first sum."""
    if found.known and not found.complete:
        worst = found.optional[int(np.argmax(found.each))]
        raise NotFinite(
            f"no record has all of {', '.join(found.columns[:5])}{', ...' if len(found.columns) > 5 else ''}; "
            f"{worst} is missing most often.",
            remedy=f"Leave {worst} out of the model.",
            asked=True,
        )


def cases_of(federation: Federation, names: Sequence[str]) -> LeftOut | None:
    """Return what is known of the records that a model of these columns leaves out; None where no value may be missing."""
    if federation.schema is None:
        return None
    known = findings(federation, FOUND)
    key = ", ".join(column.name for column in columns_of(federation.schema, names))
    return LeftOut.of(known[key]) if key in known else None


def all_left_out(federation: Federation) -> Iterator[LeftOut]:
    """What is known of the records that each model of a run leaves out, in the order in which they were asked for."""
    return map(LeftOut.of, findings(federation, FOUND).values())


def whole_cases(table: Table, names: Sequence[str]) -> Table:
    """Return the records of a table that lack none of these columns; the table itself where no value may be missing."""
    lost = lacking_in(table, names)
    return table if lost is None else table.take(~lost)


def complete_sizes(table: Table, parts: Sequence[Any]) -> Callable[[frozenset[str]], list[int]]:
    """Return what counts, in each part of a table, the records that have a weight and lack none of some columns.

    Parts are positions of records, or ranges of them.
    """
    weight = table.schema.weight

    @lru_cache
    def counted(names: frozenset[str]) -> list[int]:
        wanted = [column.name for column in columns_of(table.schema, sorted(names))]
        lost = lacking_in(table, wanted)
        if lost is None and weight is None:
            return list(map(len, parts))
        held = np.ones(len(table), bool) if lost is None else ~lost
        if weight is not None:
            held &= np.asarray(table.columns[weight]) != 0
        return [int(held[_rows(part)].sum()) for part in parts]

    return counted


def _rows(part: Any) -> Any:
    return slice(part.start, part.stop) if isinstance(part, range) else part


def lacking_in(table: Table, names: Sequence[str]) -> np.ndarray | None:
    """Which records of a table lack a value of these columns, shape (n,); None where none may."""
    optional = [table.schema[name] for name in names if table.schema[name].optional]
    if not optional:
        return None
    return np.logical_or.reduce([column.lacks(table[column.name]) for column in optional])


def _grouped(count: int) -> str:
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
