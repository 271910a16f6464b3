"""What values show of themselves in a notebook, and in a few lines of text: a card for each, by the room that defines it.

A module here has the name of the room whose values it draws, and a function `card`. Cards hold what a program may know:
released numbers, declarations and words of the ledger, and never a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from hedgerow.notebook.progress import Bar, progress_bar
    from hedgerow.notebook.showing import card_of, cell_of, figure_of, lines_of

__all__ = ["Bar", "card_of", "cell_of", "figure_of", "lines_of", "progress_bar"]

lazily(__name__)
