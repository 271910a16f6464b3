"""How features reach a module: numbers by their declared ranges, which are public and cost nothing.

    range [low, high] without a sign change      (x - low) / (high - low)           in [0, 1]
    range with both signs                        x / max(|low|, |high|)             in [-1, 1]: zero stays zero
    a single array-shaped column                 as the first; with both signs as it is, as signals are
    categories                                   an indicator for each level
    no declared range                            as it is, with a warning for single numbers

`scale` is a setting of programs that train a module, and of evaluations: "ranges"; "numbers", which leaves integers as they
are; "none". A module with an embedding reads integers as tokens, so "ranges" means "numbers" for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

from torch import nn

from hedgerow.data import Column, Schema
from hedgerow.errors import HedgerowWarning

Scale = Literal["ranges", "numbers", "none"]
"""How features are scaled."""

Span = tuple[float, float]
"""What is subtracted from a feature, and by what it is divided then."""


def scale_for(module: nn.Module, wanted: Scale) -> Scale:
    """The scale for a module: integers stay as they are where it embeds tokens."""
    tokens = any(isinstance(part, (nn.Embedding, nn.EmbeddingBag)) for part in module.modules())
    return "numbers" if tokens and wanted == "ranges" else wanted


def span(column: Column, scale: Scale = "ranges") -> Span | None:
    """How a feature is brought to its declared range; None where it is left as it is."""
    low, high = column.low, column.high
    if column.kind not in KINDS[scale] or low is None or high is None or not low < high:
        return None
    return (0.0, float(max(-low, high))) if low < 0 < high else (float(low), float(high - low))


def of_batches(columns: Sequence[Column], scale: Scale = "ranges") -> tuple[float, float]:
    """What is subtracted from a single array-shaped column, and by what it is multiplied then; 0 and 1 for joined features.

    A range with both signs is left as it is: its zero means something, as in signals.
    """
    column = columns[0]
    found = span(column, scale)
    if len(columns) > 1 or not column.shape or column.low is None or column.low < 0 or found is None:
        return 0.0, 1.0
    return found[0], 1.0 / found[1]


KINDS: dict[Scale, tuple[str, ...]] = {"ranges": ("number", "integer"), "numbers": ("number",), "none": ()}
"""Kinds of columns that are scaled."""


def unscaled(schema: Schema, features: Sequence[str], scale: Scale = "ranges") -> list[str]:
    """Single numbers that reach a module as they are because they have no declared range."""
    plain = [column for column in (schema[name] for name in features) if column.kind in KINDS[scale] and not column.shape]
    return [column.name for column in plain if span(column, scale) is None]


def warn_unscaled(schema: Schema, features: Sequence[str], scale: Scale) -> None:
    """Warn of single numbers without a declared range."""
    if names := unscaled(schema, features, scale):
        listed = ", ".join(names[:6]) + ", ..." * (len(names) > 6)
        warnings.warn(
            f"{listed}: no declared range, so the module reads {'them' if len(names) > 1 else 'it'} unscaled, and training may "
            "diverge. Declare ranges of what is possible, or say scale = 'none'.",
            HedgerowWarning,
            stacklevel=3,
        )


def said(schema: Schema, features: Sequence[str], scale: Scale) -> str:
    """How features reach a module, in a sentence for the report."""
    columns = [schema[name] for name in features]
    if len(columns) == 1 and columns[0].shape and columns[0].kind != "category":
        found = span(columns[0], scale)
        whole = found is None or columns[0].low is None or columns[0].low < 0
        return f"{columns[0].name}: {'as it is' if whole else 'from its declared range to [0, 1]'}."
    parts = {
        "from declared ranges to [0, 1]": [],
        "from declared ranges to [-1, 1]": [],
        "indicators of levels": [],
        "as they are": [],
    }
    for column in columns:
        found = span(column, scale)
        if column.kind == "category":
            parts["indicators of levels"].append(column.name)
        elif found is None:
            parts["as they are"].append(column.name)
        else:
            signs = column.low is not None and column.low < 0 and found[0] == 0.0
            parts["from declared ranges to " + ("[-1, 1]" if signs else "[0, 1]")].append(column.name)
    return " ".join(f"{how[:1].upper()}{how[1:]}: {', '.join(names)}." for how, names in parts.items() if names)
