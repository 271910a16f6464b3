"""A regression of m completed copies at once: every round asks for the sums of all, each at its own coefficients."""

from __future__ import annotations

from functools import partial

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.federation import Federation
from hedgerow.errors import NotConverged, NotFinite, SettingsInvalid

from ..columns import schema_of
from ..design import Design, design_of
from ..glm import EVERYTHING
from ..glm import _advance as advanced
from ..linear.asking import WHOLE, Asked
from ..linear.losses import FamilyName, loss_of
from ..linear.reach import undeclared
from ..linear.sums import symmetric
from ..state import NewtonState, solve
from .chain import ColumnChain, copies_sums

ROUNDS = 50
TOL = 1e-8


def design_for(federation: Federation, chain: ColumnChain, formula: str, family: FamilyName) -> Design:
    """Read a formula against completed copies; nobody is asked.

    Raises
    ------
    SettingsInvalid (HR-511)
        A column of the formula may be missing, and is not in the chain.
    """
    schema = schema_of(federation)
    if family not in ("gaussian", "binomial", "poisson"):
        raise SettingsInvalid(f"family={family!r} is not pooled.", remedy='Give "gaussian", "binomial" or "poisson".')
    spec = design_of(chain.schema(schema), formula, family)
    inside = {column.name for column in chain.columns}
    if lost := [name for name in spec.schema.names if schema[name].optional and name not in inside]:
        raise SettingsInvalid(f"{lost[0]!r} may be missing, and is not in the chain.", remedy="Name it in columns=.")
    return spec


def analysed(federation: Federation, chain: ColumnChain, formula: str, family: FamilyName) -> tuple[Array, Array, float]:
    """Fit every copy by maximum likelihood: coefficients (copies, d), covariances (copies, d, d), and records."""
    asked = _asked(federation, design_for(federation, chain, formula, family))
    loss, spec = loss_of(family), asked.spec
    states = [NewtonState.at_zero(spec.size) for _ in range(chain.copies)]
    more = ("beyond",) if asked.bounded and asked.hidden and loss.log_link else ()
    keys = (*EVERYTHING, *(name for name in ("saturated", "pearson") if loss.has(name)), *more)
    settings = {"chain": chain, "spec": spec, "family": family, "keys": keys}
    while not all(state.converged for state in states):
        if states[0].round >= ROUNDS:
            raise NotConverged(f"after {ROUNDS} rounds a copy has not converged.", remedy="Take a shorter formula.", asked=True)
        beta = np.array([state.trial for state in states])
        broadcast = {"beta": beta, "centre": np.array([state.mean for state in states])}
        if asked.hidden and asked.bounded and loss.log_link:
            broadcast["reach"] = np.array(asked.reach(loss, list(beta)))
        ends = [
            asked.bounds_at(family, beta, keys, centre=float(end))
            for end in (broadcast["centre"].min(), broadcast["centre"].max())
        ]
        bounds = _wider(*ends)
        sums = asked.federation.sum(partial(copies_sums, **settings), broadcast, bound=bounds)
        sums["information"] = symmetric(sums["information"])
        if not all(np.isfinite(value).all() for value in sums.values()):
            raise NotFinite(
                f"a sum for {formula!r} is not finite in some copy.",
                remedy="Drawn numbers reach beyond declared ranges, where a logarithm may be undefined: give squeeze=True.",
                asked=True,
            )
        states = [
            state if state.converged else advanced(state, {key: value[i] for key, value in sums.items()}, asked, loss, TOL)
            for i, state in enumerate(states)
        ]
    wholes = [asked.outward(state) for state in states]
    n, d = wholes[0].n, spec.size
    scale = [state.deviance / (n - d) if loss.quadratic else 1.0 for state in wholes]
    inverses = [solve(state.information, np.eye(d)) for state in wholes]
    covariances = np.array([s * (one + one.T) / 2 for s, one in zip(scale, inverses, strict=True)])
    return np.array([state.beta for state in wholes]), covariances, n


def _wider(one: dict[str, Bound] | None, other: dict[str, Bound] | None) -> dict[str, Bound] | None:
    """Bounds that hold at both ends of the copies' means."""
    if one is None or other is None:
        return None
    return {key: max(bound, other[key], key=lambda found: found.radius) for key, bound in one.items()}


def _asked(federation: Federation, spec: Design) -> Asked:
    """A design of completed copies as its sums are asked for; parties prepare its rows at each question."""
    protection = federation.protection
    hidden = protection.hides_rows
    unit = spec.to_unit() if hidden else spec
    bounded = unit.limits is not None and unit.weight_limit is not None and unit.response_range is not None
    bounded = bounded and unit.offset_range is not None
    if hidden and not bounded and protection.largest is None:
        raise undeclared(spec, WHOLE)
    factors = np.array(unit.scales or np.ones(spec.size))
    return Asked(federation, unit, factors, hidden, False, bounded)
