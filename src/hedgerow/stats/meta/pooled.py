"""The pooled fit beside a meta-analysis: an intercept for every site, or a baseline hazard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation

from ..state import NewtonState
from ..survival.cox import cox_newton
from .site_effects import within_sites_newton

KEPT = "kept "


def packed(state: NewtonState) -> dict[str, Array]:
    """A state's fields as arrays."""
    found = {one.name: np.asarray(getattr(state, one.name)) for one in fields(state) if one.name != "kept"}
    return found | {KEPT + key: np.asarray(value) for key, value in state.kept.items()}


def unpacked(found: Mapping[str, Array]) -> NewtonState:
    """The state of which these are the fields."""
    kept = {key.removeprefix(KEPT): value for key, value in found.items() if key.startswith(KEPT)}
    plain: dict[str, Any] = {key: value for key, value in found.items() if not key.startswith(KEPT)}
    plain = {key: value if np.ndim(value) else np.asarray(value).item() for key, value in plain.items()}
    return NewtonState(**plain, kept=kept)


def advance_pooled(federation: Federation, given: Mapping[str, Any], before: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Go on with the pooled fit of a meta-analysis' settings, until it has converged."""
    start = unpacked(before) if before else None
    if start is not None and start.converged:
        return
    common = {key: given[key] for key in ("formula", "offset", "most")}
    if given["family"] == "cox":
        states = cox_newton(federation, **common, **{key: given[key] for key in ("time", "event", "ties")}, start=start)
    else:
        states = within_sites_newton(federation, **common, family=given["family"], start=start)
    for state in states:
        yield packed(state)
        if state.converged:  # what a Cox regression asks besides is of no use here
            return
