"""Firth's logistic regression: Jeffreys' prior takes away the bias of first order, and keeps estimates finite.

A record's score is corrected by its leverage `h = w x' I^-1 x`, where the information `I` is that of all records. So an
iteration asks twice: for the information, then, with its inverse broadcast, for the corrected score.

    for each iteration:
        beta           -> every party                                            broadcast
        I, deviance    <- sums, as in `newton`                                   sum
        I^-1           -> every party                                            broadcast
        score*         <- sum of  w * (y - p + h * (1/2 - p)) * x                sum
        beta           <- beta + I^-1 score*          accelerated; halved while the penalised likelihood falls

The steps alone converge slowly where classes separate. So each is combined with the last few (Anderson's acceleration, in
units of standard errors).

The penalised log-likelihood is `log-likelihood + log det(I) / 2`. Where classes separate it still has a maximum.

Releases : score (d,), information (d, d), n, deviance, target's sum and squares, then the corrected score (d,); once an
           iteration.
Unit     : record.
Source   : Firth 1993; Heinze & Schemper 2002. Differs: intervals are Wald's, from the inverse information; steps are
           accelerated (Walker & Ni 2011).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.query import local
from hedgerow.data import load
from hedgerow.errors import NotConverged, UnlawfulChannel
from hedgerow.report import Outcome

from .blocks import by_blocks
from .columns import is_exact, schema_of
from .design import Design, design_of
from .difficulties import check_identified
from .fit import Fit, fit_of
from .glm import glm_sums
from .linear.asking import Asked, ask_for
from .linear.binomial import BINOMIAL
from .linear.newton import has_risen, rounding, until_converged
from .linear.sums import along
from .results import Settings, show_fit, spec_of
from .scores import log_loss, reading, scored
from .state import NewtonState, solve

METHOD = "Firth's penalised likelihood: finite, and without the bias of first order; intervals and p-values are Wald's"


MEMORY = 6
"""Steps that are combined."""


@local(additive=True, stackable=True)
@by_blocks
def corrected_score(broadcast: dict[str, Array], party: Party, rng: Any) -> Array:
    """Add up the score at `beta`, corrected by leverages under the `inverse` information (d, d)."""
    X = party["X"]
    with np.errstate(all="ignore"):
        p = BINOMIAL.mean(X @ broadcast["beta"] + party["offset"])
        leverage = p * (1 - p) * ((X @ broadcast["inverse"]) * X).sum(-1)
        leverage = np.minimum(leverage, 1.0)  # it is, but for a record that was missing from the information
        return along(X, party.w * (party["y"] - p + leverage * (0.5 - p)))


@dataclass(frozen=True)
class FirthState:
    """A point, and the point to try next.

    Attributes
    ----------
    packed : dict of arrays
        A `NewtonState` at the best point so far; its `score` is the corrected one.
    points, steps : arrays of shape (k, d)
        The last points, the best one at the end, and the steps that their scores asked for.
    penalised : float
        Penalised log-likelihood.
    halved : int
        How often the last step was shortened.
    """

    packed: dict[str, Array]
    points: Array
    steps: Array
    penalised: float = -math.inf
    halved: int = 0

    @cached_property
    def newton(self) -> NewtonState:
        """Coefficients, information, deviance, and the sums of the target."""
        return NewtonState.unpacked(self.packed)

    @property
    def round(self) -> int:
        return self.newton.round

    @property
    def converged(self) -> bool:
        return self.newton.converged

    def of_columns(self, factors: Array) -> FirthState:
        """Return the state for columns that are `factors` times larger."""
        return FirthState(
            self.newton.of_columns(factors).packed(),
            self.points / factors,
            self.steps / factors,
            self.penalised + float(np.log(factors).sum()),
            self.halved,
        )


def show(federation: Federation, settings: Settings, state: FirthState) -> Outcome:
    """Show the fit."""
    return show_fit(firth_fit(federation, spec_of(federation, settings, "binomial"), state))


@program(
    "Firth's logistic regression: finite where classes separate (Firth 1993).",
    name="firth_regression",
    outcome=show,
    case=lambda: Case(load("breast_cancer").take(range(200)), {"formula": "malignant ~ mean_texture + mean_smoothness"}),
    **scored(reading("binomial", lambda state: state.newton.beta), log_loss, "log-loss"),
)
def firth(
    federation: Federation,
    *,
    formula: str,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 200,
    start: FirthState | None = None,
) -> Iterator[FirthState]:
    """Maximise Firth's penalised likelihood of a logistic regression; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    max_rounds : int
        Rounds before giving up; an iteration takes two.

    Yields
    ------
    FirthState
        After each iteration.

    Raises
    ------
    UnlawfulChannel (HR-211)
        The channel clips or adds noise, of which leverages make too much. Others as `regression`.

    Source
    ------
    Heinze & Schemper 2002.
    """
    if not is_exact(federation):
        raise UnlawfulChannel(
            "Firth's correction inverts the information, and a channel that clips or adds noise would spoil it.",
            remedy="Ask through a channel without noise or clip; or logistic_regression without firth.",
        )
    spec = design_of(schema_of(federation), formula, "binomial", offset=offset, weights=weights)
    asked, nothing = ask_for(federation, spec), np.zeros((0, spec.size))
    begun = start or FirthState(NewtonState.at_zero(spec.size).packed(), nothing, nothing)
    yield from until_converged(asked, begun, lambda state: _advance(state, asked, tol), max_rounds=max_rounds, tol=tol)


def _advance(state: FirthState, asked: Asked, tol: float) -> FirthState:
    """Judge the trial point by its sums: shorten the step that led there, or accept it and look for the next."""
    old = state.newton
    sums = glm_sums(asked, old, BINOMIAL)
    n, deviance, information = float(sums["n"]), float(sums["deviance"]), sums["information"]
    if old.round == 0:
        check_identified(information, n, asked.spec.names, residual=False)
    sign, log_det = np.linalg.slogdet(information)
    penalised = -deviance / 2 + log_det / 2 if sign > 0 else -math.inf
    judged = old.round > 0 and n == old.n
    if sign <= 0 or (judged and has_risen(-penalised, -state.penalised, old.length, asked.hidden)):
        if not len(state.steps):
            raise NotConverged("the information vanished.", remedy="Scale the columns: hr.stats.standardise(federation).")
        was_combined = len(state.steps) > 1
        halved = state.halved + (not was_combined)
        newton = replace(old, round=old.round + 1, trial=old.beta + state.steps[-1] * 0.5**halved)
        return replace(state, packed=newton.packed(), points=state.points[-1:], steps=state.steps[-1:], halved=halved)
    inverse = solve(information, np.eye(len(information)))
    score = _score(asked, old.trial, (inverse + inverse.T) / 2)
    step = inverse @ score
    length = math.sqrt(max(float(step @ score), 0.0))
    stalled = rounding(asked.hidden) > length > old.length and old.n > 0
    memory = MEMORY if length > old.length / 4 else 1  # steps that shrink fast need no help
    points, steps = np.vstack([state.points, old.trial])[-memory:], np.vstack([state.steps, step])[-memory:]
    reached = replace(
        old.reached(sums | {"score": score}),
        round=old.round + 2,
        trial=combined(points, steps, information),
        length=length,
        converged=length < tol or stalled,
    )
    return FirthState(reached.packed(), points, steps, penalised)


def combined(points: Array, steps: Array, metric: Array) -> Array:
    """Return where the last points (k, d) and steps (k, d) lead: Anderson's acceleration, lengths measured by `metric`."""
    if len(points) == 1:
        return points[-1] + steps[-1]
    root = np.linalg.cholesky((metric + metric.T) / 2).T
    moved, changed = np.diff(points, axis=0), np.diff(steps, axis=0)
    weights = np.linalg.lstsq(root @ changed.T, root @ steps[-1], rcond=1e-10)[0]
    found: Array = points[-1] + steps[-1] - weights @ (moved + changed)
    return found


def _score(asked: Asked, beta: Array, inverse: Array) -> Array:
    """Ask for the corrected score; a record's leverage is at most one."""

    def limits() -> dict[str, float]:
        return {"": max(asked.spec.limits or (1.0,)) * 1.5}

    bounds = asked.bounds(limits)
    score: Array = asked.total(corrected_score, {"beta": beta, "inverse": inverse}, bounds and bounds[""])
    return score


def firth_fit(federation: Federation, spec: Design, state: FirthState, asked_before: int = 0) -> Fit:
    """Turn the last state of `firth` into a fit."""
    return replace(fit_of(federation, spec, "binomial", state.newton, asked_before), method=METHOD)
