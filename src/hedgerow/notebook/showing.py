"""From a value to its card: by the module that has the name of the value's room."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hedgerow.report import Card, Figure, Report, card_html, card_lines, report_html

from . import values


def card_of(value: Any) -> Card:
    """The card of a value; of one whose room has no cards of its own, its numbers and the shapes of its arrays."""
    module = _module(value)
    found: Card = values.card(value) if module is None else module.card(value)
    return found


def cell_of(value: Any) -> str:
    """HTML of a value, for a cell of a notebook."""
    if isinstance(value, Report):
        return report_html(value)
    report = getattr(value, "report", None)
    return report_html(report) if isinstance(report, Report) else card_html(card_of(value))


def lines_of(value: Any) -> str:
    """A few lines of text, for a `repr`."""
    report = getattr(value, "report", None)
    if isinstance(report, Report):
        said = (report.privacy, f"folder {value.folder}")
        return card_lines(type(value).__name__, Card(kind=report.study, title=report.title, metrics=report.metrics, said=said))
    return card_lines(type(value).__name__, card_of(value))


def figure_of(value: Any, **settings: Any) -> Figure:
    """The figure of a value whose room cannot draw."""
    module = _module(value)
    assert module is not None
    found: Figure = module.figure(value, **settings)
    return found


def _module(value: Any) -> Any:
    room = type(value).__module__.split(".")[1:2]
    name = f"{__package__}.{room[0]}" if room else ""
    return import_module(name) if name and find_spec(name) is not None else None
