"""Calibration in groups: events that occurred beside those that were predicted, with bars.

    n, events, expected  <- records, events and probabilities in each declared bin of the probability      sum
    neighbouring bins    taken together until none shows fewer than `least` of a class                     at the server

Releases : three numbers for each bin; once.
Unit     : record.
Source   : Hosmer & Lemeshow 1980; Clopper & Pearson 1934, for the bars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv, chdtrc, expit, logit

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l1
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, held, linear
from hedgerow.display import displayed
from hedgerow.report import Figure

from ..blocks import by_blocks
from ..columns import is_exact, upper_end
from ..counts import tally
from ..fitted import Fitted
from .cells import LEAST, Shown, added_up, declared_edges, starts_beside

if TYPE_CHECKING:
    import pandas


@local(additive=True, stackable=True, holds=BITS)
@by_blocks
def calibrated(broadcast: Mapping[str, Array], party: Party, rng: Any, *, bounds: Bounds | None = None) -> dict[str, Array]:
    """Add up records, events and predicted probabilities between `edges` (k + 1,) of the probability; each (k,)."""
    edges, w = broadcast["edges"], party.w
    p = expit(linear(party["X"], broadcast["beta"], exact=bounds is not None) + party["offset"])
    bins, k = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, len(edges) - 2), len(edges) - 1
    return {
        "n": tally(bins, held(w, bounds, "n"), k),
        "events": tally(bins, held(w * (party["y"] > 0.5), bounds, "events"), k),
        "expected": tally(bins, held(w * p, bounds, "expected"), k),
    }


@displayed
@dataclass(frozen=True, eq=False)
class Calibration:
    """Events that occurred beside those that were predicted, by bins of the probability.

    Attributes
    ----------
    edges : array of shape (k + 1,)
    n, events, expected : arrays of shape (k,)
    exact : bool
        Whether the counts arrived without noise.
    counted : Calibration or None
        The bins before neighbours were taken together, of which the calibration error is.
    """

    edges: Array
    n: Array
    events: Array
    expected: Array
    exact: bool = True
    counted: Calibration | None = None

    @property
    def error(self) -> float:
        """Expected calibration error: the mean over records of |share of events - mean probability| of their bin."""
        if self.counted is not None:
            return self.counted.error
        return float(np.abs(self.events - self.expected).sum() / max(self.n.sum(), 1.0))

    @property
    def ratio(self) -> float:
        """Events that occurred over those that were predicted."""
        return float(self.events.sum() / self.expected.sum()) if self.expected.sum() > 0 else float("nan")

    def conf_int(self, level: float = 0.95) -> Array:
        """Clopper and Pearson's intervals of the shares of events, shape (k, 2); NaN of noisy counts and empty bins."""
        if not self.exact:
            return np.full((len(self.n), 2), np.nan)
        return clopper_pearson(self.events, self.n, level)

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each bin: its ends, records, events, mean probability, share of events and its interval."""
        import pandas

        with np.errstate(divide="ignore", invalid="ignore"):
            predicted, observed = self.expected / self.n, self.events / self.n
        low, high = self.conf_int(level).T
        return pandas.DataFrame(
            {
                "from": self.edges[:-1],
                "to": self.edges[1:],
                "records": self.n,
                "events": self.events,
                "predicted": predicted,
                "observed": observed,
                "low": low,
                "high": high,
            }
        )

    def plot(self) -> Figure:
        """Draw the share of events against the predicted probability, as SVG."""
        from ..plots import calibration_curves

        return Figure(*calibration_curves(self))

    @property
    def hosmer_lemeshow(self) -> tuple[float, float]:
        """Hosmer and Lemeshow's statistic over bins with records, and its p-value; degrees of freedom are two fewer."""
        held = (self.n > 0) & (self.expected > 0) & (self.expected < self.n)
        n, events, expected = self.n[held], self.events[held], self.expected[held]
        statistic = float(((events - expected) ** 2 / (expected * (1 - expected / n))).sum())
        df = int(held.sum()) - 2
        return statistic, float(chdtrc(df, statistic)) if df > 0 else float("nan")


def clopper_pearson(events: Array, n: Array, level: float = 0.95) -> Array:
    """Exact intervals of shares, shape (..., 2), of counts without noise; NaN where there are no records."""
    outside = 1 - upper_end(level)
    with np.errstate(invalid="ignore"):
        low = np.where(events > 0, betaincinv(np.maximum(events, 1e-300), n - events + 1, outside), 0.0)
        high = np.where(events < n, betaincinv(events + 1, np.maximum(n - events, 1e-300), 1 - outside), 1.0)
    return np.where((n > 0)[..., None], np.stack([low, high], axis=-1), np.nan)


def calibration(
    federation: Federation,
    model: Any,
    *,
    formula: str | None = None,
    bins: int | Array = 10,
    least: float = LEAST,
    beside: Sequence[Shown] = (),
) -> Calibration:
    """Compare probabilities with what came true.

    Parameters
    ----------
    bins : int or array of shape (k + 1,)
        Bins of equal width, or edges from 0 to 1; public.
    least : float
        Neighbouring bins are shown together until each holds so many events of the total or none, and so many others or none.
    beside : sequence of (edges, others, events)
        Cells of the same scores that are shown as well, with edges of the linear predictor: no difference of both is small.

    Releases
    --------
    records, events and predicted events of each bin; once.
    """
    edges = declared_edges(bins)
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=True)
    w = fitted.weight
    bounds = None if w is None else {key: l1(w, "record") for key in ("n", "events", "expected")}
    broadcast = {"beta": fitted.coef, "edges": edges}
    sums = fitted.ask(federation).sum(calibrated, broadcast, bound=fitted.bounded(federation, bounds))
    exact = is_exact(federation)
    by_class = np.maximum(sums["n"] - sums["events"], 0.0), np.maximum(sums["events"], 0.0)
    starts = starts_beside(logit(edges[1:-1]), *by_class, least, beside if exact else ())
    counted = [sums[key] for key in ("n", "events", "expected")]
    n, came, expected = (added_up(part, starts) for part in counted)
    whole = Calibration(edges, counted[0], counted[1], counted[2], exact)
    return Calibration(np.append(edges[starts], 1.0), n, came, expected, exact, whole if least > 0 else None)
