"""What the commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from hedgerow.report import Fits, Grid, Report, print_report

if TYPE_CHECKING:
    from hedgerow.study import Study


def show_beginning(study: Study, console: Console, *, quick: bool = False) -> None:
    """Say what a study is about to do, before data are read: that, checks and plans of noise may take a while."""
    section, planned = study.comparison, study.budget is not None
    what = f"the program {study.program.name}"
    if section is not None:
        seeds = 1 if quick else section.seeds
        runs = len(section.rows) * len(section.columns) * seeds
        what = f"{runs} runs of a comparison, {len(section.rows)} by {len(section.columns)}"
        what += f" with {seeds} seeds each" if seeds > 1 else ""
        if quick and section.quick:
            what += ", quick with " + ", ".join(f"{key} = {value}" for key, value in section.quick.items())
    if study.matrix is not None:
        what = f"{study.matrix.runs} runs of a matrix, {len(study.matrix.acts)} acts by {len(study.matrix.rules)} rules"
    several = section is not None or study.matrix is not None
    steps = ["reading data", *["planning noise for the budget"] * planned, *["checking every run"] * several]
    first = steps[0] if len(steps) == 1 else f"{', '.join(steps[:-1])} and {steps[-1]}"
    console.print(f"{study.name}: {what}. First: {first}.", markup=False, highlight=False, soft_wrap=True)


class Bars:
    """The runs of a comparison: how many have ended, and a line with rounds and metrics for each that is running."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            console=console,
            transient=True,
        )
        self.all = self.bars.add_task("checking the runs", total=None, said="")
        self.running: dict[str, Any] = {}

    def __enter__(self) -> Bars:
        self.bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bars.stop()

    def check(self, name: str, number: int, runs: int) -> None:
        """Take which run is being checked, before the first begins."""
        self.bars.update(self.all, description="checking the runs", total=runs, completed=number - 1, said=escape(name))

    def start(self, todo: list[str], kept: list[str]) -> None:
        """Take the names of the runs that are to come, and of those that had ended before."""
        said = f"{len(kept)} had ended before" if kept else ""
        self.bars.update(self.all, description="runs", total=len(todo) + len(kept), completed=len(kept), said=said)

    def count(self, there: int, of: int) -> None:
        """Take how many runs are there, of how many."""
        self.bars.update(self.all, description="runs", total=of, completed=there, said="")

    def show(self, name: str, progress: Any) -> None:
        """Take one round's progress of a run, or its end."""
        if progress is None:
            if name in self.running:
                said = self.bars.tasks[self.bars.task_ids.index(self.running[name])].fields["said"]
                self.bars.remove_task(self.running.pop(name))
                self.console.print(escape(f"{name}: {said}"), highlight=False)
            self.bars.advance(self.all)
            return
        if name not in self.running:
            self.running[name] = self.bars.add_task(escape(name), total=None, said="")
        said = ", ".join(f"{key} {value:.4g}" for key, value in list(progress.metrics.items())[:2])
        self.bars.update(self.running[name], completed=progress.round, total=progress.rounds, said=said)


def show_result(result: Any, console: Console) -> None:
    """Print a finished run in short, and where its page is."""
    from hedgerow.study.registry import own

    print_report(result.report, console)
    show_finding(result.report, console)
    if result.report.nothing:
        console.print(f"\n{result.report.nothing}", style="bold red", markup=False, highlight=False)
    place = own().get(str(dict(result.report.facts).get("program")))
    if place is not None and place.draws:
        said = f"\nDraw made-up records: hedgerow synth {result.folder} --rows 1000 --out people.csv"
        console.print(said, markup=False, highlight=False, soft_wrap=True)
    console.print(f"\nReport: {result.folder / 'report.html'}", highlight=False, soft_wrap=True)


def show_finding(report: Report, console: Console) -> None:
    """Print what was found: the summary, the rules, or the first table, where it is not long."""
    if report.text:
        title, text = report.text[0]
        console.print(f"\n[bold]{title}[/bold]")
        console.print(text, markup=False, highlight=False, no_wrap=True, crop=False, overflow="ignore")
    elif report.tables and len(report.tables[0].rows) <= 40:
        console.print()
        console.print(grid_table(report.tables[0]))


def show_rehearsals(found: Any, console: Console) -> None:
    """Print the rehearsals of a comparison: cells that ask the same are shown once."""
    n_cells = sum(len(names) for names, _ in found)
    console.print(
        f"{n_cells} runs were checked and rehearsed for their first rounds; {len(found)} differ in what they ask.\n",
        highlight=False,
    )
    for names, rehearsal in found:
        more = f" and {len(names) - 1} more: {'; '.join(names[1:])}" if len(names) > 1 else ""
        console.print(f"[bold]{escape(names[0])}[/bold]{escape(more)}", highlight=False)
        show_rehearsal(rehearsal, console)
        console.print()


def show_rehearsal(rehearsal: Any, console: Console) -> None:
    """Print every question with its size, bound, mechanism, event and running epsilon; equal ones in a row together."""
    title = escape(rehearsal.study.title or rehearsal.study.name)
    console.print(f"[bold]{title}[/bold]: rehearsed on made-up records, no party was asked.")
    console.print(f"{rehearsal.parties} parties; the program {rehearsal.ended.rstrip('.')}.\n", highlight=False)
    for first, last in rehearsal.runs():
        entry, (bound, mechanism) = rehearsal.entries[first], rehearsal.entries[first].protection
        rounds = f"question {first + 1}" if first == last else f"questions {first + 1} to {last + 1}"
        console.print(f"[bold]{rounds}[/bold]: {entry.verb} of {entry.query}", highlight=False)
        lines = Table.grid(padding=(0, 2))
        expected = ", expected" if entry.sampling.kind == "poisson" else ""
        lines.add_row("  asked of", f"{entry.sampling}: {entry.parties:g} of {rehearsal.parties}{expected}")
        leaves = f"{entry.numbers or '?'} numbers from each: {entry.contribution}" if entry.verb != "each" else "nothing"
        lines.add_row("  leaves", leaves)
        lines.add_row("  bound", bound)
        if entry.compression != "none":
            lines.add_row("  compression", f"{entry.compression}: {entry.bytes_up:,.0f} bytes from each")
        lines.add_row("  mechanism", f"{mechanism}, {entry.aggregation} aggregation")
        lines.add_row("  event", str(entry.event))
        spent = [rehearsal.epsilon_after(first + 1), rehearsal.epsilon_after(last + 1)]
        words = ["not private" if value is None else f"{value:.4g}" for value in spent]
        lines.add_row(
            "  epsilon", words[0] if words[0] == words[1] else f"{words[0]} after the first, {words[1]} after the last"
        )
        console.print(lines, highlight=False)
    console.print()
    console.print(grid_table(rehearsal.left))
    for grid in rehearsal.agreed:
        console.print(grid_table(grid))
    console.print(rehearsal.statement.text, highlight=False)
    if rehearsal.room:
        console.print(rehearsal.room, style="bold", highlight=False)


def grid_table(grid: Grid) -> Fits:
    """A table of a report, for the terminal."""
    table = Table(title=grid.title, caption=grid.note, title_justify="left", caption_justify="left")
    for column in grid.columns:
        table.add_column(column, overflow="fold")
    for row in grid.rows:
        table.add_row(*(f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else str(cell) for cell in row))
    return Fits(table)


def listed() -> dict[str, dict[str, str]]:
    """Studies, programs, partitions and data sets with a sentence each."""
    from hedgerow import data
    from hedgerow.study import PROGRAMS, VERTICAL, bundled, load

    return {
        "studies": {name: load(name).title for name in bundled()},
        "programs": dict(PROGRAMS.sentences()),
        "vertical": dict(VERTICAL.sentences()),
        "partitions": {name: (made.__doc__ or "").strip().split("\n")[0] for name, made in data.PARTITIONERS.items()},
        "data": dict(data.names()),
    }


def show_studies(console: Console) -> None:
    """Print studies, programs, partitions and data sets with a sentence each."""
    titles = {
        "studies": "Studies (hedgerow run NAME)",
        "programs": r"Programs (\[program] name)",
        "vertical": r"Programs of columns that lie apart (\[program] name, with \[roles] and \[alignment])",
        "partitions": r"Partitions (\[partition] by)",
        "data": r"Data sets (\[data] name)",
    }
    for kind, rows in listed().items():
        table = Table("name", "what it is", title=titles[kind], title_justify="left", expand=True)
        for name, sentence in rows.items():
            table.add_row(name, sentence)
        console.print(Fits(table))
