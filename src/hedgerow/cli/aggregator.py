"""`hedgerow aggregator`: make, check and run an aggregator, and pin its key at stations."""

from __future__ import annotations

import json
import logging
import signal
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .json_output import JsonOption, print_json
from .keys import OutOption, read, write, write_request

console = Console()

app = typer.Typer(
    help="Add up shares of rows that nobody sees: make, check and run an aggregator, and pin its key.", no_args_is_help=True
)

PathArgument = Annotated[Path, typer.Argument(help="The aggregator's folder, or its aggregator.toml.", metavar="FOLDER")]


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    name: Annotated[str, typer.Option(help="What this aggregator is called.")],
    coordinator: Annotated[str, typer.Option(help="The coordinator's name.")],
    address: Annotated[str, typer.Option(help="Where it listens.", metavar="HOST:PORT")] = "",
    socket: Annotated[str, typer.Option(help="Its socket, on one machine; instead of an address.", metavar="PATH")] = "",
    out: OutOption = Path(),
) -> None:
    """Make keys, a key for shares and aggregator.toml in a new folder; write a request to the coordinator and a card."""
    from hedgerow.network.aggregator_service import lay_out

    section = {"name": coordinator} | ({"rail": "socket", "path": socket} if socket else {"address": address})
    made = lay_out(folder, name, section)
    say(f"{name}: keys and aggregator.toml made in {folder}")
    write_request(made.keys, out)
    write_card(made, out)


@app.command()
def card(path: PathArgument, out: OutOption = Path()) -> None:
    """Write the card of the key for shares again, signed by the keys of now."""
    from hedgerow.network.aggregator_service import open_folder

    write_card(open_folder(path), out)


@app.command()
def pin(
    cards: Annotated[list[Path], typer.Argument(help="Cards of all aggregators of a federation, as they came.")],
    as_json: JsonOption = False,
) -> None:
    """At a station: read cards, check who signed them, and print what to compare and what to write into station.toml."""
    from hedgerow.network.aggregator.share_key import AggregatorCard

    found = [AggregatorCard.from_bytes(read(path)) for path in cards]
    if as_json:
        told = [{"name": one.name, "fingerprint": one.fingerprint, "key": one.shares.hex()} for one in found]
        print_json({"aggregators": told})
        return
    say("Have each organisation tell you its fingerprint by telephone:")
    for one in found:
        say(f"  {one.name}  {one.fingerprint}")
    say("If they agree, write into station.toml:")
    say("[aggregators]")
    for one in found:
        say(f'{json.dumps(one.name) if "." in one.name else one.name} = "{one.shares.hex()}"')


@app.command()
def check(path: PathArgument, as_json: JsonOption = False) -> None:
    """Read configuration, keys and journal, connect nowhere, and say what is there."""
    from hedgerow.network.aggregator_service import open_folder, open_gate

    opened = open_folder(path)
    gate = open_gate(opened)
    try:
        config, guard = opened.config, opened.config.guard
        entries, head = gate.journal.verify()
        studies, roster = gate.studies.all(), opened.keys.roster
    finally:
        gate.close()
        gate.base.close()
    going = sum(one.status == "approved" for one in studies)
    told: dict[str, Any] = {
        "aggregator": config.name,
        "coordinator": config.coordinator.name,
        "key": opened.shares.public.hex(),
    }
    told |= {"with": sorted(config.aggregators), "roster": sorted(roster), "least": guard.least, "signed": guard.signed}
    told |= {"studies": len(studies), "running": going, "journal": {"whole": True, "entries": entries, "head": head or None}}
    if as_json:
        print_json(told)
        return
    lines = Table.grid(padding=(0, 2))
    lines.add_row("aggregator", config.name)
    lines.add_row("coordinator", f"{config.coordinator.name}, {config.coordinator.address or config.coordinator.path}")
    lines.add_row("key for shares", opened.shares.public.hex())
    others = ", ".join(name for name in config.aggregators if name != config.name)
    lines.add_row("adds up with", others or "any that parties pinned beside it")
    signed = "stations of the roster, who sign" if guard.signed else "any that the coordinator names: no signature is asked for"
    lines.add_row("parties", signed)
    lines.add_row("roster", ", ".join(sorted(roster)))
    lines.add_row("gives", f"totals of {guard.least} parties or more, of {guard.numbers:,} numbers or fewer")
    lines.add_row("studies", f"{len(studies)}; not ended: {going}")
    lines.add_row("journal", f"whole: {entries} entries, head {head or 'none'}")
    console.print(lines, highlight=False, markup=False)


@app.command()
def start(path: PathArgument) -> None:
    """Answer until interrupted. Everything that happens is a line on the terminal; what was given is in the journal."""
    from hedgerow.network.aggregator_service import serve

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("hedgerow").setLevel(logging.INFO)
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    serve(path, stop)


@app.command()
def journal(
    path: PathArgument,
    study: Annotated[str, typer.Option(help="Only of one study, by the beginning of its id.")] = "",
    last: Annotated[int, typer.Option(help="So many entries, the latest.", min=1)] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show what was approved, refused and given: which totals, of how many parties."""
    from hedgerow.network.aggregator.config import DATABASE, load_config
    from hedgerow.network.aggregator.journal import AddedUpStudies, AggregatorBase, AggregatorJournal

    config, folder = load_config(path)
    base = AggregatorBase(folder / DATABASE)
    try:
        entries, titles = AggregatorJournal(base).entries(), AddedUpStudies(base).titles()
    finally:
        base.close()
    chosen = [one for one in entries if one.study.startswith(study.lower())][-last:]
    if as_json:
        print_json({"entries": [asdict(one) for one in chosen]})
        return
    say(f"journal of {config.name}")
    for id in dict.fromkeys(one.study for one in chosen if one.study in titles):
        say(f"  {id[:8]}  {titles[id]}")
    for one in chosen:
        letter, at = f"{one.letter >> 32}.{one.letter & 0xFFFFFFFF}", one.at[:19].replace("T", " ")
        say(f"{one.number:>6}  {at}  {one.study[:8]:8}  {letter:>6}  {one.kind:9}  {one.code:8}  {one.words}")


@app.command()
def rekey(path: PathArgument, out: OutOption = Path()) -> None:
    """Make a new key for shares, where the journal or the old key was lost. Every station has to pin it."""
    from hedgerow.network.aggregator_service import rekey as renew

    write_card(renew(path), out)
    say("Studies that are under way end; submit them anew when all stations have pinned the new key.")


def write_card(opened: Any, out: Path) -> None:
    """Write the card of an aggregator, and say what people compare."""
    from hedgerow.network.aggregator.share_key import card_of

    made = card_of(opened.keys, opened.shares.public)
    write(out / f"{made.name}.card", made.to_bytes(), "Send it to every station.")
    say(f"fingerprint  {made.fingerprint}")


def say(line: str) -> None:
    """Print a line as it is."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)
