"""A task for one schema, as a model carries it: from kept records to a module's arguments, and from its output to losses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.question import travels
from hedgerow.data import Schema
from hedgerow.errors import ModelInvalid, SchemaInvalid, SettingsInvalid

from ..scale import Scale
from .declared import Input, Metric, Task
from .losses import KINDS_OF, LOSSES, OF_KINDS, SHOWN_WITH
from .memory import Copies, plain
from .packing import Packing, packing_of


@travels
@dataclass(frozen=True)
class FittedTask:
    """A task and how a schema's columns are packed for it; see `Task` and `Packing`."""

    task: Task
    inputs: Packing
    target: Packing

    @classmethod
    def of(cls, task: Task, schema: Schema, features: Sequence[str] | None, scale: Scale) -> Self:
        """Fit a task to a schema.

        Parameters
        ----------
        features : sequence of str, optional
            What is read where the task names no inputs.

        Raises
        ------
        MissingColumn (HR-403), SchemaInvalid (HR-409), ModelInvalid (HR-510), SettingsInvalid (HR-511)
        """
        if task.target is None and schema.target is None:
            raise SchemaInvalid(
                "the task names no target, and the schema declares none.", remedy="Give it: hr.learn.Task(target=..., ...)."
            )
        targets = task.target or ((schema.target, Input(str(schema.target))),)
        read = {name for _, one in targets for name in one.names}
        if task.inputs is None:
            names = tuple(name for name in features or schema.features if name not in read)
            if not names:
                raise SchemaInvalid("no feature is left to be read.", remedy="Name inputs: hr.learn.Task(inputs=...).")
            lone = len(names) == 1 and bool(schema[names[0]].shape)
            inputs: Any = ((0, Input(names[0] if lone else names, "float32")),)
        else:
            inputs = task.inputs
        loss = _loss_of(task, targets, schema)
        metrics = _shown_with(loss) if task.metrics is None else task.metrics
        keys = [key for key, _ in targets]
        spoken = [metric.on for metric in metrics if metric.on] + ([one[0] for one in loss] if isinstance(loss, tuple) else [])
        for name in spoken:
            if name not in keys:
                raise SettingsInvalid(
                    f"a loss or metric is on {name!r}, and the targets are {', '.join(map(repr, keys))}.",
                    remedy="Give target=[...] with the columns, by these names.",
                )
        whole = replace(task, loss=loss, metrics=metrics)
        return cls(whole, packing_of(inputs, schema, scale), packing_of(targets, schema, scale, target=True))

    @property
    def features(self) -> tuple[str, ...]:
        """Columns that the module reads."""
        return self.inputs.columns

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that module and loss read, each once."""
        return tuple(dict.fromkeys((*self.inputs.columns, *self.target.columns)))

    @property
    def scaled(self) -> tuple[str, ...]:
        """Columns that reach the module as numbers, not as whole ones."""
        return tuple(name for piece in self.inputs.pieces if piece.dtype == "float32" for name in piece.columns)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What evaluations show."""
        found: tuple[Metric, ...] = self.task.metrics
        return found

    @property
    def lone(self) -> tuple[int, ...] | None:
        """Shape of one record's input, where the module takes one of numbers alone, and its output is taken whole."""
        pieces = self.inputs.pieces
        single = len(pieces) == 1 and pieces[0].dtype == "float32" and not self.task.as_dict and self.task.output is None
        return pieces[0].shape if single else None

    @property
    def kind(self) -> str | None:
        """The kind of target, as of a model without a task, whose loss this is; None of another loss."""
        plain = self.target.bare and not self.target.pieces[0].shape and isinstance(self.task.loss, str)
        return KINDS_OF.get(self.task.loss) if plain else None

    @property
    def told(self) -> str:
        """What reaches the module, in a sentence for the report."""
        parts = [f"{', '.join(piece.columns)} as {piece.dtype} {piece.shape}" for piece in self.inputs.pieces]
        return f"Inputs: {'; '.join(parts)}. Target: {', '.join(self.target.columns)}."

    def bounded(self) -> FittedTask:
        """The same with those metrics alone that have a bound, as behind noise."""
        kept = tuple(metric for metric in self.metrics if metric.bound is not None)
        return replace(self, task=replace(self.task, metrics=kept))

    @property
    def functions(self) -> tuple[Any, ...]:
        """Losses and metrics."""
        losses = [one[1] for one in self.task.loss] if isinstance(self.task.loss, tuple) else [self.task.loss]
        return (*losses, *(metric.function for metric in self.metrics))

    @cached_property
    def _copies(self) -> Copies | None:
        return None if all(plain(one) for one in self.functions) else Copies(self.task)

    def anew(self) -> FittedTask:
        """The same with copies of losses and metrics, which find nothing of earlier calls; itself where they hold nothing."""
        if self._copies is None:
            return self
        made = copy.copy(self)
        object.__setattr__(made, "task", self._copies())
        return made

    def arguments(self, kept: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of `forward`, from records as they are kept."""
        tensors = self.inputs.tensors(kept)
        if self.task.as_dict:
            return (tensors,), {}
        places = sorted(key for key in tensors if isinstance(key, int))
        return tuple(tensors[key] for key in places), {key: value for key, value in tensors.items() if isinstance(key, str)}

    def chosen(self, output: Any) -> Any:
        """The part of what `forward` returned."""
        return output if self.task.output is None else part_of(output, self.task.output)

    def wanted(self, kept: Tensor) -> Any:
        """What the loss compares with: one tensor, or several by name."""
        tensors = self.target.tensors(kept)
        return next(iter(tensors.values())) if len(tensors) == 1 else tensors

    def losses(self, output: Any, kept: Tensor) -> Tensor:
        """Loss of each record, (n,)."""
        target = self.wanted(kept)
        if not isinstance(self.task.loss, tuple):
            return _called(self.task.loss)(output, target)
        total: Any = 0.0
        for at, (key, loss, weight) in enumerate(self.task.loss):
            total = total + weight * _called(loss)(*self._on(key, at, output, target))
        return total

    def values(self, metric: Metric, output: Any, kept: Tensor) -> Tensor:
        """A metric's value of each record, (n,)."""
        target = self.wanted(kept)
        if metric.on is not None:
            keys = [piece.key for piece in self.target.pieces]
            output, target = self._on(metric.on, keys.index(metric.on), output, target)
        return metric.values(output, target)

    def _on(self, key: str | int, at: int, output: Any, target: Any) -> tuple[Any, Any]:
        """Output and target of one name; outputs in a tuple are in the order of the losses or targets."""
        own = part_of(output, key if isinstance(output, Mapping) or hasattr(output, str(key)) else at)
        return own, target[key] if isinstance(target, Mapping) else target

    def made_up(self, n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Lawful records and targets as they are kept, from the declaration alone."""
        rng = np.random.default_rng(seed)
        return torch.from_numpy(self.inputs.made_up(n, rng)), torch.from_numpy(self.target.made_up(n, rng))


def part_of(output: Any, name: str | int) -> Any:
    """A part of what a module returned: by key, by place, or by attribute.

    Raises
    ------
    ModelInvalid (HR-510)
        It has no such part.
    """
    try:
        if isinstance(output, Mapping) or isinstance(name, int):
            return output[name]
        return getattr(output, name)
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        there = (
            list(output)
            if isinstance(output, Mapping)
            else [i for i, _ in enumerate(output)]
            if isinstance(output, tuple | list)
            else []
        )
        raise ModelInvalid(
            f"the module returns a {type(output).__name__} without a part {name!r}.",
            remedy=f"It has {', '.join(map(repr, there))}." if there else "Leave output out where forward returns a tensor.",
        ) from error


def _called(loss: Any) -> Callable[[Any, Any], Tensor]:
    return LOSSES[loss] if isinstance(loss, str) else loss  # type: ignore[no-any-return]


def _loss_of(task: Task, targets: Sequence[tuple[str | int, Input]], schema: Schema) -> Any:
    """The task's loss, or that of the target's kind."""
    if task.loss is not None:
        return task.loss
    if len(targets) > 1:
        raise SettingsInvalid(
            f"the task has {len(targets)} targets and no loss.",
            remedy='Give a function, or one for each: loss={"first": "cross_entropy", "second": "squared"}.',
        )
    return OF_KINDS[schema[targets[0][1].names[0]].kind]


def _shown_with(loss: Any) -> tuple[Metric, ...]:
    """The metrics that belong to losses with names."""
    if isinstance(loss, tuple):
        return tuple(Metric(SHOWN_WITH[one], on=key) for key, one, _ in loss if isinstance(one, str) and one in SHOWN_WITH)
    return (Metric(SHOWN_WITH[loss]),) if isinstance(loss, str) and loss in SHOWN_WITH else ()
