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
sum has a bound (`hedgerow.stats.linear.reach`), and of the information only its upper triangle is asked. Through a channel that
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
from itertools import pairwise

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from .columns import is_exact
from .design import Design
from .difficulties import check_counts, check_identified, check_target
from .factors import Levels
from .linear.asking import Asked, ask_for
from .linear.loss import Loss
from .linear.losses import FamilyName, loss_of
from .linear.newton import has_risen, stepped, until_converged
from .noisy import noisy_newton
from .state import NewtonState

EVERYTHING = ("score", "information", "n", "deviance", "y", "yy")


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
    family, tol, max_rounds, rounds, start, alpha
        As `hedgerow.stats.regression`.

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
    if not is_exact(federation):
        yield from noisy_newton(federation, spec, family, rounds, start)
        return
    asked = ask_for(federation, spec)

    def advance(state: NewtonState) -> NewtonState:
        shape = alpha if state.round else 0.0  # a negative binomial begins as a Poisson distribution
        loss = loss_of(family, shape)
        return _advance(state, glm_sums(asked, state, loss, shape), asked, loss, tol)

    begun = start or NewtonState.at_zero(spec.size)
    yield from until_converged(asked, begun, advance, max_rounds=max_rounds, tol=tol, remedy=WHY_NOT)


WHY_NOT = (
    "If parties drop out, rounds are about different records: resume when they are back.\n"
    "Otherwise a column may separate the classes; or allow more rounds with max_rounds=."
)


def glm_sums(asked: Asked, state: NewtonState, loss: Loss, alpha: float | None = None) -> dict[str, Array]:
    """Ask for everything that a fit shows, at the trial point.

    Raises
    ------
    NotFinite (HR-404)
        A party's sums are not finite.
    """
    cut = ("beyond",) if asked.bounded and asked.hidden and loss.log_link else ()
    keys = (*EVERYTHING, *(name for name in ("saturated", "pearson") if loss.has(name)), *cut)
    return asked.sums(loss.name, state.trial, keys, shape=alpha, centre=state.mean)


def _advance(state: NewtonState, sums: dict[str, Array], asked: Asked, law: Loss, tol: float) -> NewtonState:
    """Judge the trial point by its sums: halve the step that led there, or accept it and look for the next."""
    spec, n = asked.spec, float(sums["n"])
    if state.round == 0:
        check_identified(sums["information"], n, spec.names, residual=law.free_dispersion)
        if law.binary:
            check_target(float(sums["y"]), n)
    elif not law.quadratic and _rises(state, sums, asked.hidden):
        return state.halved()
    reached = state.reached(sums)
    if state.round == 0 and law.log_link:
        check_counts(reached.raw_sum, n)
        reached = at_constant(reached, spec, law)
    return stepped(
        reached,
        state,
        spec.names,
        tol=tol,
        hidden=asked.hidden,
        dispersion=_dispersion(reached, law),
        separable=not law.free_dispersion,
        counts=law.log_link,
        may_end=state.round > 0 or not law.log_link,
    )


def _rises(state: NewtonState, sums: dict[str, Array], hidden: bool) -> bool:
    """Whether a step has raised the deviance of the same records; they are others where the target adds up to another sum."""
    n, total = float(sums["n"]), float(sums["y"]) + float(sums["n"]) * state.mean
    apart = (1e-3 if hidden else 1e-6) * (1 + abs(state.raw_sum))  # fixed-point steps may be larger than rounding
    same = n == state.n and abs(total - state.raw_sum) <= apart
    return same and has_risen(float(sums["deviance"]), state.deviance, state.length, hidden)


def at_constant(state: NewtonState, spec: Design, law: Loss) -> NewtonState:
    """Move a state at zero, behind a log link, to the fit of a constant alone, where that is known and the columns span one.

    Means are multiplied by one number, so that the sums there follow from those at zero.
    """
    constant = constant_of(spec) if law.power else None
    if constant is None:
        return replace(state, deviance=math.inf) if law.name == "negative binomial" else state
    ones = state.information @ constant  # sum of w * variance * x
    total = float(constant @ ones)
    ratio = 1.0 + float(constant @ state.score) / total
    if not ratio > 0:  # fixed point or an offset may leave nothing of a small total
        return state
    if law.power == 2:
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


def _dispersion(state: NewtonState, law: Loss) -> float:
    """Variance in units of which steps are measured: of a perfect fit, what rounding could leave of it."""
    if not law.free_dispersion:
        return 1.0
    df = state.n - len(state.beta)
    if law.has("pearson"):
        return max(state.pearson / df, 1e-12)
    rounding = 1e-12 * state.raw_squares / state.n
    return max(state.deviance / df, rounding) or 1.0
