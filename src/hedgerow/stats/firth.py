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
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
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


def show(federation: Federation, settings: Settings, state: NewtonState) -> Outcome:
    """Show the fit."""
    return show_fit(firth_fit(federation, spec_of(federation, settings, "binomial"), state))


@program(
    "Firth's logistic regression: finite where classes separate (Firth 1993).",
    name="firth_regression",
    outcome=show,
    case=lambda: Case(load("breast_cancer").take(range(200)), {"formula": "malignant ~ mean_texture + mean_smoothness"}),
    **scored(reading("binomial"), log_loss, "log-loss"),
)
def firth(
    federation: Federation,
    *,
    formula: str,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 200,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximise Firth's penalised likelihood of a logistic regression; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    max_rounds : int
        Rounds before giving up; an iteration takes two.

    Yields
    ------
    NewtonState
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
    begun = start or replace(NewtonState.at_zero(spec.size), kept=_kept(nothing, nothing, -math.inf))
    yield from until_converged(asked, begun, lambda state: _advance(state, asked, tol), max_rounds=max_rounds, tol=tol)


def _kept(points: Array, steps: Array, penalised: float, halved: int = 0) -> dict[str, Array]:
    """What a state keeps.

    Parameters
    ----------
    points, steps : arrays of shape (k, d)
        The last points, the best one at the end, and the steps that their scores asked for.
    penalised : float
        Penalised log-likelihood.
    halved : int
        How often the last step was shortened.
    """
    return {"points": points, "steps": steps, "penalised": np.array(penalised), "halved": np.array(halved)}


def _advance(state: NewtonState, asked: Asked, tol: float) -> NewtonState:
    """Judge the trial point by its sums: shorten the step that led there, or accept it and look for the next."""
    sums, unit = glm_sums(asked, state, BINOMIAL), float(np.log(asked.factors).sum())
    points, steps = (state.kept[key] * asked.factors for key in ("points", "steps"))
    n, deviance, information = float(sums["n"]), float(sums["deviance"]), sums["information"]
    if state.round == 0:
        check_identified(information, n, asked.spec.names, residual=False)
    sign, log_det = np.linalg.slogdet(information)
    penalised, before = (-deviance / 2 + log_det / 2 if sign > 0 else -math.inf), float(state.kept["penalised"]) - unit
    judged = state.round > 0 and n == state.n
    if sign <= 0 or (judged and has_risen(-penalised, -before, state.length, asked.hidden)):
        if not len(steps):
            raise NotConverged("the information vanished.", remedy="Scale the columns: hr.stats.standardise(federation).")
        was_combined = len(steps) > 1
        halved = int(state.kept["halved"]) + (not was_combined)
        last = {key: state.kept[key][-1:] for key in ("points", "steps")}
        kept = state.kept | last | {"halved": np.array(halved)}
        return replace(state, round=state.round + 1, trial=state.beta + steps[-1] * 0.5**halved, kept=kept)
    inverse = solve(information, np.eye(len(information)))
    score = _score(asked, state.trial, (inverse + inverse.T) / 2)
    step = inverse @ score
    length = math.sqrt(max(float(step @ score), 0.0))
    stalled = rounding(asked.hidden) > length > state.length and state.n > 0
    memory = MEMORY if length > state.length / 4 else 1  # steps that shrink fast need no help
    points, steps = np.vstack([points, state.trial])[-memory:], np.vstack([steps, step])[-memory:]
    return replace(
        state.reached(sums | {"score": score}),
        round=state.round + 2,
        trial=combined(points, steps, information),
        length=length,
        converged=length < tol or stalled,
        kept=_kept(points / asked.factors, steps / asked.factors, penalised + unit),
    )


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


def firth_fit(federation: Federation, spec: Design, state: NewtonState, asked_before: int = 0) -> Fit:
    """Turn the last state of `firth` into a fit."""
    return replace(fit_of(federation, spec, "binomial", state, asked_before), method=METHOD)
