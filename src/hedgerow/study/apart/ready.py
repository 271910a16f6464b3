"""From a study of parties with different columns to what runs: every refusal that can come before a party is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.declaration import Declaration
from hedgerow.crypto.psi.ids import IdRules
from hedgerow.data import Schema, Table
from hedgerow.errors import StudyInvalid, suggestion

from ..catalogue import listing
from ..keys import settings_of
from ..section import Section
from .sections import RolesSection
from .tables import HeldApart, catalogued, refuse_columns, tables_apart

if TYPE_CHECKING:
    from pathlib import Path

    from ..study import Study

USED = {"partition": (), "evaluation": ("on", "holdout"), "engine": ("name", "threads", "shards")}
"""Sections of parties with the same columns, and which of their keys hold for others too."""

USES = "it is of parties that hold the same columns; bounds of columns that lie apart follow from their ranges"
HIDDEN = "products of columns that lie apart travel in shares already, which the hub cannot read"
ROWS = (
    "shows rows of records to a seat, which have no epsilon and bear no noise, so it cannot run under one. Leave it out, or "
    "fit by products alone, such as vertical_linear_regression or vertical_means."
)
FILES = "files hold whom they hold, and nobody is kept out of their alignment. Leave it out, or cut one set (data.name)."


@dataclass(frozen=True)
class BuiltApart:
    """A study of parties with different columns, made ready.

    Attributes
    ----------
    held : dict from party to HeldApart
        What each party holds before the alignment.
    whole : Table, optional
        The set that they were cut from, which only a simulation knows.
    tests : dict from party to Table
        Each party's columns of people who were held out, aligned; none where there are none.
    """

    study: Study
    listing: Declaration
    settings: dict[str, Any]
    held: dict[str, HeldApart]
    whole: Table | None
    tests: dict[str, Table] = field(default_factory=dict)

    @property
    def schemas(self) -> dict[str, Schema]:
        """Each party's declared columns, without the ids."""
        return {party: one.table.schema for party, one in self.held.items()}

    @property
    def simulated(self) -> bool:
        """Whether the report may show what only a simulation can know."""
        return self.study.simulation_seed is not None

    @cached_property
    def digest(self) -> str:
        """Identifies a run: its study and its records."""
        found = hashlib.sha256(self.study.digest.encode())
        for party, one in self.held.items():
            found.update(party.encode())
            found.update("\n".join(map(str, one.ids)).encode())
            for name, column in one.table.columns.items():
                found.update(name.encode() + np.ascontiguousarray(column).tobytes())
        return found.hexdigest()[:16]

    @cached_property
    def common(self) -> dict[str, np.ndarray]:
        """Each party's records of the people whom all hold, by ids in the alignment's form, as a simulation knows."""
        assert self.study.alignment is not None
        section = self.study.alignment
        rules = IdRules(most=section.most, normal=section.normal, small_domain="accepted")
        rows = {party: {id: i for i, id in enumerate(rules.read(one.ids))} for party, one in self.held.items()}
        shared = sorted(set.intersection(*(set(one) for one in rows.values())))
        return {party: np.array([one[id] for id in shared], dtype=np.int64) for party, one in rows.items()}

    def pooled(self) -> Table:
        """The common people with all parties' columns in one table: the yardstick of a simulation."""
        columns = {name: one.table[name][self.common[p]] for p, one in self.held.items() for name in one.table.schema.names}
        declared = tuple(column for one in self.held.values() for column in one.table.schema)
        return Table(columns, Schema(declared), name=self.study.name)


def build_apart(study: Study, *, data_dir: str | Path | None = None) -> BuiltApart:
    """Check a study whose parties hold different columns, and read their tables; ask nobody.

    Raises
    ------
    StudyInvalid (HR-101)
        All problems of its sections at once, before data are read; then those of the columns.
    """
    listed = refuse_sections(study)
    settings = settings_of(listed, study.program.model_extra or {})
    schema = catalogued(study)
    if schema is not None and study.roles is not None:
        refuse_columns(study, schema)
    held, whole, tests = tables_apart(study, data_dir)
    refuse_label(study, {party: one.table.schema for party, one in held.items()})
    return BuiltApart(study, listed, settings, held, whole, tests)


def refuse_sections(study: Study) -> Declaration:
    """Refuse sections that do not fit each other; return what the program declares.

    Raises
    ------
    StudyInvalid (HR-101)
        All problems at once.
    """
    listed = listing(study.program.name)
    found = list(_problems(study, listed))
    if found:
        many = f"{len(found)} problem(s)"
        raise StudyInvalid(f"the study {study.name!r} has {many}, as one of columns that lie apart:", remedy="\n".join(found))
    return listed


def _problems(study: Study, listed: Declaration) -> Iterator[str]:
    name, roles, files = study.program.name, study.roles, study.data.parties
    if listed.columns == "alike" and study.apart:
        from ..catalogue import VERTICAL

        near = suggestion(name, VERTICAL)
        yield f"program.name: {name!r} adds up records of parties with the same columns. {near}"
        if study.data.parties:
            yield (
                "data.parties: files of parties with other columns. Where they hold other people and the same columns, make "
                'one file with a column of parties and [partition] by = "by_column"; in Python hr.simulate takes one for each.'
            )
    if study.alignment is None:
        yield "alignment is missing: give [alignment] with on = the column of ids, such as on = 'nin'."
    if roles is None and not files:
        yield "roles are missing: give [roles] with the columns of each party, such as clinic = ['age', 'weight']."
    parties = tuple(files) or (tuple(roles.columns) if roles is not None else ())
    if (roles is not None or files) and len(parties) < 2:
        yield f"{len(parties)} party holds columns, and two are the fewest."
    if roles is not None:
        yield from _of_roles(roles, parties, bool(files))
    if study.alignment is not None and study.alignment.by == "kkrt" and len(parties) > 2:
        yield f"alignment.by = 'kkrt' is for two parties, and there are {len(parties)}: choose by = 'x25519'."
    yield from _of_protection(study, listed)
    if study.comparison is not None:
        yield "comparison: runs of columns that lie apart are single runs."
    defaults = type(study).model_validate({"data": {"name": "digits"}, "program": {"name": "none"}})
    for section, used in USED.items():
        usual, given = (_dumped(getattr(one, section)) for one in (defaults, study))
        for key in {**usual, **given}:
            if key not in used and given.get(key) != usual.get(key):
                yield f"{section}.{key}: it is of parties that hold the same columns. Leave it out."
    if study.evaluation.on == "parties":
        yield "evaluation.on = 'parties': it is of parties that hold the same columns. Leave it out."
    for key, given in (
        ("attack", study.attack),
        ("audit", study.audit),
        ("party_budgets", study.party_budgets),
        ("forecast", study.forecast),
    ):
        if given:
            yield f"{key}: it is of parties that hold the same columns. Leave it out."
    if study.data.derivations():
        yield "data.derived: write the expression in the program's formula, or derive the column at its party."
    for key in ("target", "features", "weight"):
        if getattr(study.data, key) is not None:
            instead = "roles.label = 'party.column'" if key == "target" else "the lists of [roles]" if key == "features" else ""
            yield f"data.{key} is of one table. " + (f"Say it by {instead}." if instead else "Weights apart are not supported.")


def _of_protection(study: Study, listed: Declaration) -> Iterator[str]:
    """What an alignment, or a program that shows rows, cannot keep to."""
    asked = {"budget": study.budget, "protection.mechanism": study.protection.mechanism}
    for key in (key for key, section in asked.items() if section is not None and listed.columns == "apart"):
        if listed.shows_rows:
            yield f"{key}: the program {listed.name!r} {ROWS}"
        elif listed.takes == "apart":
            yield f"{key}: the program {listed.name!r} tells exact sums of a hidden join. Leave it out, or take vertical_means."
    for key in ("clip", "compression", "aggregation", "disclosure"):
        if getattr(study.protection, key) is not None:
            yield f"protection.{key}: {HIDDEN if key == 'aggregation' else USES}. Leave it out."
    if study.evaluation.holdout and study.data.parties:
        yield f"evaluation.holdout: {FILES}"


def _of_roles(roles: RolesSection, parties: tuple[str, ...], files: bool) -> Iterator[str]:
    holder: dict[str, str] = {}
    for party, columns in roles.columns.items():
        if files and party not in parties:
            yield f"roles.{party}: no party of [data.parties]. {suggestion(party, parties)}"
        for column in columns:
            if column in holder:
                yield f"roles: {column!r} is at {holder[column]} and at {party}. Let one of the two hold it."
            holder.setdefault(column, party)
    if files and roles.overlap != 1.0:
        yield "roles.overlap is simulated by cutting one set; files hold whom they hold."
    if roles.label is None:
        return
    seat, target = roles.seat, roles.target
    if not target:
        yield f"roles.label = {roles.label!r} is not of the form party.column."
    elif seat not in parties:
        yield f"roles.label = {roles.label!r}: no party {seat!r}. {suggestion(str(seat), parties)}"
    elif seat in roles.columns and target not in roles.columns[seat]:
        yield f"roles.label = {roles.label!r}: {seat} has no column {target!r}. {suggestion(target, roles.columns[seat])}"


def refuse_label(study: Study, schemas: dict[str, Schema]) -> None:
    """Refuse a label that no file has."""
    roles = study.roles
    if roles is not None and roles.seat is not None and roles.target not in schemas[roles.seat]:
        known = suggestion(str(roles.target), schemas[roles.seat].names)
        raise StudyInvalid(f"roles.label = {roles.label!r}: {roles.seat} has no column {roles.target!r}.", remedy=known)


def _dumped(section: Section | Any) -> dict[str, Any]:
    found: dict[str, Any] = section.model_dump(mode="json")
    return found
