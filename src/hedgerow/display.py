"""Short `repr`s and notebook cells of values, drawn by a room above the rooms that define them.

    @displayed
    @dataclass(frozen=True)
    class ModelState: ...

A value knows nothing of tables, figures or style sheets. `hedgerow.notebook` has a module for each room, with a function
`card` for the room's values; it is imported when a value is shown for the first time, by name, since imports go down.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, TypeVar

Shown = TypeVar("Shown", bound=type)

ROOM = "hedgerow.notebook"


def displayed(cls: Shown) -> Shown:
    """Give a class a `repr` of a few lines, and the cell that a notebook shows."""
    cls.__repr__ = lines  # type: ignore[assignment]
    cls._repr_html_ = cell  # type: ignore[attr-defined]
    return cls


def figure(value: Any, **settings: Any) -> Any:
    """The figure of a value of a room that cannot draw, as a `hedgerow.report.Figure`."""
    return import_module(ROOM).figure_of(value, **settings)


def progress_bar(name: str, rounds: int | None, budget: float | None) -> Any:
    """A context manager that gives a function of a row, which shows it; see `hedgerow.notebook.progress`."""
    return import_module(ROOM).progress_bar(name, rounds, budget)


def somebody_looks() -> bool:
    """Whether this is an interactive terminal, or the kernel of a notebook."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def lines(value: Any) -> str:
    """A `repr` of a few lines."""
    said: str = import_module(ROOM).lines_of(value)
    return said


def cell(value: Any) -> str:
    """A `_repr_html_`."""
    drawn: str = import_module(ROOM).cell_of(value)
    return drawn
