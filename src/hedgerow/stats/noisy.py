"""Newton's method on noisy sums: a fixed number of rounds, and an information that stays positive definite.

Only score, information and n are asked for, which have bounds by declared ranges. A linear regression asks once, at
coefficients of zero, where these are X'y and X'X, and for y'y. Noise can make an information indefinite or a direction
of it far too small; so its eigenvalues are raised to the size of the noise, which shortens steps along directions of
which the release says nothing.

Source : the floor follows Wang 2018 (UAI), AdaSSP, in spirit. Differs: eigenvalues are raised instead of a ridge added.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import describe
from hedgerow.core.federation import Federation
from hedgerow.errors import HedgerowWarning, UnboundedSum
from hedgerow.privacy.level import noise_level

from .design import Design
from .linear.asking import ask_for
from .linear.losses import FamilyName, loss_of
from .state import NewtonState, solve

BOUNDED = {"binomial": ("score", "information", "n"), "gaussian": ("score", "information", "n", "deviance")}


def noisy_newton(
    federation: Federation, spec: Design, family: FamilyName, rounds: int, start: NewtonState | None
) -> Iterator[NewtonState]:
    """Yield a state for each round; `beta` is where the round's step led, the sums are those before it.

    Parameters
    ----------
    spec : Design
        Asked with each column divided by its limit, so that noise is in proportion to every column; states are in the
        columns' own units.
    """
    refuse_unbounded(family)
    _warn_of_clip(federation)
    asked, keys = ask_for(federation, spec, scaled=True), BOUNDED[family]
    rounds = 1 if loss_of(family).quadratic else rounds
    state = asked.inward(start or NewtonState.at_zero(spec.size))
    while state.round < rounds:
        bounds = asked.bounds_at(family, state.beta, keys, slack=1.0)
        sums = asked.sums(family, state.beta, keys, slack=1.0)
        noise = noise_level(asked.federation, bounds, "information", spec.size**2)
        information = raised(sums["information"], noise * math.sqrt(2 * spec.size))
        step = solve(information, sums["score"])
        deviance = float(sums["deviance"] - 2 * step @ sums["score"] + step @ information @ step) if "deviance" in sums else 0.0
        beta = state.beta + step
        state = replace(
            state,
            round=state.round + 1,
            beta=beta,
            trial=beta,
            score=sums["score"],
            information=information,
            deviance=deviance,
            n=float(sums["n"]),
            length=math.sqrt(step @ sums["score"]),
            converged=state.round + 1 == rounds,
        )
        yield asked.outward(state)


def refuse_unbounded(family: str) -> None:
    """Refuse noise or a clip for a family whose sums have no bound that holds at every coefficient.

    Raises
    ------
    UnboundedSum (HR-210)
    """
    if family not in BOUNDED:
        raise UnboundedSum(
            f"the score of {family} regression has no bound that holds at every coefficient, so noise has no scale and a "
            "clip no meaning.",
            remedy="Ask through a channel without noise or clip; or compare the target, I(visits > 0), for a logistic one.",
        )


def _warn_of_clip(federation: Federation) -> None:
    """Say that a clip shortens parties and not errors."""
    clip = federation.protection.clip
    if clip is not None:
        warnings.warn(
            f"a clip of {describe(clip)} shortens the sums of parties with many records or large values: the "
            "estimates, and n, are those of the shortened parties.",
            HedgerowWarning,
            stacklevel=3,
        )


def raised(information: Array, floor: float) -> Array:
    """Return the symmetric part with its eigenvalues raised to `floor`, or to 1e-12 of the largest."""
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    least = max(floor, 1e-12 * abs(values).max(), np.finfo(float).tiny)
    lifted: Array = (vectors * np.maximum(values, least)) @ vectors.T
    return lifted
