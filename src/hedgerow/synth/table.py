"""Synthetic tables: made-up records that say what made them, in memory and on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.data import Table
from hedgerow.data.synthetic_files import KEY, metadata_path, told_of
from hedgerow.errors import CannotWrite, MissingExtra, SettingsInvalid

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Provenance:
    """What made a synthetic table.

    Attributes
    ----------
    method : str
        In words: "a tree inside each class".
    epsilon, delta : float or None
        Of everything that was asked of the parties up to then; None where there is no finite epsilon.
    unit : str
        Whom epsilon protects: "record", "party", "person".
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
        about = {**asdict(self.provenance), "records": len(self), "synthetic": True, "schema": self.schema.to_json()}
        refuse_unwritable(path)
        try:
            (self._write_csv if path.suffix == ".csv" else self._write_parquet)(path, about)
        except OSError as cause:
            raise CannotWrite(f"{path} cannot be written: {cause}.", remedy="Name another place.", says=False) from cause
        return path

    def written(self) -> pd.DataFrame:
        """Return the records as files have them: whole numbers as such, and a missing value empty."""
        frame = self.to_pandas()
        whole = [column.name for column in self.schema if column.kind in ("integer", "binary")]
        return frame.astype(dict.fromkeys(whole, "Int64"))

    def _write_csv(self, path: Path, about: Mapping[str, Any]) -> None:
        self.written().to_csv(path, index=False)
        metadata_path(path).write_text(json.dumps({KEY: about}, indent=1), encoding="utf-8")

    def _write_parquet(self, path: Path, about: Mapping[str, Any]) -> None:
        import pyarrow
        from pyarrow import parquet

        made = pyarrow.Table.from_pandas(self.written(), preserve_index=False)
        parquet.write_table(made.replace_schema_metadata({**(made.schema.metadata or {}), KEY: json.dumps(about)}), path)


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
