"""Records as rows of length one, which is the most that a record can weigh in a noisy sum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.bound import Bound, l2
from hedgerow.data import Schema

from ..tensors import inputs_and_target, scaling, settings

EVERYTHING = slice(None)


@dataclass(frozen=True)
class FeatureReading:
    """How the features of a schema are read as numbers; hashable, so that it can be a setting."""

    low: float
    scale: float
    features: tuple[str, ...]
    target: str
    settings: tuple[tuple[str, Any], ...]


def reading(schema: Schema) -> FeatureReading:
    """How the features of a schema are read."""
    low, scale = scaling(schema)
    given = settings(schema)
    return FeatureReading(low, scale, tuple(schema.features), str(schema.target), tuple(sorted(given.items())))


def rows_of(columns: Mapping[str, np.ndarray], reads: FeatureReading, part: slice = EVERYTHING) -> np.ndarray:
    """Some records as rows of length one, shape (n, d), float64: what a record adds is then exact to 15 digits."""
    some = {name: columns[name][part] for name in (*reads.features, reads.target)}
    x = np.asarray(inputs_and_target(some, **dict(reads.settings))["model_input"]).astype(np.float64)
    return of_length_one(((x - reads.low) * reads.scale).reshape(len(x), math.prod(x.shape[1:])))


def of_length_one(x: np.ndarray) -> np.ndarray:
    """Rows of shape (n, d) brought to length one; rows of zeros, and those not finite, become zeros.

    Numbers of a row lie side by side, so that they are added up in the same order however many rows there are.
    """
    x = np.ascontiguousarray(x)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        length = np.linalg.norm(x, axis=1, keepdims=True)
        lawful = np.isfinite(length) & (length > 0)
        made = np.where(lawful, x / np.where(lawful, length, 1.0), 0.0)
    return made


def bound_of(schema: Schema) -> Bound | None:
    """By how much a record moves a sum of rows of length one, or of their squares: its weight; unknown where weights have
    no declared range.
    """
    heaviest = schema.heaviest
    return None if heaviest is None else l2(heaviest, unit="record")
