"""Scattering: features of images that no record has shaped, so that they cost no privacy.

    S0   x * phi                                          1 channel
    S1   |x * psi_j| * phi                                J L channels: J scales, L angles
    S2   ||x * psi_j| * psi_k| * phi,  k coarser than j   L^2 J (J - 1) / 2 channels

`psi` are Morlet wavelets, `phi` is a Gaussian; each channel is sampled every 2^J pixels. Two scales and eight angles make
81 channels of 7 x 7 numbers of an image of 28 x 28. Small shifts and bends of an image hardly move them, and a linear
model on top of them reads digits as a small convolutional network does.

Every number is made from one image and from constants that are fixed here: no mean, scale or basis is taken from records.
Images are continued by reflection at their edges. Convolutions are products in the Fourier domain, where a wavelet's output
is sampled at its own scale; the average is separable, and two small matrix products.

Source: Mallat 2012; Bruna & Mallat 2013, section 2; the wavelets' constants, bandwidth 0.8, frequency 3 pi / 4 and slant 4 / L,
are those that Andreux et al. 2020 describe. For private learning: Tramer & Boneh 2021, who also divide each image's
channels by groups (Wu & He 2018), without learned factors, which is a matter of one record and free as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hedgerow.core.question import travels
from hedgerow.data import Column, Schema
from hedgerow.errors import SettingsInvalid

from ..tensors import scaling
from .chunks import by_chunks
from .steps import FeatureStep, images_of

AT_ONCE = 16
"""Images in one pass: their bands stay in a core's cache."""


GROUPS = 27
"""Of 81 channels: three to each group."""


@dataclass(frozen=True)
class Bank:
    """Wavelets and averages for images of one size.

    Attributes
    ----------
    wavelets : tensor of shape (scales, angles, height, width)
        Fourier transforms of the wavelets, which are real, on the continued image.
    rows, columns : tuple of tensors
        Item r averages an image's rows (columns) that were kept at every 2^r pixels, and samples every 2^scales pixels.
    border : int
        Pixels by which an image is continued at each side.
    """

    wavelets: Tensor
    rows: tuple[Tensor, ...]
    columns: tuple[Tensor, ...]
    border: int

    @property
    def scales(self) -> int:
        return self.wavelets.shape[0]

    @property
    def angles(self) -> int:
        return self.wavelets.shape[1]


def n_channels(scales: int, angles: int) -> int:
    """Channels of a transform of second order."""
    return 1 + scales * angles + angles**2 * scales * (scales - 1) // 2


@lru_cache(maxsize=16)
def bank(height: int, width: int, scales: int = 2, angles: int = 8) -> Bank:
    """Make the wavelets for images of a size.

    Raises
    ------
    SettingsInvalid (HR-511)
        No scale, no angle, or sides that are no multiples of 2^scales, or too short to be continued.
    """
    stride, border = 2**scales, 2**scales
    if scales < 1 or angles < 1 or min(height, width) <= border or height % stride or width % stride:
        raise SettingsInvalid(
            f"scattering of {height} x {width} pixels with {scales} scales and {angles} angles.",
            remedy=f"At least one scale and one angle; sides that are multiples of {stride} and longer than it.",
        )
    frequency = [2 * math.pi * np.fft.fftfreq(side + 2 * border) for side in (height, width)]
    made = [[_morlet(j, math.pi * turn / angles, 4 / angles, *frequency) for turn in range(angles)] for j in range(scales)]
    averages = [tuple(_average(side, border, scales, step) for step in range(scales)) for side in (height, width)]
    return Bank(torch.from_numpy(np.array(made)).float(), averages[0], averages[1], border)


def _morlet(scale: int, angle: float, slant: float, down: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Fourier transform of a wavelet: a Gaussian around its frequency, less one around zero so that its mean is zero.

    The Gaussians are summed over the frequencies that sampling at whole pixels cannot tell apart.
    """
    width, centre = 0.8 * 2**scale, 0.75 * math.pi / 2**scale
    folds = 2 * math.pi * np.arange(-2, 3)
    v = (down[:, None] + folds).reshape(len(down), 1, 5, 1)
    u = (along[:, None] + folds).reshape(1, len(along), 1, 5)
    across, ahead = -math.sin(angle) * u + math.cos(angle) * v, math.cos(angle) * u + math.sin(angle) * v

    def bump(at: float) -> np.ndarray:
        found: np.ndarray = np.exp(-0.5 * width**2 * ((ahead - at) ** 2 + (across / slant) ** 2)).sum((2, 3))
        return found

    wave, envelope = bump(centre), bump(0.0)
    wavelet: np.ndarray = wave - wave[0, 0] / envelope[0, 0] * envelope
    return wavelet


def _average(side: int, border: int, scales: int, step: int) -> Tensor:
    """Weights, shape (side / 2^scales, points), of a Gaussian on an axis kept at every 2^step pixels; each row adds to one."""
    period = side + 2 * border
    points, wanted = np.arange(0, period, 2**step), border + np.arange(0, side, 2**scales)
    away = (points[None] - wanted[:, None] + period / 2) % period - period / 2
    weights = np.exp(-0.5 * (away / (0.8 * 2 ** (scales - 1))) ** 2)
    return torch.from_numpy(weights / weights.sum(1, keepdims=True)).float()


def scatter(x: Tensor, scales: int = 2, angles: int = 8) -> Tensor:
    """Scatter images.

    Parameters
    ----------
    x : tensor of shape (..., height, width)
        Channels of colour, like records, are scattered each by itself.

    Returns
    -------
    tensor of shape (..., channels, height / 2^scales, width / 2^scales)
        S0, then S1 by scale and angle, then S2 by first scale, second scale, first angle and second angle.
    """
    used = bank(x.shape[-2], x.shape[-1], scales, angles)
    flat = x.reshape(-1, 1, *x.shape[-2:])
    made = by_chunks(lambda part: _scattered(part, used), flat, AT_ONCE)
    return made.reshape(*x.shape[:-2], *made.shape[1:])


def _scattered(x: Tensor, used: Bank) -> Tensor:
    whole = F.pad(x, (used.border,) * 4, mode="reflect")[:, 0]
    first, second, at_start = [], [], torch.fft.fft2(whole)
    for j in range(used.scales):
        band = _band(at_start[:, None], used.wavelets[j], j)  # (n, angles, ...)
        first.append(_averaged(band, used, j))
        coarser = range(j + 1, used.scales)
        spectrum = torch.fft.fft2(band) if coarser else band
        for k in coarser:
            wavelets = torch.stack(_blocks(used.wavelets[k], j)).sum(0)  # on the grid on which the band is kept
            again = _band(spectrum[:, :, None], wavelets, k - j)  # (n, angles, angles, ...)
            second.append(_averaged(again, used, k).flatten(1, 2))
    return torch.cat([_averaged(whole[:, None], used, 0), *first, *second], dim=1)


def _band(spectrum: Tensor, wavelets: Tensor, halvings: int) -> Tensor:
    """|x * psi|, kept at every 2^halvings points: frequencies that then fall together are added."""
    pairs = zip(_blocks(spectrum, halvings), _blocks(wavelets.to(spectrum.dtype), halvings), strict=True)
    first, weights = next(pairs)
    total = first * weights
    for block, weights in pairs:
        total.addcmul_(block, weights)
    return torch.fft.ifft2(total).abs() * 4.0**-halvings


def _blocks(spectrum: Tensor, halvings: int) -> list[Tensor]:
    """Parts of a spectrum that fall together where every 2^halvings-th point is kept."""
    apart = 2**halvings
    return [part for line in spectrum.chunk(apart, -2) for part in line.chunk(apart, -1)]


def _averaged(x: Tensor, used: Bank, step: int) -> Tensor:
    return used.rows[step] @ x @ used.columns[step].T


def grouped(x: Tensor, groups: int, floor: float = 1e-5) -> Tensor:
    """Bring each group of a record's channels to mean zero and variance one: shape (n, channels, ...), unchanged."""
    return F.group_norm(x, groups, eps=floor)


@travels
def scattered(
    columns: Mapping[str, np.ndarray],
    *,
    column: str,
    low: float = 0.0,
    scale: float = 1.0,
    scales: int = 2,
    angles: int = 8,
    groups: int = GROUPS,
) -> dict[str, np.ndarray]:
    """Make the column of scattered images, shape (n, channels, height / 2^scales, width / 2^scales), float16.

    Parameters
    ----------
    low, scale : float
        The transform sees (image - low) * scale.
    groups : int
        Of the channels, each brought to mean zero and variance one within a record; 0 leaves them as they are.
    """

    def features(part: Tensor) -> Tensor:
        made = scatter((part.to(torch.float32) - low) * scale, scales, angles).flatten(1, -3)  # colours become channels
        return (grouped(made, groups) if groups else made).half()

    with torch.no_grad():
        return {name_of(column): by_chunks(features, torch.from_numpy(np.asarray(columns[column])), AT_ONCE).numpy()}


def name_of(column: str) -> str:
    """Name of the column of features."""
    return f"{column} scattered"


def scattering(schema: Schema, *, scales: int = 2, angles: int = 8, groups: int = GROUPS) -> FeatureStep:
    """Return the step that scatters the only feature of a schema, a column of images.

    Raises
    ------
    SettingsInvalid (HR-511)
        Another number of features, or one that holds no images; sides, scales, angles or groups that do not fit.
    """
    images = images_of(schema, "scattering")
    *colours, height, width = images.shape
    bank(height, width, scales, angles)
    channels = math.prod(colours) * n_channels(scales, angles)
    if groups < 0 or (groups and channels % groups):
        raise SettingsInvalid(f"{groups} groups of {channels} channels.", remedy="Groups are equally large; 0 makes none.")
    low, scale = scaling(schema)
    given = {"column": images.name, "low": low, "scale": scale, "scales": scales, "angles": angles, "groups": groups}
    made = Column(name_of(images.name), "number", shape=(channels, height // 2**scales, width // 2**scales))
    return FeatureStep(scattered, tuple(sorted(given.items())), made)
