"""Networks that are fitted layer by layer: records in the unit cube, hidden units, and the noisy second moments between them.

    x   <- features in [0, 1]^d
    x   <- x / |x|                                       before each layer: the normalisation, a function of one record
    h   <- sigmoid(r x'W)                                hidden units, in (0, 1)

    moments     v = (1, x / |x|) / sqrt 2                sum of v v'                  l2 length |v|^2 <= 1
    output      the same, and v y'                       y one-hot, |v y'| <= 1       each times sqrt(1/2): together at most 1

Rows of hidden units are computed row by row (`learn.rowwise`), so that one record more changes no bit of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import elementwise, local, travels
from hedgerow.core.whole import BITS, bound_in
from hedgerow.data import Schema, Table
from hedgerow.errors import SchemaInvalid
from hedgerow.learn.rowwise import kernels as rows
from hedgerow.learn.tensors import made_of, prepared, scaling
from hedgerow.stats.whole import WholeRows

HALF = math.sqrt(0.5)
SHORTEST = 1e-12
JUST_BELOW = 1 - 1e-12
RIDGE = 0.5
"""Times sqrt(d) deviations of the noise: the ridge of an output layer, public, looked at on Adult and cardio."""


@travels
@elementwise
def in_the_cube(columns: Mapping[str, Array], *, low: float, scale: float) -> dict[str, Array]:
    """Prepare `cube`, features (n, d) float32 in [0, 1], and `label`, classes (n,), of what models read."""
    x = np.asarray(columns["model_input"])
    x = (x.reshape(len(x), -1).astype(np.float32) - np.float32(low)) * np.float32(scale)
    return {"cube": np.clip(np.nan_to_num(x), 0.0, 1.0), "label": np.asarray(columns["model_target"]).astype(np.int64)}


def at_parties(federation: Federation) -> Federation:
    """The federation with `cube` and `label`.

    Raises
    ------
    SchemaInvalid (HR-409)
        The target has no classes.
    """
    n_classes(federation.schema)
    low, scale = scaling(federation.schema)
    return prepared(federation).prepare(in_the_cube, low=low, scale=scale)


def n_classes(schema: Schema) -> int:
    """Classes of the target."""
    if schema.target is None or not schema.classifies:
        raise SchemaInvalid("these networks classify, and the target has no classes.", remedy="Name a target with levels.")
    return len(schema[schema.target].levels) or 2


def of_table(table: Table) -> tuple[Array, Array]:
    """`cube` and `label` of a table."""
    low, scale = scaling(table.schema)
    found = in_the_cube(made_of(table.columns, table.schema, None, "ranges"), low=low, scale=scale)
    return found["cube"], found["label"]


def width(schema: Schema) -> int:
    """Features in the cube."""
    made = made_of(schema.synthetic(1, np.random.default_rng(0)), schema, None, "ranges")
    return int(np.prod(made["model_input"].shape[1:]))


# ---- hidden units ---------------------------------------------------------------------------------------------------
def unit(x: Array) -> Array:
    """Rows (n, d) float32, each divided by its own length."""
    length = np.sqrt(rows.squares(np.ascontiguousarray(x)).astype(np.float64))
    shortened: Array = (x / np.maximum(length, SHORTEST)[:, None]).astype(np.float32)
    return shortened


def hidden(x: Array, weights: Sequence[Array]) -> Array:
    """Units of the last layer of records in the cube (n, d), float32; the records themselves without layers."""
    for W in weights:
        x = rows.sigmoid(rows.multiply(unit(x), rows.packed(np.ascontiguousarray(W, np.float32))))
    return x


def spread(h: Array) -> Array:
    """Hidden units from (0, 1) to (-1, 1), as an output reads them: their common half would take most of a row's length."""
    found: Array = (h - np.float32(0.5)) * np.float32(2.0)
    return found


def layers_in(broadcast: Any) -> list[Array]:
    """Weights of the layers of a broadcast, first to last."""
    return [] if broadcast is None else [broadcast[f"W{i}"] for i in range(1, len(broadcast) + 1)]


def as_broadcast(weights: Sequence[Array]) -> dict[str, Array] | None:
    """The weights as they are sent; None without layers."""
    return {f"W{i}": W for i, W in enumerate(weights, 1)} or None


# ---- noisy second moments -------------------------------------------------------------------------------------------
def part_of(bound: Bound) -> Bound:
    """Of two parts of one ball, each as long as the other."""
    return replace(bound, radius=bound.radius * HALF * JUST_BELOW)


@local(additive=True, holds=BITS, norms=(2,))
def second_moments(broadcast: Any, party: Party, rng: Any, *, labels: int = 0, bounds: Bounds | None = None) -> Array:
    """Sums of v v' (m, m), flat, v = (1, h / |h|) / sqrt 2 of hidden units; of `labels` classes also v y' (m, K), both halved.

    A record's numbers have length one at most: with labels each part is times sqrt(1/2).
    """
    weights = layers_in(broadcast)
    h = hidden(party["cube"], weights)
    return moments_of(spread(h) if labels and weights else h, party["label"], party.w, labels, bounds)


def moments_of(h: Array, label: Array, w: Array, labels: int, bounds: Bounds | None) -> Array:
    """The same of numbers (n, b) that are at hand."""
    x = unit(h).astype(np.float64) * (HALF * JUST_BELOW)
    v = np.concatenate([np.full((len(x), 1), HALF), x], axis=1)
    y = (label[:, None] == np.arange(labels)).astype(np.float64)
    if bounds is None:
        parts = [v.T @ (w[:, None] * v), *((v.T @ (w[:, None] * y),) if labels else ())]
        return np.concatenate([part.reshape(-1) * (HALF if labels else 1.0) for part in parts])
    whole, bound = WholeRows.of(v), bound_in(bounds, "")
    if not labels:
        return mirrored(whole.products(w, bound), v.shape[1]).reshape(-1)
    own = part_of(bound)
    matrix = mirrored(whole.products(HALF * w, own), v.shape[1])
    score = np.stack([whole.sums(HALF * w * of_class, own) for of_class in y.T], axis=1)
    return np.concatenate([matrix.reshape(-1), score.reshape(-1)])


def mirrored(upper: Array, d: int) -> Array:
    """The symmetric matrix (d, d) of an upper triangle."""
    found, at = np.empty((d, d)), np.triu_indices(d)
    found[at] = found.T[at] = upper
    return found


def matrix_of(flat: Array, m: int, labels: int = 0) -> tuple[Array, Array]:
    """The matrix (m, m), symmetric, and the score (m, K) of a release, in the units of v."""
    unscaled = flat / (HALF if labels else 1.0)
    matrix = unscaled[: m * m].reshape(m, m)
    return (matrix + matrix.T) / 2, unscaled[m * m :].reshape(m, labels) if labels else np.zeros((m, 0))


def least_squares(matrix: Array, score: Array, noise: float) -> Array:
    """Coefficients (m, K) of one-hot labels less 1/2, from noisy moments; the ridge is of the size of the noise (SSP)."""
    values, vectors = np.linalg.eigh(matrix)
    raised = np.maximum(values, 0.0) + RIDGE * math.sqrt(len(values)) * noise + 1e-6 * max(values[-1], 1e-12)
    centred = score - matrix[:, :1] / HALF / 2  # of y - 1/2; the first of v is sqrt(1/2)
    found: Array = vectors @ ((vectors.T @ centred) / raised[:, None])
    return found


def decided(h: Array, coef: Array) -> Array:
    """Scores (n, K) of records with these numbers (n, b) before the output."""
    found: Array = unit(h).astype(np.float64) * HALF @ coef[1:] + HALF * coef[0]
    return found
