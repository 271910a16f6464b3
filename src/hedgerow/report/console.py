"""A report in a terminal: the guarantee, the numbers, the alternatives, and what left each party."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from unicodedata import category

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hedgerow.report.fits import Fits
from hedgerow.report.model import AuditLights, Cell, Comparison, Grid, Report
from hedgerow.report.numerals import show, show_column
from hedgerow.report.page import loss_sentence
from hedgerow.report.tables import all_numeric, flow_grid, forest_grid


def print_report(report: Report, console: Console) -> None:
    """Print a compact summary of a report; names that parties chose cannot style or steer the terminal."""
    console.print(_plain(report.title, "bold"))
    console.print(_plain(report.description, "dim"))
    if report.nothing:
        console.print(_plain(report.nothing, "bold red"))
    name, kind = report.promise
    style = {"private": "green", "weak": "yellow", "open": "blue"}[kind]
    said = Text("\n").join(_plain(words) for words in (report.privacy, report.exposed) if words)
    console.print(Panel(said, title=name, title_align="left", border_style=style, padding=(0, 1)))
    if report.audit:
        print_audit(report.audit, console)
    for warning in report.warnings:
        console.print(_plain(f"Worth knowing: {warning}", "yellow"))
    if report.headlines:
        lines = [(one.label, one.value, one.beneath) for one in report.headlines]
        console.print(_table(("", "", ""), lines, numeric=(False, True, False), headed=False))
    if report.metrics or report.facts:
        pairs = [(label, show(value)) for label, value in (*report.metrics, *report.facts)]
        console.print(_table(("", ""), pairs, numeric=(False, True), headed=False))
    if report.comparison:
        _print_comparison(report.comparison, console)
    for forest in report.forests:
        _print_grid(forest_grid(forest), console)
        if forest.sentence:
            console.print(_plain(forest.sentence))
    for flow in report.flows:
        _print_grid(flow_grid(flow), console)
    if report.witnesses:
        _print_grid(report.witnesses, console)
    if report.left:
        _print_grid(report.left, console)
    if report.saw:
        print_roles("Who saw what", report.saw, console)
    if report.traffic:
        _print_grid(report.traffic, console)


def print_audit(audit: AuditLights, console: Console) -> None:
    """Print what an audit found, a light to a line."""
    console.print(_plain(f"Audit: {audit.sentence}", "bold"))
    console.print(_plain(f"  accounted   {audit.accounted}"))
    for name, light, found, beside in audit.lights:
        console.print(
            _plain(f"  {name:<11} {light.upper():<6} {found}", {"green": "green", "red": "bold red"}.get(light, "dim"))
        )
        if beside:
            console.print(_plain(f"{'':21}{beside}", "dim"))
    console.print(_plain(f"  would see   {audit.power}"))


def print_roles(title: str, roles: Iterable[tuple[str, Sequence[str]]], console: Console) -> None:
    """Print what each role sees, or will see, a sentence to a line."""
    console.print(_plain(title, "bold"))
    rows = [(role if i == 0 else "", one) for role, said in roles for i, one in enumerate(said or ("Nothing.",))]
    console.print(_table(("", ""), rows, numeric=(False, False), headed=False))


def _print_comparison(comparison: Comparison, console: Console) -> None:
    values = show_column("", [value for _, value, _ in comparison.rows])
    rows = [(name, value, note) for (name, _, note), value in zip(comparison.rows, values, strict=True)]
    console.print(_table(("", comparison.metric, ""), rows, numeric=(False, True, False)))
    if loss := loss_sentence(comparison):
        console.print(_plain(loss))


def _print_grid(grid: Grid, console: Console) -> None:
    columns: list[tuple[Cell, ...]] = list(zip(*grid.rows, strict=True)) or [() for _ in grid.columns]
    shown = [show_column(name, column) for name, column in zip(grid.columns, columns, strict=True)]
    for i, name in enumerate(grid.columns):
        shown[i] = [_few_words(cell) for cell in shown[i]] if name == "bound" else shown[i]
    console.print(_plain(grid.title, "bold"))
    console.print(_table(grid.columns, zip(*shown, strict=True), numeric=[all_numeric(column) for column in columns]))


def _few_words(bound: str) -> str:
    """A bound for each key of a contribution is too wide for a terminal; the page has them."""
    return bound if "; " not in bound else f"{bound.count('; ') + 1} bounds"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: Sequence[bool], headed: bool = True) -> Fits:
    table = Table(box=box.SIMPLE_HEAD, show_header=headed, pad_edge=False, header_style="dim")
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(_plain(name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_plain, row))
    return Fits(table)


def _plain(words: str, style: str = "") -> Text:
    """Return the words without control and direction characters, which could rewrite the lines above them."""
    return Text("".join("\N{REPLACEMENT CHARACTER}" if category(c)[0] == "C" else c for c in words), style=style)
