"""The report of a run: what it holds, one HTML page that explains it, and a summary for the terminal."""

from hedgerow.report.console import print_report
from hedgerow.report.model import Comparison, Curve, Grid, Heat, Report, Series
from hedgerow.report.outcome import Outcome, plain_outcome
from hedgerow.report.page import render, write

__all__ = [
    "Comparison",
    "Curve",
    "Grid",
    "Heat",
    "Outcome",
    "Report",
    "Series",
    "plain_outcome",
    "print_report",
    "render",
    "write",
]
