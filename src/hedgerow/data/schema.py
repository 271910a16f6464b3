"""The schema: the columns that every party holds, as declared before any data are read.

columns    Column(name, kind, role, unit, low, high, levels, shape, clip)
admit      arrays in  ->  the same arrays, checked and in the dtypes that programs expect
synthetic  records drawn from the declaration alone, to rehearse a study without touching data
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hedgerow.display import displayed
from hedgerow.errors import DataError, MissingColumn, SchemaInvalid, suggestion

from .column import Column, Role

MOST_PROBLEMS = 5
"""How many wrong columns one error names."""


@displayed
@dataclass(frozen=True)
class Schema:
    """The declared columns of a table, in order.

    Parameters
    ----------
    columns : tuple of Column
        With different names, and at most one target, one weight and one offset.

    Raises
    ------
    SchemaInvalid (HR-409)
        A name or a single role is declared twice.
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise SchemaInvalid(f"columns {repeated} are declared twice.", remedy="Give every column its own name.")
        for role in ("target", "weight", "offset"):
            if len(found := self._with_role(role)) > 1:
                raise SchemaInvalid(f"columns {list(found)} all have role {role!r}.", remedy=f"Choose one {role}.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns that a model may read."""
        return self._with_role("feature")

    def in_role(self, role: Role) -> tuple[str, ...]:
        """Names of the columns with a role, in order."""
        return self._with_role(role)

    @property
    def target(self) -> str | None:
        """Name of the column that a model predicts."""
        return next(iter(self._with_role("target")), None)

    @property
    def classifies(self) -> bool:
        """Whether the target is a class."""
        return self.target is not None and self[self.target].kind in ("binary", "category")

    @property
    def optional(self) -> tuple[str, ...]:
        """Names of the columns whose values may be missing."""
        return tuple(column.name for column in self.columns if column.optional)

    def allowing(self, missing: bool) -> Schema:
        """Return the schema with every column's values allowed to be missing, or none's."""
        return Schema(tuple(replace(column, optional=missing) for column in self.columns))

    @property
    def weight(self) -> str | None:
        """Name of the column of record weights."""
        return next(iter(self._with_role("weight")), None)

    @property
    def offset(self) -> str | None:
        """Name of the column added to a linear predictor with coefficient one."""
        return next(iter(self._with_role("offset")), None)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise _missing(name, self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def heaviest(self) -> float | None:
        """Largest declared weight of a record: 1 where records have no weights, None where the range is not declared."""
        return 1.0 if self.weight is None else self.absolute(self.weight)

    def absolute(self, name: str) -> float | None:
        """Largest absolute value that column `name` may hold, or `None` where its range is open."""
        return self[name].absolute

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of the columns `names`, in that order."""
        return Schema(tuple(self[name] for name in names))

    def replace(self, column: Column) -> Schema:
        """Return the schema with `column` in the place of the column of that name."""
        current = self[column.name]
        return Schema(tuple(column if other is current else other for other in self.columns))

    def with_columns(self, columns: Sequence[Column]) -> Schema:
        """Return the schema with these columns: in the place of those of their names, and new ones after the others."""
        given = {column.name: column for column in columns}
        return Schema((*(given.pop(column.name, column) for column in self.columns), *given.values()))

    def with_roles(
        self,
        *,
        target: str | None = None,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        offset: str | None = None,
    ) -> Schema:
        """Return the schema with other roles; what is not named keeps its role.

        A column that loses its role to another is ignored from then on, not made a feature: a former target would often
        give the new one away. The same holds for columns left out of `features`.

        Raises
        ------
        MissingColumn (HR-403), SchemaInvalid (HR-409)
            No such column; one of role id, which is in no model.
        """
        single: dict[Role, str] = {
            role: name for role, name in (("target", target), ("weight", weight), ("offset", offset)) if name is not None
        }
        moved: list[Role] = [*single, "feature"] if features is not None else [*single]
        roles: dict[str, Role] = {name: "ignore" for role in moved for name in self._with_role(role)}
        roles.update(dict.fromkeys(self.select(features or ()).names, "feature"))
        roles.update({self[name].name: role for role, name in single.items()})
        for name in (name for name, role in roles.items() if role != "ignore" and self[name].role == "id"):
            raise SchemaInvalid(
                f"column {name!r} has role 'id' and cannot be a {roles[name]}.",
                remedy="An id tells people apart; leave it out.",
            )
        return Schema(tuple(replace(column, role=roles.get(column.name, column.role)) for column in self.columns))

    def admit(self, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the declared columns, checked, in the dtypes that programs expect; others are left out.

        Parameters
        ----------
        columns : mapping of str to array of shape (n, *shape)
            At least the declared columns.

        Returns
        -------
        dict of str to array
            See `Column.admit`.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
            Of the first wrong column; the message names up to five of them.
        """
        admitted: dict[str, np.ndarray] = {}
        errors: list[DataError] = []
        for column in self.columns:
            try:
                if column.name not in columns:
                    raise _missing(column.name, columns)
                admitted[column.name] = column.admit(columns[column.name])
            except DataError as error:
                errors.append(error)
        lengths = {name: len(values) for name, values in admitted.items()}
        if len(set(lengths.values())) > 1:
            errors.append(SchemaInvalid(f"columns differ in length: {lengths}.", remedy="Give one value per record."))
        if errors:
            raise _together(errors)
        return admitted

    def synthetic(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return `n` records drawn from the declaration alone (see `Column.synthetic`)."""
        return {column.name: column.synthetic(n, rng) for column in self.columns}

    def to_json(self) -> dict[str, Any]:
        """Return the schema as plain values."""
        return {"columns": [column.to_json() for column in self.columns]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the schema that `to_json` described."""
        if set(values) != {"columns"}:
            raise SchemaInvalid(f"a schema has the keys {sorted(values)}.", remedy="Give one key, `columns`.")
        if not isinstance(values["columns"], list | tuple) or not all(isinstance(one, Mapping) for one in values["columns"]):
            raise SchemaInvalid("the columns of a schema are no list of declarations.", remedy="Give a list of objects.")
        return cls(tuple(Column.from_json(column) for column in values["columns"]))

    def _with_role(self, role: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == role)


def _missing(name: str, known: Mapping[str, Any] | Sequence[str]) -> MissingColumn:
    return MissingColumn(f"column {name!r} is not in the table.", remedy=suggestion(name, known))


def _together(errors: Sequence[DataError]) -> DataError:
    reasons = [error.reason for error in errors[:MOST_PROBLEMS]]
    if len(errors) > MOST_PROBLEMS:
        reasons.append(f"and {len(errors) - MOST_PROBLEMS} more columns are wrong.")
    remedies = dict.fromkeys(error.remedy for error in errors[:MOST_PROBLEMS])
    return type(errors[0])(" ".join(reasons), remedy="\n".join(remedies))
