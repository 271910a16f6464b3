"""Net benefit of acting on a prediction, at declared thresholds: what true positives are worth, less the false ones.

    events, others   <- count of probabilities between the thresholds, by target                     sum
    true positives   =  events above a threshold                                 false positives  =  others above it
    net benefit      =  (true positives - odds of the threshold * false positives) / n

Who acts from a probability of t on is ready to treat (1 - t) / t others for one event. Beside the model stand treating
everybody, and nobody, whose net benefit is zero.

Releases : two counts for each threshold, and two more; once.
Unit     : record.
Source   : Vickers & Elkin 2006; errors as of a mean of independent records (Sande et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Curve, Series

from ..columns import is_exact, upper_end
from ..counts import count_bound
from ..fitted import Fitted
from .cells import LEAST, Shown, added_up, starts_beside
from .roc import scores_by_class

if TYPE_CHECKING:
    import pandas


@displayed
@dataclass(frozen=True, eq=False)
class NetBenefit:
    """What acting above each threshold is worth, in true positives for each record.

    Attributes
    ----------
    thresholds : array of shape (k,)
        Of the probability, rising.
    true_positives, false_positives : arrays of shape (k,)
        Events and others above.
    events, others : float
        In all.
    exact : bool
        Whether the counts arrived without noise.
    dropped : tuple of float
        Thresholds that were asked for and are not shown, since too few of a class lie between them and their neighbours.
    """

    thresholds: Array
    true_positives: Array
    false_positives: Array
    events: float
    others: float
    exact: bool = True
    dropped: tuple[float, ...] = ()

    @property
    def _odds(self) -> Array:
        found: Array = self.thresholds / (1 - self.thresholds)
        return found

    @property
    def n(self) -> float:
        """Records."""
        return self.events + self.others

    @property
    def net_benefit(self) -> Array:
        """Of the model, shape (k,)."""
        found: Array = (self.true_positives - self._odds * self.false_positives) / max(self.n, 1.0)
        return found

    @property
    def of_everybody(self) -> Array:
        """Of treating everybody, shape (k,)."""
        found: Array = (self.events - self._odds * self.others) / max(self.n, 1.0)
        return found

    @property
    def standard_error(self) -> Array:
        """Of the net benefit of the model, shape (k,); NaN of noisy counts."""
        n = max(self.n, 1.0)
        squares = (self.true_positives + self._odds**2 * self.false_positives) / n
        error: Array = np.sqrt(np.maximum(squares - self.net_benefit**2, 0.0) / n)
        return error if self.exact else np.full_like(error, np.nan)

    def conf_int(self, level: float = 0.95) -> Array:
        """Normal intervals of the net benefit, shape (k, 2)."""
        reach = float(ndtri(upper_end(level))) * self.standard_error
        return np.stack([self.net_benefit - reach, self.net_benefit + reach], axis=-1)

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each threshold."""
        import pandas

        low, high = self.conf_int(level).T
        return pandas.DataFrame(
            {
                "true positives": self.true_positives,
                "false positives": self.false_positives,
                "net benefit": self.net_benefit,
                "low": low,
                "high": high,
                "everybody": self.of_everybody,
            },
            index=pandas.Index(self.thresholds, name="threshold"),
        )

    def figure(self, level: float = 0.95) -> Curve:
        """The decision curve with its band, beside treating everybody and nobody."""
        x = tuple(self.thresholds.tolist())
        ends = [tuple(end.tolist()) for end in self.conf_int(level).T] if self.exact else [(), ()]
        lines = (
            Series("model", x, tuple(self.net_benefit.tolist()), low=ends[0], high=ends[1]),
            Series("everybody", x, tuple(self.of_everybody.tolist()), "muted"),
            Series("nobody", x, (0.0,) * len(x), "reference"),
        )
        note = "True positives for each record, less false ones times the odds of the threshold."
        if self.dropped:
            note += f" Not shown, as too few records lie beside them: {', '.join(f'{one:g}' for one in self.dropped)}."
        return Curve("Net benefit", "threshold of the probability", "net benefit", lines, note=note)


def net_benefit(
    federation: Federation,
    model: Any,
    thresholds: Sequence[float] | Array,
    *,
    formula: str | None = None,
    least: float = LEAST,
    beside: Sequence[Shown] = (),
) -> NetBenefit:
    """Net benefit of acting where the probability of a model is above each of some thresholds, by one question of counts.

    Parameters
    ----------
    model : Fit, state, or array of shape (d,)
        Whose linear predictor is a log-odds.
    thresholds : sequence of float
        Probabilities, rising; public.
    least : float
        A threshold is left out where fewer events of the total, but not none, or fewer others lie between it and the next.
    beside : sequence of (edges, others, events)
        Cells of the same scores that are shown as well, with edges of the linear predictor: no difference of both is small.

    Releases
    --------
    Two counts for each threshold, and two more; once.

    Raises
    ------
    SettingsInvalid (HR-511), UnboundedSum (HR-210)
    """
    places = np.asarray(thresholds, dtype=np.float64)
    inside = places.ndim == 1 and len(places) and (places > 0).all() and (places < 1).all() and (np.diff(places) > 0).all()
    if not inside or not least >= 0:
        raise SettingsInvalid(
            f"thresholds={np.asarray(thresholds).tolist()!r}, least={least!r} cannot be asked.",
            remedy="Give probabilities between 0 and 1 in rising order, such as [0.1, 0.2, 0.3], and at least 0 records.",
        )
    fitted = Fitted.of(federation, model, formula)
    fitted.require(binary=True)
    bound = count_bound(fitted.weight)
    fitted.bounded(federation, None if bound is None else {"": bound})
    counts = fitted.ask(federation).sum(scores_by_class, {"beta": fitted.coef, "edges": logit(places)}, bound=bound)
    others, events = np.maximum(counts, 0.0).reshape(2, -1)
    starts = starts_beside(logit(places), others, events, least, beside if is_exact(federation) else ())
    shown = starts[1:] - 1
    above = [np.cumsum(added_up(part, starts)[::-1])[::-1] for part in (events, others)]
    return NetBenefit(
        places[shown],
        above[0][1:],
        above[1][1:],
        float(events.sum()),
        float(others.sum()),
        is_exact(federation),
        tuple(np.delete(places, shown).tolist()),
    )
