"""How a module reads its features: weights keep it from their training, so that every evaluation reads records likewise.

A table or a federation may declare other ranges than those of the training, or other orders of columns and levels. What
numbers mean to a module is decided where it was trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from torch import nn

from hedgerow.data import Schema
from hedgerow.errors import SettingsInvalid

from .fixed import weights_of
from .scale import Scale, Span, of_batches, scale_for, span, warn_unscaled
from .tasks.declared import Task
from .tasks.fitted import FittedTask


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
    task : FittedTask, optional
        Inputs, target, loss and metrics, where a `Task` names them; `features` are then the columns that it reads.
    """

    scale: Scale
    features: tuple[str, ...]
    ranges: tuple[Span | None, ...]
    levels: tuple[tuple[str, ...], ...]
    low: float = 0.0
    by: float = 1.0
    task: FittedTask | None = None

    @classmethod
    def of(cls, schema: Schema, features: Sequence[str] | None, scale: Scale, task: Task | None = None) -> Self:
        """What a schema declares, for a task or without one."""
        if task is not None:
            return cls._of_task(schema, scale, FittedTask.of(task, schema, features, scale))
        columns = [schema[name] for name in features or schema.features]
        names, levels = tuple(column.name for column in columns), tuple(column.levels for column in columns)
        return cls(scale, names, tuple(span(column, scale) for column in columns), levels, *of_batches(columns, scale))

    @classmethod
    def _of_task(cls, schema: Schema, scale: Scale, task: FittedTask) -> Self:
        columns, inputs = [schema[name] for name in task.features], task.inputs
        ranges = tuple(span(column, scale) if column.name in task.scaled else None for column in columns)
        return cls(scale, task.features, ranges, tuple(c.levels for c in columns), inputs.low, inputs.by, task)

    @property
    def unscaled(self) -> tuple[str, ...]:
        """Features that reach the module as numbers, which want a declared range."""
        return self.features if self.task is None else self.task.scaled


class TrainedWeights(dict[str, np.ndarray]):
    """Parameters by name, and how the module read its features when they were trained."""

    def __init__(self, weights: Mapping[str, np.ndarray], reading: Reading) -> None:
        super().__init__(weights)
        self.reading = reading


def read_alike(trained: Reading | None, now: Reading | None) -> None:
    """Refuse to go on with weights that were trained on features read otherwise (HR-511): other ranges, scale or order.

    Numbers would mean something else to the module. Weights that do not tell how they were trained are taken as they are.
    """
    if trained is None or now is None:
        return
    if trained.task is not None and now.task is not None and trained.task.inputs != now.task.inputs:
        raise SettingsInvalid(
            "the weights were trained with other inputs of the task, or other ranges of their columns.",
            remedy="Declare inputs and columns as in the training. To go on all the same, give the weights alone: "
            "hr.learn.ModelState(round, dict(state.weights)).",
        )
    names = ("features", "scale", "ranges", "levels", "low", "by")
    if other := [name for name in names if getattr(trained, name) != getattr(now, name)]:
        name = other[0]
        raise SettingsInvalid(
            f"the weights were trained with other {name} of the features: {getattr(trained, name)!r} there, and "
            f"{getattr(now, name)!r} here.",
            remedy="Declare the columns as in the training. To go on all the same, give the weights alone: "
            "hr.learn.ModelState(round, dict(state.weights)).",
        )


def reading_for(
    weights: Any,
    module: nn.Module,
    schema: Schema,
    features: Sequence[str] | None,
    wanted: Scale | None = None,
    task: Task | None = None,
    held_out: str | None = None,
) -> Reading:
    """How records reach a module with these weights: as in their training, or by the schema where they do not tell.

    Parameters
    ----------
    weights : mapping or state
    features : sequence of str, optional
        The features of the schema that the module reads; by default all but `held_out`.
    task : Task, optional
        What the module is trained for; by default as the weights keep it from their training. One with the same inputs and
        target as in the training has other losses and metrics alone: records are read as they were.
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
    chosen = features or [name for name in schema.features if name != held_out]
    if known is not None and known.task is not None and features is None:
        known = known if task is None else _judged_by(known, known.task, task, schema)
    elif known is None or task is not None or known.task is not None or set(known.features) != set(chosen):
        if known is not None and known.task is None and task is None and len(known.features) == len(chosen):
            raise SettingsInvalid(
                f"the weights were trained on {known.features}, and the features here are {tuple(chosen)}.",
                remedy="Give the columns the names of the training, or the weights alone: dict(state.weights).",
            )
        found = Reading.of(schema, chosen, scale_for(module, wanted or "ranges"), task)
        if known is not None and known.task is None and task is not None and task.inputs is None:
            read_alike(known, found)
        if known is None:
            warn_unscaled(schema, found.unscaled, found.scale)
        return found
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


def _judged_by(known: Reading, trained: FittedTask, task: Task, schema: Schema) -> Reading:
    """The reading of a training with the loss and metrics of another task."""
    before = trained.task
    if task.inputs is None:
        task = replace(task, inputs=before.inputs, as_dict=before.as_dict)
    task = replace(task, target=task.target or before.target, output=before.output if task.output is None else task.output)
    found = Reading.of(schema, trained.features, known.scale, task)
    if found.task is None or task.inputs != before.inputs:
        return found
    return replace(known, task=replace(found.task, inputs=trained.inputs))
