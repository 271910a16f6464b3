"""Synthetic tables: made-up records that say what made them, in memory and on disk.

What they promise goes with them: into tables of some of their records or columns, into files, and out of files again. A data
frame (`to_pandas`) is records alone, and has lost it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.errors import CannotWrite, MissingExtra, SchemaInvalid, SettingsInvalid

from .column import Column
from .faults import level_of
from .synthetic_files import KEY, metadata_path, told_of
from .table import Table
from .text_files import BLANKS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Provenance:
    """What made a synthetic table.

    Attributes
    ----------
    method : str
        Name of the function or program: "tan".
    epsilon, delta : float or None
        Of everything that was asked of the parties up to then; None where there is no finite epsilon.
    unit : str
        Whom epsilon protects: "record", "party", "person"; "mixed" where questions were bounded for several, and none has one.
    privacy : str
        The same in one sentence.
    study, digest : str
        Where a study file made it.
    seed : int or None
        Of the draw; None where the operating system drew.
    where : mapping
        Conditions that its records satisfy.
    """

    method: str = ""
    epsilon: float | None = None
    delta: float | None = None
    unit: str = "record"
    privacy: str = ""
    study: str = ""
    digest: str = ""
    seed: int | None = None
    where: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> Provenance:
        """What a file says of its records; keys that are not known are left out.

        Raises
        ------
        SchemaInvalid (HR-409)
            Epsilon or delta is no number that is above zero.
        """
        for name in ("epsilon", "delta"):
            value = about.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
                raise SchemaInvalid(
                    f"made-up records say {name}={value!r}, which is no promise.",
                    remedy="Draw the records again, or give null.",
                )
        return cls(**{item.name: about[item.name] for item in fields(cls) if item.name in about})


@dataclass(frozen=True, repr=False)
class SyntheticTable(Table):
    """Made-up records.

    Attributes
    ----------
    provenance : Provenance
        What made them. It goes into every file that they are written to.
    """

    provenance: Provenance = field(default_factory=Provenance)

    def write(self, path: str | Path) -> Path:
        """Write the records to a `.csv` or `.parquet` file, with their provenance and schema in its metadata.

        Of a `.csv` file the metadata are in a file beside it, `NAME.csv-metadata.json`.

        Raises
        ------
        SettingsInvalid (HR-511), MissingExtra (HR-105), CannotWrite (HR-104)
            The name ends otherwise; Parquet needs pyarrow; there is a file already, or no place on the disk.
        """
        path = Path(path)
        told = {**asdict(self.provenance), "records": len(self), "synthetic": True, "schema": self.schema.to_json()}
        about = json.dumps({KEY: told}, indent=1, default=_plain)
        refuse_unwritable(path)
        written = [path, metadata_path(path)] if path.suffix == ".csv" else [path]
        try:
            (self._write_csv if path.suffix == ".csv" else self._write_parquet)(path, about)
        except BaseException as cause:  # records and what is said of them, or nothing
            for one in written:
                one.unlink(missing_ok=True)
            if isinstance(cause, OSError):
                raise CannotWrite(f"{path} cannot be written: {cause}.", remedy="Name another place.", says=False) from cause
            raise
        return path

    def written(self) -> pd.DataFrame:
        """Return the records as files have them: whole numbers as such, and a missing value empty."""
        frame = self.to_pandas()
        whole = [column.name for column in self.schema if column.kind in ("integer", "binary")]
        return frame.astype(dict.fromkeys(whole, "Int64"))

    def _write_csv(self, path: Path, about: str) -> None:
        frame = self.written()
        for column in self.schema:
            if column.optional and "" in column.levels:  # an empty place is that level
                values = frame[column.name].astype(object)
                frame[column.name] = values.where(values.notna(), _absent(column))
        metadata_path(path).write_text(about, encoding="utf-8")
        frame.to_csv(path, index=False)

    def _write_parquet(self, path: Path, about: str) -> None:
        import pyarrow
        from pyarrow import parquet

        made = pyarrow.Table.from_pandas(self.written(), preserve_index=False)
        told = json.dumps(json.loads(about)[KEY])
        parquet.write_table(made.replace_schema_metadata({**(made.schema.metadata or {}), KEY: told}), path)


def as_told(table: Table, path: Path) -> Table:
    """The records of a file with what the file promises of them; the table as it is where it promises nothing."""
    about = told_of(path)
    if about is None or not about.get("synthetic"):
        return table
    promised = Provenance.from_json(about)
    source = f"{table.source} Made-up records. {promised.privacy}".strip()
    return SyntheticTable(table.columns, table.schema, name=table.name, source=source, provenance=promised)


def _plain(value: Any) -> Any:
    """A number of NumPy, or an array, as JSON has it; a level of any other kind in words."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def _absent(column: Column) -> str:
    """How a text file spells that a value is missing, of a category with the level ""."""
    for word in BLANKS[1:]:
        if level_of(word, column.levels) is None:
            return word
    raise SettingsInvalid(
        f"{column.name!r} has levels of every name that a .csv file has for a missing value.", remedy="Write a .parquet file."
    )


def refuse_unwritable(path: Path) -> None:
    """Refuse a name under which no records can be written; errors are those of `SyntheticTable.write`."""
    if path.suffix not in (".csv", ".parquet"):
        raise SettingsInvalid(f"{path.name} is neither .csv nor .parquet.", remedy="Name the file so, such as people.csv.")
    if path.exists():
        raise CannotWrite(f"{path} exists.", remedy="Name a new file.", says=False)
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise MissingExtra(f"{path.name} needs pyarrow.", remedy="pip install 'hedgerow[data]'")


def provenance_of(path: str | Path) -> dict[str, Any]:
    """Return what a synthetic table's file says of itself: the fields of `Provenance`, and `records`, `schema`.

    Raises
    ------
    SettingsInvalid (HR-511)
        The file says nothing: it is no synthetic table of Hedgerow's.
    """
    path = Path(path)
    found = told_of(path)
    if found is None:
        raise SettingsInvalid(f"{path.name} does not say what made it.", remedy=f"Keep {metadata_path(path).name} beside it.")
    return found
