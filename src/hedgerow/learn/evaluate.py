"""Evaluation: by sums over the parties, or on a table that the server holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from hedgerow.core.bound import linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases

from .local import score
from .models import Model, Weights, model_for
from .reading import reading_for
from .scale import Scale
from .tensors import columns_of, inputs_and_target, prepared, settings
from .training import model_of


def evaluate(
    federation: Federation,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    held_out: str | None = None,
    scale: Scale | None = None,
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

    Returns
    -------
    dict
        `accuracy` (classification) or `mean_squared_error`, `n`, `loss`, and of a binary target `matthews_correlation`
        (see `matthews`). Through a channel that adds noise the last two are left out, as a loss has no bound and every
        further sum costs; the others are noised per record and charged.
    """
    model, ready = judged(federation, module, weights, features, held_out, scale, whole=True)
    noisy, weight = federation.protection.noisy, federation.schema.heaviest
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
    *,
    whole: bool = False,
) -> tuple[Model, Federation]:
    """A model and the records on which it is measured, aside from any program: all, or those that are held out."""
    chosen = features or [name for name in federation.schema.features if name != held_out]
    reading = reading_for(weights, module, federation.schema, chosen, scale)
    ready = prepared(federation, reading.features, held_out=held_out, validation=True, scale=reading)
    return model_of(module, federation, reading.features, whole=whole, scale=reading), ready.aside()


def evaluate_on(
    table: Table | Any,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    scale: Scale | None = None,
    schema: Schema | None = None,
) -> dict[str, float]:
    """Metrics of a model on a table that the server holds, such as a public test set; nothing is asked of a party.

    `scale` as of `evaluate`. The table may be a data frame of any library (`Table.from_frame`); `schema` then declares it, as
    that of the federation on which the model was trained.
    """
    table = Table.like(table, schema)
    reading = reading_for(weights, module, table.schema, features or table.schema.features, scale)
    table = whole_cases(table, columns_of(table.schema, reading.features))
    columns = inputs_and_target(table.columns, **settings(table.schema, reading.features, reading))  # type: ignore[arg-type]
    model = model_for(module, table.schema, columns["model_input"][:2], reading.low, reading.by, whole=True)
    w = np.ones(len(table)) if table.schema.weight is None else table[table.schema.weight]
    sums = score(model.flat(weights), Party("server", columns, w), None, model=model)
    return metrics(model, sums)


def metrics(model: Model, sums: Any) -> dict[str, float]:
    """Divide sums by the number of records."""
    n = max(float(sums["n"]), 1e-12)
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
