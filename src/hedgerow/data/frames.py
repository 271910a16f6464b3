"""Tables of other libraries as columns: whatever holds them, the same columns and so the same numbers.

    pandas                       as it is
    polars, pyarrow, duckdb ...  column by column, by narwhals; of lazy ones no more is read than is asked for
    Hugging Face datasets        by their Arrow table; a `ClassLabel` is a category of its names
    (X, y), and a matrix alone   columns x0, x1, ... and y, unless they have names

A column becomes what pandas holds of its type: integers and truth values that lack some are nullable, words are objects,
categories keep the levels that their type declares, dates stay dates (and are refused, as those of pandas are), decimal numbers
become numbers, and lists of equal lengths an array (n, k). No library is imported here but narwhals and pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.errors import SchemaInvalid

if TYPE_CHECKING:
    import pandas as pd

ACCEPTED = (
    "pandas, polars (also lazy), pyarrow, duckdb, whatever else narwhals reads, a Hugging Face datasets.Dataset, "
    "(X, y) of arrays, or a Table"
)
"""What is a table, in words."""


@dataclass(frozen=True)
class RawTable:
    """The columns of some table.

    Attributes
    ----------
    columns : dict from name to pandas.Series, or array of shape (n, ...)
    n : int
        Records.
    target : str or None
        Name of y, of (X, y).
    """

    columns: dict[str, Any]
    n: int
    target: str | None = None

    @classmethod
    def of(
        cls, data: Any, *, needed: Collection[str] | None = None, names: Sequence[str] | None = None, target: str | None = None
    ) -> RawTable:
        """Return the columns of a table.

        Parameters
        ----------
        data : table of any kind
            See `ACCEPTED`.
        needed : collection of str, optional
            The columns to read, all by default; those that are not there are left out.
        names : sequence of str, optional
            Names of the columns of a matrix.
        target : str, optional
            Name of y.

        Raises
        ------
        SchemaInvalid (HR-409)
            It is no table; a column holds neither numbers nor words nor arrays of one shape; a name is there twice.
        """
        import pandas as pd

        if isinstance(data, tuple | np.ndarray):
            return _of_arrays(data, names, target, needed)
        if names is not None:
            raise _no_table(data, "its columns have names already", "Leave out names, or rename its columns.")
        if isinstance(data, pd.DataFrame):
            kept = [(str(name), series) for name, series in data.items() if needed is None or str(name) in needed]
            return cls({name: _arrays(name, series) for name, series in _once(kept)}, len(data))
        found = _of_datasets(data)
        return found.only(needed) if found is not None else _by_narwhals(data, needed)

    def only(self, needed: Collection[str] | None) -> RawTable:
        """The same with the columns that are needed."""
        kept = {name: values for name, values in self.columns.items() if needed is None or name in needed}
        return RawTable(kept, self.n, self.target)


def is_several(data: Any) -> bool:
    """Whether data are one table for each party: a list of them, or a mapping from party to one of them."""
    return isinstance(data, list) or (isinstance(data, Mapping) and not _from(data, "datasets"))


def _from(data: Any, library: str) -> bool:
    """Whether an object's class is of a library, which is then imported already."""
    return type(data).__module__.partition(".")[0] == library and library in sys.modules


def _no_table(data: Any, why: str, remedy: str) -> SchemaInvalid:
    return SchemaInvalid(f"data are a {type(data).__module__}.{type(data).__qualname__}, and {why}.", remedy=remedy)


def _once(columns: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    names = [name for name, _ in columns]
    if twice := sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []:
        raise SchemaInvalid(f"the table has the columns {twice} twice.", remedy="Give each column its own name.")
    return columns


# ---- arrays ---------------------------------------------------------------------------------------------------------
def _of_arrays(data: Any, names: Sequence[str] | None, target: str | None, needed: Collection[str] | None) -> RawTable:
    """The columns of (X, y), or of X."""
    if isinstance(data, tuple) and len(data) != 2:
        raise _no_table(
            data,
            f"hold {len(data)} things",
            "A tuple is (X, y). One table for each party is a list, or a mapping from party to table.",
        )
    X, y = data if isinstance(data, tuple) else (data, None)
    is_matrix = isinstance(X, np.ndarray) or (isinstance(X, Sequence) and not isinstance(X, str | tuple))
    found = _of_matrix(np.asarray(X), names, needed) if is_matrix else RawTable.of(X, needed=needed, names=names)
    if y is None:
        return found
    name = str(target or getattr(y, "name", None) or "y")
    if name in found.columns:
        raise SchemaInvalid(f"y is called {name!r}, as a column of X is.", remedy="Give each column its own name.")
    values = y if hasattr(y, "iloc") else np.asarray(y)
    values = values.iloc[:, 0] if np.ndim(values) == 2 and hasattr(values, "iloc") and values.shape[1] == 1 else values
    values = values[:, 0] if np.ndim(values) == 2 and not hasattr(values, "iloc") and values.shape[1] == 1 else values
    if np.ndim(values) != 1 or len(values) != found.n:
        raise SchemaInvalid(
            f"y has shape {np.shape(values)}, and X holds {found.n} records.",
            remedy="Give one target for each record: y of shape (n,). Further targets may be columns of X.",
        )
    kept = {name: _plain(values)} if needed is None or name in needed else {}
    return RawTable(found.columns | kept, found.n, name)


def _of_matrix(X: np.ndarray, names: Sequence[str] | None, needed: Collection[str] | None) -> RawTable:
    """Columns of a matrix (n, k); an array (n, ...) of more axes is one column."""
    if X.dtype.kind not in "biufOU" or X.ndim < 2:
        raise SchemaInvalid(
            f"X holds {X.dtype} in shape {X.shape}.", remedy="Give numbers or words, one row for each record: shape (n, k)."
        )
    if X.ndim > 2:
        only = "x" if names is None else next(iter(names), "x")
        return RawTable({str(only): X}, len(X)).only(needed)
    if names is not None and len(names) != X.shape[1]:
        raise SchemaInvalid(f"{len(names)} names for {X.shape[1]} columns of X.", remedy="Give one name for each column.")
    called = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]
    columns = [(name, _plain(X[:, j])) for j, name in enumerate(called) if needed is None or name in needed]
    return RawTable(dict(_once(columns)), len(X))


def _plain(values: Any) -> pd.Series:
    """One-dimensional values as a series; words of numpy as objects."""
    import pandas as pd

    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    array = np.asarray(values)
    return pd.Series(array.astype(object) if array.dtype.kind == "U" else array)


def _arrays(name: str, series: pd.Series) -> Any:
    """A series as it is; of lists or arrays of one shape the array that holds them all."""
    if series.dtype != object or not len(series) or not isinstance(series.iloc[0], list | tuple | np.ndarray):
        return series
    return _stacked(name, series.tolist())


def _stacked(name: str, values: Sequence[Any]) -> np.ndarray:
    shapes = {np.shape(value) if isinstance(value, list | tuple | np.ndarray) else None for value in values}
    if len(shapes) > 1:
        raise SchemaInvalid(
            f"column {name!r} holds lists of {len(shapes)} different lengths, or lacks some.",
            remedy="Pad them to one length, and give the true one or a mask as a column beside it.",
        )
    found = np.array(values)
    if found.dtype.kind not in "biuf":
        raise SchemaInvalid(f"column {name!r} holds lists that are not numbers.", remedy="Leave it out, or make numbers of it.")
    return found


# ---- Hugging Face datasets ------------------------------------------------------------------------------------------
def _of_datasets(data: Any) -> RawTable | None:
    """The columns of a data set of Hugging Face, with the names of its labels; None of anything else."""
    import pandas as pd

    if not _from(data, "datasets"):
        return None
    if isinstance(data, Mapping):
        raise _no_table(data, f"hold the splits {', '.join(map(str, data))}", "Choose a split, such as data['train'].")
    if not hasattr(data, "with_format") or not hasattr(data, "__len__"):
        raise _no_table(data, "are read one record after the other", "Load it without streaming=True.")
    found = _by_narwhals(data.with_format("arrow")[:], None)
    for name, feature in data.features.items():
        if isinstance(levels := getattr(feature, "names", None), list):
            codes = found.columns[name].fillna(-1).to_numpy(np.int64)
            found.columns[name] = pd.Series(pd.Categorical.from_codes(codes, levels))
    return found


# ---- what narwhals reads --------------------------------------------------------------------------------------------
def _by_narwhals(data: Any, needed: Collection[str] | None) -> RawTable:
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(data)
    except TypeError:
        remedy = f"Give {ACCEPTED}; or a list or mapping of these by party."
        if isinstance(data, str | Path):
            remedy = (
                f"Read the file: hr.data.read({str(data)!r}, target=..., declared=...). A catalogued set: hr.data.load(name)."
            )
        raise _no_table(data, "these are no table", remedy) from None
    lazy = isinstance(frame, nw.LazyFrame)
    held = frame.collect_schema().names() if lazy else frame.columns
    _once([(name, None) for name in held])
    kept = [name for name in held if needed is None or name in needed]
    if not kept:
        n = int((frame.select(nw.len()).collect() if lazy else frame.select(nw.len())).item())
        return RawTable({}, n)
    frame = frame.select(kept) if len(kept) < len(held) else frame
    read = frame.collect() if lazy else frame
    return RawTable({series.name: _values(series) for series in read.iter_columns()}, len(read))


def _values(series: Any) -> Any:
    """A column of narwhals as pandas holds one of its type."""
    import narwhals.stable.v2 as nw
    import pandas as pd

    kind, lost = series.dtype, series.null_count()
    if kind == nw.Boolean or kind.is_integer():
        if not lost:
            return pd.Series(series.to_numpy())
        mask = series.is_null().to_numpy()
        known = series.fill_null(False if kind == nw.Boolean else 0).to_numpy()
        made = pd.arrays.BooleanArray if kind == nw.Boolean else pd.arrays.IntegerArray
        return pd.Series(made(np.array(known), np.array(mask)))
    if kind.is_decimal() or kind.is_float():
        return pd.Series((series.cast(nw.Float64) if kind.is_decimal() else series).to_numpy())
    if kind in (nw.Categorical, nw.Enum):
        return pd.Series(_category(series, kind))
    if kind in (nw.Date, nw.Datetime, nw.Duration):
        return pd.Series(series.to_numpy())
    if kind in (nw.List, nw.Array):
        return _stacked(series.name, list(series.to_numpy()) if not lost else series.to_list())
    if kind in (nw.String, nw.Object, nw.Time) or lost == len(series):
        return pd.Series(series.to_list(), dtype=object)
    raise SchemaInvalid(
        f"column {series.name!r} holds {kind}, which is neither numbers nor words.",
        remedy="Leave it out, or make columns of numbers, words or lists of one length of it.",
    )


def _category(series: Any, kind: Any) -> Any:
    """Words of a category, and the levels that its type declares; those that occur where it declares none."""
    import pandas as pd

    native = series.to_native()
    if hasattr(native, "combine_chunks"):  # Arrow's dictionaries declare levels
        return native.unify_dictionaries().combine_chunks().to_pandas()
    words = series.to_list()
    declared = getattr(kind, "categories", None)
    levels = list(dict.fromkeys(word for word in words if word is not None)) if declared is None else list(declared)
    return pd.Categorical(words, categories=levels)
