"""The figure of a ROC curve, with a band: how it could have come out, drawn from the released counts.

Both classes are drawn again by their counts in the cells, a multinomial bootstrap. It is done at the server and asks nobody;
a bootstrap of the records would be as many releases.

Source : DeLong et al. 1988, for the interval of the area; Efron 1979, for the band.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.report import Curve, Series
from hedgerow.report.numerals import show

from .roc import Roc

DRAWS, LEVEL = 1000, 0.95
GRID = 41
"""Places along the axis at which the band is drawn."""
SLIGHT = 0.25
"""Bins that move the area by less than this share of its standard error are not worth a word."""


def figure_of(found: Roc, *, exact: bool = True) -> Curve:
    """Return the curve as a figure whose note says the area, its interval, and what was asked.

    Parameters
    ----------
    exact : bool
        Whether the counts arrived without noise: an interval and a band of noisy ones would leave the noise out.
    """
    x, y = found.false_positive_rate, found.true_positive_rate
    if exact and np.isfinite(found.auc):
        places = np.unique(np.concatenate([np.linspace(0, 1, GRID), x]))
        line, ends = np.interp(places, x, y), band(found, places)
        curve = Series("model", *(tuple(_from_nothing(part).tolist()) for part in (places, line)))
        curve = replace(curve, low=tuple(_from_nothing(ends[0]).tolist()), high=tuple(_from_nothing(ends[1]).tolist()))
    else:
        curve = Series("model", tuple(x.tolist()), tuple(y.tolist()))
    chance = Series("chance", (0.0, 1.0), (0.0, 1.0), "reference")
    return Curve(
        "ROC curve", "share of others called events", "share of events found", (curve, chance), note=words(found, exact)
    )


def _from_nothing(values: Array) -> Array:
    """The curve begins where no record is called an event, from which it may rise straight up."""
    return np.concatenate([[0.0], values])


def band(found: Roc, places: Array) -> tuple[Array, Array]:
    """Ends of the curve's 95 % band at false positive rates, two arrays of the shape of `places`."""
    rng, draws = np.random.default_rng(0), []
    others, events = (np.round(counts).astype(np.int64) for counts in (found.others, found.events))
    for _ in range(DRAWS):
        drawn = [rng.multinomial(int(n.sum()), n / max(n.sum(), 1)) for n in (others, events)]
        shares = [np.concatenate([[0.0], np.cumsum(n[::-1]) / max(n.sum(), 1)]) for n in drawn]
        draws.append(np.interp(places, shares[0], shares[1]))
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def words(found: Roc, exact: bool) -> str:
    """The area with its interval, in how many bins scores were counted, and whether those are too few."""
    cells, error = len(found.events), found.standard_error()
    small = (
        f", shown as {cells} cell{'s' * (cells > 1)}, none with fewer than {found.least:g} events or others, other than zero."
    )
    together = small if found.least else "."
    counted = f"Scores were counted in {found.bins} bins{together}"
    if not exact:
        return f"Area {found.auc:.3f}, of noisy counts: no interval is given. {counted}"
    bins = f"the bins put it off by about {found.bin_error:.2g}, and at most by {found.error:.2g}"
    if found.is_sharp:
        low, high = found.conf_int(LEVEL)
        said = f"Area {found.auc:.3f}, standard error {error:.2g}, {LEVEL:.0%} interval {low:.3f} to {high:.3f} (DeLong)"
        said += f"; {bins}." if found.error else "."
    elif min(found.events.sum(), found.others.sum()) < found.least:
        said = f"Area {found.auc:.3f}, of fewer than {found.least:g} events or others: no interval is given."
    else:
        said = f"Area {found.auc:.3f}: {bins}, beyond its standard error of {error:.2g}, so that no interval is given."
    said += f" The band holds {LEVEL:.0%} of the curves that are drawn again from the counts. {counted}"
    if error > 0 and abs(found.shift) > SLIGHT * error:
        needed = math.ceil(found.bins * math.sqrt(abs(found.shift) / (SLIGHT * error)) / 10) * 10
        said += f" They make the area about {show(float(f'{found.shift:.1g}'))} too small; {needed} bins would not."
    return said
