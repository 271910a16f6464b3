"""`hedgerow ledger`: show a ledger, verify its chain, and tell what of a budget is left."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hedgerow import privacy, store
from hedgerow.core.events import Charge
from hedgerow.core.ledger import Entry
from hedgerow.errors import LedgerDamaged
from hedgerow.report import Fits

from .json_output import JsonOption, print_json

console = Console()

app = typer.Typer(help="Show a ledger, verify it, or tell what of a budget is left.", no_args_is_help=True)

MOST = 2**16
"""Further rounds beyond which nobody counts."""

PathArgument = Annotated[Path, typer.Argument(help="A run folder, its ledger.jsonl, or a ledger that runs share (*.sqlite).")]


@app.command()
def show(
    path: PathArgument,
    last: Annotated[int | None, typer.Option(help="Only so many entries, the latest.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print entries and hashes as JSON.")] = False,
) -> None:
    """List the entries of a ledger, one for each question."""
    chain = store.read_chain(path)
    first = max(len(chain.entries) - last, 0) if last else 0
    if as_json:
        told = zip(chain.entries, chain.hashes[1:], strict=True)
        listed = [{"number": number, "hash": link, **entry.to_json()} for number, (entry, link) in enumerate(told, 1)]
        typer.echo(json.dumps({"path": str(chain.path), "head": chain.head, "entries": listed[first:]}, indent=1))
        return
    console.print(Fits(listing(chain, first)))
    console.print(described(chain), highlight=False, markup=False, soft_wrap=True)


@app.command()
def verify(
    path: PathArgument,
    head: Annotated[str, typer.Option(help="A head that was noted before: the ledger must have had it.", metavar="HASH")] = "",
    as_json: JsonOption = False,
) -> None:
    """Recompute the chain of a ledger. Names the first damaged entry, and exits with 1.

    Entries removed from the end leave a whole chain: only a head that was noted elsewhere shows that they are missing.
    """
    try:
        chain = store.read_chain(path)
        newer = chain.since(head) if head else 0
    except LedgerDamaged as error:
        if as_json:
            print_json({"whole": False, "reason": error.reason})
            raise typer.Exit(1) from error
        console.print(f"damaged: {escape(error.reason)}", style="red", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
    if as_json:
        told = {
            "whole": True,
            "path": chain.path,
            "entries": len(chain.entries),
            "head": chain.head or None,
            "torn": chain.torn,
        }
        print_json(told | ({"since_head": newer} if head else {}))
        return
    console.print(f"whole: {described(chain)}", highlight=False, markup=False, soft_wrap=True)
    if head:
        console.print(f"had the head {head}, and {newer} entries since.", highlight=False, soft_wrap=True)


@app.command()
def budget(
    path: PathArgument,
    epsilon: Annotated[float, typer.Option(help="The budget.")],
    delta: Annotated[float, typer.Option(help="Its delta.")],
    unit: Annotated[str | None, typer.Option(help="party or record; by default what the entries are bounded by.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what was spent of a budget, what is left, and how many further rounds like the last one it would admit."""
    chain = store.read_chain(path)
    found = unit or next((entry.unit for entry in reversed(chain.entries) if entry.unit), "party")
    limit = privacy.Budget(epsilon, delta, unit=found)  # type: ignore[arg-type]
    charges = chain.ledger().charges(limit.unit)
    spent = limit.spent(charges)
    if as_json:
        rounds = None if math.isinf(spent) or not charges else rounds_left(limit, charges)
        told = {"epsilon": epsilon, "delta": delta, "unit": limit.unit, "spent": spent, "left": max(epsilon - spent, 0.0)}
        print_json(told | {"charged_releases": sum(not entry.free for entry in chain.entries), "further_rounds": rounds})
        return
    lines = Table.grid(padding=(0, 2))
    lines.add_row("budget", str(limit))
    if math.isinf(spent):
        n_open = sum(entry.event.open for entry in chain.entries)
        lines.add_row("spent", f"everything: {n_open} of {len(chain.entries)} questions were answered without noise")
    else:
        lines.add_row("spent", f"{spent:.4g}, by {counted(chain.entries)}")
        lines.add_row(
            "left", f"{max(epsilon - spent, 0):.4g}" if spent <= epsilon else f"nothing: {spent - epsilon:.4g} too much"
        )
        lines.add_row("would fit", further(limit, charges))
    console.print(lines, highlight=False)


def further(limit: privacy.Budget, charges: list[Charge]) -> str:
    """How many further rounds like the last one a budget admits, in words."""
    if not charges:
        return "nothing was charged yet"
    sampling, events = charges[-1]
    like = f"like the last: {', '.join(str(event) for event in events)}, {sampling}"
    fits = rounds_left(limit, charges)
    return f"{f'{MOST} or more' if fits is None else fits} further rounds {like}"


def rounds_left(limit: privacy.Budget, charges: list[Charge]) -> int | None:
    """How many further rounds like the last one a budget admits; None for more than anybody counts."""
    fits, too_many = 0, 1
    while too_many <= MOST and limit.admits([*charges, *[charges[-1]] * too_many]):
        fits, too_many = too_many, 2 * too_many
    if too_many > MOST:
        return None
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if limit.admits([*charges, *[charges[-1]] * middle]) else (fits, middle)
    return fits


def listing(chain: store.Chain, first: int = 0) -> Table:
    """Entries in rows; equal ones that follow each other share a row."""
    entries = chain.entries
    starts = [i for i in range(first, len(entries)) if i == first or alike(entries[i]) != alike(entries[i - 1])]
    rows = []
    for start, end in pairwise([*starts, len(entries)]):
        a, z = entries[start], entries[end - 1]
        row = {
            "number": span(start + 1, end),
            "run": a.run,
            "round": span(a.round, z.round),
            "cohort": span(a.cohort, z.cohort) if a.cohort else "",
            "question": f"{a.verb} of {a.query.split(':')[-1]}",
            "protection": a.mechanism if a.mechanism != "none" else "no noise",
            "event": str(a.event) + (f" per {a.unit}" if a.unit else ""),
            "sampling": str(a.sampling),
        }
        rows.append(row)
    table = Table(title=str(chain.path), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    names = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(row[name]) for name in names))
    return table


def alike(entry: Entry) -> tuple[Any, ...]:
    """What entries in one row of the listing have in common."""
    return (
        entry.run,
        entry.verb,
        entry.query,
        entry.protection,
        entry.event,
        entry.sampling,
        entry.randomness,
        entry.cohort != 0,
    )


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def counted(entries: tuple[Entry, ...]) -> str:
    """How many releases cost something, and of how many runs."""
    n_runs = len({entry.run for entry in entries})
    n = sum(not entry.free for entry in entries)
    return f"{n} charged releases" + (f" of {n_runs} runs" if n_runs > 1 else "")


def described(chain: store.Chain) -> str:
    """A ledger in a line."""
    runs = len({entry.run for entry in chain.entries})
    randomness = sorted({entry.randomness for entry in chain.entries})
    parts = (
        f"{len(chain.entries)} entries" + (f" of {runs} runs" if runs > 1 else ""),
        *([f"randomness {' and '.join(randomness)}"] if randomness else []),
        *(["a line at the end was cut short, its question was not asked"] if chain.torn else []),
        f"head {chain.head or 'none'}",
    )
    return "; ".join(parts)
