"""`hedgerow audit`: train a study once more with canaries, and say whether they show more than its ledger states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hedgerow.errors import StudyInvalid

from .json_output import JsonOption, print_json

if TYPE_CHECKING:
    from hedgerow.report import AuditLights
    from hedgerow.study import Study

console = Console()
errors = Console(stderr=True)


def audit(
    study: Annotated[
        str, typer.Argument(help="A bundled study by name, a TOML file, or a run folder whose study has [audit].")
    ],
    canaries: Annotated[int, typer.Option(help="Records or parties that are added to each run, half of them in.")] = 400,
    runs: Annotated[int, typer.Option(help="Runs, each with other coins: a statistic of few numbers needs many.")] = 1,
    seed: Annotated[int, typer.Option(help="Of coins, canaries and noise.")] = 0,
    level: Annotated[float, typer.Option(help="With which right code is called red, at most.")] = 1e-3,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="Change a key: --set program.rounds=20", metavar="KEY=VALUE")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Apply the study's quick changes.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write a page of the audit, e.g. audit.html.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder of data sets (else HEDGEROW_DATA).", envvar="HEDGEROW_DATA")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a study once more with canaries: is its noise what the ledger says, and what do guesses about them show?"""
    from hedgerow.report.console import print_audit

    changed = (canaries, runs, seed, level, bool(change), quick, out) != (400, 1, 0, 1e-3, False, False, None)
    lights = (
        _recorded(Path(study), changed)
        if Path(study).is_dir()
        else _audited(study, canaries, runs, seed, level, change or [], quick, data_dir, out, errors if as_json else console)
    )
    if as_json:
        print_json(lights_told(lights))
    else:
        print_audit(lights, console)
    if lights.red:
        raise typer.Exit(1)


def _audited(
    name: str,
    canaries: int,
    runs: int,
    seed: int,
    level: float,
    change: list[str],
    quick: bool,
    data_dir: Path | None,
    out: Path | None,
    said: Console,
) -> AuditLights:
    from hedgerow.notebook import Bar
    from hedgerow.report.page import audit_page, write_text
    from hedgerow.study.audits import audit as audit_study

    loaded = single(name, change, quick)
    with Bar(f"audit of {loaded.name}", said):
        found = audit_study(loaded, canaries=canaries, runs=runs, seed=seed, level=level, data_dir=data_dir)
    if out is not None:
        write_text(audit_page(f"Audit of {loaded.title or loaded.name}", loaded.name, found.lights), out)
    return found.lights


def single(name: str, change: list[str], quick: bool) -> Study:
    """A study as it is audited: of a comparison the run that it changes, with the quick changes where they are wanted."""
    from hedgerow.study import load, parse_change

    changes: dict[str, Any] = dict(parse_change(text) for text in change)
    loaded = load(name)
    hurried = dict(loaded.comparison.quick if loaded.comparison else loaded.quick) if quick else {}
    return load(name, hurried | changes).model_copy(update={"comparison": None, "audit": None})


def _recorded(folder: Path, changed: bool) -> AuditLights:
    """What a run recorded of its audit.

    Raises
    ------
    StudyInvalid (HR-101)
        The folder holds no finished run, or one without an audit; or options ask for an audit that was not made.
    """
    import json

    from hedgerow.report import Report

    if not (folder / "result.json").exists():
        raise StudyInvalid(
            f"{folder} is a folder without a finished run.", remedy="Name a run folder with a result.json, or a study file."
        )
    if changed:
        raise StudyInvalid(
            f"{folder} holds an audit that was made; options change nothing in it.",
            remedy=f"Leave them out, or audit its study again: hedgerow audit {folder / 'study.toml'} --canaries 400",
        )
    report = Report.from_json(json.loads((folder / "result.json").read_text(encoding="utf-8")))
    if report.audit is None:
        raise StudyInvalid(
            f"the run in {folder} has no audit.",
            remedy=f"Audit its study: hedgerow audit {folder / 'study.toml'}\nOr run it with [audit] canaries = 400.",
        )
    return report.audit


def lights_told(lights: AuditLights) -> dict[str, Any]:
    """An audit as `--json` tells it."""
    return {
        "accounted": lights.accounted,
        "audit": lights.sentence,
        "lights": {name: {"light": light, "found": found, "beside": beside} for name, light, found, beside in lights.lights},
        "would_see": lights.power,
        "red": lights.red,
    }
