"""How a module reads its features: weights keep it from their training, so that every evaluation reads records likewise.

A table or a federation may declare other ranges than those of the training, or other orders of columns and levels. What
numbers mean to a module is decided where it was trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from torch import nn

from hedgerow.data import Schema
from hedgerow.errors import SettingsInvalid

from .fixed import weights_of
from .scale import Scale, Span, of_batches, scale_for, span, warn_unscaled


@dataclass(frozen=True)
class Reading:
    """Features in the order in which a module reads them, and how each is brought to it.

    Attributes
    ----------
    scale : {"ranges", "numbers", "none"}
    features : tuple of str
    ranges : tuple of (float, float) or None
        What is subtracted from each, and by what it is divided then.
    levels : tuple of tuple of str
        The words of categories, in the order of their indicators.
    low, by : float
        The same of a single array-shaped column, of which batches are scaled: the module sees (input - low) * by.
    """

    scale: Scale
    features: tuple[str, ...]
    ranges: tuple[Span | None, ...]
    levels: tuple[tuple[str, ...], ...]
    low: float = 0.0
    by: float = 1.0

    @classmethod
    def of(cls, schema: Schema, features: Sequence[str] | None, scale: Scale) -> Self:
        """What a schema declares."""
        columns = [schema[name] for name in features or schema.features]
        names, levels = tuple(column.name for column in columns), tuple(column.levels for column in columns)
        return cls(scale, names, tuple(span(column, scale) for column in columns), levels, *of_batches(columns, scale))


class TrainedWeights(dict[str, np.ndarray]):
    """Parameters by name, and how the module read its features when they were trained."""

    def __init__(self, weights: Mapping[str, np.ndarray], reading: Reading) -> None:
        super().__init__(weights)
        self.reading = reading


def reading_for(
    weights: Any, module: nn.Module, schema: Schema, features: Sequence[str], wanted: Scale | None = None
) -> Reading:
    """How records reach a module with these weights: as in their training, or by the schema where they do not tell.

    Parameters
    ----------
    weights : mapping or state
    features : sequence of str
        The features of the schema that the module reads.
    wanted : {"ranges", "numbers", "none"}, optional
        The scale that a caller asks for; weights of another one are refused.

    Raises
    ------
    ModelInvalid (HR-510)
        The weights are neither a mapping nor a state.
    SettingsInvalid (HR-511)
        The weights were trained with another scale, or with other levels of a category.
    """
    known: Reading | None = getattr(weights_of(weights), "reading", None)
    if known is None or set(known.features) != set(features):
        scale = scale_for(module, wanted or "ranges")
        if known is None:
            warn_unscaled(schema, features, scale)
        return Reading.of(schema, features, scale)
    if wanted is not None and (scale := scale_for(module, wanted)) != known.scale:
        raise SettingsInvalid(
            f"scale is {scale!r}, and the weights were trained with {known.scale!r}.",
            remedy="Leave scale out: the features then reach the module as in its training.",
        )
    for name, levels in zip(known.features, known.levels, strict=True):
        if schema[name].levels != levels:
            raise SettingsInvalid(
                f"{name!r} has the levels {schema[name].levels[:5]}, and the weights were trained with {levels[:5]}.",
                remedy="Declare the same levels in the same order.",
            )
    return known
