"""The table: admitted columns with their schema and a sentence that says where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.arguments import checked_methods
from hedgerow.core.randomness import Streams
from hedgerow.errors import DataError, PartitionInvalid, SchemaInvalid

from .column import Column
from .declared import Declared, all_declared
from .faults import OF_FRAMES
from .files import admitted, read_files, write_files
from .fitting import fit
from .frames import RawTable
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from .dictionary.dictionary import Dictionary


@checked_methods
@dataclass(frozen=True, repr=False)
class Table:
    """Records of one party, or of a whole study before it is partitioned.

    Parameters
    ----------
    columns : dict of str to array of shape (n, *shape)
        As `Schema.admit` returns them.
    schema : Schema
        Their declaration.
    name : str
        What the table is called in reports.
    source : str
        One sentence: what it is, publisher, licence.
    test : Table or None
        The published hold-out records, where there are any.
    """

    columns: dict[str, np.ndarray]
    schema: Schema
    name: str = "table"
    source: str = ""
    test: Table | None = None

    def __post_init__(self) -> None:
        if tuple(self.columns) != self.schema.names:
            raise SchemaInvalid(
                f"table {self.name!r} holds {list(self.columns)}, its schema declares {list(self.schema.names)}.",
                remedy="Make the columns with schema.admit(...).",
            )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self.columns[self.schema[name].name])

    def __repr__(self) -> str:
        held_out = f", test={len(self.test)} records" if self.test is not None else ""
        return f"Table({self.name!r}, {len(self)} records, {len(self.columns)} columns{held_out})"

    def take(self, indices: Any) -> Table:
        """Return the records at `indices` (positions, slice or mask); `test` stays whole."""
        return replace(self, columns={name: values[indices] for name, values in self.columns.items()})

    def select(self, names: Sequence[str]) -> Table:
        """Return the table with the columns `names` only, in that order."""
        columns = {name: self[name] for name in names}
        test = self.test.select(names) if self.test is not None else None
        return replace(self, columns=columns, schema=self.schema.select(names), test=test)

    def split(self, fraction: float, seed: int) -> tuple[Table, Table]:
        """Return two disjoint tables that together hold every record.

        Parameters
        ----------
        fraction : float
            Share of the records that the first table gets, between 0 and 1; rounded to whole records.
        seed : int
            Decides which records.
        """
        if not 0 <= fraction <= 1:
            raise PartitionInvalid(f"a table was split at fraction={fraction}.", remedy="Choose a fraction from 0 to 1.")
        order = Streams(seed).stream(0, "server", "split").permutation(len(self))
        first, second = np.split(order, [round(fraction * len(self))])
        return self.take(np.sort(first)), self.take(np.sort(second))

    def drawn(self, most: int, seed: int) -> Table:
        """Return at most so many records, in their order, and at most so many test records; `seed` decides which."""
        test = None if self.test is None else self.test.drawn(most, seed + 1)
        kept = (
            self
            if len(self) <= most
            else self.take(np.sort(Streams(seed).stream(0, "server", "drawn").permutation(len(self))[:most]))
        )
        return replace(kept, test=test)

    def declare(self, clip: bool = False, **ranges: tuple[float | None, float | None]) -> Table:
        """Return the table with declared ranges, such as `table.declare(age=(18, 90))`.

        Parameters
        ----------
        clip : bool
            Whether values outside are clipped to the new ranges; otherwise they are refused.
        **ranges : (low, high)
            By column name; `None` leaves a side open.

        Raises
        ------
        MissingColumn (HR-403), OutOfRange (HR-405)
            No such column; a record lies outside and `clip` is false.
        """
        schema = self.schema
        for name, (low, high) in ranges.items():
            schema = schema.replace(replace(schema[name], low=low, high=high, clip=clip))
        columns = self.columns | admitted(schema.select(list(ranges)), self.columns)
        test = self.test.declare(clip, **ranges) if self.test is not None else None
        return replace(self, columns=columns, schema=schema, test=test)

    def with_roles(self, **roles: Any) -> Table:
        """Return the table with other roles (see `Schema.with_roles`)."""
        schema = self.schema.with_roles(**roles)
        test = replace(self.test, schema=schema) if self.test is not None else None
        return replace(self, schema=schema, test=test)

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame; categories come back as `pandas.Categorical`, array-shaped columns are left out."""
        import pandas as pd

        scalars = [column for column in self.schema if not column.shape]
        return pd.DataFrame(
            {
                column.name: pd.Categorical.from_codes(self.columns[column.name], list(column.levels))
                if column.kind == "category"
                else np.asarray(self.columns[column.name])
                for column in scalars
            }
        )

    def to_files(self, folder: str | Path, *, single: bool = False) -> None:
        """Write the columns to files of a new folder, from which `Table.from_files` reads them as they are asked for.

        Parameters
        ----------
        folder : str or Path
            Its own: new, or empty.
        single : bool
            Whether numbers are kept in 32 bits, rounded, which halves the files. Whole numbers of a declared range take as few
            bytes as hold them in any case.

        Raises
        ------
        CannotWrite (HR-104), OutOfRange (HR-405)
            There is something in the folder, or no place on the disk; a rounded number lies outside its declared range.
        """
        write_files(folder, [self.columns], self.schema, name=self.name, source=self.source, single=single)

    @classmethod
    def from_files(cls, folder: str | Path, *, check: bool = True) -> Table:
        """Return the table in a folder, whose columns stay in their files until records are read.

        Sums of records (moments, correlations, regressions and the like) read them in blocks: a table may be larger than the
        memory. Split it by `in_order(parties=...)`, which copies nothing. What reads all records of a party at once, such as
        training a module, holds that party's records in memory.

        Parameters
        ----------
        folder : str or Path
            As `to_files` or `hedgerow.data.convert` wrote it.
        check : bool
            Whether every value is held against the declaration now, in one pass over the files.

        Raises
        ------
        MissingData, NotFinite, OutOfRange, SchemaInvalid (HR-402, 404, 405, 409)
            No such folder, a file that is damaged, or a value that is not as declared.
        """
        columns, schema, about = read_files(folder, check=check)
        return cls(columns, schema, name=about["name"], source=about["source"])

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        target: str | None = None,
        schema: Schema | None = None,
        declared: Mapping[str, Declared | Column | Mapping[str, Any]] | None = None,
        names: Sequence[str] | None = None,
        na_values: Iterable[str | float] = (),
        name: str = "frame",
        source: str = "",
        missing: Literal["refuse", "drop"] = "refuse",
        dictionary: Dictionary | str | Path | None = None,
    ) -> Table:
        """Return the table of a data frame of any library; a `Table` as it is, but for its target.

        Parameters
        ----------
        frame : data frame, or (X, y)
            One record per row: of pandas (the index is left out), polars (also lazy), pyarrow, duckdb, Hugging Face
            `datasets`, or another library that narwhals reads; or arrays X of shape (n, k) and y of shape (n,). All give the
            same table (see `hedgerow.data.frames`).
        target : str, optional
            Column that a model predicts; of (X, y) the name of y, by default its own or "y".
        schema : Schema, optional
            All columns to keep, declared; inferred without ranges otherwise (see `infer`).
        names : sequence of str, optional
            Names of the columns of X; by default "x0", "x1", ...
        declared, na_values
            As of `read`.
        missing : {"refuse", "drop"}
            As `hedgerow.data.read`.
        dictionary : Dictionary, str or Path, optional
            What all columns are, in place of `schema`, `declared`, `na_values` and `missing`.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid, ColumnUndeclared (HR-403, 404, 405, 409, 410)
            The frame does not fit what is declared; a column's kind would have to be guessed. Tells all columns.
            Or it is no table.

        Examples
        --------
        >>> import pandas
        >>> frame = pandas.DataFrame({"age": [61.0, 58.5, 70.0], "died": [0, 1, 0]})
        >>> hr.data.Table.from_frame(frame, target="died").schema["died"].kind
        'binary'
        >>> X, y = frame[["age"]].to_numpy(), frame["died"].to_numpy()
        >>> hr.data.Table.from_frame((X, y), names=["age"], target="died").schema.features
        ('age',)
        """
        if isinstance(frame, Table):
            return frame.with_roles(target=target)
        if dictionary is not None:
            from .dictionary.admitting import table_of

            if schema is not None or declared or [*na_values]:
                raise SchemaInvalid("a dictionary and other declarations are given.", remedy="Give the dictionary alone.")
            raw = RawTable.of(frame, names=names, target=target)
            return table_of(raw.columns, dictionary, name=name, source=source).with_roles(target=raw.target or target)
        found = RawTable.of(frame, needed=None if schema is None else schema.names, names=names, target=target)
        return cls.from_columns(
            found,
            target=found.target or target,
            schema=schema,
            declared=declared,
            na_values=na_values,
            name=name,
            source=source,
            missing=missing,
        )

    from_pandas = from_frame

    @classmethod
    def like(cls, data: Any, schema: Schema | None) -> Table:
        """Return data as a table of a schema: a `Table` as it is, and a frame of any library held against the schema.

        Raises
        ------
        SchemaInvalid (HR-409)
            A frame and no schema: codes of levels would be guessed.
        """
        if isinstance(data, Table):
            return data
        if schema is None:
            raise SchemaInvalid(
                "a data frame does not say which codes its levels have in the model.",
                remedy="Give schema=federation.schema with it, or a Table: Table.from_frame(frame, schema=federation.schema).",
            )
        return cls.from_frame(data, schema=schema, target=schema.target)

    @classmethod
    def from_columns(
        cls,
        frame: RawTable,
        *,
        target: str | None = None,
        schema: Schema | None = None,
        declared: Mapping[str, Declared | Column | Mapping[str, Any]] | None = None,
        na_values: Iterable[str | float] = (),
        name: str = "frame",
        source: str = "",
        missing: Literal["refuse", "drop"] = "refuse",
    ) -> Table:
        """Return the table of columns that were taken out of a frame; parameters as of `from_frame`."""
        given = all_declared(declared if schema is None else {column.name: column for column in schema})
        try:
            found, fitting, note = fit(frame.columns, given, where=name, na_values=na_values, missing=missing)
            schema = (fitting if schema is None else schema).with_roles(target=target)
            if missing == "drop":
                schema = schema.allowing(missing=True)
            return cls(schema.admit(found), schema, name=name, source=f"{source}{note}".strip())
        except DataError as error:
            for of_files, of_frames in OF_FRAMES.items():
                error.remedy = error.remedy.replace(of_files, of_frames)
            raise
