"""`hedgerow coordinator start|check`, and `hedgerow submit|status|cancel|fetch`: studies that stations are asked."""

from __future__ import annotations

import logging
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hedgerow.errors import CannotWrite, UnknownStudy

from .as_json import result_told, study_told
from .json_output import JsonOption, print_json

console = Console()

app = typer.Typer(help="Run a coordinator, or check its folder.", no_args_is_help=True)

AtOption = Annotated[
    Path, typer.Option("--at", help="The coordinator's folder, or its coordinator.toml.", envvar="HEDGEROW_COORDINATOR")
]
FolderArgument = Annotated[
    Path, typer.Argument(help="The coordinator's folder, or its coordinator.toml.", envvar="HEDGEROW_COORDINATOR")
]
StudyIdArgument = Annotated[str, typer.Argument(help="A study's id, as `hedgerow submit` printed it.")]


@app.command()
def start(folder: FolderArgument = Path(".")) -> None:
    """Run the coordinator until it is interrupted. Studies then end their question, and go on at the next start."""
    from hedgerow.network.coordinator.config import load_config
    from hedgerow.network.coordinator.service import serve

    _log_to_terminal()
    config, stop = load_config(folder), threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        serve(config, stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@app.command()
def check(folder: FolderArgument = Path("."), as_json: JsonOption = False) -> None:
    """Read configuration, keys and studies, and say what a start would find. Connects nowhere, changes nothing."""
    from hedgerow.network.coordinator.config import load_config
    from hedgerow.network.coordinator.service import open_keys, where
    from hedgerow.network.coordinator.store import FILE, Store

    config = load_config(folder)
    keys = open_keys(config)
    limits = config.limits
    stations = sorted(set(keys.public_identities).difference(config.aggregators))
    strange = [name for name in config.aggregators if name not in keys.public_identities]
    told: dict[str, Any] = {"coordinator": config.name, "rail": where(config), "stations": stations}
    told |= {"aggregators": config.aggregators, "aggregators_not_on_roster": strange}
    told |= {"least_stations": limits.least_stations, "studies": 0, "running": 0, "journal": None}
    lines = Table.grid(padding=(0, 2))
    lines.add_row("coordinator", config.name)
    lines.add_row("rail", where(config))
    lines.add_row("stations", ", ".join(stations) or "none; hedgerow keys enrol puts one on the roster")
    if config.aggregators:
        note = f"; not on the roster: {', '.join(strange)}" if strange else ""
        lines.add_row("aggregators", ", ".join(config.aggregators) + note)
    least = "all that are asked" if limits.least_stations is None else f"{limits.least_stations}"
    lines.add_row("boards with", least)
    lines.add_row("a question waits", f"{limits.question_seconds:g} s; people {limits.approval_hours:g} h")
    if (config.state_folder / FILE).exists():
        store = Store(config.state_folder)
        try:
            studies, (entries, head) = store.studies(), store.verify()
        finally:
            store.close()
        told |= {"studies": len(studies), "running": sum(not kept.ended for kept in studies)}
        told["journal"] = {"whole": True, "entries": entries, "head": head or None}
        lines.add_row("studies", f"{len(studies)}; not ended: {sum(not kept.ended for kept in studies)}")
        lines.add_row("journal", f"whole: {entries} entries, head {head or 'none'}")
    else:
        lines.add_row("studies", "none yet")
    print_json(told) if as_json else console.print(lines, highlight=False)


def submit(
    study: Annotated[str, typer.Argument(help="A bundled study by name, or a TOML file.")],
    at: AtOption = Path("."),
    change: Annotated[
        list[str] | None, typer.Option("--set", help="Change a key: --set program.rounds=20", metavar="KEY=VALUE")
    ] = None,
    stations: Annotated[str, typer.Option(help="Whom to ask; all on the roster by default.", metavar="NAME,NAME")] = "",
    as_json: JsonOption = False,
) -> None:
    """Hand a study to a coordinator, whether it runs now or later. Prints the study's id."""
    from hedgerow.network.coordinator.config import load_config
    from hedgerow.network.coordinator.service import open_keys
    from hedgerow.network.coordinator.submission import submit as keep
    from hedgerow.study import load, parse_change

    config = load_config(at)
    loaded = load(study, dict(parse_change(text) for text in change or []))
    roster = tuple(name for name in open_keys(config).public_identities if name not in config.aggregators)
    named = tuple(name.strip() for name in stations.split(",") if name.strip())
    with _store(config) as store:
        id = keep(store, loaded, stations=named, roster=roster, aggregators=config.aggregators)
    print_json({"id": id}) if as_json else typer.echo(id)


def status(
    study: Annotated[str | None, typer.Argument(help="A study's id; all studies by default.")] = None,
    at: AtOption = Path("."),
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every second, until Ctrl-C or its end.")] = False,
    letters: Annotated[bool, typer.Option("--letters", help="Every letter that went and came, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show all studies of a coordinator, or one with its whole history."""
    from rich.live import Live

    from hedgerow.network.coordinator.config import load_config

    config = load_config(at)
    with _store(config) as store:

        def shown() -> Group:
            return _studies(store) if study is None else Group(_one(store, study, config, letters))

        def over() -> bool:
            return study is not None and store.study(study).ended

        if as_json:
            print_json(_told(store, study, letters))
            return
        if not watch:
            console.print(shown())
            return
        with Live(shown(), console=console, auto_refresh=False) as live:
            while not over():
                time.sleep(1.0)
                live.update(shown(), refresh=True)


def cancel(study: StudyIdArgument, at: AtOption = Path("."), as_json: JsonOption = False) -> None:
    """End a study. What stations have answered stands, in their ledgers and here."""
    from hedgerow.network.coordinator.config import load_config

    with _store(load_config(at)) as store:
        ended = not store.cancel(study)
        if as_json:
            print_json(study_told(store.study(study)) | {"cancelled": not ended})
        elif not ended:
            console.print(f"{study} ends before its next question.", highlight=False)
        else:
            console.print(f"{study} had ended: {store.study(study).state}.", highlight=False)


def fetch(
    study: StudyIdArgument,
    at: AtOption = Path("."),
    out: Annotated[Path | None, typer.Option(help="A new folder; the study's id by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Copy a finished study's run folder, and show its report."""
    from hedgerow.cli.show import show_result
    from hedgerow.network.coordinator.config import load_config
    from hedgerow.study import read_report

    config = load_config(at)
    with _store(config) as store:
        kept = store.study(study)
    if kept.state != "finished":
        raise UnknownStudy(
            f"{study} is {kept.state}: {kept.reason or 'its turn has not come'}.",
            remedy="A finished study has results. See: hedgerow status " + study,
        )
    folder = out or Path(study)
    try:
        shutil.copytree(config.runs_folder / study, folder)
    except OSError as error:
        remedy = "Choose another --out."
        raise CannotWrite(f"{folder}: {error.strerror or error}.", remedy=remedy, asked=False) from error
    found = read_report(folder)
    print_json(result_told(found)) if as_json else show_result(found, console)


def register(main: typer.Typer) -> None:
    """Put the commands of this file into the `hedgerow` command."""
    main.add_typer(app, name="coordinator")
    for command in (submit, status, cancel, fetch):
        main.command()(command)


# ---- what is shown --------------------------------------------------------------------------------------------------
def _told(store: Any, study: str | None, letters: bool) -> dict[str, Any]:
    """All studies of a coordinator, or one with its history."""
    if study is None:
        return {"studies": [study_told(kept) for kept in store.studies()]}
    history = [entry for entry in store.history(study) if letters or _worth(entry)]
    return study_told(store.study(study)) | {
        "history": [{"time": entry.time, "event": entry.event, "sentence": entry.sentence} for entry in history]
    }


def _worth(entry: Any) -> bool:
    """Whether an entry says more than that a letter went or came."""
    return entry.event in ("state", "declined", "overlong", "refused") or bool(entry.about.get("codes"))


def _studies(store: Any) -> Group:
    """Two lines for each study: where it stands, and the last word of it, which may be long."""
    studies = store.studies()
    if not studies:
        return Group("No study was submitted yet.")
    rows = [(kept.id, kept.state, _time(kept.changed), _round(kept), _aboard(kept)) for kept in studies]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    shown: list[Any] = []
    for kept, row in zip(studies, rows, strict=True):
        line = "  ".join([*(cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)), row[4]])
        shown += [Text(line.rstrip(), overflow="fold"), Padding(Text(_last(store, kept), overflow="fold"), (0, 0, 0, 4))]
    return Group(*shown)


def _one(store: Any, id: str, config: Any, letters: bool) -> Table:
    """A study with what happened, in words."""
    kept = store.study(id)
    lines = Table.grid(padding=(0, 2))
    lines.add_row("study", kept.id)
    lines.add_row("state", escape(f"{kept.state}: {kept.reason}" if kept.reason else kept.state))
    if kept.round:
        lines.add_row("round", _round(kept))
    for one in kept.boarded:
        said = f"{one.status}{f' ({one.code})' if one.code else ''}"
        parties = f", {len(one.parties)} part{'y' if len(one.parties) == 1 else 'ies'}" if one.parties else ""
        lines.add_row(
            "aggregator" if one.station in config.aggregators else "station", f"{one.station}: {said}{parties}, {_time(one.at)}"
        )
    if kept.state == "waiting" or (kept.state == "boarding" and kept.due):
        lines.add_row("goes on", f"{_time(kept.due)}, or earlier when a station is back")
    if kept.untold:
        lines.add_row("not told yet", ", ".join(kept.untold))
    lines.add_row("results", str(config.runs_folder / kept.id) if kept.state == "finished" else "none yet")
    for entry in store.history(id):
        if letters or _worth(entry):
            lines.add_row(entry.time, escape(entry.sentence))
    return lines


def _round(kept: Any) -> str:
    """How far a program is; of how many rounds, where it has that many."""
    of = f" of {kept.rounds}" if kept.rounds and kept.rounds >= kept.round else ""
    return f"{kept.round}{of}" if kept.round else ""


def _aboard(kept: Any) -> str:
    by: dict[str, int] = {}
    for one in kept.boarded:
        by[one.status] = by.get(one.status, 0) + 1
    return ", ".join(f"{n} {status}" for status, n in sorted(by.items())) or (f"{len(kept.asked)} asked" if kept.asked else "")


def _last(store: Any, kept: Any) -> str:
    if kept.reason:
        return str(kept.reason)
    found = store.history(kept.id, last=1)
    return found[-1].sentence if found else ""


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) if at else ""


def _log_to_terminal() -> None:
    """One line for each event, on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("hedgerow")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


class _store:
    """The store of a coordinator, for one command."""

    def __init__(self, config: Any) -> None:
        from hedgerow.network.coordinator.store import Store

        self.store = Store(config.state_folder)

    def __enter__(self) -> Any:
        return self.store

    def __exit__(self, *exception: object) -> None:
        self.store.close()
