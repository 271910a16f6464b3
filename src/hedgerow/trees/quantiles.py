"""Bins of about equally many records: cut points from one histogram of fine public bins.

    H       <- for each numeric feature, the records in each of many fine bins        one sum
    cuts    <- the fine cuts at which H's running share passes 1/b, 2/b, ...          server

Categories and binary features keep a bin for each value, and numbers of few values one for each.

Releases : H, of shape (sum of the fine bins,). Cut points follow from it. Through a channel that adds noise it is charged like
           any other question; a twentieth of a budget's mu^2 is enough, as `BudgetShares` divides it.
Unit     : record. It lies in one fine bin of each of f features: l2 length sqrt(f), l1 length f, times the heaviest weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import bound_in, whole
from hedgerow.data import complete_cases

from .bins import Bins, binned
from .histograms import CellLayout, every_feature, tally
from .noise import ball


@local(additive=True, stackable=True, holds=True)
def fine_counts(broadcast: Any, party: Party, rng: Any, *, sizes: tuple[int, ...], bounds: Bounds | None = None) -> Array:
    """Count records by feature and fine bin: shape (sum(sizes),), with a leading axis for parties where they are stacked."""
    lead, bins, added = party.w.shape[:-1], party["bins"], party.w.reshape(-1, 1)
    if bounds is not None:
        added = whole(added, bound_in(bounds, ""), times=len(sizes))
    bins = bins.reshape(-1, len(sizes))
    layout = CellLayout.of(every_feature(1, len(sizes)), sizes)
    found = tally(np.zeros((1, len(bins)), int), bins, added.T[:, None], layout, parties=int(np.prod(lead, dtype=int)))
    return found.reshape((*lead, sum(sizes)))


def quantile_bins(
    federation: Federation,
    *,
    n_bins: int = 32,
    fine: int = 1024,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
) -> Bins:
    """Place cut points where about equally many records lie between them.

    Parameters
    ----------
    federation : Federation
        Asked once, through its channel.
    n_bins : int
        Bins of a number; fewer where many records lie in one fine bin.
    fine : int
        Fine bins of a number over its declared range: cut points are among their ends.
    log : sequence of str
        Features whose fine bins have equal widths of a logarithm (see `Bins.of`).
    features, target : optional
        The columns with these roles by default.

    Returns
    -------
    Bins
        For `random_forest(..., bins=)` and `boosted_trees(..., bins=)`.

    Raises
    ------
    As `Bins.of`; UnboundedSum (HR-210) where the channel adds noise and weights declare no range.
    """
    chosen: dict[str, Any] = {"features": features, "target": target, "log": log}
    coarse, finely = (Bins.of(federation.schema, n_bins=n, **chosen) for n in (n_bins, max(fine, n_bins)))
    asked = [j for j, (few, many) in enumerate(zip(coarse.cuts, finely.cuts, strict=True)) if len(many) > len(few)]
    if not asked:
        return coarse
    some = replace(finely, features=tuple(finely.features[j] for j in asked), cuts=tuple(finely.cuts[j] for j in asked))
    federation = complete_cases(federation, [*(column.name for column in finely.features), finely.target.name])
    bound = None if some.heaviest is None else ball(federation, len(asked), some.heaviest)
    counts = federation.prepare(binned, bins=some).sum(partial(fine_counts, sizes=some.sizes), bound=bound)
    cuts = dict(enumerate(coarse.cuts))
    for j, many, found in zip(asked, some.cuts, np.split(counts, np.cumsum(some.sizes)[:-1]), strict=True):
        cuts[j] = quantile_cuts(np.maximum(found, 0.0), many, n_bins) or coarse.cuts[j]
    return replace(coarse, cuts=tuple(cuts[j] for j in range(len(cuts))))


def quantile_cuts(counts: Array, cuts: tuple[float, ...], n_bins: int) -> tuple[float, ...]:
    """Those of the cuts at which the running share of counts (bins,) passes a multiple of 1 / n_bins; none of no counts."""
    below = counts.cumsum()
    if below[-1] <= 0:
        return ()
    wanted = below[-1] * np.arange(1, n_bins) / n_bins
    first = np.unique(np.searchsorted(below, wanted * (1 - 1e-12)))
    return tuple(cuts[i] for i in first if i < len(cuts))
