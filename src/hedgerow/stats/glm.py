"""Generalised linear models by Newton's method on sums of scores and informations.

    for each round:
        beta           -> every party                                            broadcast
        score          <- sum of  w * (y - mean) * x                             sum
        information    <- sum of  w * variance * x x'                            sum
        deviance       <- sum of  w * deviance                                   sum
        beta           <- beta + information^-1 score                            halved while the deviance rises

The iterates are those of the pooled fit. A linear regression is solved by the first step; the next round confirms it at
the solution, and refines what rounding left, so ill-conditioned columns lose no digits.

Behind a log link the first step starts from the constant fit, which the sums at zero give. Where rows are hidden every
sum has a bound (`hedgerow.stats.limits`), and of the information only its upper triangle is asked. Through a channel that
clips or adds noise, only what has a bound is asked (`hedgerow.stats.noisy`).

Releases : score (d,), information (d, d), n, deviance, and the target's sum and squares; once a round. For counts and
           gamma targets the log-likelihood of a perfect fit besides, for the latter squared relative residuals; where
           means are cut off, the number of records concerned.
Unit     : record.
Source   : McCullagh & Nelder 1989, section 2.5. Differs: always the expected information (Fisher scoring).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local
from hedgerow.errors import ContributionInvalid, NotConverged, NotFinite, PartyDeclined, SettingsInvalid

from .blocks import by_blocks
from .columns import is_exact
from .design import Design
from .difficulties import check_counts, check_identified, check_target, separated
from .factors import Levels
from .families import GAUSSIAN, Family, FamilyName, law_of
from .limits import Asked, ask_for, glm_limits, reach_of, refuse_beyond, symmetric, triangle
from .noisy import noisy_newton
from .state import NewtonState, solve

EVERYTHING = ("score", "information", "n", "deviance", "y", "yy")

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


@local(additive=True, stackable=True)
@by_blocks
def score_and_information(
    broadcast: dict[str, Array],
    party: Party,
    rng: Any,
    *,
    family: FamilyName,
    keys: tuple[str, ...] = EVERYTHING,
    alpha: float = 1.0,
    upper: bool = False,
) -> dict[str, Array]:
    """Add up score, information and deviance at `beta`, and the target's deviations from `centre` and their squares.

    Reads `X` (..., n, d), `y` and `offset` (..., n), as `design` prepares them. With `upper` the information is its upper
    triangle; with `reach` (2,) in the broadcast linear predictors are cut off, and those beyond are counted.
    """
    law, X, y, w, offset = law_of(family, alpha), party["X"], party["y"], party.w, party["offset"]
    transposed = np.swapaxes(X, -1, -2)
    with np.errstate(all="ignore"):  # what a formula leaves undefined is found once it has been added up
        eta = linear = X @ broadcast["beta"] + offset
        if "reach" in broadcast:
            eta = np.clip(linear, *broadcast["reach"])
        mean = law.mean(eta)
        deviation = y - broadcast["centre"] - (offset if law is GAUSSIAN else 0.0)
        residual = y - mean if law.gain is None else law.gain(mean) * (y - mean)
        information = transposed @ ((w * law.variance(mean))[..., None] * X)
        sums = {
            "score": (transposed @ (w * residual)[..., None])[..., 0],
            "information": triangle(information) if upper else information,
            "n": party.n,
            "deviance": (w * law.deviance(y, eta)).sum(-1),
            "y": (w * deviation).sum(-1),
            "yy": (w * deviation**2).sum(-1),
        }
        if law.saturated is not None:
            sums["saturated"] = (w * law.saturated(y)).sum(-1)
        if law.pearson is not None:
            sums["pearson"] = (w * law.pearson(y, mean)).sum(-1)
        if "reach" in broadcast:
            sums["beyond"] = (w * (eta != linear)).sum(-1)
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
    alpha: float = 1.0,
) -> Iterator[NewtonState]:
    """Maximum likelihood by Newton's method.

    Parameters
    ----------
    federation : Federation
    spec : Design
        Columns, target, offset and weights.
    family : {"binomial", "gaussian", "poisson", "gamma", "negative binomial"}
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    rounds : int
        Rounds through a channel that clips or adds noise; a linear regression takes one.
    start : NewtonState, optional
        Continue from a state that was yielded before.
    alpha : float
        Dispersion of a negative binomial.

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
        The channel adds noise or hides rows, and a column has no declared range; or it adds noise to counts.
    RangeExceeded (HR-243)
        Rows are hidden, and fitted means lie far beyond the target's declared range.

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
    asked = ask_for(federation, spec)
    state = asked.inward(start or NewtonState.at_zero(spec.size))
    while not state.converged:
        if state.round >= max_rounds:
            refuse_beyond(state.beyond, spec)
            raise _gave_up(state, tol)
        law = law_of(family, alpha if state.round else 0.0)  # a negative binomial begins as a Poisson distribution
        state = _advance(state, glm_sums(asked, state, law, family, alpha if state.round else 0.0), asked, law, tol)
        if state.converged:
            refuse_beyond(state.beyond, spec)
        yield asked.outward(state)


def glm_sums(
    asked: Asked, state: NewtonState, law: Family, family: FamilyName, alpha: float = 1.0, keys: tuple[str, ...] = ()
) -> dict[str, Array]:
    """Ask for `score_and_information` at the trial point, everything by default, with bounds where rows are hidden.

    Raises
    ------
    NotFinite (HR-404)
        A party's sums are not finite.
    """
    cut = asked.bounded and law.log_link
    if not keys:
        extra = {"saturated": law.saturated is not None, "pearson": law.pearson is not None, "beyond": cut}
        keys = (*EVERYTHING, *(key for key, wanted in extra.items() if wanted))
    settings: dict[str, Any] = {"family": family}
    settings |= {"alpha": alpha} if family == "negative binomial" else {}
    settings |= {"keys": keys} if keys != EVERYTHING else {}
    settings |= {"upper": True} if asked.hidden else {}
    broadcast = {"beta": state.trial, "centre": np.array(state.mean)}
    if cut:
        broadcast["reach"] = np.array(reach_of(asked.spec, law, state.trial))
    bounds = asked.bounds(lambda: glm_limits(asked.spec, law, state.trial, state.mean), keys)
    ask = partial(score_and_information, **settings)
    found = finite_sums(asked, lambda: asked.federation.sum(ask, broadcast, bound=bounds))
    return found | {"information": symmetric(found["information"])} if asked.hidden else found


def finite_sums(asked: Asked, ask: Any) -> dict[str, Array]:
    """Ask, and name the formula where a party's sums are not finite.

    Raises
    ------
    NotFinite (HR-404)
    """
    try:
        found: dict[str, Array] = ask()
    except PartyDeclined as refusal:
        if ContributionInvalid.code not in refusal.codes.values():
            raise
        raise NotFinite(
            f"{', '.join(refusal.codes)}: a sum for {asked.spec.formula!r} is not finite.",
            remedy="Look for the log of zero, a division by zero, or a root of a negative number in the formula;\n"
            "counts are zero or more, and the target of a gamma regression is above zero.",
            asked=True,
        ) from refusal
    return found


def _advance(state: NewtonState, sums: dict[str, Array], asked: Asked, law: Family, tol: float) -> NewtonState:
    """Judge the trial point by its sums: halve the step that led there, or accept it and look for the next."""
    spec, n, deviance = asked.spec, float(sums["n"]), float(sums["deviance"])
    if state.round == 0:
        check_identified(sums["information"], n, spec.names, residual=law.free_dispersion)
        if law.name == "binomial":
            check_target(float(sums["y"]), n)
    elif law.name != "gaussian" and _same_records(state, sums, asked.hidden) and _rises(deviance, state, asked.hidden):
        return replace(state, round=state.round + 1, trial=(state.beta + state.trial) / 2)
    reached = NewtonState(
        round=state.round + 1,
        beta=state.trial,
        trial=state.trial,
        score=sums["score"],
        information=sums["information"],
        deviance=deviance,
        n=n,
        centre=state.mean,
        response=float(sums["y"]),
        squares=float(sums["yy"]),
        pearson=float(sums.get("pearson", 0.0)),
        saturated=float(sums.get("saturated", 0.0)),
        null_deviance=state.null_deviance,
        beyond=float(sums.get("beyond", 0.0)),
    )
    if state.round == 0 and law.log_link:
        check_counts(reached.raw_sum, n)
        reached = at_constant(reached, spec, law)
    try:
        step = solve(reached.information, reached.score)
    except np.linalg.LinAlgError:  # the columns are independent, so it is the variances that have vanished
        raise separated(state.trial - state.beta, state.trial, spec.names, counts=law.log_link) from None
    length = math.sqrt(max(float(step @ reached.score), 0.0) / _dispersion(reached, law))
    rounding = STALLED_HIDDEN if asked.hidden else STALLED
    crawls = not law.free_dispersion and rounding < length < GAINS_NOTHING and length > state.length / 3
    crawled = state.crawled + 1 if crawls and state.round else 0
    trial = reached.beta + step
    if crawled == PATIENCE:
        raise separated(step, trial, spec.names, counts=law.log_link)
    stalled = length < rounding and length > state.length / 2
    converged = (length < tol or stalled) and (state.round > 0 or not law.log_link)
    return replace(reached, trial=trial, length=length, crawled=crawled, converged=converged)


def _same_records(state: NewtonState, sums: dict[str, Array], hidden: bool) -> bool:
    """Whether sums are of the records of the state, so that their deviances can be compared: parties come and go.

    They are of others where records, or the target, add up to something else.
    """
    n, total = float(sums["n"]), float(sums["y"]) + float(sums["n"]) * state.mean
    apart = (1e-3 if hidden else 1e-6) * (1 + abs(state.raw_sum))  # fixed-point steps may be larger than rounding
    return n == state.n and abs(total - state.raw_sum) <= apart


def _rises(deviance: float, state: NewtonState, hidden: bool) -> bool:
    """Whether a step has raised the deviance by more than rounding; where rows are hidden only long steps may."""
    if hidden:
        return state.length > 0.5 and not deviance <= state.deviance * (1 + 1e-6)
    return not deviance <= state.deviance + 1e-10 * abs(state.deviance)


def at_constant(state: NewtonState, spec: Design, law: Family) -> NewtonState:
    """Move a state at zero, behind a log link, to the fit of a constant alone, where the columns span one.

    Means are multiplied by one number, so that the sums there follow from those at zero.
    """
    constant = constant_of(spec)
    if constant is None:
        return replace(state, deviance=math.inf) if law.name == "negative binomial" else state
    ones = state.information @ constant  # sum of w * variance * x
    total = float(constant @ ones)
    ratio = 1.0 + float(constant @ state.score) / total
    if not ratio > 0:  # fixed point or an offset may leave nothing of a small total
        return state
    if law.name == "gamma":
        score, information = (state.score + ones) / ratio - ones, state.information
        deviance = state.deviance + 2 * total * (math.log(ratio) + 1 - ratio)
    else:
        score, information = state.score + (1 - ratio) * ones, ratio * state.information
        deviance = state.deviance - 2 * total * (ratio * math.log(ratio) + 1 - ratio)
    beta = math.log(ratio) * constant
    moved = replace(state, beta=beta, score=score, information=information, deviance=deviance, pearson=deviance)
    if law.name == "negative binomial":  # the deviance is that of a Poisson distribution
        return replace(moved, deviance=math.inf)
    return replace(moved, null_deviance=deviance)


def constant_of(spec: Design) -> Array | None:
    """Return the coefficients, of the columns as scaled, whose linear predictor is one; `None` where there are none."""
    starts = np.cumsum([0, *(len(term.names) for term in spec.terms)])
    for term, (a, b) in zip(spec.terms, pairwise(starts), strict=True):
        if all(isinstance(factor, Levels) and factor.full for factor in term.factors):
            found = np.zeros(spec.size)
            found[a:b] = np.array(spec.scales or np.ones(spec.size))[a:b]
            return found
    return None


def _dispersion(state: NewtonState, law: Family) -> float:
    """Variance in units of which steps are measured: of a perfect fit, what rounding could leave of it."""
    if not law.free_dispersion:
        return 1.0
    df = state.n - len(state.beta)
    if law.name == "gamma":
        return max(state.pearson / df, 1e-12)
    rounding = 1e-12 * state.raw_squares / state.n
    return max(state.deviance / df, rounding) or 1.0


def _gave_up(state: NewtonState, tol: float) -> NotConverged:
    return NotConverged(
        f"after {state.round} rounds the next step is {state.length:.2g} standard errors long; tol is {tol:g}.",
        remedy="If parties drop out, rounds are about different records: resume when they are back.\n"
        "Otherwise a column may separate the classes; or allow more rounds with max_rounds=.",
    )
