"""Records as a model sees them: one input array and one target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.core.party import WEIGHTS
from hedgerow.core.question import elementwise, travels
from hedgerow.data import Schema, complete_cases
from hedgerow.errors import MissingColumn, SchemaInvalid, suggestion

from .reading import Reading
from .scale import Scale, of_batches, span
from .tasks.packing import packed


@travels
@elementwise
def inputs_and_target(
    columns: Mapping[str, np.ndarray],
    *,
    features: tuple[str, ...],
    ranges: tuple[tuple[float, float] | None, ...],
    levels: tuple[int, ...],
    target: str,
    target_kind: str,
) -> dict[str, np.ndarray]:
    """Prepare `model_input`, of shape (n, ...), and `model_target`, of shape (n,).

    A single array-shaped column is taken as it is, in its own type and without a copy: the model scales a batch when it
    takes it. Other features are joined to a float32 vector: categories become indicators of their levels, and of `ranges` the
    first number is subtracted from a feature, which is then divided by the second (see `scale`).
    """
    kind = np.int64 if target_kind == "category" else np.float32
    wanted = np.asarray(columns[target]).astype(kind)
    if len(features) == 1 and not levels[0] and np.ndim(columns[features[0]]) > 1:
        return {"model_input": columns[features[0]], "model_target": wanted}
    parts = []
    for name, taken, n_levels in zip(features, ranges, levels, strict=True):
        values = np.asarray(columns[name])
        if n_levels:
            values = (values[:, None] == np.arange(n_levels)).astype(np.float32)
        elif taken is not None:
            values = (values.astype(np.float32 if values.ndim > 1 else np.float64) - taken[0]) / taken[1]
        parts.append(values.astype(np.float32))
    joined = np.concatenate([part.reshape(len(part), math.prod(part.shape[1:])) for part in parts], axis=1)
    return {"model_input": joined.astype(np.float32), "model_target": wanted}


def scaling(schema: Schema, features: Sequence[str] | None = None, scale: Scale = "ranges") -> tuple[float, float]:
    """`low` and `scale` that map a single array-shaped column's declared range to 0..1; 0 and 1 for joined features."""
    return of_batches([schema[name] for name in features or schema.features], scale)


def settings(schema: Schema, features: Sequence[str] | None = None, scale: Scale | Reading = "ranges") -> dict[str, object]:
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
        "ranges": scale.ranges if isinstance(scale, Reading) else tuple(span(column, scale) for column in columns),
        "levels": tuple(len(c.levels) if c.kind == "category" else 0 for c in columns),
        "target": schema.target,
        "target_kind": schema[schema.target].kind,
    }


@travels
@elementwise
def only(columns: Mapping[str, np.ndarray], *, column: str, value: int, weight: str | None) -> dict[str, np.ndarray]:
    """Prepare record weights that leave out records where a 0/1 column has another value."""
    w = np.ones(len(columns[column])) if weight is None else np.asarray(columns[weight], float)
    return {WEIGHTS: np.where(np.asarray(columns[column]) == value, w, 0.0)}


def prepared(
    federation: Federation,
    features: Sequence[str] | None = None,
    *,
    held_out: str | None = None,
    validation: bool = False,
    scale: Scale | Reading = "ranges",
) -> Federation:
    """Return the federation with `model_input` and `model_target` prepared at each party.

    Parameters
    ----------
    held_out : str, optional
        A 0/1 column: only its zeros count, or only its ones for `validation`.

    Notes
    -----
    Records that lack a feature or the target are left out. How many is asked by whoever trains without noise (`counted`).
    """
    schema = federation.schema
    federation = complete_cases(federation, columns_of(schema, features, held_out, scale), count=False)
    if held_out is not None:
        if held_out not in schema.names:
            raise MissingColumn(f"held_out names {held_out!r}, which is no column.", remedy=suggestion(held_out, schema.names))
        features = features or [name for name in schema.features if name != held_out]
        federation = federation.prepare(only, column=held_out, value=int(validation), weight=schema.weight)
    if isinstance(scale, Reading) and scale.task is not None:
        return federation.prepare(packed, inputs=scale.task.inputs, target=scale.task.target)
    return federation.prepare(inputs_and_target, **settings(schema, features, scale))


def columns_of(
    schema: Schema, features: Sequence[str] | None = None, held_out: str | None = None, scale: Scale | Reading = "ranges"
) -> tuple[str, ...]:
    """The columns that a model reads: its features, the target, and what marks records that are held out."""
    if isinstance(scale, Reading) and scale.task is not None:
        return scale.task.columns if held_out is None or held_out not in schema else (*scale.task.columns, held_out)
    chosen = features or [name for name in schema.features if name != held_out]
    aside = [held_out] if held_out is not None and held_out in schema else []
    return (*chosen, *([] if schema.target is None else [schema.target]), *aside)


def width(schema: Schema, features: Sequence[str] | None = None) -> tuple[int, ...]:
    """Shape of one record's `model_input`."""
    return blank(schema, features)["model_input"].shape[1:]


def blank(
    schema: Schema, features: Sequence[str] | None = None, scale: Scale | Reading = "ranges", n: int = 2
) -> dict[str, np.ndarray]:
    """Prepare made-up records, two by default, to try a model on."""
    return made_of(schema.synthetic(n, np.random.default_rng(0)), schema, features, scale)


def made_of(
    columns: Mapping[str, np.ndarray], schema: Schema, features: Sequence[str] | None, scale: Scale | Reading
) -> dict[str, np.ndarray]:
    """`model_input` and `model_target` of records that are at hand."""
    if isinstance(scale, Reading) and scale.task is not None:
        return packed(columns, inputs=scale.task.inputs, target=scale.task.target)
    return inputs_and_target(columns, **settings(schema, features, scale))  # type: ignore[arg-type]
