"""Integers that a module reads as tokens: scaled to their declared range, they would all become the token 0."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from hedgerow.data import Schema
from hedgerow.errors import HedgerowWarning

from .models import Model
from .reading import Reading
from .tensors import blank

TRIED = 16
"""Made-up records on which a module is tried."""


def tokens(model: Model, schema: Schema, reading: Reading) -> list[str]:
    """Scaled integers without influence on a module's gradient, as it rounds them: `x.long()`, `F.one_hot`.

    A module is tried on made-up records with made-up parameters, as those of many a module begin at zero. No party is asked.
    """
    columns = [schema[name] for name in reading.features]
    if not any(column.kind == "integer" and kept is not None for column, kept in zip(columns, reading.ranges, strict=True)):
        return []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.from_numpy(np.array(blank(schema, reading.features, reading, TRIED)["model_input"])).to(torch.float32)
        x.requires_grad_()
        output = model.outputs(torch.randn(len(model.initial)) / 4, x)
        found = torch.autograd.grad(output.sum(), x, allow_unused=True)[0] if output.requires_grad else None
    if found is None:
        return [column.name for column in columns if column.kind == "integer"]
    if len(columns) == 1:
        return []
    moved, names, at = (found != 0).reshape(TRIED, -1).any(0), [], 0
    for column in columns:
        width = len(column.levels) or int(np.prod(column.shape))
        if column.kind == "integer" and not moved[at : at + width].any():
            names.append(column.name)
        at += width
    return names if moved.any() else []


def warn_of_tokens(model: Model, schema: Schema) -> None:
    """Warn of integers that are scaled, and that the module seems to read as tokens."""
    if model.reading is not None and (names := tokens(model, schema, model.reading)):
        listed = ", ".join(names[:6]) + ", ..." * (len(names) > 6)
        warnings.warn(
            f"{listed}: the module seems to read {'them' if len(names) > 1 else 'it'} as tokens, and integers reach it scaled to "
            "their declared range. Say scale = 'numbers', which leaves integers as they are.",
            HedgerowWarning,
            stacklevel=3,
        )
