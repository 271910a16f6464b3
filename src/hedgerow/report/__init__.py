"""The report of a run: what it holds, one HTML page that explains it, and a summary for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.report.console import print_report
    from hedgerow.report.fits import Fits
    from hedgerow.report.model import Comparison, Curve, Grid, Heat, Report, Series
    from hedgerow.report.outcome import Measured, Outcome, plain_outcome
    from hedgerow.report.page import render, write

__all__ = [
    "Comparison",
    "Curve",
    "Fits",
    "Grid",
    "Heat",
    "Measured",
    "Outcome",
    "Report",
    "Series",
    "plain_outcome",
    "print_report",
    "render",
    "write",
]

lazily(__name__)
