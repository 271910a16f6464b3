"""What Newton's methods share: when a step is halved, when it is the last one, and who is told when it never is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from hedgerow.errors import NotConverged

from .asking import Asked
from .reach import refuse_beyond

State = TypeVar("State", bound=Any)

STALLED = 1e-6
"""Steps shorter than this, in standard errors, that no longer shrink have met rounding."""
STALLED_HIDDEN = 1e-3
"""The same where rows are hidden, whose fixed-point steps may be larger than rounding."""
GAINS_NOTHING = 0.1
"""Steps shorter than this raise the log-likelihood by less than 0.01."""
PATIENCE = 2
"""Rounds in a row with steps that gain nothing and hardly shrink, after which classes are separated.

Newton's method squares such a step in the next round, unless a coefficient runs to infinity: then the linear predictor
moves by about one in every round, and the length falls by exp(-1/2) only."""


def until_converged(
    asked: Asked,
    state: State,
    advance: Callable[[State], State],
    *,
    max_rounds: int,
    tol: float,
    remedy: str = "Allow more rounds with max_rounds=; if parties drop out, resume when they are back.",
) -> Iterator[State]:
    """Advance a state until it has converged; states are yielded in the columns' own units and advanced in those asked.

    Parameters
    ----------
    state : State
        With `of_columns`, `round`, `length` and `converged`, and `beyond` where means may be cut off; or with a `newton` that
        has the last four.

    Raises
    ------
    NotConverged (HR-322)
        After `max_rounds`.
    RangeExceeded (HR-243)
        Rows are hidden, and fitted means lie far beyond the target's declared range.
    """
    state = asked.inward(state)
    while not (at := getattr(state, "newton", state)).converged:
        if at.round >= max_rounds:
            refuse_beyond(getattr(at, "beyond", 0.0), asked.spec)
            raise NotConverged(
                f"after {at.round} rounds the next step is {at.length:.2g} standard errors long; tol is {tol:g}.", remedy=remedy
            )
        state = advance(state)
        if state.converged:
            refuse_beyond(getattr(getattr(state, "newton", state), "beyond", 0.0), asked.spec)
        yield asked.outward(state)


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


def crawls(length: float, before: float, hidden: bool) -> bool:
    """Whether a step gains nothing and hardly shrinks, as where classes are separated."""
    return rounding(hidden) < length < GAINS_NOTHING and length > before / 3
