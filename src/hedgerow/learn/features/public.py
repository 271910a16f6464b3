"""Components of public records: a fixed first layer that costs nothing, since no party's record decides it.

    x      <- features by their declared ranges, as a row of d numbers
    z      <- V^T (x - centre)      V: leading k directions of the public records, each over its deviation among them
    z      cut to [-LIMIT, LIMIT] in each coordinate

Releases : nothing; the public records are at the server, and belong to no party.
Source   : principal components; whitened ones as inputs of small private models: Jayaraman and Evans, USENIX Security 2019,
           section 4, who take those of all records.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hedgerow.core.question import travels
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SettingsInvalid

from ..tensors import inputs_and_target, width
from .rows import FeatureReading, reading
from .steps import FeatureStep, Matrix

NAME = "public components"
"""The column that is made."""
LIMIT = 8.0
AT_ONCE = 4096
MOST_PUBLIC = 2000
"""Public records that are used, the first ones."""


def public_directions(public: Table, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Whitening of public records: directions (d, k) and what is subtracted after them (k,), float32.

    Raises
    ------
    SettingsInvalid (HR-511)
        There are not so many directions in which the public records differ.
    """
    reads = reading(public.schema)
    rows = _rows(public.columns, reads, slice(MOST_PUBLIC)).astype(np.float64)
    centre = rows.mean(0)
    off = rows - centre
    wide = off.shape[1] > len(off)  # the smaller matrix of products has the same leading values
    values, vectors = np.linalg.eigh(off @ off.T if wide else off.T @ off)
    values, vectors = values[::-1][:components], vectors[:, ::-1][:, :components]
    if len(values) < components or components < 1 or not values[-1] > 1e-9 * values[0]:
        raise SettingsInvalid(
            f"{components} components of {len(rows)} public records of {rows.shape[1]} numbers.",
            remedy="Take fewer, or give more public records.",
        )
    directions = off.T @ vectors / np.sqrt(values) if wide else vectors
    directions = directions * np.sign(directions[np.abs(directions).argmax(0), np.arange(components)])
    directions = directions / np.sqrt(values / len(rows))
    return directions.astype(np.float32), (centre @ directions).astype(np.float32)


def random_directions(schema: Schema, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions of the same shapes where there are no public records: normal numbers of a fixed seed.

    What is subtracted takes the middle of the declared ranges to zero.
    """
    d = math.prod(width(schema))
    directions = np.random.default_rng(0).standard_normal((d, components)) / math.sqrt(d)
    return directions.astype(np.float32), (0.5 * directions.sum(0)).astype(np.float32)


def _rows(columns: Any, reads: FeatureReading, part: slice) -> np.ndarray:
    """Some records as rows (n, d) of numbers by their declared ranges, float32."""
    some = {name: np.asarray(columns[name])[part] for name in (*reads.features, reads.target)}
    x = np.asarray(inputs_and_target(some, **dict(reads.settings))["model_input"]).astype(np.float32)
    return ((x - np.float32(reads.low)) * np.float32(reads.scale)).reshape(len(x), math.prod(x.shape[1:]))


@travels
def on_public(columns: Any, *, reads: FeatureReading, matrix: Matrix, shift: Matrix) -> dict[str, np.ndarray]:
    """Make the column of components, shape (n, k), float32."""
    n, directions, less = len(columns[reads.features[0]]), matrix.values, shift.values
    made = np.empty((n, matrix.shape[1]), np.float32)
    for start in range(0, n, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        made[part] = np.clip(_rows(columns, reads, part) @ directions - less, -LIMIT, LIMIT)
    return {NAME: made}


def public_components(schema: Schema, directions: np.ndarray, shift: np.ndarray) -> FeatureStep:
    """Return the step from a schema's features to their public components, of what `public_directions` found."""
    given = {"reads": reading(schema), "matrix": Matrix.of(directions), "shift": Matrix.of(shift[None, :])}
    return FeatureStep(on_public, tuple(sorted(given.items())), Column(NAME, "number", shape=(directions.shape[1],)))
