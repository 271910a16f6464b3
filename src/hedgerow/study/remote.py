"""A study whose records are elsewhere: at stations, which declare their columns and hand nothing over.

Nothing of such a study can be computed by the server alone: no partition, no baselines, no table to test on. Randomness
comes from the operating system, whatever seed the study names for its simulations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.core.federation import Federation, inside
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Partition, Schema, Table
from hedgerow.data.partition import LabelCounts
from hedgerow.errors import StudyInvalid

from .agreed import budgets_of
from .build import Built
from .catalogue import listing
from .declared import agree
from .keys import settings_of
from .several import with_labels
from .study import Study
from .validation import for_tuning, refuse_membership, refuse_unmeasured


def data_name(study: Study) -> str:
    """The logical name of a study's data: that of a catalogued set, or the stem of a file."""
    data = study.data
    return str(data.name) if data.path is None else data.path.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0]


def schema_for(study: Study, schema: Schema) -> Schema:
    """The stations' schema in the roles that a study gives its columns.

    Raises
    ------
    StudyInvalid (HR-101)
        The study declares a range that is narrower than the stations': nobody would enforce it; or it declares a
        column otherwise than they do.
    MissingColumn (HR-403)
        The study names a column that stations do not have.
    """
    agree(study.data.declared_columns(), study.data.derivations(), schema, "the stations")
    for name, (low, high) in study.data.ranges.items():
        column = schema[name]
        inside = (
            low <= (-math.inf if column.low is None else column.low)
            and (math.inf if column.high is None else column.high) <= high
        )
        if not inside and column.kind != "binary":
            raise StudyInvalid(
                f"data.ranges declares {name!r} in [{low:g}, {high:g}], and stations declare {_range(column)}.",
                remedy="Bounds are made from what stations declare and enforce: leave the range out, or declare a wider one.",
            )
    data = study.data
    roles = {"target": data.target, "weight": data.weight, "features": data.features}
    return schema.with_roles(**{role: given for role, given in roles.items() if given is not None})


def build_remote(study: Study, schema: Schema, engine: Any) -> Built:
    """Make a study ready for an engine that reaches its parties; ask nobody.

    Parameters
    ----------
    schema : Schema
        What all stations declare.
    engine : Engine
        For example `hedgerow.engines.Network`; its parties are those of the study.

    Raises
    ------
    StudyInvalid (HR-101)
        The study asks for what only a simulation has: a table held out of the records, or records held out by a seed.
    """
    evaluation = study.evaluation
    if study.comparison is not None:
        raise StudyInvalid(f"the study {study.name!r} is a comparison.", remedy="Submit its runs one by one.")
    if study.attack is not None:
        raise StudyInvalid(
            "[attack] makes parties of a simulation lie, and the parties of this study are at stations.",
            remedy="Leave the section out, or run the study as a simulation: hedgerow run.",
        )
    if study.audit is not None:
        raise StudyInvalid(
            "[audit] trains again with canaries among the parties, and the parties of this study are at stations.",
            remedy="Leave the section out, and audit the study as a simulation: hedgerow audit.",
        )
    if study.data.records is not None:
        raise StudyInvalid(
            f"data.records is {study.data.records}, which a simulation draws.", remedy="Leave it out: stations answer with all."
        )
    if evaluation.holdout or evaluation.validation:
        key = "holdout" if evaluation.holdout else "validation"
        raise StudyInvalid(
            f"evaluation.{key} takes records out of a simulation's, and the records of this study stay at stations.",
            remedy=f"Set evaluation.{key} = 0; evaluation.on = 'parties' measures by sums over the parties.",
        )
    found = listing(study.program.name)
    refuse_unmeasured(study, found)
    refuse_membership(study, found, None, simulated=False)
    for_tuning(study, None)
    settings = with_labels(study, settings_of(found, study.program.model_extra or {}))
    schema = schema_for(study, schema)
    names = tuple(engine.parties)
    nobody = {column.name: column.synthetic(0, np.random.default_rng(0)) for column in schema}
    table = Table(nobody, schema, name=data_name(study), source=f"Records stay at {len(names)} parties.")
    nowhere = Partition(
        (np.zeros(0, np.int64),) * len(names), names, LabelCounts(names, (), np.zeros((len(names), 0))), "at stations"
    )
    federation = Federation(engine, schema, Streams(None)).protect(**study.protection.slots())
    if study.budget is not None:
        federation = federation.within(study.budget.budget())
    known = names if getattr(engine, "named", True) else None
    inside(federation).run.ledger.party_limits = budgets_of(study.party_budgets, known)
    abroad = study.model_copy(update={"seed": "system", "baselines": False})
    return Built(abroad, found, settings, table, None, nowhere, federation)


def same_columns(schemas: Mapping[str, Schema], names: tuple[str, ...]) -> Schema:
    """The columns of these names, which every station declares alike; values may be missing where they may at one of them.

    Raises
    ------
    StudyInvalid (HR-101)
        Two stations declare a column differently; both declarations are in the message.
    MissingColumn (HR-403)
    """
    first, *others = schemas.items()
    optional = {name for schema in schemas.values() for name in schema.optional}
    agreed = first[1].select(names)
    for station, schema in others:
        for mine, theirs in zip(agreed, schema.select(names), strict=True):
            if mine != replace(theirs, optional=mine.optional):
                raise StudyInvalid(
                    f"{first[0]} and {station} declare {mine.name!r} differently: {_words(mine)}; and {_words(theirs)}.",
                    remedy="Stations agree on kinds, ranges, units and levels before a study is submitted.",
                )
    return Schema(tuple(replace(column, optional=column.name in optional) for column in agreed))


def _words(column: Column) -> str:
    """A declaration, for people; what is not declared is said, since that may be the difference."""
    span = f"levels {', '.join(map(repr, column.levels))}" if column.levels else _range(column)
    rest = [f"{name} {value}" for name, value in (("role", column.role), ("unit", column.unit or "none"))]
    return ", ".join([column.kind, span, *rest])


def _range(column: Column) -> str:
    low, high = ("open" if end is None else f"{end:g}" for end in (column.low, column.high))
    return "no range" if low == high == "open" else f"the range {low} to {high}"
