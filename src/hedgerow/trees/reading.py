"""Bin numbers of new records, and how well a model of bins predicts a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Schema, Table
from hedgerow.data.cases import whole_cases
from hedgerow.data.declared import series_values
from hedgerow.data.frames import RawTable
from hedgerow.errors import NotFinite, SchemaInvalid, UnboundedSum

from .bins import Bins
from .tree import WHOLE


class BinModel(Protocol):
    """A model of binned features."""

    @property
    def bins(self) -> Bins: ...

    def predict(self, data: Any) -> Array:
        """Class or mean of each record, shape (n,)."""
        ...


def two_classes_or_a_number(bins: Bins) -> None:
    """Refuse a target of more than two classes."""
    if len(bins.classes) > 2:
        raise SchemaInvalid(
            f"{bins.target.name} has {len(bins.classes)} classes, and this model is of two classes or of a number.",
            remedy="Within a budget take private_forest, hybrid_forest or stats.private.multinomial; else random_forest.",
        )


def refuse_undeclared(bins: Bins, *, noisy: bool) -> None:
    """Refuse noise that would have no scale, before anybody is asked."""
    if noisy and bins.bound is None:
        raise UnboundedSum(
            f"how far one record moves a sum is not known: {bins.target.name} or the record weights declare no range.",
            remedy=f"Declare what values are possible:  table.declare({bins.target.name}=(low, high))",
        )


def bin_numbers(bins: Bins, data: Any) -> Array:
    """Bin numbers (n, f) of a data frame of any library, a `Table`, or a mapping from column to values.

    Raises
    ------
    MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
        The data do not hold the features as declared, or lack a value.
    """
    if isinstance(data, Table):
        data = data.columns
    elif not isinstance(data, Mapping):
        found = RawTable.of(data, needed=[column.name for column in bins.features])
        data = {name: series_values(series) for name, series in found.columns.items()}
    columns = Schema(bins.features).admit(data)
    lost = {column.name: int(column.lacks(columns[column.name]).sum()) for column in bins.features}
    if told := [f"{count} of {name}" for name, count in lost.items() if count]:
        raise NotFinite(f"the model reads features of which values are missing: {', '.join(told)}.", remedy=WHOLE)
    return bins.number(columns)


def named(bins: Bins, codes: Array) -> Array:
    """Class codes as predictions: 0.0 or 1.0 for a binary target, else words of levels."""
    return codes.astype(float) if bins.target.kind == "binary" else np.array(bins.classes)[codes]


def score_of(model: BinModel, schema: Schema, table: Table) -> float:
    """Accuracy of a classifier on a table, or R2 of a regression; records are weighted where the schema has weights."""
    bins = model.bins
    weight = [] if schema.weight is None else [schema.weight]
    table = whole_cases(table, [*(column.name for column in bins.features), bins.target.name, *weight])
    target, predicted = np.asarray(table.columns[bins.target.name]), model.predict(table)
    w = np.ones(len(table)) if schema.weight is None else np.asarray(table[schema.weight])
    if bins.target.kind == "category":
        target = np.array(bins.classes)[target]
    if bins.classes:
        return float(np.average(predicted == target, weights=w))
    mean = np.average(target, weights=w)
    return 1 - float(np.average((target - predicted) ** 2, weights=w) / np.average((target - mean) ** 2, weights=w))


def name_of_score(bins: Bins) -> str:
    """Name of the score on the server's table."""
    return "test accuracy" if bins.classes else "test R2"
