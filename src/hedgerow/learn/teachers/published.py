"""PATE as published: GNMax, Confident-GNMax and LNMax on exact votes, as baselines where a simulation knows them.

    GNMax       argmax_c of V[i, c] + N(0, sigma^2)
    Confident   where max_c V[i, c] + N(0, check^2) >= threshold:  the same;  else no answer
    LNMax       argmax_c of V[i, c] + Lap(1 / gamma)

GNMax is what is left of whole noisy votes when all but the largest number is thrown away, at the same data-independent cost.
Only accounting by the votes themselves makes it cheaper, and that number is a secret (`account`).

All three need the exact total of every input, to which somebody who sees it adds the noise. A server without secure aggregation
has it, and one behind secure aggregation has it as well where no noise was added before the sum: that hides the parties' parts
and not their total. A server that gets noisy votes does not have it. So these mechanisms rest on trust in the server, and they
are answered here from votes without noise, in a simulation, for comparison.

Source: Papernot et al. 2017, section 2.1; 2018, Algorithms 1 and 2. Sempere 2024, 4.1.2, writes the noise inside the argument
of n_j, and its scale both as gamma and as 1 / gamma: it is n_j(x) + Lap(1 / gamma).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .account import ORDERS, Unreleasable, epsilon_of, rdp_check, rdp_free, rdp_gnmax, rdp_lnmax


@dataclass(frozen=True)
class PublishedLabels:
    """Labels by a published mechanism, made in a simulation from exact votes.

    Attributes
    ----------
    mechanism : str
    answered : array of int, shape (k,)
        Which inputs have a label.
    labels : array of int, shape (k,)
        Their classes.
    epsilon : float
        Whatever the votes are; what a deployment would have to charge.
    dependent : Unreleasable
        By these votes: a secret, for comparison with the papers alone, which convert it less well (`epsilon_of(classic=True)`).
    """

    mechanism: str
    answered: Array
    labels: Array
    epsilon: float
    dependent: Unreleasable

    def __str__(self) -> str:
        return (
            f"{self.mechanism}: {len(self.labels)} labels; epsilon {self.epsilon:.3f} whatever the votes are, "
            f"{self.dependent} at delta {self.dependent.delta:g}"
        )


def gnmax(votes: Array, sigma: float, *, delta: float = 1e-5, seed: int | None = None) -> PublishedLabels:
    """Label every input by a noisy maximum of exact votes (q, C)."""
    votes, rng = _exact(votes, sigma=sigma), np.random.default_rng(seed)
    curve = sum((rdp_gnmax(row, sigma) for row in votes), np.zeros_like(ORDERS))
    labels = (votes + sigma * rng.normal(size=votes.shape)).argmax(1)
    return _made(f"GNMax({sigma:g})", np.arange(len(votes)), labels, len(votes) * rdp_free(sigma), curve, delta)


def confident_gnmax(
    votes: Array, threshold: float, check: float, sigma: float, *, delta: float = 1e-5, seed: int | None = None
) -> PublishedLabels:
    """Label the inputs whose largest exact vote passes a noisy check; refused ones pay for the check as well.

    Without the votes nobody knows how many inputs are answered: the epsilon whatever they are is that of answering all.
    """
    votes, rng = _exact(votes, sigma=sigma, check=check), np.random.default_rng(seed)
    curve, answered, labels = np.zeros_like(ORDERS), [], []
    for i, row in enumerate(votes):
        curve = curve + rdp_check(row, threshold, check)
        if row.max() + check * rng.normal() >= threshold:
            curve = curve + rdp_gnmax(row, sigma)
            answered.append(i)
            labels.append(int((row + sigma * rng.normal(size=len(row))).argmax()))
    free = len(votes) * (rdp_free(math.sqrt(2) * check) + rdp_free(sigma))
    name = f"Confident-GNMax({threshold:g}, {check:g}, {sigma:g})"
    return _made(name, np.array(answered, int), np.array(labels, int), free, curve, delta)


def lnmax(votes: Array, gamma: float, *, delta: float = 1e-5, seed: int | None = None) -> PublishedLabels:
    """Label every input by a maximum with Laplace noise of scale 1 / gamma: epsilon 2 gamma each."""
    votes, rng = _exact(votes, gamma=gamma), np.random.default_rng(seed)
    curve = sum((rdp_lnmax(row, 1 / gamma) for row in votes), np.zeros_like(ORDERS))
    flat = np.full(votes.shape[1], 0.0)  # equal votes say nothing, so this curve needs none
    free = len(votes) * rdp_lnmax(flat, 1 / gamma)
    labels = (votes + rng.laplace(size=votes.shape) / gamma).argmax(1)
    return _made(f"LNMax({gamma:g})", np.arange(len(votes)), labels, free, curve, delta)


PUBLISHED = "As published, on exact votes, for comparison"
"""Title of the table of a report, where votes were asked without noise."""


def as_published(votes: Array, teachers: int) -> tuple[PublishedLabels, ...]:
    """The mechanisms on exact votes, with the noise of the papers' 250 teachers scaled to so many."""
    of = teachers / 250
    return (
        gnmax(votes, 40 * of, seed=0),
        gnmax(votes, 100 * of, seed=0),
        confident_gnmax(votes, 200 * of, 150 * of, 40 * of, seed=0),
        lnmax(votes, 0.05 / of, seed=0),
    )


def _made(name: str, answered: Array, labels: Array, free: Array, curve: Array, delta: float) -> PublishedLabels:
    secret = Unreleasable(epsilon_of(curve, delta), delta)
    return PublishedLabels(name, answered, labels, epsilon_of(free, delta), secret)


def _exact(votes: Array, **scales: float) -> Array:
    found = np.asarray(votes, float)
    if found.ndim != 2 or not (found == np.rint(found)).all() or found.min(initial=0.0) < 0:
        raise SettingsInvalid(
            "a published mechanism on votes that are no whole numbers, as votes behind noise are.",
            remedy="It compares exact votes: ask without noise, in a simulation. For noisy votes take labels.student().",
        )
    for name, value in scales.items():
        if not value > 0:
            raise SettingsInvalid(f"{name}={value!r}.", remedy="Give a number above zero.")
    return found
