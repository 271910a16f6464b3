"""Inputs of known length: rows of features that cannot be longer than a bound, whatever the records hold.

    z = P (features - centre) / spread
    x = z cut to [-1, 1] in each coordinate         "box":  |x|_1 <= k, |x|_2 <= sqrt(k)
    x = z / radius, shortened to length 1           "ball": |x|_1 <= sqrt(k), |x|_2 <= 1
    y = (target - centre) / spread cut to [-1, 1], or -1 and 1 for a class

Centres, spreads and the projection P are constants in public: from declared ranges (`Inputs.scaled`), or from records
that belong to no party (`Inputs.projected`), as in the thesis, which takes principal components from entries that it
then leaves out. The rows are made at the party, record by record, so the bound holds by construction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import elementwise, travels
from hedgerow.core.whole import by_column
from hedgerow.errors import SettingsInvalid

if TYPE_CHECKING:
    from hedgerow.data import Schema, Table

X, Y, BUCKET = "queried x", "queried y", "lot"
"""Names of the prepared columns."""


@dataclass(frozen=True)
class Inputs:
    """How features and target of a record become `x` of shape (d,) and `y`.

    Parameters
    ----------
    features : tuple of str
        Columns; categories count by their codes.
    target : str
    centre, spread : tuple of float
        One for each feature.
    projection : tuple of tuple of float
        k rows of one number for each feature; none leaves the features as they are.
    radius : float, optional
        Rows are divided by it and shortened to length 1; without it each coordinate is cut to [-1, 1].
    constant : float
        Append a coordinate of this value, for an intercept; none where it is 0.
    target_centre, target_spread : float
    classes : bool
        Whether the target is 0 or 1, and becomes -1 or 1.
    """

    features: tuple[str, ...]
    target: str
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    projection: tuple[tuple[float, ...], ...] = ()
    radius: float | None = None
    constant: float = 0.0
    target_centre: float = 0.0
    target_spread: float = 1.0
    classes: bool = False

    def __post_init__(self) -> None:
        widths = {len(self.features), len(self.centre), len(self.spread), *(len(row) for row in self.projection)}
        if len(widths) != 1 or 0 in widths:
            raise SettingsInvalid(
                f"{len(self.features)} features have {len(self.centre)} centres, {len(self.spread)} spreads and rows of "
                f"{sorted({len(row) for row in self.projection})} numbers.",
                remedy="Give one of each for every feature.",
            )
        sizes = [*self.spread, self.target_spread, *([] if self.radius is None else [self.radius])]
        if not (all(0 < size < math.inf for size in sizes) and math.isfinite(self.constant)):
            raise SettingsInvalid(
                f"spreads and radius {sizes} divide, constant {self.constant!r}.", remedy="Give finite numbers above zero."
            )

    @classmethod
    def scaled(
        cls, schema: Schema, *, features: Sequence[str] | None = None, radius: float | None = None, constant: float = 0.0
    ) -> Inputs:
        """Take each declared range to [-1, 1]; no record is looked at.

        Raises
        ------
        SettingsInvalid (HR-511)
            A feature or the target declares no range; no target.
        """
        names = tuple(features or schema.features)
        ends = [_range(schema, name) for name in names]
        target = _target(schema)
        classes = schema[target].kind == "binary"
        low, high = (-1.0, 1.0) if classes else _range(schema, target)
        return cls(
            names,
            target,
            tuple((low + high) / 2 for low, high in ends),
            tuple((high - low) / 2 for low, high in ends),
            radius=radius,
            constant=constant,
            target_centre=(low + high) / 2,
            target_spread=(high - low) / 2,
            classes=classes,
        )

    @classmethod
    def projected(
        cls,
        public: Table,
        components: int | None,
        *,
        features: Sequence[str] | None = None,
        radius: float | None = None,
        constant: float = 0.0,
        digits: int | None = None,
    ) -> Inputs:
        """Take the leading principal components of public records, or each feature, to variance 1.

        Parameters
        ----------
        public : Table
            Records that belong to no party.
        components : int or None
            None leaves features as they are, but for centre and spread.
        radius : float, optional
            By default 1.2 times the length of a row whose components are all one deviation.
        digits : int, optional
            Round the constants to so many significant digits, for a study file.
        """
        schema, names = public.schema, tuple(features or public.schema.features)
        target = _target(schema)
        rows = np.column_stack([np.asarray(public[name], float) for name in names])
        centre, spread = rows.mean(0), rows.std(0)
        if not (spread > 0).all():
            raise SettingsInvalid(
                f"{', '.join(name for name, s in zip(names, spread, strict=True) if s == 0)}: constant in the public records.",
                remedy="Leave such features out.",
            )
        projection = np.zeros((0, len(names))) if components is None else _components((rows - centre) / spread, components)
        classes, y = schema[target].kind == "binary", np.asarray(public[target], float)
        told = (lambda v: float(f"{v:.{digits}g}")) if digits else float
        return cls(
            names,
            target,
            tuple(map(told, centre)),
            tuple(map(told, spread)),
            tuple(tuple(map(told, row)) for row in projection),
            radius=told(1.2 * math.sqrt(len(projection) or len(names))) if radius is None else radius,
            constant=constant,
            target_centre=0.0 if classes else told(y.mean()),
            target_spread=1.0 if classes else told(3 * y.std()),
            classes=classes,
        )

    @property
    def width(self) -> int:
        """Coordinates without the constant."""
        return len(self.projection) or len(self.features)

    @property
    def size(self) -> int:
        """Coordinates of a row."""
        return self.width + bool(self.constant)

    def length(self, norm: int) -> float:
        """Largest l1- or l2-length of a row."""
        own = math.sqrt(self.width) if (norm == 1) != (self.radius is None) else (1.0 if norm == 2 else float(self.width))
        return own + abs(self.constant) if norm == 1 else math.hypot(own, self.constant)

    def rows(self, columns: Mapping[str, Array]) -> Array:
        """Return x of shape (n, size)."""
        z = np.column_stack([np.asarray(columns[name], float) for name in self.features])
        with np.errstate(over="ignore", invalid="ignore"):
            z = (z - self.centre) / self.spread
            if self.projection:
                z = np.stack([by_column(z.T, np.array(one)) for one in self.projection], axis=-1)
        z = np.where(np.isfinite(z).all(1, keepdims=True), z, 0.0)  # one record's overflow is that record's alone
        if self.radius is None:
            z = np.clip(z, -1.0, 1.0)
        else:
            with np.errstate(over="ignore"):  # an infinite length leaves zeros
                z = z / self.radius
                z = z / np.maximum(np.sqrt(by_column(z.T, z.T)), 1.0)[:, None]
        return np.column_stack([z, np.full(len(z), self.constant)]) if self.constant else z

    def targets(self, columns: Mapping[str, Array]) -> Array:
        """Return y of shape (n,), in [-1, 1]."""
        y = np.asarray(columns[self.target], float)
        with np.errstate(over="ignore", invalid="ignore"):
            y = 2.0 * y - 1.0 if self.classes else (y - self.target_centre) / self.target_spread
        return np.clip(np.nan_to_num(y, nan=0.0), -1.0, 1.0)


@travels
@elementwise
def inputs(columns: Mapping[str, Array], *, spec: Inputs) -> dict[str, Array]:
    """Prepare the rows and targets that gradient queries read, and each record's bucket; nothing leaves the party."""
    values = [np.asarray(columns[name], float) for name in (*spec.features, spec.target)]
    return {X: spec.rows(columns), Y: spec.targets(columns), BUCKET: buckets(values)}


def buckets(values: Sequence[Array]) -> Array:
    """A number in [0, 1) for each record, from its own values as they are kept, each of shape (n,): shape (n,).

    What is computed from them, such as a projection, may have other last bits beside other records, and a bucket turns on the
    last bit.

    Records whose bucket is below a share make up about that share of all. To take the first so many instead would not do: where
    a record is removed, the next one moves up, and a sum changes by two records.
    """
    bucket = np.zeros(len(values[0]), np.uint64)
    for column in values:
        bucket = (bucket ^ np.ascontiguousarray(column, np.float64).view(np.uint64)) + _MIX[0]
        for shift, factor in zip((30, 27), _MIX[1:], strict=True):
            bucket = (bucket ^ (bucket >> np.uint64(shift))) * factor
        bucket ^= bucket >> np.uint64(31)
    return (bucket >> np.uint64(11)) * 2.0**-53


_MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
"""Constants of SplitMix64 (Steele, Lea and Flood 2014)."""


def _components(rows: Array, n: int) -> Array:
    """Directions of most variance, scaled to variance 1: shape (n, features); the largest number of each is positive."""
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    leading = np.argsort(values)[::-1][:n]
    found: Array = (vectors[:, leading] / np.sqrt(values[leading])).T
    return found * np.sign(found[np.arange(len(found)), np.abs(found).argmax(1)])[:, None]


def _range(schema: Schema, name: str) -> tuple[float, float]:
    column = schema[name]
    if column.kind == "binary":
        return 0.0, 1.0
    if column.kind == "category":
        return 0.0, float(max(len(column.levels) - 1, 1))
    if column.low is None or column.high is None or not column.low < column.high:
        raise SettingsInvalid(
            f"column {name!r} declares no range, so a record could be any size.",
            remedy="Declare it: [data] ranges = { age = [18, 90] } in a study, table.declare(age=(18, 90)) in Python.",
        )
    return column.low, column.high


def _target(schema: Schema) -> str:
    if schema.target is None:
        raise SettingsInvalid("the table has no target.", remedy="Name it: [data] target = ..., or with_roles(target=...).")
    return schema.target
