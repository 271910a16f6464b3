"""How much of a record a picture of it shows: peak signal-to-noise ratio, after the best matching of pictures to records."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

RECOGNISED = 20.0
"""Decibels from which on a person recognises a digit."""

MOST = 120.0
"""Decibels that are told at most: an error of a millionth of the range is rounding."""


def psnr(found: Array, truth: Array, *, largest: float = 1.0) -> Array:
    """Peak signal-to-noise ratio, 10 log10(largest^2 / mean squared error), in decibels; at most `MOST`.

    Parameters
    ----------
    found, truth : arrays of shape (..., d)
    largest : float
        Range of a number: 1 for inputs that were brought to 0..1.

    Returns
    -------
    array of shape (...)

    Raises
    ------
    SettingsInvalid (HR-511)
        `largest` is not finite and above zero.
    """
    if not 0 < largest < np.inf:
        raise SettingsInvalid(f"largest is {largest!r}.", remedy="Give the range of a number, finite and above zero.")
    error = np.mean((np.asarray(found, float) - np.asarray(truth, float)) ** 2, axis=-1)
    return np.asarray(10 * np.log10(largest**2 / np.maximum(error, largest**2 * 10 ** (-MOST / 10))))


def matched(found: Array, truth: Array, *, largest: float = 1.0) -> tuple[Array, Array]:
    """Match pictures to records one to one, so that the sum of decibels is greatest.

    Parameters
    ----------
    found, truth : arrays of shape (m, ...) and (n, ...)
    largest : float
        As of `psnr`.

    Returns
    -------
    array of shape (m,)
        The record of each picture; -1 of one that is left over, since there are more pictures than records.
    array of shape (m,)
        Its decibels; NaN of one that is left over.

    Raises
    ------
    SettingsInvalid (HR-511)
        Pictures and records have other shapes.
    """
    import scipy

    found, truth = np.asarray(found, float), np.asarray(truth, float)
    if found.ndim < 2 or found.shape[1:] != truth.shape[1:] or not len(truth):
        raise SettingsInvalid(
            f"pictures of shape {found.shape} and records of shape {truth.shape}.",
            remedy="Give (m, ...) and (n, ...), brought to the module's range as training brings them.",
        )
    each = psnr(found.reshape(len(found), 1, -1), truth.reshape(1, len(truth), -1), largest=largest)
    rows, columns = scipy.optimize.linear_sum_assignment(-each)
    places, decibels = np.full(len(found), -1), np.full(len(found), np.nan)
    places[rows], decibels[rows] = columns, each[rows, columns]
    return places, decibels
