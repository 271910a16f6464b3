"""The `hedgerow` command."""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from hedgerow.errors import HedgerowError, PartyDeclined, StudyInvalid

from . import audit, coordinator, export, pilot, plan, synth
from .aggregator import app as aggregator_commands
from .as_json import rehearsal_told, result_told
from .dictionary import app as dictionary_commands
from .explain import explain, explain_study
from .json_output import JsonOption, print_json
from .keys import app as keys_commands
from .ledger import app as ledger_commands
from .privacy import app as privacy_commands
from .runs import RUNS, fresh_folder
from .show import Bars, listed, show_beginning, show_rehearsal, show_rehearsals, show_result, show_studies
from .station import app as station_commands

console = Console()
errors = Console(stderr=True)
MOST_CAUSES = 5
"""Causes of an error that are printed, one below the other."""


def _version(asked: bool) -> None:
    if asked:
        console.print(f"hedgerow {version('hedgerow')}", highlight=False)
        raise typer.Exit()


app = typer.Typer(
    help="Learning from data that must stay where it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


app.add_typer(ledger_commands, name="ledger")
app.add_typer(privacy_commands, name="privacy")
app.add_typer(keys_commands, name="keys")
app.add_typer(dictionary_commands, name="dictionary")
app.add_typer(station_commands, name="station")
app.add_typer(aggregator_commands, name="aggregator")


@app.callback()
def hedgerow(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learning from data that must stay where it is."""


StudyArgument = Annotated[str, typer.Argument(help="A bundled study by name, or a TOML file.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Change a key: --set program.rounds=20", metavar="KEY=VALUE")
]
DataOption = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of data sets (else HEDGEROW_DATA).", envvar="HEDGEROW_DATA")
]
QuickOption = Annotated[bool, typer.Option("--quick", help="Apply the quick changes of a comparison.")]
SweepOption = Annotated[
    list[str] | None,
    typer.Option("--sweep", help="Compare values of a key: --sweep program.rounds=5,10", metavar="KEY=VALUE,VALUE"),
]


@app.command()
def run(
    study: StudyArgument,
    change: SetOption = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME by default.")] = None,
    data_dir: DataOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    quick: QuickOption = False,
    swept: SweepOption = None,
    jobs: Annotated[
        int | None, typer.Option(help="Runs of a comparison or sweep side by side; one for each core by default.")
    ] = None,
    as_json: JsonOption = False,
    log: Annotated[
        list[str] | None, typer.Option(help="Log every round: csv, tensorboard or mlflow.", metavar="NAME[=PLACE]")
    ] = None,
) -> None:
    """Run a study and write a folder with its report, results, ledger and model; or every run of a comparison, and a table."""
    from hedgerow.compare import sweep
    from hedgerow.study import load, parse_change, run_study

    changes = [parse_change(text) for text in change or []]
    loaded = load(study, dict(changes))
    if quick and loaded.comparison is None and (loaded.quick or loaded.apart):
        loaded, quick = load(study, loaded.quick | dict(changes)), False
    command = "hedgerow " + shlex.join(sys.argv[1:])
    name = loaded.name + "-sweep" * bool(swept) + "-quick" * quick
    folder = out or fresh_folder(RUNS, name, resume=resume)
    if swept:
        loaded = sweep(loaded, swept)
    if loaded.matrix is not None:
        if log or swept:
            raise StudyInvalid("--log and --sweep are for single runs.", remedy="A matrix writes matrix.csv by itself.")
        _matrix(loaded, folder, {"jobs": jobs, "data_dir": data_dir, "resume": resume, "command": command}, as_json)
        return
    if loaded.comparison is not None or quick:
        if log:
            raise StudyInvalid("--log is for single runs.", remedy="A comparison writes comparison.csv by itself.")
        how: dict[str, Any] = {
            "as_json": as_json,
            "quick": quick,
            "changes": changes,
            "jobs": jobs,
            "data_dir": data_dir,
            "resume": resume,
            "command": command,
        }
        _compare(loaded, folder, how)
        return
    if jobs is not None:
        raise StudyInvalid(f"--jobs {jobs} is for comparisons and sweeps.", remedy="A single run uses all cores by itself.")
    from hedgerow.loggers import logger_named
    from hedgerow.notebook import Bar

    loggers = [logger_named(words, folder) for words in log or ()]
    said = errors if as_json else console
    show_beginning(loaded, said)
    with Bar(loaded.name, said) as bar:
        result = run_study(loaded, folder, data_dir=data_dir, resume=resume, on_progress=bar.show, command=command, log=loggers)
    if as_json:
        print_json(result_told(result) | {"stopped": result.run.stopped})
    else:
        show_result(result, console)
    if result.run.stopped == "interrupted":
        said.print(f"Interrupted. Continue with: hedgerow run {study} --out {folder} --resume", highlight=False)
        raise typer.Exit(130)


def _compare(study: Any, folder: Path, how: dict[str, Any]) -> None:
    """Run a comparison, a line for each running cell; fail where a run failed."""
    as_json = how.pop("as_json")
    said = errors if as_json else console
    show_beginning(study, said, quick=how["quick"])
    from hedgerow.compare import compare

    with Bars(said) as bars:
        result = compare(study, folder, on_check=bars.check, on_start=bars.start, on_progress=bars.show, **how)
    if as_json:
        print_json(result_told(result) | {"interrupted": result.interrupted, "failed": list(result.problems)})
    else:
        show_result(result, console)
    if result.interrupted:
        said.print(f"Interrupted. Continue with the same command and: --out {folder} --resume", highlight=False)
        raise typer.Exit(130)
    if result.problems:
        said.print(f"{len(result.problems)} of the runs failed; --resume tries them again.", style="red", highlight=False)
        raise typer.Exit(1)


def _matrix(study: Any, folder: Path, how: dict[str, Any], as_json: bool) -> None:
    """Run a matrix, with one line of how many runs are there."""
    said = errors if as_json else console
    show_beginning(study, said)
    from hedgerow.compare import run_matrix

    with Bars(said) as bars:
        result = run_matrix(study, folder, on_progress=bars.count, **how)
    if as_json:
        print_json(result_told(result) | {"interrupted": result.interrupted, "runs": len(result.runs)})
    else:
        show_result(result, console)
    if result.interrupted:
        said.print(f"Interrupted. Continue with the same command and: --out {folder} --resume", highlight=False)
        raise typer.Exit(130)


@app.command()
def rehearse(
    study: StudyArgument,
    change: SetOption = None,
    data_dir: DataOption = None,
    quick: QuickOption = False,
    swept: SweepOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every question that a study would ask, and what would leave each party. Asks nobody."""
    from hedgerow.compare import matrix_cells, rehearse_cells, sweep
    from hedgerow.study import load, parse_change
    from hedgerow.study import rehearse as rehearse_study

    changes = [parse_change(text) for text in change or []]
    loaded = load(study, dict(changes))
    loaded = sweep(loaded, swept) if swept else loaded
    if loaded.apart:
        explain_study(loaded, as_json)
        return
    if loaded.matrix is not None:
        cell = matrix_cells(loaded)[0]
        loaded = cell.study
        errors.print(f"One run of a matrix: {cell.name}", markup=False, highlight=False)
    if loaded.comparison is None and not quick:
        rehearsal = rehearse_study(loaded, data_dir=data_dir)
        print_json(rehearsal_told(rehearsal)) if as_json else show_rehearsal(rehearsal, console)
        return
    found = rehearse_cells(loaded, quick=quick, changes=changes, data_dir=data_dir)
    if as_json:
        print_json({"runs": [{"names": names, **rehearsal_told(rehearsal)} for names, rehearsal in found]})
    else:
        show_rehearsals(found, console)


@app.command()
def studies(as_json: JsonOption = False) -> None:
    """List the bundled studies, the programs and the data sets."""
    print_json(listed()) if as_json else show_studies(console)


@app.command()
def report(run: Annotated[Path, typer.Argument(help="A run folder.")], as_json: JsonOption = False) -> None:
    """Show a run in the terminal, and write its page again."""
    from hedgerow.study import read_report

    found = read_report(run)
    print_json(result_told(found)) if as_json else show_result(found, console)


@app.command()
def check(study: StudyArgument, change: SetOption = None, data_dir: DataOption = None, as_json: JsonOption = False) -> None:
    """Read a study, its data and its program, and refuse what does not fit; `rehearse` counts its questions besides."""
    from hedgerow.compare import check_matrix, rehearse_cells
    from hedgerow.study import check_study, load, parse_change, sentence_about

    loaded = load(study, dict(parse_change(text) for text in change or []))
    if loaded.matrix is not None:
        facts = {"study": loaded.name, "does": sentence_about(loaded), "runs": check_matrix(loaded, data_dir)}
    elif loaded.comparison is None:
        facts = check_study(loaded, data_dir=data_dir)
    else:
        runs = sum(len(names) for names, _ in rehearse_cells(loaded, data_dir=data_dir))
        facts = {"study": loaded.name, "does": sentence_about(loaded), "runs": runs}
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            for of, one in value.items() if isinstance(value, dict) else (("", value),):
                words = one if isinstance(one, str | int) else ", ".join(one)
                console.print(f"{name} {of}".strip() + f": {words}", markup=False, highlight=False, soft_wrap=True)


coordinator.register(app)
app.command()(pilot.pilot)
app.command()(plan.plan)
app.command()(export.export)
app.command()(synth.synth)
app.command()(audit.audit)
app.command()(explain)


def main() -> Any:
    """Run the command; an error that Hedgerow raises on purpose is printed as its message."""
    try:
        app(prog_name="hedgerow")
    except HedgerowError as error:
        errors.print(escape(_with_causes(error)), style="red", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("Interrupted at once. A run that had begun continues with --resume.", style="red")
        sys.exit(130)


def _with_causes(error: HedgerowError) -> str:
    """A message, and below it why: the party's reason and remedy, which a simulation knows and a station keeps to itself."""
    lines, cause, seen = [str(error)], error.__cause__, 0
    while isinstance(error, PartyDeclined) and cause is not None and seen < MOST_CAUSES:
        if isinstance(cause, HedgerowError):
            lines.append(f"Cause: {type(cause).__name__} [{cause.code}]: {cause.reason}")
            lines += [f"  {line}" for line in cause.remedy.splitlines()]
        else:
            lines.append(f"Cause: {type(cause).__name__}: {cause}")
        cause, seen = cause.__cause__, seen + 1
    return "\n".join(lines)


if __name__ == "__main__":
    main()
