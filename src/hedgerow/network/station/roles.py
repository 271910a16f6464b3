"""Which columns may weigh records: those that a station declares as weights, whatever a study says.

A record of weight zero counts nothing. A study that could take any column for its weights would choose whose records are
counted: with a rare feature, a handful, of whom few numbers tell everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hedgerow.data import Schema
from hedgerow.errors import ColumnForbidden

if TYPE_CHECKING:
    from hedgerow.study.study import Study

KEYS = ("weight", "weights")
"""Settings of programs that name the column of record weights."""


def admit_weights(study: Study, declared: Schema) -> None:
    """Refuse a study that weighs records by a column that is declared here in another role.

    Raises
    ------
    ColumnForbidden (HR-603)
    """
    wanted = [study.data.weight, *_weights(study.program.model_extra or {})]
    wanted += [name for name, column in study.data.declared_columns().items() if column.role == "weight"]
    for name in wanted:
        if name in declared and declared[name].role != "weight":
            raise ColumnForbidden(
                f"the study weighs records by {name!r}, which is declared here as {declared[name].role!r}: records of weight "
                "zero do not count, so that it would choose whose records do.",
                remedy=f"Leave the weight out of the study; or the owner declares it: [data.columns.{name}] role = 'weight' "
                "in station.toml.",
            )


def _weights(value: Any) -> Iterator[str]:
    """Every text that settings have under a key of weights, however deep."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key in KEYS and isinstance(part, str):
                yield part
            else:
                yield from _weights(part)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for part in value:
            yield from _weights(part)
