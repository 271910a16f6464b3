"""What Newton's methods share: when a step is halved, when it is the last one, and who is told when it never is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import NotConverged

from ..difficulties import separated
from ..state import NewtonState, solve
from .asking import Asked
from .reach import refuse_beyond
from .same_records import mind_others

STALLED = 1e-6
"""Steps shorter than this, in standard errors, that no longer shrink have met rounding."""
STALLED_HIDDEN = 1e-3
"""The same where rows are hidden, whose fixed-point steps may be larger than rounding."""
GAINS_NOTHING = 0.1
"""Steps shorter than this raise the log-likelihood by less than 0.01."""
VANISHES = 1.25
"""By what factor the information along a step falls at least, from one round to the next, where fitted means run to an end."""
PATIENCE = 4
"""Rounds in a row that look like a coefficient on its way to infinity, after which classes are separated: two are not enough,
since one record that is nearly separated looks so for a while behind another link.

Their steps gain nothing and hardly shrink: Newton's method squares such a step in the next round, unless a coefficient runs to
infinity. And the information along them vanishes: where the deviance of some records falls to nothing, each round leaves about
1/e of it, whatever the link. Fisher scoring of a link that is not canonical may shrink steps as slowly, by one factor in
every round, but towards a finite point, so that the information stays.
"""


def until_converged(
    asked: Asked,
    state: NewtonState,
    advance: Callable[[NewtonState], NewtonState],
    *,
    max_rounds: int,
    tol: float,
    remedy: str = "Allow more rounds with max_rounds=; if parties drop out, resume when they are back.",
) -> Iterator[NewtonState]:
    """Advance a state until it has converged; states are yielded in the columns' own units and advanced in those asked.

    Raises
    ------
    NotConverged (HR-322)
        After `max_rounds`.
    RangeExceeded (HR-243)
        Rows are hidden, and fitted means lie far beyond the target's declared range.
    """
    state = asked.inward(state)
    while not state.converged:
        if state.round >= max_rounds:
            refuse_beyond(state.beyond, asked.spec)
            raise NotConverged(
                f"after {state.round} rounds the next step is {state.length:.2g} standard errors long; tol is {tol:g}.",
                remedy=remedy,
            )
        before, state = state, advance(state)
        mind_others(before, state)
        if state.converged:
            refuse_beyond(state.beyond, asked.spec)
        yield asked.outward(state)


def stepped(
    reached: NewtonState,
    before: NewtonState,
    names: Sequence[str],
    *,
    tol: float,
    hidden: bool,
    dispersion: float = 1.0,
    separable: bool = True,
    counts: bool = False,
    may_end: bool = True,
) -> NewtonState:
    """Take the step from a state that was accepted.

    Parameters
    ----------
    before : NewtonState
        Whose trial point it is.
    names : sequence of str
        Of the coefficients.
    dispersion : float
        Variance in units of which steps are measured.
    separable, counts : bool
        Whether columns may separate the classes, or counts of zero from the others.
    may_end : bool
        Whether this can be the last step.

    Raises
    ------
    Separated (HR-321)
    """
    try:
        step = solve(reached.information, reached.score.ravel())
    except np.linalg.LinAlgError:  # the columns are independent, so it is the variances that have vanished
        raise separated((before.trial - before.beta).ravel(), before.trial.ravel(), names, counts=counts) from None
    length = math.sqrt(max(float(step @ reached.score.ravel()), 0.0) / dispersion)
    trial = reached.beta + step.reshape(reached.beta.shape)
    slowly = separable and before.round > 0 and rounding(hidden) < length < GAINS_NOTHING and length > before.length / 3
    crawled = before.crawled + 1 if slowly and _vanishes(before.information, reached.information, step) else 0
    if crawled == PATIENCE:
        raise separated(step, trial.ravel(), names, counts=counts)
    converged = may_end and is_last(length, before.length, tol, hidden)
    return replace(reached, trial=trial, length=length, crawled=crawled, converged=converged)


def _vanishes(before: Array, now: Array, step: Array) -> bool:
    """Whether the information along a step has fallen as it does where fitted means run to the end of their range."""
    return float(step @ before @ step) > VANISHES * float(step @ now @ step)


def has_risen(now: float, before: float, length: float, hidden: bool) -> bool:
    """Whether a step of this length raised what is minimised by more than rounding; of hidden rows only long steps can."""
    if hidden and length <= 0.5:
        return False
    return not now <= before + (1e-6 if hidden else 1e-10) * abs(before)


def rounding(hidden: bool) -> float:
    """Length of steps that may be rounding."""
    return STALLED_HIDDEN if hidden else STALLED


def is_last(length: float, before: float, tol: float, hidden: bool) -> bool:
    """Whether a step is short enough, or has met rounding: it is short and no longer shrinks."""
    return length < tol or (length < rounding(hidden) and length > before / 2)
