"""Models of the Adult table, which a study names by import path; they read its columns in their declared ranges.

    hedgerow.study.bundled.adult:logistic       logistic regression, 108 parameters
    hedgerow.study.bundled.adult:two_layers     two hidden layers of 32 units with ReLU, 4 545 parameters

A bound on each record's gradient rewards inputs of like size. Ranges are declared from what the columns mean, before any
record was read, so bringing columns to them costs nothing; dollars, whose range is wide, are taken by their logarithm.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from hedgerow.data.catalogue import CATALOGUE
from hedgerow.errors import ModelInvalid
from hedgerow.learn import linear, mlp

WIDE = 1000.0
"""From this width on a range is one of factors."""


def logistic(n_inputs: int, n_outputs: int) -> nn.Module:
    """Logistic regression, starting at zero."""
    return nn.Sequential(OrderedDict(ranged=Ranged(n_inputs), net=linear(n_inputs, n_outputs)))


def two_layers(n_inputs: int, n_outputs: int) -> nn.Module:
    """Two hidden layers of 32 units."""
    return nn.Sequential(OrderedDict(ranged=Ranged(n_inputs), net=mlp(n_inputs, [32, 32], n_outputs)))


class Ranged(nn.Module):
    """Bring each number to its declared range, 0 to 1; indicators of levels pass as they are. Nothing here is trained."""

    low: Tensor
    width: Tensor

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        ranges: list[tuple[float, float]] = []
        schema = CATALOGUE["adult"].schema
        for column in (schema[name] for name in schema.features):
            known = column.low is not None and column.high is not None
            ranges += [(column.low, column.high)] if known else [(0.0, 1.0)] * len(column.levels)  # type: ignore[list-item]
        if len(ranges) != n_inputs:
            raise ModelInvalid(
                f"this model reads {len(ranges)} inputs, those of all features of 'adult', and was given {n_inputs}.",
                remedy="Leave data.features out, or choose the model linear or mlp.",
            )
        low, high = torch.tensor(ranges).T
        self.register_buffer("low", low.clone())
        self.register_buffer("width", high - low)

    def forward(self, x: Tensor) -> Tensor:
        up = (x - self.low).clamp_min(0.0)
        return torch.where(self.width > WIDE, torch.log1p(up) / torch.log1p(self.width), up / self.width)
