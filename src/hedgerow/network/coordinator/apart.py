"""Boarding of a study over columns that lie apart: each station brings the columns of its own role, and all of them must come.

    [roles] tax = ["salary"], town = ["age", "gender"]     ->  {"tax": Schema(salary), "town": Schema(age, gender)}

Declarations are compared with the study, not with each other: a column has one holder. All stations are told all of them, since
each rehearses the whole study on made-up records; each admits its own alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hedgerow.data import Schema
from hedgerow.errors import MissingColumn, StudyInvalid, suggestion
from hedgerow.study import Study


def holders_of(study: Study) -> tuple[str, ...]:
    """The stations that hold the columns of a study, as it names them; none where all hold the same ones."""
    return tuple(study.roles.columns) if study.roles is not None else ()


def agreed_schemas(study: Study, schemas: Mapping[str, Schema], parties: Mapping[str, Sequence[str]]) -> dict[str, Schema]:
    """The columns of each station, as it declares them, in the order of the study.

    Parameters
    ----------
    schemas : mapping from station to Schema
        All that each declares.
    parties : mapping from station to its parties

    Raises
    ------
    MissingColumn (HR-403)
        A station does not have a column of its role.
    StudyInvalid (HR-101)
        A role has no station, no columns, or a station that is several parties; or a study says more than roles.
    """
    assert study.roles is not None
    if study.alignment is None:
        raise StudyInvalid(f"the study {study.name!r} has [roles] and no [alignment].", remedy="[alignment] on = 'the ids'.")
    found: dict[str, Schema] = {}
    for name, columns in study.roles.columns.items():
        if name not in schemas:
            raise StudyInvalid(f"[roles] names {name!r}, which is no station here.", remedy=suggestion(name, schemas))
        if tuple(parties[name]) != (name,):
            raise StudyInvalid(
                f"{name} is {len(parties[name])} parties, and columns lie apart between stations of one party each.",
                remedy="Take `stores` out of that station's configuration, or ask another station.",
            )
        for column in columns:
            if column not in schemas[name]:
                raise MissingColumn(f"{name} has no column {column!r}.", remedy=suggestion(column, schemas[name].names))
        silent = (replace(schemas[name][column], description="") for column in columns)
        found[name] = Schema(tuple(silent))
    label = study.roles.label
    holder, _, column = (label or "").partition(".")
    if label is not None and (holder not in found or column not in found[holder]):
        raise StudyInvalid(f"roles.label = {label!r} names no column of a role.", remedy="label = 'station.column'")
    return found
