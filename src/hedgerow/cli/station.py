"""`hedgerow station`: run a station, check it, and decide what may be asked of it."""

from __future__ import annotations

import getpass
import json
import logging
import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hedgerow.errors import LedgerDamaged
from hedgerow.report import Fits

from .as_json import spent_told, station_told, submission_told
from .json_output import JsonOption, print_json

console = Console()

app = typer.Typer(help="Run a station, check it, and decide what may be asked of it.", no_args_is_help=True)

PathArgument = Annotated[Path, typer.Argument(help="The station's folder, or its station.toml.", metavar="FOLDER")]
NameArgument = Annotated[str, typer.Argument(help="A study, by the beginning of its id or by its title.", metavar="STUDY")]
ByOption = Annotated[str, typer.Option("--by", help="Who decides; the account's name by default.")]


@app.command()
def start(path: PathArgument) -> None:
    """Answer until interrupted. Everything that happens is a line on the terminal, and in the journal."""
    from hedgerow.network.station_service import serve

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("hedgerow").setLevel(logging.INFO)
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: None)  # the file is looked at every second
    serve(path, stop)


@app.command()
def check(path: PathArgument, as_json: JsonOption = False) -> None:
    """Read configuration, keys and records, connect nowhere, and print what a coordinator would see."""
    from hedgerow.core.disclosure import rounded
    from hedgerow.errors import ConfigInvalid
    from hedgerow.network.station.code import code_hash, installed_version
    from hedgerow.network.station.rules import kept_rules, notes_of
    from hedgerow.network.station_service import open_folder

    try:
        opened = open_folder(path)
    except ConfigInvalid:
        show_stale(path)
        raise
    try:
        rules = kept_rules(opened.base)
        config, held = opened.config if rules is None else rules.config, opened.held
        opened.station().close()
        if as_json:
            print_json(station_told(config, held) | {"notes": notes_of(rules, path)})
            return
        show_notes(notes_of(rules, path))
        lines = Table.grid(padding=(0, 2))
        lines.add_row("station", config.name)
        lines.add_row("data", f"{config.data.name!r}, {len(held.schema)} columns")
        if (named := config.data.held_dictionary) is not None:
            lacks = f"; without {', '.join(sorted(config.data.absent))}" if config.data.absent else ""
            lines.add_row("dictionary", f"{named.label}, digest {named.digest[:16]}{lacks}")
        lines.add_row("parties", f"{len(held):,}" + (" stores" if config.stores else ""))
        told = f"about {rounded(int(held.sizes.sum())):,}" if config.guard.tell_records else "not told"
        lines.add_row("records", told)
        lines.add_row("version", installed_version())
        console.print("[bold]What a coordinator sees[/bold]")
        console.print(lines, highlight=False)
        console.print(Fits(columns_of(held.schema, config.allowed)))
        own = Table.grid(padding=(0, 2))
        own.add_row("records here", f"{int(held.sizes.sum()):,}")
        for row in guard_rows(config.guard):
            own.add_row(*row)
        console.print("[bold]What only you see[/bold]")
        console.print(own, highlight=False)
        console.print(f"installed code  {code_hash(config.guard.modules)}", highlight=False, soft_wrap=True)
    finally:
        opened.base.close()


@app.command()
def inbox(
    path: PathArgument,
    study: Annotated[str, typer.Argument(help="One study, in full; all that have come by default.", metavar="[STUDY]")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the studies that asked to board, and show what those that wait would ask."""
    with opened(path) as box:
        submissions = [box.submissions.find(study)] if study else box.submissions.all()
        if as_json:
            print_json({"submissions": [submission_told(one) for one in submissions], "notes": box.notes()})
            return
        show_notes(box.notes())
        if not submissions:
            console.print("No study has come.")
        for submission in submissions:
            show_submission(submission, full=bool(study) or submission.status == "waiting")


@app.command()
def approve(path: PathArgument, study: NameArgument, by: ByOption = "", because: str = "", as_json: JsonOption = False) -> None:
    """Let a study ask what it announced, and nothing else. The decision is signed."""
    with opened(path) as box:
        submission = box.approve(study, by or getpass.getuser(), because)
    show_decision(submission, as_json)


@app.command()
def refuse(
    path: PathArgument,
    study: NameArgument,
    because: Annotated[str, typer.Option(help="The reason, for your own records; only a code leaves the station.")],
    by: ByOption = "",
    as_json: JsonOption = False,
) -> None:
    """Refuse a study, also one that was approved. Nothing of it is answered from then on."""
    with opened(path) as box:
        submission = box.refuse(study, by or getpass.getuser(), because)
    show_decision(submission, as_json)


@app.command()
def begin_anew(
    path: PathArgument,
    because: Annotated[str, typer.Option(help="The reason; it is an entry of the journal.")],
    spent: Annotated[
        float | None, typer.Option(help="Epsilon of the guard's budget that counts as spent; all of it by default.", min=0.0)
    ] = None,
    by: ByOption = "",
) -> None:
    """Go on after the journal was lost and no copy is whole. The budget counts as spent, and open studies are refused."""
    from hedgerow.network.station.begin_anew import begin_anew
    from hedgerow.network.station.config import read_config
    from hedgerow.network.station.review import DATABASE, keys_of
    from hedgerow.network.station_service import alone

    config, folder = read_config(path)
    with alone(folder):
        done = begin_anew(
            config, keys_of(config, folder), folder / DATABASE, by=by or getpass.getuser(), because=because, spent=spent
        )
    console.print(f"{config.name} begins anew, for the {done.generation}. time.", highlight=False)
    if done.aside is not None:
        console.print(f"what lay in its place is now {done.aside}", highlight=False, soft_wrap=True)
    if done.epsilon is not None:
        console.print(f"epsilon {done.epsilon:g} counts as spent by every party", highlight=False)
    for title in done.refused:
        console.print(f"refused: {escape(title)}", highlight=False)


@app.command()
def journal(
    path: PathArgument,
    study: Annotated[str, typer.Option(help="Only of one study, by the beginning of its id or by its title.")] = "",
    last: Annotated[int, typer.Option(help="So many entries, the latest.", min=1)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print entries as JSON.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Recompute the chain; exits with 1 where it is broken.")] = False,
) -> None:
    """Show everything that was asked and answered."""
    with opened(path) as box:
        if verify:
            try:
                count, head = box.journal.verify()
            except LedgerDamaged as error:
                console.print(f"damaged: {escape(error.reason)}", style="red", highlight=False, soft_wrap=True)
                raise typer.Exit(1) from error
            console.print(f"whole: {count} entries, head {head or 'none'}", highlight=False, soft_wrap=True)
            return
        entries = box.priced(box.journal.entries(study=box.submissions.find(study).study if study else None, last=last))
        if as_json:
            spent = [{} if e.epsilon is None else {"epsilon": e.epsilon} for e in entries]
            told = [
                {"number": e.number, "hash": e.hash, **json.loads(e.to_json()), **s}
                for e, s in zip(entries, spent, strict=True)
            ]
            typer.echo(json.dumps(told, indent=1))
            return
        titles = {submission.study: submission.title for submission in box.submissions.all()}
    from hedgerow.network.station.cohorts import cohort_notes

    notes = cohort_notes(entries)
    known = {entry.study: titles.get(entry.study, "") for entry in entries if entry.study}
    console.print(f"[bold]journal of {escape(box.config.name)}[/bold]", highlight=False)
    for id, title in known.items():
        console.print(f"  {id[:8]}  {escape(title)}", highlight=False, soft_wrap=True)
    for entry in entries:
        console.print(line_of(entry, notes.get(entry.number, "")), highlight=False, markup=False, soft_wrap=True)


@app.command()
def budget(path: PathArgument, as_json: JsonOption = False) -> None:
    """Tell what was spent of the budgets, what is left, and how many exact numbers were told."""
    from hedgerow.network.console.rules import disclosed_words

    with opened(path) as box:
        spent, guard, told = box.spent(), box.config.guard, box.told()
    if as_json:
        limits = {"budget": guard.budget is not None, "study_budget": guard.study_budget is not None}
        numbers = [{"of": title, "numbers": count} for title, count in told]
        print_json({"limits": limits, "budgets": [spent_told(one) for one in spent], "exact_numbers": numbers})
        return
    console.print(f"exact numbers: {disclosed_words(guard)}", highlight=False, soft_wrap=True)
    for title, numbers in told:
        console.print(f"  {numbers:,.0f} of the party that told most: {escape(title)}", highlight=False, soft_wrap=True)
    if guard.budget is None and guard.study_budget is None:
        console.print("The guard sets no budget: guard.budget and guard.study_budget of station.toml.", soft_wrap=True)
        return
    if not spent:
        console.print("Nothing was charged yet.")
        return
    table = Table(title="epsilon of each budget, most spent first", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("of", "spent", "left", "budget", "parties"):
        table.add_column(name, overflow="fold")
    for one in spent:
        words = "everything" if math.isinf(one.epsilon) else f"{one.epsilon:.4g}"
        table.add_row(escape(one.whose), words, f"{one.left:.4g}", str(one.budget), f"{one.n_parties:,}")
    console.print(Fits(table))


def show_decision(submission: Any, as_json: bool) -> None:
    """Print what became of a study."""
    if as_json:
        print_json(submission_told(submission))
        return
    words = f"{submission.status}: {escape(submission.title)} ({submission.id}), by {escape(submission.by)}"
    console.print(words, highlight=False)


def show_stale(path: Path) -> None:
    """Print the rules that stay in force beside a file with a mistake, where there are any."""
    from hedgerow.network.station.review import DATABASE

    if ((path if path.is_dir() else path.parent) / DATABASE).exists():
        with opened(path) as box:
            show_notes(box.notes())
            table = Table.grid(padding=(0, 2))
            for row in guard_rows(box.config.guard):
                table.add_row(*row)
            console.print(table, highlight=False)


def show_notes(notes: list[str]) -> None:
    """Print where the file is not what is in force."""
    for note in notes:
        console.print(escape(note), style="bold red", highlight=False, soft_wrap=True)


# ---- what is shown --------------------------------------------------------------------------------------------------
@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A station's inbox; why it answers nothing is said first."""
    from hedgerow.network.station.heads import trouble
    from hedgerow.network.station.review import Review

    box = Review.at(path)
    try:
        if words := trouble(box.keys, box.journal):
            Console(stderr=True).print(f"Nothing is answered: {escape(words)}", style="red", highlight=False, soft_wrap=True)
        yield box
    finally:
        box.close()


def show_submission(submission: Any, *, full: bool) -> None:
    """Print a study that asked to board: in a line, or with everything that it would ask."""
    decided = (
        f", by {submission.by} on {submission.at[:10]}"
        if submission.by
        else f", since {submission.came[:16].replace('T', ' ')}" + ", and is being rehearsed" * (not submission.ready)
    )
    because = f": {submission.because}" if submission.because else ""
    code = f" {submission.code}" if submission.code else ""
    head = f"[bold]{submission.id}[/bold]  {escape(submission.title or 'a study')}"
    console.print(f"{head}  {submission.status}{code}{escape(decided + because)}", highlight=False, soft_wrap=True)
    if not full or not submission.rows:
        return
    columns = ", ".join(submission.columns)
    of = f"{submission.program}, for {submission.coordinator}, at {submission.n_stations} stations; columns {columns}"
    console.print(f"  {escape(of)}", highlight=False, soft_wrap=True)
    console.print(f"  {escape(submission.summary)}", highlight=False, soft_wrap=True)
    for row in submission.rows:
        console.print(f"  [bold]{row['questions']}[/bold]: {escape(row['asks'])}", highlight=False, soft_wrap=True)
        lines = Table.grid(padding=(0, 2))
        for name, value in row.items():
            if name not in ("questions", "asks"):
                lines.add_row(f"    {name}", escape(value))
        console.print(lines, highlight=False)
    console.print()


def line_of(entry: Any, note: str = "") -> str:
    """An entry of the journal in one line, with a note of whom a total is: what is longest comes last."""
    letter = f"{entry.letter >> 32}.{entry.letter & 0xFFFFFFFF}" if entry.letter else ""
    sizes = [f"{size:,} {way}" for size, way in ((entry.bytes_in, "in"), (entry.bytes_out, "out")) if size]
    spent = [] if entry.epsilon is None else [f"epsilon {entry.epsilon:.4g}"]
    why = [entry.reason] if entry.reason else []
    rest = "; ".join([*([entry.function] if entry.function else []), *sizes, *spent, *([note] if note else []), *why])
    at = entry.at[:19].replace("T", " ")
    return f"{entry.number:>6}  {at}  {entry.study[:8]:8}  {letter:>6}  {entry.kind:8}  {entry.code:8}  {rest}"


def columns_of(schema: Any, allowed: frozenset[str]) -> Table:
    """A table of declared columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("column", "kind", "range or levels", "unit", "guard"):
        table.add_column(name, overflow="fold")
    for column in schema:
        ends = ["" if end is None else f"{end:g}" for end in (column.low, column.high)]
        span = ", ".join(column.levels) if column.levels else f"{ends[0]} to {ends[1]}" if any(ends) else "open"
        span = "0 or 1" if column.kind == "binary" else span
        table.add_row(
            escape(column.name), column.kind, escape(span), escape(column.unit), "" if column.name in allowed else "forbidden"
        )
    return table


def guard_rows(guard: Any) -> list[tuple[str, str]]:
    """The guard in words."""
    programs = (
        "any" if guard.programs is None else ", ".join(f"{rule.name} {rule.version}" for rule in guard.programs) or "none"
    )
    from hedgerow.network.console.rules import disclosed_words

    need, limits = guard.require, guard.limits
    noise = "" if need.noise == "none" else f"noise by {need.noise}, multiplier {need.noise_multiplier:g} or more"
    hidden = "hidden rows" + ", also from a coordinator that lies" * (need.adversary == "active")
    hidden += ", each proved to be within its bound" * need.verified
    wants = [*([hidden] if need.hidden_rows else []), *([noise] if noise else [])]
    rows = [
        ("approval", "a person" if guard.approval == "ask" else "automatic"),
        ("programs", programs),
        ("least", f"records {guard.least_records:,}, parties {guard.least_cohort}"),
        ("requires", ", ".join(wants) or "nothing"),
        ("exact numbers", disclosed_words(guard)),
        ("hours", f"{', '.join(guard.hours)} ({guard.timezone})" if guard.hours else "always"),
        ("budget", "none" if guard.budget is None else f"{guard.budget.budget()}; trusts {guard.budget.trust}"),
        ("study budget", "none" if guard.study_budget is None else f"{guard.study_budget.budget()}"),
        ("questions", f"{limits.questions_per_minute or 'any number'} a minute, {limits.questions_per_study or 'any'} a study"),
    ]
    if guard.randomness == "study":
        rows.append(("randomness", "of the study: its noise can be foretold; for pilots and tests only"))
    return rows
