"""The report of a run: what it holds, one HTML page that explains it, and a summary for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.report.card import Card, card_html, card_lines, report_html
    from hedgerow.report.console import print_report
    from hedgerow.report.figure import Figure
    from hedgerow.report.fits import Fits
    from hedgerow.report.flow import Flow, FlowStep
    from hedgerow.report.forest import ForestPlot, ForestRow
    from hedgerow.report.frames import grid_of
    from hedgerow.report.headline import Headline
    from hedgerow.report.heat import Heat
    from hedgerow.report.intervals import Intervals
    from hedgerow.report.model import AuditLights, BarChart, Comparison, Curve, Dots, Grid, Report, Series
    from hedgerow.report.outcome import Measured, Outcome, plain_outcome
    from hedgerow.report.page import render, write
    from hedgerow.report.papers import ForPapers
    from hedgerow.report.pictures import Picture, PictureRow, Pictures

__all__ = [
    "AuditLights",
    "BarChart",
    "Card",
    "Comparison",
    "Curve",
    "Dots",
    "Figure",
    "Fits",
    "Flow",
    "FlowStep",
    "ForPapers",
    "ForestPlot",
    "ForestRow",
    "Grid",
    "Headline",
    "Heat",
    "Intervals",
    "Measured",
    "Outcome",
    "Picture",
    "PictureRow",
    "Pictures",
    "Report",
    "Series",
    "card_html",
    "card_lines",
    "grid_of",
    "plain_outcome",
    "print_report",
    "render",
    "report_html",
    "write",
]

lazily(__name__)
