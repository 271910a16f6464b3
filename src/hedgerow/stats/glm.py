"""Generalised linear models by Newton's method on sums of scores and informations.

    for each round:
        beta           -> every party                                            broadcast
        score          <- sum of  w * (y - mean) * x                             sum
        information    <- sum of  w * variance * x x'                            sum
        deviance       <- sum of  w * deviance                                   sum
        beta           <- beta + information^-1 score                            halved while the deviance rises

The iterates are those of the pooled fit. A linear regression is solved by the first step; the next round confirms it at
the solution, and refines what rounding left, so ill-conditioned columns lose no digits.

Through a channel that clips or adds noise, only what has a bound is asked (`hedgerow.stats.noisy`).

Releases : score (d,), information (d, d), n, deviance, and the target's sum and squares; once a round.
Unit     : record.
Source   : McCullagh & Nelder 1989, section 2.5. Differs: canonical links only, so Newton's method is Fisher scoring.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local
from hedgerow.errors import ContributionInvalid, NotConverged, NotFinite, PartyDeclined, SettingsInvalid

from .columns import is_exact
from .design import Design, design
from .difficulties import check_identified, check_target, separated
from .families import FAMILIES, GAUSSIAN, FamilyName
from .noisy import noisy_newton
from .state import NewtonState, solve

EVERYTHING = ("score", "information", "n", "deviance", "y", "yy")

STALLED = 1e-6
"""Steps shorter than this, in standard errors, that no longer shrink have met rounding."""
GAINS_NOTHING = 0.1
"""Steps shorter than this raise the log-likelihood by less than 0.01."""
PATIENCE = 2
"""Rounds in a row with steps that gain nothing and hardly shrink, after which classes are separated.

Newton's method squares such a step in the next round, unless a coefficient runs to infinity: then the linear predictor
moves by about one in every round, and the length falls by exp(-1/2) only."""


@local(additive=True, stackable=True)
def score_and_information(
    broadcast: dict[str, Array], party: Party, rng: Any, *, family: FamilyName, keys: tuple[str, ...] = EVERYTHING
) -> dict[str, Array]:
    """Add up score, information and deviance at `beta`, and the target's deviations from `centre` and their squares.

    Reads `X` (..., n, d), `y` and `offset` (..., n), as `design` prepares them.
    """
    law, X, y, w, offset = FAMILIES[family], party["X"], party["y"], party.w, party["offset"]
    transposed = np.swapaxes(X, -1, -2)
    with np.errstate(all="ignore"):  # what a formula leaves undefined is found once it has been added up
        eta = X @ broadcast["beta"] + offset
        mean = law.mean(eta)
        deviation = y - broadcast["centre"] - (offset if law is GAUSSIAN else 0.0)
        sums = {
            "score": (transposed @ (w * (y - mean))[..., None])[..., 0],
            "information": transposed @ ((w * law.variance(mean))[..., None] * X),
            "n": party.n,
            "deviance": (w * law.deviance(y, eta)).sum(-1),
            "y": (w * deviation).sum(-1),
            "yy": (w * deviation**2).sum(-1),
        }
    return {key: sums[key] for key in keys}


def newton(
    federation: Federation,
    spec: Design,
    *,
    family: FamilyName = "binomial",
    tol: float = 1e-8,
    max_rounds: int = 50,
    rounds: int = 5,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximum likelihood by Newton's method.

    Parameters
    ----------
    federation : Federation
    spec : Design
        Columns, target, offset and weights.
    family : {"binomial", "gaussian"}
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    rounds : int
        Rounds through a channel that clips or adds noise; a linear regression takes one.
    start : NewtonState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    NewtonState
        After each round.

    Releases
    --------
    See the module; nothing else.

    Raises
    ------
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite, or not reached.
    NotFinite (HR-404)
        An expression of the formula is undefined for some record.
    UnboundedSum (HR-210)
        The channel adds noise and a column has no declared range.

    Source
    ------
    McCullagh & Nelder 1989, section 2.5.
    """
    if max_rounds < 1 or rounds < 1 or not tol > 0:
        reason = f"max_rounds is {max_rounds}, rounds is {rounds}, tol is {tol}."
        raise SettingsInvalid(reason, remedy="Rounds are at least one, a tolerance is above zero.")
    ask = partial(score_and_information, family=family)
    if not is_exact(federation):
        yield from noisy_newton(federation, spec, ask, family, rounds, start)
        return
    asked = federation.prepare(design, spec=spec)
    state = start or NewtonState.at_zero(spec.size)
    while not state.converged:
        if state.round >= max_rounds:
            raise _gave_up(state, tol)
        state = _advance(state, _sums(asked, ask, state, spec), spec, family, tol)
        yield state


def _sums(asked: Federation, ask: Any, state: NewtonState, spec: Design) -> dict[str, Array]:
    try:
        found: dict[str, Array] = asked.sum(ask, {"beta": state.trial, "centre": np.array(state.mean)})
    except PartyDeclined as refusal:
        if ContributionInvalid.code not in refusal.codes.values():
            raise
        raise NotFinite(
            f"{', '.join(refusal.codes)}: a sum for {spec.formula!r} is not finite.",
            remedy="Look for the log of zero, a division by zero, or a root of a negative number in the formula.",
            asked=True,
        ) from refusal
    return found


def _advance(state: NewtonState, sums: dict[str, Array], spec: Design, family: FamilyName, tol: float) -> NewtonState:
    """Judge the trial point by its sums: halve the step that led there, or accept it and look for the next."""
    n, deviance = float(sums["n"]), float(sums["deviance"])
    if state.round == 0:
        check_identified(sums["information"], n, spec.names, residual=family == "gaussian")
        if family == "binomial":
            check_target(float(sums["y"]), n)
    elif family == "binomial" and n == state.n and deviance > state.deviance * (1 + 1e-10):
        return replace(state, round=state.round + 1, trial=(state.beta + state.trial) / 2)
    try:
        step = solve(sums["information"], sums["score"])
    except np.linalg.LinAlgError:  # the columns are independent, so it is the variances that have vanished
        raise separated(state.trial - state.beta, state.trial, spec.names) from None
    reached = NewtonState(
        round=state.round + 1,
        beta=state.trial,
        trial=state.trial + step,
        score=sums["score"],
        information=sums["information"],
        deviance=deviance,
        n=n,
        centre=state.mean,
        response=float(sums["y"]),
        squares=float(sums["yy"]),
    )
    length = math.sqrt(max(float(step @ reached.score), 0.0) / _dispersion(reached, family))
    crawls = family == "binomial" and STALLED < length < GAINS_NOTHING and length > state.length / 3
    crawled = state.crawled + 1 if crawls else 0
    if crawled == PATIENCE:
        raise separated(step, reached.trial, spec.names)
    stalled = length < STALLED and length > state.length / 2
    return replace(reached, length=length, crawled=crawled, converged=length < tol or stalled)


def _dispersion(state: NewtonState, family: FamilyName) -> float:
    """Variance in units of which steps are measured: of a perfect fit, what rounding could leave of it."""
    if family == "binomial":
        return 1.0
    rounding = 1e-12 * state.raw_squares / state.n
    return max(state.deviance / (state.n - len(state.beta)), rounding) or 1.0


def _gave_up(state: NewtonState, tol: float) -> NotConverged:
    return NotConverged(
        f"after {state.round} rounds the next step is {state.length:.2g} standard errors long; tol is {tol:g}.",
        remedy="If parties drop out, rounds are about different records: resume when they are back.\n"
        "Otherwise a column may separate the classes; or allow more rounds with max_rounds=.",
    )
