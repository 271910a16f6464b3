"""Run a study: drive its program, measure, checkpoint, compare with baselines, write the run folder.

report.html       one page that explains the run          result.json        numbers, versions, seeds
ledger.jsonl      every question, debited before asked    model.safetensors  or coefficients.csv
study.toml        the resolved study                      rounds.jsonl       metrics by round
schema.json       the columns as they are declared
states            what parties keep, where the study has it on disk; the checkpoint refers to it
"""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.core.toml import to_toml
from hedgerow.display import displayed
from hedgerow.errors import CannotWrite, CheckpointMismatch, HedgerowError, HedgerowWarning, StudyInvalid, UnknownStudy
from hedgerow.report import Outcome, Report, write
from hedgerow.store import Driven, drive, load_checkpoint, record_of, write_arrays, write_bytes
from hedgerow.store.rows import Logger

from .apart.ready import BuiltApart
from .apart.running import run_apart
from .attacked import clean_twin
from .baselines import Baselines, baselines
from .build import Built, build, engine_of
from .catalogue import listing
from .check import check
from .explain import explain
from .membership import with_membership
from .party_budgets import refuse_unaffordable
from .planned import Make, with_noise
from .rehearse import refuse_beyond
from .rounds import Progress, Rounds
from .study import AuditSection, Study, load

if TYPE_CHECKING:
    from .audits import StudyAudit

HOW_TO_DRAW = (
    "Made-up records are drawn from this run's folder, as many as one likes and at no further cost: "
    "hedgerow synth FOLDER --rows 1000 --out people.csv"
)


@displayed
@dataclass(frozen=True)
class Result:
    """A finished run: its folder, its report, and how it ended."""

    folder: Path
    report: Report
    run: Driven
    outcome: Outcome


def run(
    study: Study,
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    resume: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    command: str = "",
    threads: int | None = None,
    make: Make | None = None,
    log: Sequence[Logger] = (),
) -> Result:
    """Run a study into a folder.

    Parameters
    ----------
    folder : str or Path
        Made if missing; refused if it holds a run and `resume` is false.
    resume : bool
        Continue from the folder's checkpoint; the rest of the run is as if it had never stopped.
    threads : int, optional
        Where the study does not say how many; results do not depend on it.
    log : sequence of Logger
        Given the numbers of every round; see `hedgerow.loggers`.
    make : callable, optional
        Makes the study ready where its records are elsewhere; see `hedgerow.study.build_remote`.

    Raises
    ------
    HedgerowError
        Bad input before any party is asked. A run that fails later keeps its checkpoint and its ledger.
    """
    started, folder = time.perf_counter(), Path(folder)
    data_dir = None if data_dir is None else Path(data_dir)
    if make is None and (study.apart or listing(study.program.name).columns == "apart"):
        how: dict[str, Any] = {"on_progress": on_progress, "command": command, "threads": threads, "log": log}
        return run_apart(study, folder, data_dir=data_dir, resume=resume, **how)
    with heard() as caught:
        if make is None:
            study = with_noise(study, partial(build, data_dir=data_dir), data_dir)
            built = build(study, data_dir=data_dir, threads=threads, state_folder=folder / "states")
        else:
            built = make(with_noise(study, make, object()))
        check(built)
        if study.audit is not None and not resume:
            refuse_audit(study, study.audit, data_dir, make)
        if not resume:
            refuse_beyond(built)
            refuse_unaffordable(built)
        open_folder(folder, built, resume)
        checkpoint = folder / "checkpoint.safetensors"
        start = load_checkpoint(checkpoint, built.listing.state, built.digest) if resume and checkpoint.exists() else None
        built.run.ledger.attach(record_of(folder, study.budget.shared if study.budget else None))
        if start is None:
            built.run.ledger.rewind(0, replay=built.run.streams.seed is not None)
        rounds = Rounds(built, folder / "rounds.jsonl", start.state.round if start else 0, on_progress)
        program = built.listing.program(built.settings, built.test)
        with over(built.run.engine):
            ended = drive(
                program,
                built.federation,
                watch=rounds.watch,
                enough=rounds.enough,
                checkpoint=checkpoint,
                study=built.digest,
                start=start,
                log=log,
                keep=built.study.evaluation.keep,
                progress=False,
            )
            if ended.state is not None and ended.stopped != "interrupted":
                rounds.finish(ended.state)
            seconds = time.perf_counter() - started
            outcome = built.shown(ended.state) if ended.state else Outcome()
            if ended.state is not None and ended.stopped != "interrupted":
                outcome = with_membership(built, ended.state, outcome)
        if built.listing.synthesizer is not None and outcome.arrays:
            outcome = replace(outcome, notes=(*outcome.notes, HOW_TO_DRAW))
        compare = built.study.baselines and built.simulated and ended.state and ended.stopped != "interrupted"
        compared = baselines(built, ended.state) if compare else Baselines()
        twin = clean_twin(built, ended.state.round, engine_of(study.engine, threads)) if compare and study.attack else {}
    said = said_in(caught)
    report = explain(built, ended, outcome, compared, rounds.history, twin, seconds=seconds, warnings=said, command=command)
    if study.audit is not None and ended.state is not None and ended.stopped != "interrupted":
        write_results(folder, report, outcome, built.schema.to_json())  # an audit may refuse what only a run shows
        found = _audit(study, study.audit, data_dir, make)
        report = replace(report, audit=found.lights, tables=(*report.tables, found.grid))
    write_results(folder, report, outcome, built.schema.to_json())
    return Result(folder, report, ended, outcome)


def refuse_audit(study: Study, section: AuditSection, data_dir: Path | None, make: Make | None) -> None:
    """Refuse a study that is to be audited and cannot be, before any party is asked."""
    from .audits.running import auditable

    plain = study.model_copy(update={"audit": None})
    auditable(plain, section.canaries, make=make, data_dir=data_dir)


def _audit(study: Study, section: AuditSection, data_dir: Path | None, make: Make | None) -> StudyAudit:
    """What an audit of the study finds, in runs of its own."""
    from .audits import audit

    return audit(study.model_copy(update={"audit": None}), **section.model_dump(), data_dir=data_dir, make=make)


def said_in(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """Hedgerow's warnings among those that were collected, each once."""
    return tuple(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, HedgerowWarning)))


@contextmanager
def over(engine: Any) -> Iterator[None]:
    """End an engine's processes with the run, where it has any."""
    try:
        yield
    finally:
        if hasattr(engine, "close"):
            engine.close()


@contextmanager
def heard() -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings; of a thread beside others none, for they could not be told apart."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HedgerowWarning)
        yield caught


def open_folder(folder: Path, built: Built | BuiltApart, resume: bool) -> None:
    """Make a run's folder, or find it where a run is resumed; refuse one that holds another run."""
    if not resume and ((folder / "ledger.jsonl").exists() or (folder / "comparison.csv").exists()):
        raise CannotWrite(
            f"{folder} already holds a run.", remedy="Add --resume to continue it, or choose another --out.", asked=False
        )
    if resume and not (folder / "digest").exists():
        raise CheckpointMismatch(
            f"{folder} holds no run to resume.", remedy="Leave --resume out, or name its folder with --out."
        )
    if resume and (folder / "digest").read_text() != built.digest:
        raise CheckpointMismatch(
            f"{folder} holds a run of another study or of other records{_differences(folder, built.study)}.",
            remedy=f"Resume it as it began: hedgerow run {folder / 'study.toml'} --resume --out {folder}\n"
            "Or choose another --out.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder}: {error.strerror}.", remedy="Choose another --out.", asked=False) from error
    _write(folder / "digest", built.digest)
    write_study(built.study, folder / "study.toml")


def _differences(folder: Path, study: Study) -> str:
    """The keys that a run's folder has otherwise than a study that would resume it, with the values of both."""
    try:
        began = load(folder / "study.toml").model_dump(mode="json")
    except HedgerowError:
        return ""
    words = ("name", "title", "description", "baselines")
    here, there = (
        dict(_leaves({k: v for k, v in one.items() if k not in words})) for one in (study.model_dump(mode="json"), began)
    )
    keys = [key for key in dict.fromkeys([*there, *here]) if there.get(key) != here.get(key)]
    told = [f"{key} was {there.get(key)!r} and is {here.get(key)!r}" for key in keys[:5]]
    more = f", and {len(keys) - 5} more keys differ" if len(keys) > 5 else ""
    return ": " + ", ".join(told) + more if told else ""


def _leaves(section: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of nested sections, by its dotted path, and its value."""
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def write_results(folder: Path, report: Report, outcome: Outcome, schema: Mapping[str, Any]) -> None:
    """Write what a run has to show; `schema` is that of the parties, or one for each."""
    _write(folder / "schema.json", json.dumps(schema, indent=1, default=float) + "\n")
    if outcome.arrays:
        write_arrays(folder / "model.safetensors", outcome.arrays, {"study": report.study})
    if outcome.coefficients is not None:
        _write(folder / "coefficients.csv", outcome.coefficients.to_csv(index_label="term"))
    _write(folder / "result.json", json.dumps(report.to_json(), indent=1) + "\n")
    write(report, folder / "report.html")


def write_study(study: Study, path: str | Path) -> None:
    """Write a study with all defaults filled in."""
    unused = {"partition"} if study.apart else None
    _write(path, to_toml(study.model_dump(mode="json", exclude=unused)) + "\n")


def _write(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode())


def read_report(folder: str | Path) -> Result:
    """Read a run folder's result and write its page again."""
    folder = Path(folder)
    path = folder / "result.json"
    try:
        report = Report.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise UnknownStudy(
            f"{folder} holds no finished run.", remedy="Give a folder that `hedgerow run` wrote, e.g. runs/digits-fedavg-001."
        ) from error
    except ValueError as error:
        raise StudyInvalid(f"{path} cannot be read: {error}.") from error
    write(report, folder / "report.html")
    return Result(folder, report, Driven(None), Outcome())
