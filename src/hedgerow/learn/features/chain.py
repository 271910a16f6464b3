"""Features: what a module reads, as steps from a table's columns to its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.data import Schema

from .centre import centring
from .principal import Basis, projection
from .scattering import scattering
from .steps import FeatureStep
from .straight import straightening

if TYPE_CHECKING:
    from .training import FeatureState


@dataclass(frozen=True)
class Features:
    """What a module reads: steps from a table's columns to its input.

    Parameters
    ----------
    middle : array of shape (d,), optional
    basis : Basis, optional
    """

    straighten: bool = False
    scatter: bool = False
    middle: np.ndarray | None = None
    basis: Basis | None = None
    length: float = 1.0

    @classmethod
    def of(cls, state: FeatureState, *, straighten: bool, scatter: bool, length: float) -> Features:
        """Those of a state."""
        middle = state.middle if state.middle.size else None
        basis = Basis(state.vectors, state.values) if state.vectors.size else None
        return cls(straighten, scatter, middle, basis, length)

    def steps(self, schema: Schema) -> tuple[FeatureStep, ...]:
        """The steps, in their order, for tables of a schema."""
        found: list[FeatureStep] = []

        def then(step: FeatureStep) -> None:
            nonlocal schema
            found.append(step)
            schema = step.schema(schema)

        if self.straighten:
            then(straightening(schema))
        if self.scatter:
            then(scattering(schema))
        if self.middle is not None:
            then(centring(schema, self.middle))
        if self.basis is not None:
            then(projection(schema, self.basis, length=self.length))
        return tuple(found)

    def at_parties(self, federation: Federation) -> Federation:
        """The federation whose parties make the features."""
        for step in self.steps(federation.schema):
            federation = step.at_parties(federation)
        return federation
