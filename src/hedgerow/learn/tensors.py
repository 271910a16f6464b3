"""Records as a model sees them: one input array and one target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.data import Schema
from hedgerow.errors import SchemaInvalid


def inputs_and_target(
    columns: Mapping[str, np.ndarray],
    *,
    features: tuple[str, ...],
    ranges: tuple[tuple[float, float] | None, ...],
    levels: tuple[int, ...],
    target: str,
    target_kind: str,
) -> dict[str, np.ndarray]:
    """Prepare `model_input`, float32 of shape (n, ...), and `model_target`, shape (n,).

    A single array-shaped column keeps its shape; other features are joined to a vector. Array-shaped columns with a
    declared range are mapped to 0..1, which uses the range alone; categories become indicators of their levels.
    """
    parts = []
    for name, span, n_levels in zip(features, ranges, levels, strict=True):
        values = np.asarray(columns[name])
        if n_levels:
            values = (values[:, None] == np.arange(n_levels)).astype(np.float32)
        elif span is not None:
            values = (values.astype(np.float32) - span[0]) / (span[1] - span[0])
        parts.append(values.astype(np.float32))
    if len(parts) > 1 or parts[0].ndim == 1:
        joined = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    else:
        joined = parts[0]
    kind = np.int64 if target_kind == "category" else np.float32
    return {"model_input": joined.astype(np.float32), "model_target": np.asarray(columns[target]).astype(kind)}


def settings(schema: Schema, features: Sequence[str] | None = None) -> dict[str, object]:
    """Return the settings of `inputs_and_target` for a schema's features and target."""
    chosen = tuple(features or schema.features)
    if schema.target is None or not chosen:
        raise SchemaInvalid(
            f"training needs a target and features; the schema has target {schema.target!r} and features {list(chosen)}.",
            remedy="Declare roles: table = Table.from_pandas(frame, target='...').",
        )
    columns = [schema[name] for name in chosen]
    return {
        "features": chosen,
        "ranges": tuple((c.low, c.high) if c.shape and c.low is not None and c.high is not None else None for c in columns),
        "levels": tuple(len(c.levels) if c.kind == "category" else 0 for c in columns),
        "target": schema.target,
        "target_kind": schema[schema.target].kind,
    }


def prepared(federation: Federation, features: Sequence[str] | None = None) -> Federation:
    """Return the federation with `model_input` and `model_target` prepared at each party."""
    return federation.prepare(inputs_and_target, **settings(federation.schema, features))


def width(schema: Schema, features: Sequence[str] | None = None) -> tuple[int, ...]:
    """Shape of one record's `model_input`."""
    return blank(schema, features)["model_input"].shape[1:]


def blank(schema: Schema, features: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Prepare two made-up records, to try a model on."""
    return inputs_and_target(schema.synthetic(2, np.random.default_rng(0)), **settings(schema, features))  # type: ignore[arg-type]
