"""Straightening: each image is moved to its centre of mass, and sheared until it stands upright.

    c        <- centre of mass                                      of the image's own brightness
    a        <- covariance of u and v over variance of v            u across, v down; at most 1 in size
    (v, u)   <- image at (v + c_v, u + c_u + a v)                   between pixels by bilinear weights

Handwriting slants differently from hand to hand; once upright, its classes are nearly linear. Everything is computed from
one image, so it costs no privacy. Pixels that come from outside are zero, so it suits drawings on an empty ground.

Source: LeCun et al. 1998, section III.A ("deslanting"); moments: Hu 1962.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hedgerow.core.question import travels
from hedgerow.data import Column, Schema

from ..tensors import scaling
from .chunks import by_chunks
from .steps import FeatureStep, images_of

NAME = "straightened"


def straighten(x: Tensor) -> Tensor:
    """Straighten images of shape (n, height, width), none below zero; an empty image stays empty."""
    height, width = x.shape[-2:]
    v = torch.arange(height, dtype=x.dtype)[None, :, None] - (height - 1) / 2
    u = torch.arange(width, dtype=x.dtype)[None, None, :] - (width - 1) / 2
    mass = x.sum((1, 2), keepdim=True)
    share = x / torch.where(mass > 0, mass, torch.ones_like(mass))
    at_v, at_u = ((share * axis).sum((1, 2), keepdim=True) for axis in (v, u))
    down, across = v - at_v, u - at_u
    slant = (share * down * across).sum((1, 2), keepdim=True) / (share * down**2).sum((1, 2), keepdim=True).clamp_min(1e-3)
    from_v, from_u = (v + at_v).expand_as(x), u + at_u + slant.clamp(-1, 1) * v
    where = torch.stack([from_u * 2 / max(width - 1, 1), from_v * 2 / max(height - 1, 1)], -1)
    return F.grid_sample(x[:, None], where, align_corners=True)[:, 0]


@travels
def straightened(columns: Mapping[str, np.ndarray], *, column: str, low: float, scale: float) -> dict[str, np.ndarray]:
    """Make the column of straightened images, of the same shape, with zero for empty and float16 numbers up to one."""

    def upright(part: Tensor) -> Tensor:
        x = ((part.to(torch.float32) - low) * scale).clamp_min(0.0)
        return straighten(x.reshape(-1, *x.shape[-2:])).reshape(x.shape).half()

    with torch.no_grad():
        return {f"{column} {NAME}": by_chunks(upright, torch.from_numpy(np.asarray(columns[column])), 1024).numpy()}


def straightening(schema: Schema) -> FeatureStep:
    """Return the step that straightens the only feature of a schema, a column of images.

    Raises
    ------
    SettingsInvalid (HR-511)
        Another number of features, or one that holds no images.
    """
    images = images_of(schema, "straightening")
    low, scale = scaling(schema)
    given = {"column": images.name, "low": low, "scale": scale}
    made = Column(f"{images.name} {NAME}", "number", shape=images.shape)
    return FeatureStep(straightened, tuple(sorted(given.items())), made)
