"""Codes: a table of small whole numbers, from the declaration of its columns alone, and back.

    number     `bins` bins over the declared range, of equal width, or of equal width of a logarithm
    integer    the same, or one code for each whole number where there are no more than `bins`
    category   one code for each level, in the order of the levels
    binary     two codes
    points     a code of its own for each of some values of a number, such as 0 of an amount that most people do not have
    optional   one code more, the last, for a value that is missing

Nothing here looks at data, so codes reveal nothing, and parties agree on them before anybody is asked. Back from codes, a
number is uniform inside its bin (of a logarithm: uniform on that scale), a whole number one of those inside its bin, so that
every value that comes out obeys its declaration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import elementwise, minds_missing, travels
from hedgerow.data import Column, Schema
from hedgerow.data.column import Role
from hedgerow.data.cuts import Widths, cuts_of_column, names_of
from hedgerow.errors import SchemaInvalid, SettingsInvalid

MOST_CODES = 2**12
"""Of one column: tables of two columns have as many cells as the product of their codes."""
Points = Mapping[str, Sequence[float]]
"""Values of columns that have codes of their own."""
NEVER = frozenset({"id", "ignore", "weight", "offset"})
"""Roles of columns that are not made up."""


@travels
def usual_bins(epsilon: float | None) -> int:
    """Bins of a number for tables of pairs: 16, and 8 where an epsilon below 0.5 is given, at which noise drowns narrow ones.

    Of Adult's made-up records at epsilon 0.1 those of 8 bins predict real ones half a point better by logistic regression, and
    as well by boosting; at 0.5 both are a quarter of a point better, and from 1 on the number hardly matters.
    """
    return 8 if epsilon is not None and epsilon < 0.5 else 16


@dataclass(frozen=True)
class Codes:
    """How the columns of a table are written as codes.

    Attributes
    ----------
    columns : tuple of Column
        Declarations, in the order of the schema.
    cuts : tuple of tuple of float
        Ascending cut points of each column; of categories between their codes.
    widths : tuple of {"equal", "log"}
        Of each column's bins.
    target : str
        The column that others are made to explain; "" where there is none.
    heaviest : float or None
        Largest declared weight of a record, one where records have no weights; None where it is not declared.
    points : tuple of tuple of float
        Values of each column that have codes of their own; empty where no column has any.
    """

    columns: tuple[Column, ...]
    cuts: tuple[tuple[float, ...], ...]
    widths: tuple[Widths, ...]
    target: str = ""
    heaviest: float | None = 1.0
    points: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        columns: Sequence[str] | None = None,
        target: str | None = None,
        bins: int = 16,
        log: Sequence[str] = (),
        points: Points | None = None,
    ) -> Codes:
        """Place cut points by a schema.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to make up; by default all but those of an id, weights, offsets and what is ignored.
        target : str, optional
            One of them; by default the schema's target where it is among them. Numbers are fine: their bins are classes.
        bins : int
            Bins of a number.
        log : str or sequence of str
            Columns whose bins have equal widths of log(1 + value - low), as incomes need; others have equal widths.
        points : mapping from a column to values, optional
            Values that many records have exactly, known beforehand and not looked up: {"hours": [40], "gain": [0]}. Each has a
            code of its own; inside a bin it would be spread over the bin's width. A single value need not be in a list.

        Raises
        ------
        SettingsInvalid (HR-511)
            `bins` is below 2 or above 4096; `log`, `points` or `target` names no column that it can; a point is no value of its
            column, or they are more than 4096.
        MissingColumn (HR-403), SchemaInvalid (HR-409)
            No such column; none is left; a column without a declared range, or with a shape; weights that may be below zero.
        """
        if not 2 <= bins <= MOST_CODES:
            raise SettingsInvalid(f"bins={bins!r} is outside [2, {MOST_CODES}].", remedy="16 is a good number of bins.")
        names = [c.name for c in schema if c.role not in NEVER] if columns is None else list(columns)
        chosen = tuple(schema[name] for name in schema.names if name in {schema[one].name for one in names})
        _refuse_uncodable(chosen)
        _refuse_negative_weights(schema)
        log = names_of(log)
        points = {name: _listed(name, given) for name, given in (points or {}).items()}
        numbers = {column.name: column for column in chosen if column.kind in ("number", "integer")}
        for key, given in (("log", log), ("points", points)):
            if strange := sorted(set(given) - set(numbers)):
                raise SettingsInvalid(
                    f"{key}={list(given)!r} names {strange[:5]}, which are no numbers among the columns.",
                    remedy="Name columns that are declared as number or integer.",
                )
        known = [column.name for column in chosen]
        if target is None:
            target = schema.target if schema.target in known else ""
        elif target and target not in known:
            raise SettingsInvalid(f"target={target!r} is not among the columns {known[:8]}.", remedy="Name one of them.")
        widths: tuple[Widths, ...] = tuple("log" if column.name in log else "equal" for column in chosen)
        cuts = tuple(
            _around(column, _cuts(column, bins, width), points.get(column.name, ()))
            for column, width in zip(chosen, widths, strict=True)
        )
        own = tuple(points.get(column.name, ()) for column in chosen)
        return cls(chosen, cuts, widths, target or "", schema.heaviest, own if any(own) else ())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes of each column; that of a missing value is the last."""
        return tuple(len(cuts) + 1 + column.optional for column, cuts in zip(self.columns, self.cuts, strict=True))

    @property
    def schema(self) -> Schema:
        """The columns that are made up; `target` has that role, and a column that had it before is a feature."""

        def role(column: Column) -> Role:
            if column.name == self.target:
                return "target"
            return "feature" if column.role == "target" else column.role

        return Schema(tuple(replace(column, role=role(column)) for column in self.columns))

    def place(self, name: str) -> int:
        """Where a column stands.

        Raises
        ------
        MissingColumn (HR-403)
        """
        return self.names.index(Schema(self.columns)[name].name)

    def ends(self, j: int) -> Array:
        """Lower and upper ends of the bins of column `j`, shape (bins + 1,); of categories around their codes."""
        column = self.columns[j]
        if column.kind in ("category", "binary"):
            return np.arange(len(self.cuts[j]) + 2) - 0.5
        return np.array([cast(float, column.low), *self.cuts[j], cast(float, column.high)])

    def whole_ends(self, j: int) -> tuple[Array, Array]:
        """First and last whole number in each bin of column `j`, an integer: a bin holds its upper end, and the first both."""
        ends = self.ends(j)
        return np.append(np.ceil(ends[0]), np.floor(ends[1:-1]) + 1), np.floor(ends[1:])

    def alike(self, j: int) -> Array:
        """Which codes of column `j` have about as many records as their neighbours: bins of numbers, but no points."""
        found = np.full(self.sizes[j], self.columns[j].kind in ("number", "integer"))
        found[len(self.cuts[j]) + 1 :] = False  # a missing value
        if self.points:
            found[np.searchsorted(self.cuts[j], self.points[j])] = False
        return found

    def number(self, columns: Mapping[str, Any]) -> Array:
        """Return the codes of admitted columns: shape (n, f), int16; with leading axes as the columns have them."""
        found = []
        for column, cuts in zip(self.columns, self.cuts, strict=True):
            values = np.asarray(columns[column.name])
            codes = np.searchsorted(cuts, values)
            found.append(np.where(column.lacks(values), len(cuts) + 1, codes) if column.optional else codes)
        return np.stack(found, axis=-1).astype(np.int16)

    def values(
        self, codes: Array, rng: np.random.Generator, within: Mapping[int, tuple[float, float]] | None = None
    ) -> dict[str, Array]:
        """Return lawful values of codes (n, f), by column name.

        Parameters
        ----------
        within : mapping from a column's place to (low, high), optional
            Numbers are drawn from the part of their bin that lies inside; it has to have one.
        """
        return {
            column.name: self._drawn(j, codes[:, j].astype(np.intp), rng, (within or {}).get(j))
            for j, column in enumerate(self.columns)
        }

    def _drawn(self, j: int, codes: Array, rng: np.random.Generator, within: tuple[float, float] | None) -> Array:
        column, n_codes = self.columns[j], len(self.cuts[j]) + 1
        absent, codes = codes >= n_codes, np.minimum(codes, n_codes - 1)
        if column.kind == "category":
            return np.where(absent, -1, codes).astype(np.int16)
        if column.kind == "binary":
            return np.where(absent, np.nan, codes)
        ends, share = self.ends(j), rng.random(len(codes))
        least, most = within or (-math.inf, math.inf)
        if column.kind == "integer":
            first, last = (side[codes] for side in self.whole_ends(j))
            first, last = np.maximum(first, math.ceil(max(least, ends[0]))), np.minimum(last, math.floor(min(most, ends[-1])))
            values = first + np.floor(share * np.maximum(last - first + 1, 1))
        else:
            low, high = np.maximum(ends[codes], least), np.minimum(ends[codes + 1], most)
            if self.widths[j] == "log":
                values = ends[0] + np.expm1(np.log1p(low - ends[0]) * (1 - share) + np.log1p(high - ends[0]) * share)
            else:
                values = low + share * (high - low)
            values = np.where(is_point(ends[codes], ends[codes + 1]), ends[codes + 1], np.clip(values, low, high))
        values = np.clip(values, cast(float, column.low), cast(float, column.high))
        return np.where(absent, np.nan, values)


def is_point(low: Array, high: Array) -> Array:
    """Whether bins of numbers with these ends, the upper one included, hold a single value."""
    return np.asarray(np.nextafter(low, np.inf) >= high)


@travels
@elementwise
@minds_missing
def coded(columns: Mapping[str, Any], *, codes: Codes) -> dict[str, Array]:
    """Prepare `codes` of shape (n, f), int16."""
    return {"codes": codes.number(columns)}


def _cuts(column: Column, bins: int, widths: Widths) -> tuple[float, ...]:
    cuts = cuts_of_column(column, bins, widths)
    if column.kind != "number":
        return cuts
    low, high = cast(float, column.low), cast(float, column.high)  # declared: see `_refuse_uncodable`
    return tuple(sorted(cut for cut in set(cuts) if low <= cut < high))  # of a constant none


def _listed(name: str, points: Sequence[float]) -> tuple[float, ...]:
    given = [points] if isinstance(points, str) or not np.iterable(points) else list(points)
    if strange := [one for one in given if isinstance(one, bool | np.bool_) or not isinstance(one, int | float | np.number)]:
        raise SettingsInvalid(f"points of {name!r}: {strange[:5]!r} are no numbers.", remedy="Give a list of numbers.")
    if len(given) > MOST_CODES:
        raise SettingsInvalid(f"points of {name!r}: {len(given)} of them.", remedy=f"Give no more than {MOST_CODES}.")
    return tuple(math.inf if abs(one) >= 2**1000 else float(one) for one in given)


def _around(column: Column, cuts: tuple[float, ...], points: Sequence[float]) -> tuple[float, ...]:
    """Cut points with further ones on both sides of each point, so that its bin holds nothing else."""
    if not len(points) or column.kind not in ("number", "integer"):
        return cuts
    low, high = cast(float, column.low), cast(float, column.high)
    whole = column.kind == "integer"
    for point in points:
        if not low <= point <= high or (whole and point != round(point)):
            raise SettingsInvalid(
                f"{column.name!r} has no value {point!r}.", remedy=f"It is {column.kind}, declared from {low:g} to {high:g}."
            )
    if whole:
        sides = {side for point in points for side in (point - 0.5, point + 0.5)} | {math.floor(cut) + 0.5 for cut in cuts}
    else:
        sides = {side for point in points for side in (float(np.nextafter(point, -math.inf)), float(point))} | set(cuts)
    return tuple(sorted(side for side in sides if low <= side < high))


def _refuse_negative_weights(schema: Schema) -> None:
    low = None if schema.weight is None else schema[schema.weight].low
    if low is not None and low < 0:
        raise SchemaInvalid(
            f"weights in {schema.weight!r} may be as low as {low:g}, and shares of records have none below zero.",
            remedy=f"Declare that they are not:  table.declare({schema.weight}=(0, {schema[cast(str, schema.weight)].high}))",
        )


def _refuse_uncodable(columns: tuple[Column, ...]) -> None:
    if not columns:
        raise SchemaInvalid("no column is left to be made up.", remedy="Name columns that hold features or a target.")
    if shaped := [column.name for column in columns if column.shape]:
        raise SchemaInvalid(
            f"the columns {shaped[:5]} hold an array for each record, which has no code.",
            remedy="Leave them out: columns=[...].",
        )
    if long := [column.name for column in columns if len(column.levels) > MOST_CODES]:
        raise SchemaInvalid(f"the columns {long[:5]} have more than {MOST_CODES} levels.", remedy="Group their levels.")
    numbers = [column for column in columns if column.kind in ("number", "integer")]
    if undeclared := [column.name for column in numbers if column.low is None or column.high is None]:
        example = f"table.declare({', '.join(f'{name}=(low, high)' for name in undeclared[:5])})"
        raise SchemaInvalid(
            f"{len(undeclared)} columns declare no range, so their bins have no ends: {', '.join(undeclared[:5])}.",
            remedy=f"Declare what values are possible, not what values occur:  {example}",
        )
