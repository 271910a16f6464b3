"""What the commands print."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from hedgerow.report import Grid, print_report


class Bar:
    """A progress bar with rounds, time left, metric, and epsilon of budget."""

    def __init__(self, name: str, console: Console) -> None:
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self.task = self.bar.add_task(name, total=None, said="")

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()

    def show(self, progress: Any) -> None:
        """Take one round's progress."""
        said = [f"{name} {value:.4g}" for name, value in list(progress.metrics.items())[:2]]
        if progress.epsilon is not None:
            said.append(f"epsilon {progress.epsilon:.3g} of {progress.budget:g}")
        self.bar.update(self.task, completed=progress.round, total=progress.rounds, said=", ".join(said))


def show_result(result: Any, console: Console) -> None:
    """Print a finished run in short, and where its page is."""
    print_report(result.report, console)
    console.print(f"\nReport: {result.folder / 'report.html'}", highlight=False, soft_wrap=True)


def show_rehearsal(rehearsal: Any, console: Console) -> None:
    """Print every question with its size, bound, mechanism, event and running epsilon."""
    console.print(f"[bold]{rehearsal.study.title or rehearsal.study.name}[/bold]: rehearsal, no party was asked.")
    console.print(f"{rehearsal.parties} parties; the program {rehearsal.ended}.", highlight=False)
    table = Table("round", "query", "verb", "asked", "numbers", "bound", "mechanism", "event", "epsilon so far", title="Questions in order")
    shown = list(zip(rehearsal.entries, rehearsal.epsilons, strict=True))
    for entry, epsilon in shown[:8] + ([(None, None)] if len(shown) > 12 else []) + shown[max(8, len(shown) - 4) :]:
        if entry is None:
            table.add_row(*["…"] * 9)
            continue
        bound = entry.clip if entry.clip != "none" else entry.bound
        spent = "not private" if epsilon is None else f"{epsilon:.4g}"
        numbers = "?" if entry.numbers is None else str(entry.numbers)
        row = (entry.round, entry.query.split(".", 1)[-1], entry.verb, entry.parties, numbers, bound, entry.mechanism, entry.event, spent)
        table.add_row(*map(str, row))
    console.print(table)
    show_grid(rehearsal.left, console)
    console.print(rehearsal.statement.sentence, highlight=False)


def show_grid(grid: Grid, console: Console) -> None:
    """Print a table of a report."""
    table = Table(*grid.columns, title=grid.title, caption=grid.note)
    for row in grid.rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console.print(table)


def show_studies(console: Console) -> None:
    """Print studies, programs and data sets with a sentence each."""
    from hedgerow import data
    from hedgerow.studies import PROGRAMS, bundled, load

    for title, rows in (
        ("Studies (hedgerow run NAME)", {name: load(name).title for name in bundled()}),
        ("Programs ([program] name)", {name: listing.sentence for name, listing in PROGRAMS.items()}),
        ("Partitions ([partition] by)", {name: (made.__doc__ or "").strip().split("\n")[0] for name, made in data.PARTITIONERS.items()}),
        ("Data sets ([data] name)", data.names()),
    ):
        table = Table("name", "what it is", title=title, title_justify="left", expand=True)
        for name, sentence in rows.items():
            table.add_row(name, sentence)
        console.print(table)
