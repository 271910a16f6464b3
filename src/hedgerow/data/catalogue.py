"""The catalogue: real, public data sets by name, each with a schema that was declared before the data were read.

    load("breast_cancer")                          comes with Hedgerow, as does heart_failure
    load("digits")                                 comes with a Python package, by the extra `data`
    load("mnist", data_dir="~/data")               files in a folder, or in the folder that HEDGEROW_DATA names
    load("mnist")                                  else downloaded once, with a checksum
    load("our_patients.csv")                       a path goes to `read`

Only some sets can be downloaded: for most of them no stable address with a known checksum exists.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from hedgerow.errors import MissingData, UnknownDataset, suggestion

from .download import cache_folder, fetch
from .entry import CatalogueEntry, Form
from .loaders import Columns, admit, read
from .sets_bundled import BUNDLED
from .sets_images import IMAGES
from .sets_large import LARGE
from .sets_made import MADE
from .sets_survival import SURVIVAL
from .sets_tabular import TABULAR
from .table import Table

CATALOGUE: dict[str, CatalogueEntry] = dict(sorted((BUNDLED | MADE | TABULAR | SURVIVAL | LARGE | IMAGES).items()))


def names() -> dict[str, str]:
    """Return the name of every catalogued data set and one sentence about it."""
    return {name: entry.sentence for name, entry in CATALOGUE.items()}


def load(name: str | Path, *, data_dir: str | Path | None = None) -> Table:
    """Return a catalogued data set, or the table in a file.

    A set that comes neither with Hedgerow nor with a Python package is read from the folder that is named, and from nowhere
    else. If none is named, it is downloaded where it can be, into the folder that HEDGEROW_CACHE names (by default `hedgerow`
    in the user's cache folder), and its checksum is verified at every load.

    Parameters
    ----------
    name : str or Path
        A name from `names()`, or a path (it has a suffix or a separator), which goes to `read`.
    data_dir : str or Path, optional
        Folder that holds the other sets; by default the folder that the environment
        variable HEDGEROW_DATA names.

    Returns
    -------
    Table
        With declared ranges and levels, and with `test` where a test part is published.

    Raises
    ------
    UnknownDataset (HR-401)
        No data set has this name.
    MissingData (HR-402)
        Its files are not in the folder, or cannot be downloaded.
    ChecksumMismatch (HR-411)
        Other files than the catalogued ones were downloaded.
    CannotWrite (HR-104)
        The cache folder cannot be written to.
    MissingExtra (HR-105)
        It comes with a Python package that is not installed.
    """
    if Path(name).suffix or Path(name).name != str(name):
        return read(name)
    entry = CATALOGUE.get(str(name))
    if entry is None:
        raise UnknownDataset(f"no data set is called {str(name)!r}.", remedy=suggestion(str(name), CATALOGUE))
    form, paths = _find(str(name), entry, data_dir)
    train, test = form.reader(*paths)
    source = entry.sentence if form is entry else f"{entry.sentence} {form.sentence}"
    table = _admitted(str(name), entry, train, source)
    return table if test is None else replace(table, test=_admitted(str(name), entry, test, source))


def _admitted(name: str, entry: CatalogueEntry, columns: Columns, source: str) -> Table:
    return admit(columns, entry.schema, name=name, source=source, missing=entry.missing)


def _find(name: str, entry: CatalogueEntry, data_dir: str | Path | None) -> tuple[CatalogueEntry | Form, list[Path]]:
    """Return the form of a set that is there, and where its files lie."""
    if not entry.files:
        return entry, []
    given = data_dir or os.environ.get("HEDGEROW_DATA")
    if not given and entry.published:
        cached = [cache_folder() / file.removesuffix(".gz") for file in entry.files]
        return entry, [fetch(published, path) for published, path in zip(entry.published, cached, strict=True)]
    choice = "Name no folder, and Hedgerow downloads it; or get" if entry.published else "Hedgerow does not download it: get"
    address = f" ({', '.join(one.address for one in entry.published)})" if entry.published else ""
    wanted = ", or ".join(", ".join(form.files) for form in (entry, *entry.also))
    remedy = (
        f"It is: {entry.sentence}\n{choice} it from its publisher{address}, put {wanted} "
        "into a folder,\nand name that folder with --data-dir or HEDGEROW_DATA."
    )
    if not given:
        raise MissingData(f"data set {name!r} is read from a folder and none is named.", remedy=remedy)
    folder = Path(given).expanduser()
    for form in (entry, *entry.also):
        found = [path for path in (_locate(folder, file) for file in form.files) if path is not None]
        if len(found) == len(form.files):
            return form, found
    absent = [file for file in entry.files if _locate(folder, file) is None]
    raise MissingData(f"data set {name!r} needs {', '.join(absent)}, not found in {folder}.", remedy=remedy)


def _locate(folder: Path, file: str) -> Path | None:
    """Return where `file` lies: at its path inside the folder, or directly in it."""
    return next((path for path in (folder / file, folder / Path(file).name) if path.is_file()), None)
