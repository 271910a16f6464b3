"""Evaluation: by sums over the parties, or on a table that the server holds."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from hedgerow.core.bound import Bound, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases
from hedgerow.errors import UnboundedSum

from .descent.work import tensors
from .local import SCORED_AT_ONCE, score, scored
from .models import Model, Weights, model_for, model_for_task
from .reading import Reading, reading_for
from .scale import Scale
from .tasks.declared import Task, task_from
from .tensors import columns_of, made_of, prepared
from .training import model_of

log = logging.getLogger("hedgerow.learn")


def evaluate(
    federation: Federation,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    held_out: str | None = None,
    scale: Scale | None = None,
    task: Task | None = None,
) -> dict[str, float]:
    """Metrics of a model over all parties' records, by one federated sum that leaves a program's randomness as it is.

    Parameters
    ----------
    weights : mapping or state
        Parameters by name, or a state of a program that trains (`.weights`).
    held_out : str, optional
        A 0/1 column: only records with 1 are counted, which training with the same setting leaves out.
    scale : {"ranges", "numbers", "none"}, optional
        How features reach the module: as in its training, which the weights of a program keep. Weights that do not tell it, as
        those from a file, are taken to be trained with "ranges" and with the ranges that are declared here.
    task : Task, optional
        Inputs, target, loss and metrics: as in its training, which the weights of a program keep, or others.

    Returns
    -------
    dict
        `accuracy` (classification) or `mean_squared_error`, `n`, `loss`, and of a binary target `matthews_correlation`
        (see `matthews`). Through a channel that adds noise the last two are left out, as a loss has no bound and every
        further sum costs; the others are noised per record and charged. With a task its metrics by name, in the place of
        those that follow from the target; through noise those that have a bound.

    Raises
    ------
    UnboundedSum (HR-210)
        The channel adds noise, and nothing that would be asked has a bound.
    """
    model, ready = judged(federation, module, weights, features, held_out, scale, task, whole=True)
    noisy, weight = federation.protection.noisy, federation.schema.heaviest
    if model.task is not None:
        ask = partial(score, model=behind_noise(model) if noisy else model, with_loss=not noisy)
        return metrics(model, ready.sum(ask, model.flat(weights), bound=bounds_of(model, weight) if noisy else None))
    bounded = noisy and weight is not None and model.kind != "number"
    bound = {"hits": linf(weight, "record"), "n": linf(weight, "record")} if bounded else None
    ask = partial(score, model=model, with_loss=not noisy)
    return metrics(model, ready.sum(ask, model.flat(weights), bound=bound))


def judged(
    federation: Federation,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None,
    held_out: str | None,
    scale: Scale | None,
    task: Any = None,
    *,
    whole: bool = False,
) -> tuple[Model, Federation]:
    """A model and the records on which it is measured, aside from any program: all, or those that are held out."""
    reading = reading_for(weights, module, federation.schema, features, scale, task_from(task), held_out)
    ready = prepared(federation, reading.features, held_out=held_out, validation=True, scale=reading)
    return model_of(module, federation, reading.features, whole=whole, scale=reading), ready.aside()


def behind_noise(model: Model) -> Model:
    """A model with those metrics of its task that have a bound; the others, and the loss, are left out, which is said."""
    assert model.task is not None
    if left := [metric.name for metric in model.task.metrics if metric.bound is None]:
        log.warning(
            "Behind noise %s and the loss are left out: they have no bound. See hedgerow.learn.Metric.", ", ".join(left)
        )
    return replace(model, task=model.task.bounded())


def bounds_of(model: Model, weight: float | None) -> dict[str, Bound]:
    """How far a record of this weight moves the sums of `score`: metrics of a task, and the number of records."""
    assert model.task is not None
    bounded = {metric.name: metric.bound for metric in model.task.metrics if metric.bound is not None}
    if weight is None or not bounded:
        raise UnboundedSum(
            "no metric of the task has a bound." if not bounded else "the weights of records have no declared range.",
            remedy="Give one: hr.learn.Metric(function, bound=...)." if not bounded else "Declare it: Column(..., high=...).",
        )
    return {name: linf(weight * bound, "record") for name, bound in bounded.items()} | {"n": linf(weight, "record")}


def evaluate_on(
    table: Table | Any,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    scale: Scale | None = None,
    task: Task | None = None,
    schema: Schema | None = None,
) -> dict[str, float]:
    """Metrics of a model on a table that the server holds, such as a public test set; nothing is asked of a party.

    `scale` and `task` as of `evaluate`. The table may be a data frame of any library (`Table.from_frame`); `schema` then
    declares it, as that of the federation on which the model was trained.
    """
    model, _, columns, w = on_server(Table.like(table, schema), module, weights, features, scale, task)
    return metrics(model, score(model.flat(weights), Party("server", columns, w), None, model=model))


def losses_on(
    table: Table,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    scale: Scale | None = None,
    task: Task | None = None,
) -> np.ndarray:
    """The loss of each record of a table that lacks no value, shape (n,); everything as of `evaluate_on`.

    Losses are those of training, without weights of records.
    """
    model, _, columns, w = on_server(table, module, weights, features, scale, task)
    flat, (x, target, _) = torch.from_numpy(model.flat(weights)), tensors(Party("server", columns, w))
    found = torch.zeros(len(x))
    with torch.no_grad(), model.at_rest():
        for start in range(0, len(x), SCORED_AT_ONCE):
            rows = slice(start, start + SCORED_AT_ONCE)
            found[rows] = model.losses(flat, x[rows], target[rows])
    return found.numpy().astype(np.float64)


def on_server(
    table: Table,
    module: nn.Module,
    weights: Any,
    features: Sequence[str] | None,
    scale: Scale | None,
    task: Task | None = None,
) -> tuple[Model, Reading, dict[str, np.ndarray], np.ndarray]:
    """A model, how it reads features, and the columns and weights of those records of a table that lack no value."""
    reading = reading_for(weights, module, table.schema, features, scale, task_from(task))
    table = whole_cases(table, columns_of(table.schema, reading.features, scale=reading))
    columns = made_of(table.columns, table.schema, reading.features, reading)
    if reading.task is None:
        model = model_for(module, table.schema, columns["model_input"][:2], reading.low, reading.by, whole=True)
    else:
        model = model_for_task(module, reading, whole=True)
    return (
        model,
        reading,
        columns,
        np.ones(len(table)) if table.schema.weight is None else np.asarray(table[table.schema.weight]),
    )


def metrics(model: Model, sums: Any) -> dict[str, float]:
    """Divide sums by the number of records."""
    n = max(float(sums["n"]), 1e-12)
    if model.task is not None:
        asked = [name for name in (*scored(model), "loss") if name in sums]
        return {name: float(sums[name]) / n for name in asked} | {"n": n}
    name = "mean_squared_error" if model.kind == "number" else "accuracy"
    found = {name: float(sums["hits"]) / n, "n": n}
    found |= {"loss": float(sums["loss"]) / n} if "loss" in sums else {}
    return found | ({"matthews_correlation": matthews(sums)} if "ones" in sums else {})


def matthews(sums: Any) -> float:
    """Matthews correlation coefficient: 1 where all is right, -1 where all is wrong, 0 where one class is said of all records.

    It is the correlation of two columns of zeros and ones. Unlike accuracy it does not reward naming the larger class.

    Source: Matthews 1975; 0 for a constant prediction as is customary (Chicco & Jurman 2020).
    """
    n, hits, ones, taken = (float(sums[name]) for name in ("n", "hits", "ones", "taken_for_one"))
    both = (hits + ones + taken - n) / 2  # records that are one and are taken for one
    spread = ones * (n - ones) * taken * (n - taken)
    return 0.0 if spread <= 0 else (n * both - ones * taken) / math.sqrt(spread)
