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

from hedgerow.errors import HedgerowError

from .show import Bar, show_rehearsal, show_result, show_studies

console = Console()
errors = Console(stderr=True)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"hedgerow {version('hedgerow')}", highlight=False)
        raise typer.Exit()


app = typer.Typer(
    help="Learning from data that must stay where it is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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


@app.command()
def run(
    study: StudyArgument,
    change: SetOption = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME by default.")] = None,
    data_dir: DataOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
) -> None:
    """Run a study and write a folder with its report, results, ledger and model."""
    from hedgerow.studies import load, parse_change, run_study

    loaded = load(study, dict(parse_change(text) for text in change or []))
    folder = out or _fresh(Path("runs"), loaded.name, resume)
    command = "hedgerow " + shlex.join(sys.argv[1:])
    with Bar(loaded.name, console) as bar:
        result = run_study(loaded, folder, data_dir=data_dir, resume=resume, on_progress=bar.show, command=command)
    show_result(result, console)
    if result.run.stopped == "interrupted":
        console.print(f"Interrupted. Continue with: hedgerow run {study} --out {folder} --resume", highlight=False)
        raise typer.Exit(130)


@app.command()
def rehearse(study: StudyArgument, change: SetOption = None, data_dir: DataOption = None) -> None:
    """List every question that a study would ask, and what would leave each party. Asks nobody."""
    from hedgerow.studies import load, parse_change
    from hedgerow.studies import rehearse as rehearse_study

    show_rehearsal(rehearse_study(load(study, dict(parse_change(text) for text in change or [])), data_dir=data_dir), console)


@app.command()
def studies() -> None:
    """List the bundled studies, the programs and the data sets."""
    show_studies(console)


@app.command()
def report(run: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Show a run in the terminal, and write its page again."""
    from hedgerow.studies import read_report

    show_result(read_report(run), console)


def main() -> Any:
    """Run the command; an error that Hedgerow raises on purpose is printed as its message."""
    try:
        app()
    except HedgerowError as error:
        errors.print(escape(str(error)), style="red", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("Interrupted at once. A run that had begun continues with --resume.", style="red")
        sys.exit(130)


def _fresh(folder: Path, name: str, resume: bool) -> Path:
    """The latest run of this name where it is resumed, else the next free number."""
    taken = sorted(folder.glob(f"{name}-[0-9][0-9][0-9]"))
    if resume and taken:
        return taken[-1]
    number = int(taken[-1].name[-3:]) + 1 if taken else 1
    return folder / f"{name}-{number:03d}"


if __name__ == "__main__":
    main()
