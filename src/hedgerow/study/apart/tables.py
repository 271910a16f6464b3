"""The tables of a study whose parties hold different columns: one set cut by columns, or a file for each party.

    "age"             a column
    "signals[0:3]"    a part of a column of arrays, by positions along its axes: a column of that name

In a simulation that cuts one set, each party's records stand in an order of their own; `overlap` says whom all parties hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Schema, Table, load, read
from hedgerow.data.catalogue import CATALOGUE
from hedgerow.data.column_parts import part_of, parts
from hedgerow.data.columns_apart import made_ids, people_apart
from hedgerow.data.loaders import columns_in, read_words
from hedgerow.errors import MissingColumn, StudyInvalid, suggestion

from ..declared import agree
from .sections import RolesSection

if TYPE_CHECKING:
    from pathlib import Path

    from ..study import Study


@dataclass(frozen=True)
class HeldApart:
    """What one party holds before any alignment.

    Attributes
    ----------
    ids : array of shape (n,)
        Texts or whole numbers.
    table : Table
        Its own columns, in the same order; the ids are none of them.
    persons : array of shape (n,), optional
        Positions in the whole set, which only a simulation knows.
    """

    ids: np.ndarray
    table: Table
    persons: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.table)


def tables_apart(
    study: Study, data_dir: str | Path | None = None
) -> tuple[dict[str, HeldApart], Table | None, dict[str, Table]]:
    """Each party's records by its name; the whole set that they were cut from, where they were; and people who were held out.

    Raises
    ------
    StudyInvalid (HR-101)
        A column that no party or no file has, all of them at once.
    DataError (HR-4xx)
        Data that are missing, or do not fit what is declared.
    """
    assert study.alignment is not None
    if study.data.parties:
        return _files(study), None, {}
    whole = _whole(study, data_dir)
    assert study.roles is not None
    refuse_columns(study, whole.schema)
    test = whole.test
    if study.evaluation.holdout:
        test, whole = whole.split(study.evaluation.holdout, study.simulation_seed or 0)
    return _cut(study, study.roles, whole), whole, {} if test is None else _tests(study, study.roles, test)


def refuse_columns(study: Study, schema: Schema) -> None:
    """Refuse roles that name columns which the set does not have.

    Raises
    ------
    StudyInvalid (HR-101)
        All of them at once, each with the nearest known one.
    """
    assert study.roles is not None
    found = list(_unknown(study.roles, schema))
    if found:
        raise StudyInvalid(f"the section [roles] has {len(found)} problem(s):", remedy="\n".join(found))


def _unknown(roles: RolesSection, schema: Schema) -> Iterator[str]:
    for party, names in roles.columns.items():
        for name in names:
            try:
                part_of(schema, name)
            except MissingColumn:
                yield f"{party}: no column {name!r} in the data. {suggestion(name, schema.names)}"
            except (IndexError, ValueError) as error:
                yield f"{party}: {name!r} is no part of that column: {error}"
    for name in roles.keep:
        if name not in schema:
            yield f"keep: no column {name!r} in the data. {suggestion(name, schema.names)}"


def _whole(study: Study, data_dir: str | Path | None) -> Table:
    from ..build import read_declared

    data = study.data
    if data.path:
        table = read_declared(study)
    else:
        table = load(str(data.name), data_dir=data_dir)
        agree(data.declared_columns(), data.derivations(), table.schema, f"the catalogue and {data.name}")
    if data.ranges:
        table = table.declare(clip=data.clip, **data.ranges)
    return table


def _cut(study: Study, roles: RolesSection, whole: Table) -> dict[str, HeldApart]:
    assert study.alignment is not None
    rng = Streams(study.simulation_seed or 0).stream(0, "server", "apart").generator
    on, n = study.alignment.on, len(whole)
    ids = _words(whole.schema[on], np.asarray(whole[on])) if on in whole.schema else made_ids(n, rng)
    people = rng.permutation(n) if study.data.records is None else rng.permutation(n)[: study.data.records]
    held = {}
    for party, rows in people_apart(people, list(roles.columns), roles.overlap, rng).items():
        table = replace(parts(whole, [name for name in roles.columns[party] if name != on], rows), name=party)
        at = _kept(table, roles.keep)
        held[party] = HeldApart(ids[rows][at], table if at.all() else table.take(at), rows[at])
    return held


def _tests(study: Study, roles: RolesSection, test: Table) -> dict[str, Table]:
    """Each party's columns of the same people, in one order: those that all parties keep."""
    assert study.alignment is not None
    test = test if study.data.records is None else test.drawn(study.data.records, study.simulation_seed or 0)
    rows, on = np.arange(len(test)), study.alignment.on
    held = {
        party: replace(parts(test, [name for name in names if name != on], rows), name=party)
        for party, names in roles.columns.items()
    }
    kept = np.logical_and.reduce([_kept(one, roles.keep) for one in held.values()])
    return {party: one.take(kept) for party, one in held.items()}


def _kept(table: Table, keep: Mapping[str, tuple[float, float] | list[str]]) -> np.ndarray:
    """Which of a party's records it keeps; by its own columns alone.

    Raises
    ------
    StudyInvalid (HR-101)
        A range of a category, or a level that a column does not have.
    """
    kept = np.ones(len(table), dtype=bool)
    for name, wanted in keep.items():
        if name not in table.schema:
            continue
        column = table.schema[name]
        if isinstance(wanted, list):
            if wrong := [one for one in wanted if one not in column.levels]:
                raise StudyInvalid(
                    f"roles.keep: {name!r} has no level {wrong[0]!r}.", remedy=suggestion(wrong[0], column.levels)
                )
            kept &= np.isin(table[name], [column.levels.index(one) for one in wanted])
        elif column.levels:
            raise StudyInvalid(
                f"roles.keep: {name!r} is a category.", remedy=f"Name levels of it: {', '.join(column.levels[:9])}."
            )
        else:
            kept &= (table[name] >= wanted[0]) & (table[name] <= wanted[1])
    return kept


def _words(column: Column, values: np.ndarray) -> np.ndarray:
    """Ids as they were written: of a category its words, of numbers whole ones."""
    if column.kind == "category":
        return np.asarray(column.levels)[values]
    found: np.ndarray = values.astype(np.int64)
    return found


def _files(study: Study) -> dict[str, HeldApart]:
    """A file for each party, read by what the study declares of the columns that it has."""
    assert study.alignment is not None
    data, on = study.data, study.alignment.on
    roles = study.roles or RolesSection.model_validate({})
    declared = {name: one for name, one in data.declared_columns().items() if name != on}
    held, problems = {}, []
    for party, path in data.parties.items():
        wanted = roles.columns.get(party)
        there = columns_in(path, data.separator)
        lacking = [name for name in (on, *(wanted or ())) if name not in there]
        problems += [f"{party}: no column {name!r} in {path}. {suggestion(name, there)}" for name in lacking]
        if lacking:
            continue
        table = read(
            path,
            columns=[name for name in (wanted or there) if name != on],
            missing=data.missing,
            declared={name: one for name, one in declared.items() if name in there},
            separator=data.separator,
            **data.spelt,
        )
        if ranges := {name: ends for name, ends in data.ranges.items() if name in table.schema}:
            table = table.declare(clip=data.clip, **ranges)
        ids, at = read_words(path, on, data.separator), _kept(table, roles.keep)
        held[party] = HeldApart(ids[at], replace(table if at.all() else table.take(at), name=party))
    everywhere = {name for one in held.values() for name in one.table.schema.names}
    if not problems:
        problems += [
            f"keep: no party has a column {n!r}. {suggestion(n, everywhere)}" for n in roles.keep if n not in everywhere
        ]
        problems += [f"data.columns.{n}: no party has it. {suggestion(n, everywhere)}" for n in declared if n not in everywhere]
    if problems:
        raise StudyInvalid(f"the parties' files have {len(problems)} problem(s):", remedy="\n".join(problems))
    return held


def catalogued(study: Study) -> Schema | None:
    """The schema of a catalogued set, known without reading it."""
    entry = CATALOGUE.get(str(study.data.name)) if study.data.name else None
    return None if entry is None else entry.schema
