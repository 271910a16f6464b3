"""A study of parties with different columns whose records are elsewhere: at stations, each of which declares its own columns.

    alignment.json    the alignment that the stations keep: its name, and how many people are common

A list is aligned once in a study. So what the hub has to know of the alignment is in the run folder before the program asks,
and a run that goes on begins with the handle of that alignment and with its checkpoint.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from hedgerow.core.federation import Federation, inside
from hedgerow.core.question import MAIN
from hedgerow.core.randomness import Streams
from hedgerow.core.run import begun_at
from hedgerow.data import Schema, Table
from hedgerow.errors import MissingColumn, StudyInvalid, suggestion
from hedgerow.store import drive, load_checkpoint, record_of, write_bytes

from ..keys import settings_of
from ..rounds import Progress, Row
from .opened import OpenedStudy, aligned_of
from .protocols import protocol_of
from .ready import BuiltApart, refuse_label, refuse_sections
from .reporting import report_apart
from .running import shown_apart
from .tables import HeldApart

if TYPE_CHECKING:
    from ..runner import Result
    from ..study import Study

ALIGNMENT = "alignment.json"
"""In a run folder."""


def built_at_stations(study: Study, schemas: Mapping[str, Schema]) -> BuiltApart:
    """Check a study against what its stations declare; ask nobody.

    Parameters
    ----------
    schemas : mapping from station to Schema
        Of the columns of its role.

    Raises
    ------
    StudyInvalid (HR-101), MissingColumn (HR-403)
        All problems of its sections at once; a role that no station has, or a column that its station does not have.
    """
    listed = refuse_sections(study)
    assert study.roles is not None
    if listed.takes == "anew":
        raise StudyInvalid(
            f"the program {listed.name!r} begins a study for each training, which only a simulation does.",
            remedy="Submit one training: program.name = 'splitnn'.",
        )
    chosen = study.data.records is not None or study.roles.overlap != 1.0 or study.roles.keep
    if chosen or study.evaluation.holdout:
        raise StudyInvalid(
            "data.records, roles.overlap, roles.keep and evaluation.holdout choose records of a simulation, and those here are "
            "at stations.",
            remedy="Leave them out: stations answer with all.",
        )
    for party, columns in study.roles.columns.items():
        for column in columns:
            if party not in schemas or column not in schemas[party]:
                known = schemas[party].names if party in schemas else ()
                raise MissingColumn(f"{party} has no column {column!r}.", remedy=suggestion(column, known))
    held = {party: _nobody(party, schemas[party].select(columns)) for party, columns in study.roles.columns.items()}
    refuse_label(study, {party: one.table.schema for party, one in held.items()})
    settings = settings_of(listed, study.program.model_extra or {})
    return BuiltApart(study.model_copy(update={"seed": "system", "baselines": False}), listed, settings, held, None)


def federation_at(built: BuiltApart, engine: Any, streams: Streams | None = None) -> Federation:
    """The stations as one handle, before any alignment."""
    made = Federation(engine, None, streams or Streams(None))
    inside(made).run.schemas = built.schemas
    return made


def states_of(built: BuiltApart, handle: Any, start: Any = None) -> Iterator[Any]:
    """The program's states."""
    own = {key: value for key, value in built.settings.items() if key not in built.listing.keys}
    bound = {name: make(built, built.settings) for name, make in built.listing.bind.items()}
    found: Iterator[Any] = built.listing.function(handle, **own, **bound, start=start)
    return found


def run_at_stations(
    study: Study,
    folder: Path,
    *,
    schemas: Mapping[str, Schema],
    engine: Any,
    resume: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    command: str = "",
) -> Result:
    """Run a study at stations into a folder, or go on with it.

    Raises
    ------
    HedgerowError
        What the alignment or the program refuses. A run that fails later keeps its alignment, its checkpoint and its ledger.
    """
    from ..runner import Result, heard, open_folder, said_in, write_results

    started = time.perf_counter()
    with heard() as caught:
        built = built_at_stations(study, schemas)
        open_folder(folder, built, resume)
        federation = federation_at(built, engine)
        run, path = inside(federation).run, folder / "checkpoint.safetensors"
        run.ledger.attach(record_of(folder, study.budget.shared if study.budget else None))
        kept = path if is_kept(built.listing.state) else None
        start = load_checkpoint(path, built.listing.state, built.digest) if resume and kept and path.exists() else None
        run.ledger.rewind(0, replay=False)
        handle = _aligned(built, federation, folder / ALIGNMENT)
        opened = OpenedStudy.at(built, federation, handle)
        history: list[Row] = []

        def watch(state: Any) -> dict[str, Any]:
            metrics = built.listing.watch(built.settings, state, opened, None) if built.listing.watch else {}
            history.append({"round": state.round, "seconds": round(time.perf_counter() - started, 4), **metrics})
            on_progress(Progress(state.round, None, dict(metrics), None, None))
            return dict(metrics)

        ended = drive(
            lambda _, *, start=None: states_of(built, handle, start),
            federation,
            watch=watch,
            checkpoint=kept,
            study=built.digest,
            start=start,
            progress=False,
        )
        outcome = shown_apart(built, handle, ended.state)
    seconds, said = time.perf_counter() - started, said_in(caught)
    report = report_apart(opened, ended, outcome, history, seconds=seconds, warnings=said, command=command)
    write_results(folder, report, outcome, {party: schema.to_json() for party, schema in built.schemas.items()})
    return Result(folder, report, ended, outcome)


def is_kept(kind: type[Any]) -> bool:
    """Whether a program's states are arrays and numbers, which a checkpoint has; a fit that is asked at once begins anew."""
    return is_dataclass(kind) and not {object, Any} & set(get_type_hints(kind).values())


def _aligned(built: BuiltApart, federation: Federation, path: Path) -> Any:
    """What the program is given: the parties as they were aligned before, or are aligned now."""
    section = built.study.alignment
    assert section is not None
    if built.listing.takes == "apart":
        return federation
    if not path.exists():
        made = federation.align(on=section.on, by=protocol_of(section))
        write_bytes(path, json.dumps({"name": made.alignment, "n": made.n}).encode())
    from hedgerow.vertical.aligned import aligned_before

    kept = json.loads(path.read_text())
    run = inside(federation).run
    if run.counts[MAIN].questions < int(kept["name"]):
        begun_at(run, int(kept["name"]))  # its number is the alignment's
    return aligned_of(
        built, federation, lambda: aligned_before(federation, section.on, protocol_of(section), kept["name"], kept["n"])
    )


def _nobody(party: str, schema: Schema) -> HeldApart:
    """Nobody's records, of these columns."""
    columns = {column.name: column.synthetic(0, np.random.default_rng(0)) for column in schema}
    return HeldApart(np.zeros(0, np.str_), Table(columns, schema, name=party))
