"""Integers that a module reads as tokens: scaled to their declared range, they would all become the token 0."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.data import Schema
from hedgerow.errors import HedgerowWarning

from .models import Model
from .reading import Reading
from .tensors import blank

TRIED, TRIALS = 16, 8
"""Made-up records on which a module is tried, and sets of made-up parameters."""


def tokens(model: Model, schema: Schema, reading: Reading) -> list[str]:
    """Scaled integers that a module rounds (`x.long()`, `F.one_hot`): they decide its output, and have no gradient.

    Parameters are made up, as those of many a module begin at zero. No party is asked.
    """
    columns = [schema[name] for name in reading.features]
    widths = [len(column.levels) or int(np.prod(column.shape)) for column in columns]
    spans = dict(zip(reading.features, zip(np.cumsum(widths) - widths, np.cumsum(widths), strict=True), strict=True))
    names = [name for name, kept in zip(reading.features, reading.ranges, strict=True) if kept is not None]
    names = [name for name in names if schema[name].kind == "integer"]
    x, raw = (_tried(schema, reading.features, how) for how in (reading, "none"))
    found = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for _ in range(TRIALS if names else 0):
            flat = torch.randn(len(model.initial)) / 4
            gradient = _gradient(model, flat, x)
            names = [name for name in names if not (gradient[:, slice(*spans[name])] != 0).any()]
            found = [name for name in names if name in found or _decides(model, flat, raw, slice(*spans[name]))]
            if not names:
                break
    return found


def _tried(schema: Schema, features: tuple[str, ...], how: Any) -> Tensor:
    return torch.from_numpy(np.array(blank(schema, features, how, TRIED)["model_input"], np.float32))


def _gradient(model: Model, flat: Tensor, x: Tensor) -> Tensor:
    """Derivatives of the outputs by the input of shape (n, ...), as (n, d); zeros where there is none."""
    x = x.clone().requires_grad_()
    output = model.outputs(flat, x)
    found = torch.autograd.grad(output.sum(), x, allow_unused=True)[0] if output.requires_grad else None
    return (torch.zeros_like(x) if found is None else found).reshape(len(x), -1)


def _decides(model: Model, flat: Tensor, raw: Tensor, where: slice) -> bool:
    """Whether other whole numbers at these places give other outputs."""
    other = raw.clone()
    other.reshape(len(raw), -1)[:, where] = raw.reshape(len(raw), -1)[:, where].roll(1, 0)
    with torch.no_grad():
        return not torch.equal(*(model.outputs(flat, one, scaled=True) for one in (raw, other)))


def warn_of_tokens(model: Model, schema: Schema) -> None:
    """Warn of integers that are scaled, and that the module seems to read as tokens."""
    if model.reading is not None and model.task is None and (names := tokens(model, schema, model.reading)):
        listed = ", ".join(names[:6]) + ", ..." * (len(names) > 6)
        warnings.warn(
            f"{listed}: the module seems to read {'them' if len(names) > 1 else 'it'} as tokens, and integers reach it scaled "
            "to their declared range. Say scale = 'numbers', which leaves integers as they are.",
            HedgerowWarning,
            stacklevel=3,
        )
