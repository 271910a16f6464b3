"""What an audit keeps of each release: numbers for each canary, and none of the rows.

    y   <- (released - known) / s            known: the total without canaries; s: the deviation that was charged
    X   <- x_c / s                           x_c: what canary c adds, within the bound that was charged; shape (k, d)
    g    = sum of the X that are in and joined
    law          sums of y and g, which `hedgerow.attacks.law_test` holds against the ledger
    G, v         += X X', X y                of those whose samples they joined, which the auditor of a simulation knows
    b            = G^-1 v                    1 where a canary is in, 0 where it is not, with deviations from G^-1

In `log_odds` samples are secret: of each release a canary's own b, and from it how much likelier it is that it was in.

Canaries that look alike in a release cannot be told apart: those that a pivoted decomposition of X X' leaves out are taken for
known there, in G, v and log-odds. At most half as many as there are numbers are looked at. The law needs only their sum g, so
it looks at all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from hedgerow.attacks.audits.noise_laws import NoiseLaw
from hedgerow.attacks.audits.sightings import Sighting
from hedgerow.attacks.audits.sums import LawSums
from hedgerow.core.arrays import Array
from hedgerow.core.events import Charge, Event, Parts, Sampling

ALIKE = 0.05
"""Share of a canary's squared length that the others must leave of it, or it is taken for known."""


@dataclass(frozen=True)
class Drawn:
    """Who was in the sample of a release.

    Attributes
    ----------
    joined, there : arrays of bool, shape (m,)
        Canaries in the sample, in or not; and those that could have been.
    took_part : float
        Records or parties in the sample, canaries that are in included.
    rate : float
        With which each canary joined, where that is secret; else 1.
    by_itself : bool
        Whether each was drawn by itself, rather than so many of all.
    """

    joined: Array
    there: Array
    took_part: float
    rate: float = 1.0
    by_itself: bool = True


@dataclass
class Evidence:
    """Sums over releases, for m canaries.

    Attributes
    ----------
    inside : array of bool, shape (m,)
    gram, along : arrays of shape (m, m), (m,)
        G and v.
    log_odds : array of shape (m,)
        Of having been in, where samples are secret.
    law : LawSums
    made : list of (Sampling, Event)
        Each release as it was made.
    losses : array of shape (m,), optional
        Of each canary's record under the last model.
    """

    inside: Array
    gram: Array = field(init=False)
    along: Array = field(init=False)
    log_odds: Array = field(init=False)
    law: LawSums = field(default_factory=LawSums)
    made: list[tuple[Sampling, Event]] = field(default_factory=list)
    losses: Array | None = None

    def __post_init__(self) -> None:
        m = len(self.inside)
        self.gram, self.along, self.log_odds = np.zeros((m, m)), np.zeros(m), np.zeros(m)

    @property
    def releases(self) -> int:
        """How many."""
        return self.law.releases

    def held_against(self, charges: Sequence[Charge]) -> None:
        """Look up each release in the ledger: one charge with its sampling and its event for each."""
        charged: Counter[tuple[Sampling, Event]] = Counter()
        for sampling, events in charges:
            for one in events:
                parts = one.events if isinstance(one, Parts) else ((one,),)
                charged.update((sampling, event) for part in parts for event in part)
        missing = Counter(self.made) - charged
        self.law.charged = True
        self.law.uncharged = tuple(f"{n} of {event} from {sampling}" for (sampling, event), n in missing.items())

    def add(self, y: Array, X: Array, known: Array, drawn: Drawn, law: NoiseLaw) -> None:
        """Add one release.

        Parameters
        ----------
        y : shape (d,)
            What was released less what is known, over the deviation of the noise.
        X : shape (m, d)
            What each canary adds if it is in and in the sample, over the same; zeros of one that nobody could draw.
        known : shape (d,)
            The known total over the same.
        drawn : Drawn
            Which canaries were in the sample.
        law : NoiseLaw
            Of the noise in a number, of deviation one.
        """
        joined, rate = drawn.joined, drawn.rate
        within = X[joined & self.inside].sum(0)
        left, total = y - within, known + within
        size = float(np.linalg.norm(total))
        self.law.add(
            Sighting(
                whitened=y,
                expected=within,
                scores=np.zeros(0),
                present=joined,
                left=float(left @ left),
                directions=len(y),
                along=float(left @ total) / size if size > 0 else 0.0,
                known=size,
                took_part=drawn.took_part,
                law=law,
            ),
            rate=rate if rate < 1 else None,
            there=drawn.there,
            drawn_alone=drawn.by_itself,
            left=left,
        )
        products = X @ X.T
        there = np.flatnonzero(joined)
        apart = there[_told_apart(products[np.ix_(there, there)], len(y))]
        hidden = np.setdiff1d(there, apart)
        rest = y - self.inside[hidden].astype(float) @ X[hidden]
        self.gram[np.ix_(apart, apart)] += products[np.ix_(apart, apart)]
        self.along[apart] += X[apart] @ rest
        self._odds(y, X, products, rate)

    def _odds(self, y: Array, X: Array, products: Array, rate: float) -> None:
        """Add what a release tells an observer who does not know who was in its sample."""
        apart = _told_apart(products, len(y))
        if not len(apart):
            return
        hidden = np.setdiff1d(np.flatnonzero(self.inside), apart)
        rest = y - rate * X[hidden].sum(0)
        inverse = np.linalg.inv(products[np.ix_(apart, apart)])
        b, variance = inverse @ (X[apart] @ rest), np.diag(inverse)
        ratio = (2 * b - 1) / (2 * variance)
        self.log_odds[apart] += ratio if rate >= 1 else np.logaddexp(np.log1p(-rate), np.log(rate) + ratio)


def _told_apart(G: Array, d: int) -> Array:
    """Which canaries can be told apart in a release of d numbers, by a pivoted Cholesky decomposition of their products."""
    most = min(len(G), max(1, d // 2))
    size = np.diag(G).copy()
    if not len(G) or size.max() <= 0:
        return np.zeros(0, np.int64)
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(G, lower=1, tol=ALIKE * float(size[size > 0].min()))
    order = order[:rank] - 1
    own = np.diag(factor)[:rank] ** 2
    kept = order[(own > ALIKE * size[order]) & (size[order] > 0)]
    return np.sort(kept[:most])
