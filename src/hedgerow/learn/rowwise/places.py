"""Pools, tables and sums over the places of a record: of shape (m, places, c), with channels last.

Windows of a pool are a table of shape (windows, size): places of the input, -1 where a window sticks out.
"""

from __future__ import annotations

import numpy as np

from .subnormals import ieee


@ieee
def max_pool(x: np.ndarray, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest number of each window; of equal ones the first.

    Parameters
    ----------
    x : float32 array of shape (m, places, c)
    windows : int64 array of shape (windows, size)

    Returns
    -------
    out : float32 array of shape (m, windows, c)
        NaN where a window holds one.
    chosen : int32 array of shape (m, windows, c)
        Places of the input; -1 where a window is empty.
    """
    shape = (len(x), len(windows), x.shape[2])
    out, chosen = np.full(shape, -np.inf, np.float32), np.full(shape, -1, np.int32)
    for places in windows.T:
        there = places >= 0
        value = np.where(there[:, None], x[:, np.maximum(places, 0)], np.float32(-np.inf))
        larger = (value > out) | (np.isnan(value) & ~np.isnan(out)) | ((chosen < 0) & there[:, None])
        out = np.where(larger, value, out)
        chosen = np.where(larger, places[:, None].astype(np.int32), chosen)
    return out, chosen


@ieee
def max_pool_slopes(g: np.ndarray, chosen: np.ndarray, places: int) -> np.ndarray:
    """Gradient before a max pool, float32 of shape (m, places, c); windows that chose one place are added in their order."""
    m, _, c = g.shape
    out = np.zeros((m, places, c), np.float32)
    records, channels = np.arange(m)[:, None], np.arange(c)
    for w in range(g.shape[1]):
        there = chosen[:, w] >= 0
        out[records, np.maximum(chosen[:, w], 0), channels] += np.where(there, g[:, w], np.float32(0))
    return out


@ieee
def mean_pool(x: np.ndarray, windows: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Sums of windows over their divisors, of shape (windows,): float32 of shape (m, windows, c), added in float64 in order."""
    total = np.zeros((len(x), len(windows), x.shape[2]))
    for places in windows.T:
        total += np.where((places >= 0)[:, None], x[:, np.maximum(places, 0)], np.float32(0))
    return (total / divisor[:, None]).astype(np.float32)


@ieee
def mean_pool_slopes(g: np.ndarray, windows: np.ndarray, divisor: np.ndarray, places: int) -> np.ndarray:
    """Gradient before a mean pool, float32 of shape (m, places, c); windows are added in their order, in float64."""
    total = np.zeros((len(g), places, g.shape[2]))
    for w, (window, by) in enumerate(zip(windows, divisor, strict=True)):
        share = g[:, w].astype(np.float64) / by
        for place in window[window >= 0]:
            total[:, place] += share
    return total.astype(np.float32)


@ieee
def combined(index: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add up the gradients of one record that belong to one row of a table.

    Parameters
    ----------
    index : int64 array of shape (m, places)
        Rows of a table; -1 where there is none.
    g : float32 array of shape (m, places, c)

    Returns
    -------
    index : int64 array of shape (m, places)
        Each row once for each record, where it comes first, and -1 elsewhere.
    sums : float32 array of shape (m, places, c)
        Sums of the gradients of each row, added in float64 in their order; zero elsewhere.
    """
    m, places = index.shape
    rows = np.arange(m)
    first = (index[:, :, None] == index[:, None, :]).argmax(2) if places else index
    total = np.zeros(g.shape)
    for place in range(places):
        total[rows, first[:, place]] += np.where((index[:, place] >= 0)[:, None], g[:, place], np.float32(0))
    alone = (first == np.arange(places)) & (index >= 0)
    return np.where(alone, index, -1), total.astype(np.float32)


def add_steps_at(v: np.ndarray, index: np.ndarray, total: np.ndarray) -> None:
    """Add int32 steps of shape (m, places, c) to the rows `index` of `total`, int64 of shape (rows, c); -1 is left out."""
    there = index >= 0
    np.add.at(total, index[there], v[there].astype(np.int64))
