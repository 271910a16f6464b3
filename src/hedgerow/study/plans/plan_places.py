"""Where a plan's files go, looked at before anything is asked, planned or written.

    an output that is an input      refused: the file of owners, its CSV file, its study, records, a ledger
    two outputs in one place        refused
    an owner that is no party       refused, where the study is written and its records are here
    a name that no file can have    refused, where guards are written: each owner's is OWNER.toml

Files of an earlier plan are written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hedgerow.core.toml import read_toml
from hedgerow.data import partitioner
from hedgerow.errors import CannotWrite, HedgerowError, StudyInvalid, suggestion

from ..build import tables
from ..study import bundled, load
from .owners_file import OwnersFile

UNFIT = '/\\:*?"<>|'
"""Characters that a file's name cannot have on every system."""


def refuse_places(path: str | Path, file: OwnersFile, outputs: Mapping[str, Path | None], guards: Path | None = None) -> None:
    """Refuse to write where something of the plan lies.

    Parameters
    ----------
    path : str or Path
        Of the file of owners.
    outputs : mapping from option to path
        Files that would be written; None is none.
    guards : Path, optional
        Folder of the owners' guards.

    Raises
    ------
    CannotWrite (HR-104)
        An output is an input, or another output; or an owner's name is no name of a file.
    """
    if guards is not None:
        refuse_names(list(file.owners))
    found = [(option, one) for option, one in outputs.items() if one is not None]
    found += [("--write-guards", guards / f"{name}.toml") for name in file.owners] if guards is not None else []
    read = {one.resolve(): what for what, one in _inputs(Path(path), file)}
    for option, one in found:
        place = one.resolve()
        if place in read:
            raise CannotWrite(f"{option} {one} is {read[place]}.", remedy="Name another file.", asked=False)
        read[place] = f"what {option} writes, too"


def refuse_names(owners: Sequence[str]) -> None:
    """Refuse owners after whom no file can be named."""
    for name in owners:
        if not name.strip() or name.startswith(".") or len(name) > 100 or any(c in UNFIT or not c.isprintable() for c in name):
            raise CannotWrite(
                f"the owner {name!r} is no name of a file, and its guard would be {name}.toml.",
                remedy=f"Rename the owner: no {' '.join(UNFIT)}, no dot in front, at most 100 characters.",
                asked=False,
            )


def refuse_strangers(file: OwnersFile, data_dir: str | Path | None = None) -> None:
    """Refuse owners that are no party of the study, where its parties are the values of a column and its records are here.

    Of the records nothing is read but who holds them, and no plan follows from it.

    Raises
    ------
    StudyInvalid (HR-101)
        With the first owners that are none, and all parties.
    """
    study = None if file.study is None else load(file.study)
    if study is None or study.partition.by != "by_column":
        return
    try:
        table = tables(study, data_dir)[0]
        names = partitioner("by_column", **(study.partition.model_extra or {}))(table, study.simulation_seed or 0).names
    except (HedgerowError, OSError):  # elsewhere
        return
    strangers = [name for name in file.owners if name not in names]
    if strangers:
        raise StudyInvalid(
            f"the owners {', '.join(map(repr, strangers[:5]))} are no party of the study {study.name!r}.",
            remedy=f"{suggestion(strangers[0], list(names))} Parties: {', '.join(names[:20])}.",
        )


def _inputs(path: Path, file: OwnersFile) -> list[tuple[str, Path]]:
    """What is read for a plan, and what it is."""
    found = [("the file of owners", path)]
    owners = read_toml(path.read_bytes(), str(path)).get("owners")
    if isinstance(owners, str):
        found.append(("the CSV file of owners", path.parent / owners))
    if file.pilot.data is not None:
        found.append(("the file of public records", Path(file.pilot.data)))
    if file.study is not None and file.study not in bundled():
        study, folder = load(file.study), Path(file.study).parent
        found.append(("the study that the plan starts from", Path(file.study)))
        records = [study.data.path, *study.data.parties.values()]
        found += [("a file of the study's records", folder / one) for one in records if one is not None]
        if study.budget is not None and study.budget.ledger is not None:
            found.append(("the study's ledger", folder / study.budget.ledger))
    return found
