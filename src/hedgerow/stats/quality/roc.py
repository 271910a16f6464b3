"""ROC curve and its area, from counts of scores in bins of public edges.

    mean, spread         <- the linear predictor and its square, and records by target sum, where they are not known
    edges                -> every party                                                broadcast
    events, others       <- count of scores in each bin, by target                     sum
    neighbouring bins    taken together until none shows fewer than `least` of a class at the server

An event and another record in different bins are ordered for certain. Those that share a bin count as tied, for half a pair
each, as in the Mann-Whitney statistic. About twenty bins that follow the scores' own mean and spread leave the area off by a
fraction of its standard error where the scores are spread out about as a bell is; `bin_error` says by how much, and where it
is beyond the standard error there is no interval. Area and error are those of the bins; cells are what is shown. With `tol`
bins that hold both classes are cut into finer ones, round by round, until they cannot move the area by more.

Releases : two counts for each bin, once; with `tol` once a round, and exactly ordered scores tell much of single records.
           Before, once: two counts, of all records by target, and without `tol` or edges that are declared the sums of the
           linear predictor and of its square; through noise the counts alone, and these where the model does not bring them.
Unit     : record.
Source   : Hanley & McNeil 1982; DeLong et al. 1988.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import expit, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l1
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held, linear
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Figure

from ..blocks import by_blocks
from ..columns import is_exact, upper_end
from ..counts import count_bound, tally
from ..fitted import Fitted
from ..linear.asking import refuse_unbounded
from .cells import LEAST, Shown, added_up, inner_edges, number_of_bins, starts_of_cells
from .metrics import farthest_of, place_by, score_bound, score_sums

if TYPE_CHECKING:
    import pandas

FINE = 1024
"""Bins of the first question of a curve that is refined."""
CUTS = 2**15
"""Bins into which all that are cut are cut together."""
PIECES = (8, 256)
"""Into how many one bin is cut, at least and at most."""
MIXED = 3


@local(additive=True, stackable=True, holds=True)
@by_blocks
def scores_by_class(broadcast: Mapping[str, Array], party: Party, rng: Any, *, bounds: Bounds | None = None) -> Array:
    """Count linear predictors between inner `edges` (k - 1,): others, then events, shape (2 * k,).

    A bin holds its upper edge and not its lower one.
    """
    eta, edges = linear(party["X"], broadcast["beta"], exact=bounds is not None) + party["offset"], broadcast["edges"]
    bins, k = np.searchsorted(edges, eta, side="left"), len(edges) + 1
    return tally(bins + k * (party["y"] > 0.5), held(party.w, bounds), 2 * k)


@local(additive=True, stackable=True, rowwise=True)
@by_blocks
def spread_of_scores(beta: Array, party: Party, rng: Any, *, farthest: float) -> dict[str, Array]:
    """Count others and events, `n` (2,), and add up linear predictors and their squares, `score` (2,)."""
    eta = linear(party["X"], beta) + party["offset"]
    return {"n": tally((party["y"] > 0.5).astype(np.intp), party.w, 2), "score": score_sums(eta, party.w, farthest)}


@displayed
@dataclass(frozen=True, eq=False)
class Roc:
    """The ROC curve of a score, known at some thresholds.

    Attributes
    ----------
    edges : array of shape (k - 1,)
        Thresholds of the linear predictor, rising.
    others, events : arrays of shape (k,)
        Records whose score lies above the edge before and not above the edge after.
    tied : array of bool, shape (k,)
        Bins so narrow that their scores count as equal.
    rounds : int
        Questions asked, besides the one that places the bins of a model that says how many events there were.
    bins : int
        For which counts were released, before neighbours were taken together.
    least : float
        Events that a cell holds at least, or none, and others; 0 where bins are shown as they were counted.
    counted : Roc or None
        The curve before, of which area and error are.
    """

    edges: Array
    others: Array
    events: Array
    tied: Array
    rounds: int
    bins: int = 0
    least: float = 0.0
    counted: Roc | None = None

    @property
    def cells(self) -> Shown:
        """As `net_benefit` takes them: inner edges, others, events."""
        return self.edges, self.others, self.events

    @property
    def auc(self) -> float:
        """Area under the curve: the share of pairs of an event and another record that the score orders rightly."""
        if self.counted is not None:
            return self.counted.auc
        below = np.cumsum(self.others) - self.others
        return float((self.events * (below + self.others / 2)).sum() / self._pairs)

    @property
    def error(self) -> float:
        """By how much the exact area may differ from `auc` at most, as if each bin had all its pairs in one order."""
        if self.counted is not None:
            return self.counted.error
        open_pairs = np.where(self.tied, 0.0, self.events * self.others)
        return float(np.abs(open_pairs).sum() / 2 / self._pairs)

    @property
    def shift(self) -> float:
        """About how much the bins take from the area: a third of what it loses when neighbours are taken together again.

        Nothing where bins were refined until their scores are tied.
        """
        if self.counted is not None:
            return self.counted.shift
        if self.error == 0 or len(self.events) < 4:
            return 0.0 if self.error == 0 else float("nan")
        pairs = np.arange(0, len(self.events), 2)
        coarser = replace(self, others=added_up(self.others, pairs), events=added_up(self.events, pairs))
        return (self.auc - coarser.auc) / 3

    @property
    def bin_error(self) -> float:
        """By how much the bins may put the area off: `shift`, or what one bin alone may hide at most, whichever is larger.

        Of fewer than four bins `error`, since nothing is known of how the classes lie in them.
        """
        if self.counted is not None:
            return self.counted.bin_error
        if self.error == 0 or len(self.events) < 4:
            return self.error
        return max(abs(self.shift), float(np.where(self.tied, 0.0, self.events * self.others).max()) / 2 / self._pairs)

    @property
    def is_sharp(self) -> bool:
        """Whether the bins put the area off by no more than its standard error, so that an interval means something."""
        if min(self.events.sum(), self.others.sum()) < self.least:
            return False
        return bool(self.bin_error <= self.standard_error())

    def plot(self) -> Figure:
        """Draw true against false positive rate, as SVG."""
        from ..plots import roc_curves

        return Figure(*roc_curves(self))

    def merged(self, least: float) -> Roc:
        """The curve with neighbouring bins taken together, until each holds `least` events or none, and likewise others."""
        if least <= 0:
            return self
        starts = starts_of_cells(self.others, self.events, least)
        others, events = added_up(self.others, starts), added_up(self.events, starts)
        alone = np.diff([*starts, len(self.events)]) == 1
        tied, edges = self.tied[starts] & alone, self.edges[starts[1:] - 1]
        return replace(self, edges=edges, others=others, events=events, tied=tied, least=least, counted=self)

    @property
    def _pairs(self) -> float:
        pairs = float(self.events.sum() * self.others.sum())
        return pairs if pairs > 0 else float("nan")

    @property
    def thresholds(self) -> Array:
        """Probabilities above which a record is predicted an event, falling, shape (k + 1,)."""
        return np.concatenate([[1.0], expit(self.edges[::-1]), [0.0]])

    @property
    def true_positive_rate(self) -> Array:
        """Share of events above each threshold, shape (k + 1,)."""
        return self._above(self.events)

    @property
    def false_positive_rate(self) -> Array:
        """Share of the others above each threshold, shape (k + 1,)."""
        return self._above(self.others)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each cell, from the highest score on: `threshold` at its lower end, counts, rates there."""
        import pandas

        return pandas.DataFrame(
            {
                "threshold": self.thresholds[1:],
                "events": self.events[::-1],
                "others": self.others[::-1],
                "true positive rate": self.true_positive_rate[1:],
                "false positive rate": self.false_positive_rate[1:],
            }
        )

    def _above(self, counts: Array) -> Array:
        above = np.concatenate([[0.0], np.cumsum(counts[::-1])])
        shares: Array = above / above[-1] if above[-1] > 0 else np.full_like(above, np.nan)
        return shares

    def standard_error(self, method: Literal["delong", "hanley"] = "delong") -> float:
        """Of the area: DeLong's, from how each record's score ranks among the other class, or Hanley and McNeil's formula."""
        if self.counted is not None:
            return self.counted.standard_error(method)
        area, m, n = self.auc, float(self.events.sum()), float(self.others.sum())
        if min(m, n) <= 1 or not np.isfinite(area):
            return float("nan")
        if method == "hanley":
            first, second = area / (2 - area), 2 * area**2 / (1 + area)
            variance = (area * (1 - area) + (m - 1) * (first - area**2) + (n - 1) * (second - area**2)) / (m * n)
            return float(np.sqrt(max(variance, 0.0)))
        beaten = (np.cumsum(self.others) - self.others / 2) / n
        lost_to = (m - np.cumsum(self.events) + self.events / 2) / m
        of_events = (self.events * (beaten - area) ** 2).sum() / (m - 1)
        of_others = (self.others * (lost_to - area) ** 2).sum() / (n - 1)
        return float(np.sqrt(max(of_events / m + of_others / n, 0.0)))

    def conf_int(self, level: float = 0.95, method: Literal["delong", "hanley"] = "delong") -> tuple[float, float]:
        """Confidence interval of the area: normal, cut off at 0 and 1; NaN where bins hide more than the standard error.

        NaN also where there are fewer than `least` of a class.
        """
        if not self.is_sharp:
            return float("nan"), float("nan")
        reach = float(ndtri(upper_end(level))) * self.standard_error(method)
        return max(self.auc - reach, 0.0), min(self.auc + reach, 1.0)


def roc(
    federation: Federation,
    model: Any,
    *,
    formula: str | None = None,
    bins: int | Array | None = None,
    least: float | None = None,
    tol: float | None = None,
    resolution: float = 1e-9,
    max_rounds: int = 8,
) -> Roc:
    """ROC curve and area of a model's linear predictor, by one question, and before it a small one that places its bins.

    Parameters
    ----------
    model : Fit, state, or array of shape (d,)
    bins : int or array of shape (k + 1,)
        How many bins, placed by mean and spread of the scores (see `hedgerow.stats.quality.cells`), or edges of the
        probability from 0 to 1. By default 20, and slowly more from 3000 records on.
    least : float
        Neighbouring bins are shown together until each holds so many events of the total or none, and so many others or none;
        10, or none with `tol`.
    tol : float, optional
        Ask about finer bins until the area is known to within this; 0 for exactly. It tells much of single records.
    resolution : float
        Scores nearer than this, times the larger of 1 and their size, count as tied.
    max_rounds : int
        Questions at most, with `tol`; `Roc.error` says what is left. One through a channel that clips or adds noise.

    Releases
    --------
    Two counts for each bin, once; with `tol` once a round. Before it, where bins are not declared and there is no `tol`: two
    counts of records by target, and the linear predictor and its square; through noise the counts alone, of a model that is
    no fit.
    """
    limit, fewest = (0.0 if tol is None else tol), (0.0 if tol is not None else LEAST) if least is None else least
    if not (limit >= 0 and fewest >= 0 and resolution > 0 and max_rounds >= 1):
        raise SettingsInvalid(
            f"least={least!r}, tol={tol!r}, resolution={resolution!r}, max_rounds={max_rounds!r} cannot be asked.",
            remedy="Give at least 0 records, a tolerance of at least 0, a resolution above 0, and one round or more.",
        )
    inner_edges(2 if bins is None else bins)  # refused before anybody is asked
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=True)
    asked, bound = fitted.ask(federation), count_bound(fitted.weight)
    refuse_unbounded(federation, fitted.spec, None if bound is None else {"": bound})

    def counted(edges: Array) -> tuple[Array, Array]:
        counts = asked.sum(scores_by_class, {"beta": fitted.coef, "edges": edges}, bound=bound)
        others, events = np.maximum(counts, 0.0).reshape(2, -1)  # noise may push a count below zero
        return others, events

    sizes, place, rounds = fitted.sizes, fitted.place, 0
    farthest = farthest_of(federation, fitted)
    if tol is None and (bins is None or isinstance(bins, int)):
        if place is None and farthest is not None:
            w = fitted.weight
            bounds = None if w is None else {"n": l1(w, "record"), "score": score_bound(w, farthest)}
            sums = asked.sum(partial(spread_of_scores, farthest=farthest), fitted.coef, bound=bounds)
            rounds = int(sizes is None)
            sizes = float(sums["n"][1]), float(sums["n"][0])
            place = place_by(sums["score"], sum(sizes), sizes[0])
        elif sizes is None:
            others, events = counted(np.zeros(0))
            sizes, rounds = (float(events.sum()), float(others.sum())), 1
    share = None if sizes is None or min(sizes) <= 0 else sizes[0] / sum(sizes)
    rarer = None if sizes is None else 2 * min(sizes)
    edges = inner_edges((number_of_bins(rarer) if tol is None else FINE) if bins is None else bins, share, place)
    found = _curve(edges, *counted(edges), resolution, rounds + 1)
    most = max_rounds if is_exact(federation) and tol is not None else 1
    while found.error > limit and found.rounds < most:
        edges = _finer(found, resolution, limit)
        if np.array_equal(edges, found.edges):
            break
        found = _curve(edges, *counted(edges), resolution, found.rounds + 1)
    return found.merged(fewest)


def _curve(edges: Array, others: Array, events: Array, resolution: float, rounds: int) -> Roc:
    return Roc(edges, others, events, _narrow(edges, resolution), rounds, len(events))


def _narrow(edges: Array, resolution: float) -> Array:
    """Which bins count as ties."""
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    width = np.diff(ends)
    narrow: Array = np.isfinite(width) & (width <= resolution * np.maximum(1.0, np.abs(np.nan_to_num(ends[1:]))))
    return narrow


def _finer(found: Roc, resolution: float, tol: float) -> Array:
    """Cut the bins that hold both classes, those with most pairs first, and merge the others into runs of one class."""
    ends = np.concatenate([[-np.inf], found.edges, [np.inf]])
    pairs = np.where(found.tied, 0.0, found.events * found.others)
    order = np.argsort(-pairs, kind="stable")
    left = np.cumsum(pairs[order][::-1])[::-1] / 2 / found._pairs
    chosen = order[(pairs[order] > 0) & (left > tol / 2)]
    pieces = int(np.clip(CUTS // max(len(chosen), 1), *PIECES))
    chosen = chosen[: CUTS // pieces]
    cuts = [_cuts(ends[i], ends[i + 1], pieces, resolution) for i in chosen]  # some thousand bins, at the server
    return np.unique(np.concatenate([found.edges[_needed(found)], *cuts]))


def _needed(found: Roc) -> Array:
    """Which edges part the classes: within a run of bins of one class the curve is straight, shape (k - 1,)."""
    kind = (found.others > 0) + 2 * (found.events > 0)
    held = np.flatnonzero(kind)
    after = np.searchsorted(held, np.arange(len(kind)))
    follows = kind[held[np.minimum(after, len(held) - 1)]]
    kind = np.where((kind == 0) & (follows < MIXED), follows, kind)  # an empty bin joins the one that follows
    needed: Array = (kind[1:] != kind[:-1]) | (kind[1:] == MIXED)
    return needed


def _cuts(a: float, b: float, pieces: int, resolution: float) -> Array:
    """Cut one bin; an open one at doubling distances."""
    if np.isinf(a) and np.isinf(b):
        return np.zeros(1)
    if np.isinf(b):
        return a + np.ldexp(1.0, np.arange(-6, pieces - 6)).clip(max=1e300)
    if np.isinf(a):
        return b - np.ldexp(1.0, np.arange(-6, pieces - 6)).clip(max=1e300)
    least = resolution * max(1.0, abs(a), abs(b)) / 2
    pieces = int(min(pieces, np.ceil((b - a) / least)))
    return np.linspace(a, b, pieces + 1)[1:-1]
