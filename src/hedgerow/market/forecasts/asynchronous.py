"""Forecast of asynchronous gradient queries: what owners' noise costs, and that in each step only some of them answer.

G steps to a round, one answer of each owner in each round, q = 1 / G;  p_l = w_l n_l / sum w n;  b_k as of `influences`:

    noise     A of `propagate`, times the variance of a step:  G sum_l w_l^2 Var_l / (sum w n)^2
    spread    1/2 sum_h h sum over rounds of  (1 + c) sum_l V(y_l) - c V(sum_l y_l),     y_lk = b_k p_l g_lk
              V(y) = G sum_k y_k^2 - (sum_k y_k)^2

g_lk is the mean gradient of owner l at the noiseless iterate of step k, along eigenvector h. In the step dealt to l, G g_l
stands in place of g_l, in the other steps of the round 0: V(y_l) is the variance of that. If a coin were tossed anew in each
step it would be (G - 1) sum_k y_lk^2, with (1 - q) / q = G - 1. Within a round b_k and g_lk hardly change, so almost all of
that cancels.

Steps have equal numbers of owners, but for one. So two owners are in the same step with a probability s a little below 1 / G,
and their terms have a covariance of -c [G sum_k y_lk y_mk - sum_k y_lk sum_k y_mk], c = (1 - G s) / (G - 1). Of L owners, L a
multiple of G, c = 1 / (L - 1), as of a sample without replacement. Noise of owners is independent of all that.

Of losses that are not quadratic the spread is that of the parabola at theta*. It leaves out the box, and that a step of one
owner changes the gradients of the next, which is of the order of G times the step times the curvature: where that is below 1,
forecasts are within some percent of what is measured.

Source: derived for `hedgerow.learn.queries.async_queries`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries.answers import Answers
from hedgerow.learn.queries.steps import Steps

from .owner_noise import mean_variance
from .pilot_estimate import PilotEstimate
from .propagation import errors, influences, propagate


@dataclass(frozen=True)
class AsynchronousForecast:
    """Expected excess of the result, by its causes.

    Attributes
    ----------
    bias : float
        Without noise, if everybody answered in each step.
    noise : float
        Of the owners' noise.
    spread : float
        Of owners' gradients that differ, where each answers once in a round.
    coins : float
        The same if independent coins of the same chance decided who answers; for comparison.
    """

    bias: float
    noise: float
    spread: float
    coins: float

    @property
    def excess(self) -> float:
        """f(theta) - f(theta*), expected."""
        return self.bias + self.noise + self.spread


def asynchronous(
    estimate: PilotEstimate,
    steps: Steps,
    answers: Answers,
    records: Mapping[str, int],
    every: int,
    *,
    ridge: float = 0.0,
    gradients: Mapping[str, Array] | None = None,
    spread: float | None = None,
) -> AsynchronousForecast:
    """Forecast `async_queries`.

    Parameters
    ----------
    estimate : PilotEstimate
        Of the records of all owners together, as weighted.
    steps : Steps
    answers : Answers
        Its horizon is the number of rounds.
    records : mapping from owner to int
    every : int
        Steps of a round.
    ridge : float
        Of the loss: the server adds it in each step, and it is nobody's gradient.
    gradients : mapping from owner to array of shape (d,), optional
        Mean gradient of each owner's records at theta*, without the ridge.
    spread : float, optional
        In place of it, declared: root mean square length of the difference of an owner's from that of all, in no particular
        direction. With neither, owners' records are taken to be drawn alike: it is the scatter of records over their number.

    Raises
    ------
    SettingsInvalid (HR-511)
        An owner without records or gradient; no whole number of steps; a spread below zero.
    """
    owners = [owner for owner, _ in answers.epsilons]
    if missing := [owner for owner in owners if owner not in records or not (gradients is None or owner in gradients)]:
        raise SettingsInvalid(f"records or the gradient of {', '.join(missing[:5])} are not said.", remedy="Say all owners'.")
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise SettingsInvalid(f"{every!r} steps to a round.", remedy="Give a whole number of at least 1.")
    if spread is not None and not 0 <= spread < np.inf:
        raise SettingsInvalid(f"a spread of {spread!r}.", remedy="Give a finite number of at least 0.")
    horizon, n = answers.horizon * every, np.array([float(records[owner]) for owner in owners])
    h, vectors = np.linalg.eigh(estimate.curvature)
    without = propagate(estimate, steps, horizon)
    b = influences(h, steps, horizon)
    path = errors(h, -vectors.T @ estimate.best, steps, horizon)[:horizon] * (h - ridge)
    shares = np.array([answers.weight(owner) for owner in owners]) * n
    shares /= shares.sum()
    scatter = _along(vectors, estimate.scatter) / n[:, None]  # of owners' means, about that of all
    scatter += shares**2 @ scatter - 2 * shares[:, None] * scatter
    common = path - ridge * vectors.T @ estimate.best
    kept, tossed, together = 0.0, 0.0, np.zeros_like(path)
    for i, owner in enumerate(owners):
        if gradients is not None:
            drawn = [path + vectors.T @ gradients[owner]]
        else:
            squares = np.full(len(h), spread**2 / len(h)) if spread is not None else scatter[i]
            drawn = [common, np.sqrt(squares) * np.ones_like(path)]  # about the mean, so the second add up to zero
        together += b * shares[i] * drawn[0]
        for gradient in drawn:
            y = b * shares[i] * gradient
            kept += float(_dealt(y, every) @ h) / 2
            tossed += float((every - 1) * np.square(y).sum(0) @ h) / 2
    c = _dependence(len(owners), every)
    kept += c * (kept - float(_dealt(together, every) @ h) / 2)
    noise = every * mean_variance(answers, n) * without.amplification
    return AsynchronousForecast(without.bias, noise, kept, tossed)


def _dealt(y: Array, every: int) -> Array:
    """V of a term of every step, shape (steps, d), summed over rounds."""
    rounds = y.reshape(-1, every, y.shape[1])
    found: Array = (every * np.square(rounds).sum(1) - np.square(rounds.sum(1))).sum(0)
    return found


def _dependence(owners: int, every: int) -> float:
    """c: by how much rarer two owners are in one step than if each were dealt by itself."""
    if every == 1 or owners == 1:
        return 0.0
    fewest, more = divmod(owners, every)
    same = fewest * ((every - more) * (fewest - 1) + more * (fewest + 1)) / (owners * (owners - 1))
    return (1 - every * same) / (every - 1)


def _along(vectors: Array, covariance: Array) -> Array:
    """Variance along each eigenvector."""
    found: Array = np.einsum("ih,ij,jh->h", vectors, covariance, vectors)
    return found
