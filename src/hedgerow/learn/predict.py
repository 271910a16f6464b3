"""Predictions of a trained module for records at hand, which it reads as it read those of its training.

Releases : nothing; no party is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.data import Schema, Table
from hedgerow.data.cases import lacking_in
from hedgerow.data.declared import series_values, uncoded
from hedgerow.data.frames import RawTable
from hedgerow.errors import SchemaInvalid

from .devices import device
from .local import SCORED_AT_ONCE
from .models import Model, Weights, model_for, model_for_task
from .reading import Reading, reading_for
from .scale import Scale
from .tasks.declared import Task, task_from
from .tensors import blank, made_of

SHOWN: Mapping[str, Callable[[Tensor], Tensor]] = {
    "category": lambda output: torch.softmax(output, 1),
    "binary": lambda output: torch.sigmoid(output.reshape(len(output))),
    "number": lambda output: output.reshape(len(output)),
}
"""From a module's output to what is predicted, by the kind of the target."""


def predict(
    data: Table | Any,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
    scale: Scale | None = None,
    task: Task | None = None,
) -> Any:
    """Probabilities of a category or binary target, and values of a number, for records that the server holds.

    Features reach the module as in its training, which the weights of a program keep: with the same ranges, order and levels.
    `with_weights(module, state)(X)` of raw columns does not do so.

    Parameters
    ----------
    data : Table, or data frame of any library
        Records to predict; the target may be left out.
    weights : mapping or state
        Parameters by name, or a state of a program that trains (`.weights`).
    features : sequence of str, optional
        As of `evaluate_on`.
    schema : Schema, optional
        Declares a data frame, and the target where a `Table` has none: that of the federation on which the module was trained.
    scale, task
        As of `evaluate`.

    Returns
    -------
    array, float32
        Of a category (n, levels), probabilities in the order of `schema[target].levels`; of a binary target (n,), the
        probability of one; of a number (n,), its predicted value. With a task of another loss or several targets what the
        module returns, first axis n, as an array or as a dict or tuple of them. NaN where a record lacks a feature.

    Raises
    ------
    MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
        The data do not hold the features as declared; a frame is given without `schema`; no target is declared.
    ModelInvalid, SettingsInvalid (HR-510, 511)
        Weights do not fit the module, or were trained on features read otherwise.
    """
    return _predicted(data, module, weights, features, schema, scale, task, SHOWN)


def outputs_of(
    data: Table | Any,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
    scale: Scale | None = None,
    task: Task | None = None,
) -> Any:
    """What the module returns, float32, before it becomes probabilities: first axis n; parameters and errors as `predict`.

    A probability near one has no digits left that tell it from one; a logit has.
    """
    return _predicted(data, module, weights, features, schema, scale, task, {})


def _predicted(
    data: Any,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None,
    schema: Schema | None,
    scale: Scale | None,
    task: Task | None,
    shown: Mapping[str, Callable[[Tensor], Tensor]],
) -> Any:
    declared = _declared(data, schema)
    reading = reading_for(weights, module, declared, features, scale, task_from(task))
    records = _records(data, declared, reading)
    if reading.task is None:
        tried = blank(declared, reading.features, reading)["model_input"]
        model = model_for(module, declared, tried, reading.low, reading.by, whole=True)
    else:
        model = model_for_task(module, reading, whole=True)
    lost = lacking_in(records, reading.features)
    whole = records if lost is None else records.take(~lost)
    found = _outputs(model.on(device()), model.flat(weights), _inputs(whole.columns, len(whole), declared, reading), shown)
    return found if lost is None else _each(lambda values: _spread(values, ~lost), found)


def _declared(data: Any, schema: Schema | None) -> Schema:
    """The declaration of the records, with a target."""
    declared: Schema = data.schema if isinstance(data, Table) else Table.like(data, schema).schema if schema is None else schema
    if declared.target is None and schema is not None and schema.target is not None:
        declared = declared.with_columns([schema[schema.target]])
    if declared.target is None:
        raise SchemaInvalid(
            "no target is declared, so that it is not known what the outputs are.",
            remedy="Give schema=federation.schema, that of the training.",
        )
    return declared


def _records(data: Any, declared: Schema, reading: Reading) -> Table:
    """The features alone, checked."""
    if isinstance(data, Table):
        return Table({name: data[name] for name in reading.features}, data.schema.select(reading.features))
    found, read = RawTable.of(data, needed=reading.features), declared.select(reading.features)
    given = {
        name: series_values(values) if getattr(values, "hasnans", False) else uncoded(values)
        for name, values in found.columns.items()
    }
    return Table(read.admit(given), read)


def _inputs(columns: Mapping[str, np.ndarray], n: int, declared: Schema, reading: Reading) -> Tensor:
    if reading.task is not None:
        packing = reading.task.inputs
        bare = packing.pieces[0].columns[0]
        return torch.from_numpy(np.asarray(columns[bare]) if packing.bare else packing.rows(columns))
    unknown = {str(declared.target): np.zeros(n)}
    return torch.from_numpy(made_of({**columns, **unknown}, declared, reading.features, reading)["model_input"])


def _outputs(model: Model, flat: np.ndarray, x: Tensor, by_kind: Mapping[str, Callable[[Tensor], Tensor]]) -> Any:
    """What is predicted, some records at a time."""
    kind = model.kind if model.task is None else model.task.kind
    shown: Callable[[Tensor], Tensor] = by_kind.get(kind or "", lambda output: output)
    weights, parts = torch.from_numpy(flat).to(model.where), []
    with torch.no_grad(), model.at_rest():
        for start in range(0, max(len(x), 1), SCORED_AT_ONCE):
            output = model.outputs(weights, x[start : start + SCORED_AT_ONCE].to(model.where))
            parts.append(_each(lambda values: shown(values).float().cpu().numpy(), output))
    return _each(lambda *values: np.concatenate(values), *parts)


def _each(function: Callable[..., np.ndarray], *outputs: Any) -> Any:
    """Apply a function to each array of outputs that are arrays, or dicts or tuples of them."""
    first = outputs[0]
    if isinstance(first, Mapping):
        return {name: _each(function, *(one[name] for one in outputs)) for name in first}
    if isinstance(first, tuple | list):
        return tuple(_each(function, *several) for several in zip(*outputs, strict=True))
    return function(*outputs)


def _spread(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Values at the records that are there, and NaN at the others."""
    found = np.full((len(there), *values.shape[1:]), np.nan, np.float32)
    found[there] = values
    return found
