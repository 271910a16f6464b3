"""What a small model of images reads: fixed features, pooled until few parameters remain.

Noise grows with the root of the number of parameters, and a party's update is one vector however many records are behind it.
So a linear model on few good features learns more from a noisy sum than a large network does on pixels.

    image -> scattering, 81 x 7 x 7      `features.scattering`: constants alone, one image at a time
          -> means over 4 x 4 windows    1296 numbers
          -> each channel less its mean, over its deviation; the whole brought to length one

No number comes from records, so nothing is charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hedgerow.core.question import travels
from hedgerow.data import Column, Schema
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.features.steps import FeatureStep

from ..features.chunks import by_chunks
from ..features.scattering import AT_ONCE, n_channels, scatter, scattering
from ..made import leaves_note

Inputs = Literal["columns", "pooled scattering"]

SCALES, ANGLES, SIDE = 2, 8, 4


def step_of(schema: Schema, inputs: Inputs) -> FeatureStep | None:
    """The step from the columns of a table to what the module reads; None where it reads them as they are."""
    if inputs == "columns":
        return None
    if inputs != "pooled scattering":
        raise SettingsInvalid(f"inputs is {inputs!r}.", remedy="Choose 'columns' or 'pooled scattering'.")
    given = dict(scattering(schema, scales=SCALES, angles=ANGLES).settings)  # refuses what holds no images
    kept = {"column": given["column"], "low": given["low"], "scale": given["scale"]}
    image = schema[str(given["column"])]
    channels = int(np.prod(image.shape[:-2], dtype=int)) * n_channels(SCALES, ANGLES)
    made = Column(_name(image.name), "number", shape=(channels * SIDE**2,))
    return FeatureStep(pooled_scattering, tuple(sorted(kept.items())), made)


@travels
def pooled_scattering(columns: Mapping[str, np.ndarray], *, column: str, low: float, scale: float) -> dict[str, np.ndarray]:
    """Make the column of features, shape (n, channels * 16), float32."""
    images: Any = torch.from_numpy(np.ascontiguousarray(columns[column]))
    with torch.no_grad():
        return {_name(column): by_chunks(partial(_features, low=low, scale=scale), images, AT_ONCE).numpy()}


def _features(images: Tensor, low: float, scale: float) -> Tensor:
    x = scatter((images.to(torch.float32) - low) * scale, SCALES, ANGLES).flatten(1, -3)
    x = F.adaptive_avg_pool2d(x, SIDE).flatten(2)
    x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, correction=0, keepdim=True) + 1e-3)
    return F.normalize(x.flatten(1))


def _name(column: str) -> str:
    return f"{column} scattered and pooled"


@leaves_note
def slopes(n_inputs: int, n_outputs: int) -> nn.Module:
    """A linear model without intercepts, starting at zero, for features of length one.

    The gradient of an intercept is as long as that of all features together, and says only which labels a party holds: with
    few labels at each party it takes half of every clipped update, and cancels in the sum.
    """
    layer = nn.Linear(n_inputs, n_outputs, bias=False)
    nn.init.zeros_(layer.weight)
    return nn.Sequential(nn.Flatten(), layer)
