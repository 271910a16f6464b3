"""The terminal summary says the same, and names that parties chose cannot steer the terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from hedgerow.report import Grid, print_report


def printed(report) -> str:
    console = Console(file=StringIO(), width=100)
    print_report(report, console)
    return console.file.getvalue()


def test_summary_holds_the_guarantee_the_numbers_and_what_left(report):
    words = printed(report)
    for part in (report.privacy, "0.9361", "local only", "0.0319 worse", "What left each party", report.warnings[0]):
        assert part in words


def test_names_cannot_style_or_steer_the_terminal(report):
    left = Grid("What left each party", ("query", "times"), (("[red]evil[/red]\x1b[2J\u202e", 1),))
    words = printed(replace(report, left=left))
    assert "[red]evil[/red]" in words
    assert "\x1b" not in words
    assert "\u202e" not in words


def test_bounds_of_many_keys_do_not_fill_the_terminal(report):
    bounds = "log_loss: linf(36.0437) per record; brier: linf(1) per record; cells: l1(1) per record"
    left = Grid("What left each party", ("query", "times", "bound"), (("a", 1, bounds), ("b", 2, "l1(1) per record")))
    words = printed(replace(report, left=left))
    assert "3 bounds" in words
    assert "log_loss" not in words
    assert "l1(1) per record" in words
