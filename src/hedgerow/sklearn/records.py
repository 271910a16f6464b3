"""Records as scikit-learn gives them, `(X, y)` or a frame, as tables of Hedgerow."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.closed import Closed
from hedgerow.data import Column, Schema, Table
from hedgerow.data.frames import RawTable
from hedgerow.errors import MissingColumn, SchemaInvalid, SettingsInvalid

if TYPE_CHECKING:
    import pandas


def names_for(given: list[str], target: Any, n_features: int) -> tuple[list[str], str]:
    """Name features and target: as they are named where a formula can say it, else x0, x1, ... and y."""
    usable = len(set(given)) == n_features and all(name and "`" not in name for name in given)
    names = given if usable else [f"x{i}" for i in range(n_features)]
    target = target if isinstance(target, str) and target and "`" not in target else "y"
    while target in names:
        target += "_"
    return names, target


def table_of(X: Array, names: list[str], target: Column, y: Array, ranges: Array | None = None) -> Table:
    """Return the table of numbers `X` (n, d) and a target.

    Parameters
    ----------
    ranges : array of shape (2, d), optional
        Declared ends of each feature; values beyond them count as the ends.
    """
    ends = [(None, None)] * len(names) if ranges is None else [(float(low), float(high)) for low, high in ranges.T]
    features = [
        Column(name, "number", low=low, high=high, clip=low is not None) for name, (low, high) in zip(names, ends, strict=True)
    ]
    schema = Schema((*features, target))
    return Table(schema.admit({name: X[:, i] for i, name in enumerate(names)} | {target.name: y}), schema, name="(X, y)")


def held_table(X: Any, y: Any, target: str | None) -> Table:
    """Return the table of a frame whose columns a formula names, with `y` beside them where it is given."""
    if isinstance(X, Table):
        return X
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        raise SettingsInvalid(
            f"a formula names columns, and X is a {type(X).__name__}.", remedy="Give a data frame, or leave the formula out."
        )
    frame = as_frame(X)
    if y is not None:
        named = getattr(y, "name", None)
        name = named if isinstance(named, str) else target
        if name is None:
            raise SettingsInvalid("y has no name.", remedy="Give a Series with the target's name, or the target among X.")
        frame = frame.assign(**{name: np.asarray(y)})
    return Table.from_pandas(frame)


def as_frame(X: Any, needed: Collection[str] | None = None) -> pandas.DataFrame:
    """Return a data frame of pandas of any table, with the columns that are needed; see `hedgerow.data.frames`."""
    import pandas

    if isinstance(X, pandas.DataFrame):
        return X
    if isinstance(X, Table):
        return X.to_pandas()
    return pandas.DataFrame(RawTable.of(X, needed=needed).columns)


def frame_for(X: Any, names: tuple[str, ...]) -> pandas.DataFrame:
    """Return new records as a frame with these columns: a frame by name, an array by position.

    Raises
    ------
    RecordsElsewhere (HR-412), SchemaInvalid (HR-409), MissingColumn (HR-403)
        A federation; an array of another number of columns; a frame that lacks one.
    """
    import pandas

    if isinstance(X, np.ndarray | list | Closed):
        array = np.asarray(X)
        if array.ndim != 2 or array.shape[1] != len(names):
            raise SchemaInvalid(
                f"records of shape {array.shape} were given, and the model reads {len(names)} columns.",
                remedy=f"Give the columns {', '.join(names[:10])}, in this order, or a frame.",
            )
        X = pandas.DataFrame(array, columns=list(names)).infer_objects()
    frame = as_frame(X, names)
    if missing := [name for name in names if name not in frame]:
        raise MissingColumn(
            f"the records lack {', '.join(map(repr, missing[:5]))}.", remedy=f"The model reads {', '.join(names[:10])}."
        )
    return frame
