"""One step of Newton's method on a likelihood of survival: when it is too long, when it is the last, when it never ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import Separated

from ..linear.newton import GAINS_NOTHING, PATIENCE, VANISHES, has_risen, is_last, rounding
from ..state import NewtonState, solve


def stepped_or_halved(
    state: NewtonState,
    names: Sequence[str],
    *,
    score: Array,
    information: Array,
    deviance: float,
    n: float,
    events: float,
    hidden: bool,
    tol: float,
    kept: Mapping[str, Array] | None = None,
) -> NewtonState:
    """Judge the trial point of a state by its sums: halve the step that led there, or accept it and look for the next.

    A step is judged where it is about the same records: `n` and `events` are those of the round before. Sums are of the columns
    as they are asked.

    Raises
    ------
    Separated (HR-321)
        Steps gain nothing and hardly shrink, round after round.
    """
    begun = "events" in state.kept
    same = begun and n == state.n and events == float(state.kept["events"])
    if same and has_risen(deviance, state.deviance, state.length, hidden):
        return state.halved()
    try:
        step = solve(information, score)
    except np.linalg.LinAlgError:
        raise infinite(state.trial - state.beta, state.trial, names) from None
    length = math.sqrt(max(float(step @ score), 0.0))
    slowly = begun and rounding(hidden) < length < GAINS_NOTHING and length > state.length / 3
    fades = slowly and float(step @ state.information @ step) > VANISHES * float(step @ information @ step)
    crawled = state.crawled + 1 if fades else 0
    if crawled == PATIENCE:
        raise infinite(step, state.trial, names)
    return replace(
        state,
        round=state.round + 1,
        beta=state.trial + step if length < tol else state.trial,  # the last step is known, and costs no question
        trial=state.trial + step,
        score=score,
        information=information,
        deviance=deviance,
        n=n,
        length=length,
        crawled=crawled,
        converged=is_last(length, state.length, tol, hidden),
        kept={**state.kept, **(kept or {}), "events": np.array(events)},
    )


def infinite(step: Array, beta: Array, names: Sequence[str]) -> Separated:
    """Name the coefficients that run to infinity."""
    moves = np.abs(step) > 0.01 * np.abs(beta)
    moving = [name for name, moved in zip(names, moves, strict=True) if moved] or list(names)
    them = "these coefficients" if moving[1:] else "this coefficient"
    return Separated(
        f"the likelihood rises for ever with {them}: {', '.join(map(repr, moving[:6]))}. All events are on one side of a "
        "level, or who has the event always has the largest value.",
        remedy="Drop or merge the column or level: no hazard ratio is finite.",
    )
