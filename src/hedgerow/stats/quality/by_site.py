"""How good a prediction is at each site: area under the curve and calibration slope, with the errors of that site.

    at each site     area from the ranks of its scores, with DeLong's variance; slope and intercept at large by Newton's method
    site's own row   <- log-odds of the area, slope, intercept at large, and their variances               gather
    all sites        weighted mean of the sites, with what they differ by                                   at the server

Areas are put together as log-odds, on which scale they are nearer to normal and stay below one. A site with fewer than `least`
events, or others, sends zeros: it is not drawn, and its records count where the total is asked.

Releases : six numbers of each site, by itself: every station has to agree, and hidden rows refuse it. n and events are not
           among them.
Unit     : none: what a site sends has no bound for a record.
Source   : DeLong et al. 1988; Debray et al. 2017 (areas as log-odds); DerSimonian & Laird 1986.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import linear
from hedgerow.display import displayed

from ..columns import upper_end
from ..fitted import Fitted
from .calibration_line import line_sums, newton_line
from .cells import LEAST
from .metrics import BEYOND

if TYPE_CHECKING:
    import pandas

MEASURES = ("AUC", "calibration slope", "intercept at large")


@local()
def own_quality(beta: Array, party: Party, rng: Any, *, least: float = LEAST) -> dict[str, Array]:
    """Log-odds of the area, calibration slope and intercept at large, and their variances, each (3,); zeros of too few."""
    eta, y, w = linear(party["X"], beta) + party["offset"], party["y"] > 0.5, party.w
    nothing = {"estimate": np.zeros(3), "variance": np.zeros(3)}
    if min((w * y).sum(), (w * ~y).sum()) < max(least, 2.0):
        return nothing
    line = newton_line(
        lambda at, large: line_sums({"beta": beta, "at": at, "large": np.array(large)}, party, rng, farthest=BEYOND), ()
    )
    area, variance = delong(eta, y, w)
    inner = 0 < area < 1
    estimate = [logit(area) if inner else 0.0, line.slope, line.at_large]
    spread = [variance / (area * (1 - area)) ** 2 if inner else 0.0, line.covariance[1, 1], line.at_large_se**2]
    told = np.isfinite(estimate) & np.isfinite(spread) & (np.array(spread) > 0)
    return {"estimate": np.where(told, estimate, 0.0), "variance": np.where(told, spread, 0.0)}


def delong(score: Array, y: Array, w: Array) -> tuple[float, float]:
    """Area of a score (n,) and DeLong's variance of it, of records whose weights count as repeated ones."""
    places, codes = np.unique(score, return_inverse=True)
    events, others = (np.bincount(codes, weights=w * part, minlength=len(places)) for part in (y, ~y))
    m, n = events.sum(), others.sum()
    beaten, lost_to = (np.cumsum(others) - others / 2) / n, (m - np.cumsum(events) + events / 2) / m
    area = float(events @ beaten / m)
    of_events, of_others = events @ (beaten - area) ** 2 / (m - 1), others @ (lost_to - area) ** 2 / (n - 1)
    return area, float(of_events / m + of_others / n)


@displayed
@dataclass(frozen=True, eq=False)
class SiteQuality:
    """Area, calibration slope and intercept at large of each site that told them.

    Attributes
    ----------
    names : tuple of str
        Of the sites that are drawn.
    estimate, variance : arrays of shape (sites, 3)
        Log-odds of the area, slope, intercept at large; NaN where a site's records do not tell.
    left_out : int
        Sites with too few events or others.
    """

    names: tuple[str, ...]
    estimate: Array
    variance: Array
    left_out: int

    def together(self, measure: int = 0) -> SiteMean:
        """The weighted mean of the sites, of `MEASURES[measure]`: log-odds of the area, slope, intercept at large."""
        there = np.isfinite(self.estimate[:, measure]) & (self.variance[:, measure] > 0)
        return site_mean(self.estimate[there, measure], self.variance[there, measure])

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each site, and one of all together, with estimates and intervals; areas as areas."""
        import pandas

        reach, means = float(ndtri(upper_end(level))), [self.together(i) for i in range(3)]
        estimate = np.vstack([self.estimate, [one.mean for one in means]])
        error = np.vstack([np.sqrt(self.variance), [one.error for one in means]])
        table: dict[str, Array] = {}
        for i, name in enumerate(MEASURES):
            parts = (estimate[:, i], estimate[:, i] - reach * error[:, i], estimate[:, i] + reach * error[:, i])
            columns = zip((name, f"{name}, low", f"{name}, high"), parts, strict=True)
            table |= {title: expit(part) if i == 0 else part for title, part in columns}
        return pandas.DataFrame(table, index=pandas.Index([*self.names, "all sites"], name="site"))

    def summary(self) -> str:
        """Whether the sites' areas differ, in a sentence that follows from the test."""
        found, k = self.together(), len(self.names)
        if not math.isfinite(found.mean):
            return "No site has events and others enough for an area of its own."
        said = f"AUC of {k} sites together {expit(found.mean):.3f}"
        if k > 1:
            said += f"; {found.words}"
        return said + (f". {self.left_out} sites have too few events or others to be shown." if self.left_out else ".")


@dataclass(frozen=True)
class SiteMean:
    """A weighted mean of sites: `mean`, its standard `error`, variance `between` sites, Cochran's `q` and its `p_value`."""

    mean: float
    error: float
    between: float
    q: float
    p_value: float
    k: int

    @property
    def words(self) -> str:
        """What the test says of differences between sites."""
        if self.k < 2:
            return "one site says nothing of differences"
        said = f"(Q {self.q:.1f} of {self.k - 1} degrees of freedom, p = {self.p_value:.2g})"
        return f"the sites differ {said}" if self.p_value < 0.05 else f"no sign that they differ {said}"


def site_mean(estimate: Array, variance: Array) -> SiteMean:
    """DerSimonian and Laird's mean of sites (k,); of two sites or one that of a common value."""
    from scipy.special import chdtrc

    k = len(estimate)
    if k == 0:
        return SiteMean(*(math.nan,) * 5, 0)
    w = 1 / variance
    common = float(w @ estimate / w.sum())
    q = float(w @ (estimate - common) ** 2)
    free = w.sum() - (w**2).sum() / w.sum()
    between = max(0.0, (q - (k - 1)) / free) if k > 2 else 0.0
    w = 1 / (variance + between)
    p_value = float(chdtrc(k - 1, q)) if k > 1 else math.nan
    return SiteMean(float(w @ estimate / w.sum()), float(1 / np.sqrt(w.sum())), float(between), q, p_value, k)


def quality_by_site(federation: Federation, model: Any, *, formula: str | None = None, least: float = LEAST) -> SiteQuality:
    """Area under the ROC curve and calibration of a model at each site; each site's own numbers leave it.

    Parameters
    ----------
    model : Fit, state, or array of shape (d,)
        Whose linear predictor is a log-odds.
    least : float
        A site with fewer events, or fewer others, sends nothing that is its own.

    Releases
    --------
    Log-odds of the area, slope, intercept at large, and their variances, of each site by itself; once.

    Raises
    ------
    SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Rows are hidden, or noise is added to totals.
    """
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=True)
    rows: Mapping[str, Any] = fitted.ask(federation).gather(partial(own_quality, least=least), fitted.coef)
    drawn = [name for name, row in rows.items() if row["variance"].any()]
    estimate, variance = (np.array([rows[name][key] for name in drawn]).reshape(-1, 3) for key in ("estimate", "variance"))
    told = variance > 0
    return SiteQuality(tuple(drawn), np.where(told, estimate, np.nan), np.where(told, variance, np.nan), len(rows) - len(drawn))
