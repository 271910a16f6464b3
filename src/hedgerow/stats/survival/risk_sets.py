"""Risk sets of one stratum: what the partial likelihood of Cox adds up over its events.

    at an event time t, over those at risk (entered before t, still there at t)
        s0, s1  <- sums of  w exp(eta)  and  w exp(eta) x
        f0, f1  <- the same of those who have the event at t, d of them with weights W
        for l = 0 .. d - 1:   c = l / d   (Efron)         or once, c = 0, of mass W   (Breslow)
            z0, z1   =  s0 - c f0, s1 - c f1               mean  a = z1 / z0
            log-likelihood  -=  mass log z0                mass = W / d
            hazard h        +=  mass / z0                  of those with the event only (1 - c) of it

    score        =  sum over events of w x  -  sum over steps of mass a
    information  =  X' diag(w exp(eta) H) X  -  sum over steps of mass a a'      H: hazard that a record was at risk of

Sums over risk sets are cumulative sums from the last record backwards, so everything takes n log n steps for the order
and n p^2 for the information, and no matrix is kept for each event time.

Source : Cox 1972; Breslow 1974; Efron 1977; residuals of the score: Therneau & Grambsch 2000, section 4.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array

Ties = Literal["efron", "breslow"]

FARTHEST = 700.0
"""Linear predictors so far below the largest one count as if they were there: exp(-700) is a number, exp(-800) is zero."""


@dataclass(frozen=True)
class RiskSets:
    """The records of one stratum at given linear predictors.

    Parameters
    ----------
    X : array of shape (n, p)
    eta, time, event, w : arrays of shape (n,)
        Linear predictor; end of the follow-up; whether it ended with the event; weight.
    ties : {"efron", "breslow"}
    entry : array of shape (n,), optional
        From when a record is at risk; from the beginning where it is not given.
    """

    X: Array
    eta: Array
    time: Array
    event: Array
    w: Array
    ties: Ties = "efron"
    entry: Array | None = None

    def rounded(self) -> RiskSets:
        """The same with linear predictors to twelve digits of the largest, so that equal records have equal ones."""
        unit = float(np.abs(self.eta).max(initial=0.0)) or 1.0
        return replace(self, eta=np.round(self.eta / unit, 12))

    # ---- who is at risk ---------------------------------------------------------------------------------------------
    @cached_property
    def times(self) -> Array:
        """Times at which something happens, rising, shape (J,)."""
        return np.unique(self.time[self.event])

    @cached_property
    def until(self) -> Array:
        """How many event times a record has seen, shape (n,)."""
        return np.searchsorted(self.times, self.time, side="right")

    @cached_property
    def since(self) -> Array | None:
        """How many of them were before it came."""
        return None if self.entry is None else np.searchsorted(self.times, self.entry, side="right")

    def _over_risk_sets(self, values: Array) -> Array:
        """Sums of `values` (n, ...) over those at risk at each event time, shape (J, ...)."""
        total = _from(values, self.until, len(self.times))
        return total if self.since is None else total - _from(values, self.since, len(self.times))

    def _seen(self, steps: Array) -> Array:
        """What was added up at event times (J, ...) while a record was at risk, shape (n, ...)."""
        total = np.concatenate([np.zeros((1, *steps.shape[1:])), np.cumsum(steps, axis=0)])
        return total[self.until] if self.since is None else total[self.until] - total[self.since]

    # ---- steps ------------------------------------------------------------------------------------------------------
    @cached_property
    def shift(self) -> float:
        """The largest linear predictor, which leaves every ratio as it is."""
        return float(self.eta.max(initial=-np.inf)) if len(self.eta) else 0.0

    @cached_property
    def hazards(self) -> Array:
        """Relative hazards, shape (n,)."""
        return np.exp(np.maximum(self.eta - self.shift, -FARTHEST))

    @cached_property
    def centre(self) -> Array:
        """What columns are measured from, so that nothing is lost by subtraction, shape (p,)."""
        found: Array = self.X.mean(0) if len(self.X) else np.zeros(self.X.shape[1])
        return found

    @cached_property
    def centred(self) -> Array:
        return self.X - self.centre

    @cached_property
    def _at_event(self) -> Array:
        """Which event time that of each event is, shape (events,)."""
        return self.until[self.event] - 1

    @cached_property
    def _tied(self) -> tuple[Array, Array]:
        """Events and their weights at each event time, shapes (J,)."""
        J = len(self.times)
        return np.bincount(self._at_event, minlength=J), np.bincount(self._at_event, self.w[self.event], minlength=J)

    @cached_property
    def place(self) -> Array:
        """The event time of each step, shape (steps,): one for each event (Efron), or for each time (Breslow)."""
        d, _ = self._tied
        return np.repeat(np.arange(len(d)), d) if self.ties == "efron" else np.arange(len(d))

    @cached_property
    def share(self) -> Array:
        """How much of those with the event is gone at a step, shape (steps,)."""
        d, _ = self._tied
        if self.ties == "breslow":
            return np.zeros(len(d))
        return (np.arange(len(self.place)) - np.repeat(np.cumsum(d) - d, d)) / d[self.place]

    @cached_property
    def mass(self) -> Array:
        """Weight of a step, shape (steps,)."""
        d, weight = self._tied
        return weight if self.ties == "breslow" else (weight / np.maximum(d, 1))[self.place]

    @cached_property
    def z0(self) -> Array:
        """Relative hazards of those at risk at a step, added up, shape (steps,)."""
        r = self.w * self.hazards
        gone = np.bincount(self._at_event, r[self.event], minlength=len(self.times))
        found: Array = self._over_risk_sets(r)[self.place] - self.share * gone[self.place]
        return found

    @cached_property
    def means(self) -> Array:
        """Mean of the columns, less their centre, over those at risk at a step, shape (steps, p)."""
        rx = (self.w * self.hazards)[:, None] * self.centred
        gone = _by_time(self._at_event, rx[self.event], len(self.times))
        s1 = self._over_risk_sets(rx)[self.place] - self.share[:, None] * gone[self.place]
        found: Array = s1 / self.z0[:, None]
        return found

    def _hazard(self, of_steps: Array) -> Array:
        """What steps (steps, ...) add up to for each record, which sees less of the times at which it has the event itself."""
        J, own = len(self.times), np.zeros((len(self.time), *of_steps.shape[1:]))
        share = self.share.reshape(-1, *[1] * (of_steps.ndim - 1))
        own[self.event] = _by_time(self.place, share * of_steps, J)[self._at_event]
        return self._seen(_by_time(self.place, of_steps, J)) - own

    # ---- sums -------------------------------------------------------------------------------------------------------
    @property
    def n_events(self) -> float:
        return float(self.event.sum())

    @property
    def log_likelihood(self) -> float:
        """Of the order of events."""
        own = (self.w * self.event) @ (self.eta - self.shift) if len(self.eta) else 0.0
        return float(own - self.mass @ np.log(self.z0))

    @property
    def score(self) -> Array:
        """Shape (p,)."""
        found: Array = (self.w * self.event) @ self.centred - self.mass @ self.means
        return found

    def information(self, of_times: Array | None = None) -> Array:
        """Shape (p, p); `of_times` (J,) are weights of event times, ones by default."""
        mass = self.mass if of_times is None else self.mass * of_times[self.place]
        seen = self.w * self.hazards * self._hazard(mass / self.z0)
        found: Array = (self.centred * seen[:, None]).T @ self.centred - (self.means * mass[:, None]).T @ self.means
        return found

    @property
    def score_residuals(self) -> Array:
        """What each record adds to the score, those whose risk sets it is in included, without its weight; shape (n, p)."""
        step = self.mass / self.z0
        r, J = self.hazards[:, None], len(self.times)
        own = np.zeros_like(self.centred)
        steps = np.bincount(self.place, minlength=J)
        mean = _by_time(self.place, self.means, J) / np.maximum(steps, 1)[:, None]
        own[self.event] = self.centred[self.event] - mean[self._at_event]
        found: Array = own - r * (self.centred * self._hazard(step)[:, None] - self._hazard(self.means * step[:, None]))
        return found

    @property
    def schoenfeld(self) -> Array:
        """At each event time, weighted columns of those with the event less what was expected, shape (J, p)."""
        J = len(self.times)
        got = _by_time(self._at_event, (self.w[:, None] * self.centred)[self.event], J)
        return got - _by_time(self.place, self.mass[:, None] * self.means, J)

    @property
    def events_at(self) -> Array:
        """Events at each event time, shape (J,)."""
        return self._tied[0]


def _from(values: Array, seen: Array, n_times: int) -> Array:
    """Add up values (n, ...) over records that have seen event time j or more, for each j; shape (n_times, ...)."""
    order = np.argsort(seen, kind="stable")
    backwards = np.concatenate([np.cumsum(values[order[::-1]], axis=0)[::-1], np.zeros((1, *values.shape[1:]))])
    found: Array = backwards[np.searchsorted(seen[order], np.arange(1, n_times + 1), side="left")]
    return found


def _by_time(place: Array, values: Array, n_times: int) -> Array:
    """Add up values (m, ...) by event time, shape (n_times, ...)."""
    if values.ndim == 1:
        return np.bincount(place, values, minlength=n_times)
    columns: Sequence[Array] = [np.bincount(place, column, minlength=n_times) for column in values.T]
    return np.stack(columns, axis=-1) if len(columns) else np.zeros((n_times, 0))
