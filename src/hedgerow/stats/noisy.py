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
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, describe
from hedgerow.core.federation import Federation
from hedgerow.errors import HedgerowWarning, UnboundedSum
from hedgerow.privacy.level import noise_level

from .design import Design, design
from .families import FAMILIES, FamilyName
from .state import NewtonState, solve

BOUNDED = {"binomial": ("score", "information", "n"), "gaussian": ("score", "information", "n", "deviance")}


def noisy_newton(
    federation: Federation,
    spec: Design,
    ask: Any,
    family: FamilyName,
    rounds: int,
    start: NewtonState | None,
) -> Iterator[NewtonState]:
    """Yield a state for each round; `beta` is where the round's step led, the sums are those before it.

    Parameters
    ----------
    spec : Design
        Asked with each column divided by its limit, so that noise is in proportion to every column; states are in the
        columns' own units.
    ask : callable
        `score_and_information` with its family.
    """
    refuse_unbounded(family)
    unit = spec.to_unit()
    factors = np.array(unit.scales or np.ones(spec.size)) / np.array(spec.scales or np.ones(spec.size))
    asked, bounds = federation.prepare(design, spec=unit), FAMILIES[family].bounds(unit)
    _say_what_is_lost(federation, unit, bounds)
    rounds = 1 if family == "gaussian" else rounds
    state = start.of_columns(1 / factors) if start else NewtonState.at_zero(spec.size)
    while state.round < rounds:
        broadcast = {"beta": state.beta, "centre": np.array(0.0)}
        sums = asked.sum(partial(ask, keys=BOUNDED[family]), broadcast, bound=bounds)
        noise = noise_level(asked, bounds, "information", spec.size**2)
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
        yield state.of_columns(factors)


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


def _say_what_is_lost(federation: Federation, spec: Design, bounds: Bounds | None) -> None:
    """Refuse noise without bounds, naming the columns; warn of a clip, which shortens parties and not errors."""
    clip = federation.protection.clip
    if clip is not None:
        warnings.warn(
            f"a clip of {describe(clip)} shortens the sums of parties with many records or large values: the "
            "estimates, and n, are those of the shortened parties.",
            HedgerowWarning,
            stacklevel=3,
        )
    elif bounds is None:
        open_ended = [
            name for name in spec.reads if spec.schema[name].kind != "category" and spec.schema.absolute(name) is None
        ]
        raise UnboundedSum(
            f"{', '.join(open_ended) or spec.formula} declares no range, so the sums of {spec.formula!r} have no bound and the "
            "noise no scale.",
            remedy="Declare it: [data] ranges = { age = [18, 90] } in a study, table.declare(age=(18, 90)) in Python.",
        )


def raised(information: Array, floor: float) -> Array:
    """Return the symmetric part with its eigenvalues raised to `floor`, or to 1e-12 of the largest."""
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    least = max(floor, 1e-12 * abs(values).max(), np.finfo(float).tiny)
    lifted: Array = (vectors * np.maximum(values, least)) @ vectors.T
    return lifted
