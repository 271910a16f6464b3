"""What a simulation split its table by: a name that programs may know."""

from __future__ import annotations

from .federation import Federation, inside


def split_by(federation: Federation) -> str | None:
    """The column by whose values a simulation split a table into parties; None where it did not."""
    return inside(federation).run.split_by
