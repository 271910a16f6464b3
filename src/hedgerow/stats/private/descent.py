"""Gradient descent with momentum on noisy scores of all records.

    n       <- sum of weights                                         linf(1) a record of weight one    share .02
    repeat T times:
        s       <- sum over records of  -slope(y, coef x) x           l2(slope)                         share .98 / T each
        v       <- momentum * v + s - penalty coef
        coef    <- coef + v / (curvature * LONGEST * n + penalty)
    coef    <- mean of the last half

No sum of products is asked, so a question has d numbers and not d^2. Steps do not know how directions differ, and few of them
do not get far; behind much noise that is of use, as early stopping is: on public bins of Adult and cardio it is some tenths
of a point more accurate than majorised Newton where epsilon is below 0.2, and not worse above, with more questions. Rows are
of length one at most, so that the largest curvature is at most `curvature` times n, and steps with this momentum are stable
where they are shorter than 3.8 times its inverse.

Without noise as `hedgerow.stats.private.majorised`, with n in place of the sum of products.

Public constants: T is 20 for an epsilon below 0.2 and 60 otherwise, momentum .9 (of a quantile 40, 80 and .5),
LONGEST .35; looked at on Adult and cardio.

Releases : n once, or as often as brings its share of a channel's noise near .02; scores, T of them.
Unit     : record.
Source   : Abadi et al. 2016, Algorithm 1, with all records in every step, slopes bounded by the loss instead of a clip, and
           momentum (Polyak 1964).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from hedgerow.privacy.shares import Share

from .bounded_sums import BoundedSums
from .majorised import MOST_ROUNDS, DescentPoint, Majoriser, to_minimum

COUNT = 0.02
"""Share of the budget for the number of records."""
MOMENTUM = 0.9
OF_QUANTILE = 0.5
"""Momentum of a quantile, whose corner becomes narrower on the way: more goes too far. Public; looked at as the corner."""
LONGEST = 0.35
"""What the largest eigenvalue of X'X / n is taken for."""


def descent_parts(rounds: int, *, own: bool) -> dict[str, Share]:
    """Everything that is asked with noise; as `majorised_parts`."""
    return {"count": Share(COUNT, 1 if own else max(1, round(COUNT * rounds))), "score": Share(1 - COUNT, rounds)}


def descent(
    sums: BoundedSums,
    parts: Mapping[str, Share],
    *,
    penalty: float = 0.0,
    rounds: int | None = None,
    tol: float = 1e-8,
    max_rounds: int = MOST_ROUNDS,
    start: DescentPoint | None = None,
) -> Iterator[DescentPoint]:
    """Yield a point for each question; parameters and errors as `hedgerow.stats.private.majorised.majorised`."""
    times = parts["count"].times
    point = start or DescentPoint.begin(sums.loss.shape(sums.rows.size), 1)
    while point.round < times:
        point = replace(point, round=point.round + 1, gram=point.gram + sums.count())
        yield point
    n = max(float(point.gram[0, 0]) / times, sums.count_noise(), sums.rows.heaviest)
    if rounds is None:
        flat = Majoriser.flat(sums.rows.size, sums.loss.curvature * n + penalty)
        yield from to_minimum(sums, point, flat, penalty=penalty, tol=tol, last=times + max_rounds)
        return
    momentum = MOMENTUM if sums.loss.share is None else OF_QUANTILE
    last, half = times + rounds, times + rounds // 2
    while point.round < last:
        loss = sums.loss.at(point.round - times, rounds - rounds // 2)
        flat = Majoriser.flat(sums.rows.size, loss.curvature * n * LONGEST + penalty)
        found = sums.score(point.ahead, loss)
        step = momentum * point.step + flat.solve(found - penalty * point.ahead)
        ahead, k = point.ahead + step, point.round - half
        coef = ahead if k < 0 else point.coef + (ahead - point.coef) / (k + 1)
        point = replace(point, round=point.round + 1, coef=coef, ahead=ahead, step=step, score=np.asarray(found))
        yield point
