"""States of programs that study files name, where a program's own state is not all there is to carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.stats import Design, Scaling
from hedgerow.stats.standard import scaling_of


def packed(state: Any) -> dict[str, Array]:
    """Return the numbers of a state as arrays; its round and its words are left out."""
    values = {item.name: getattr(state, item.name) for item in fields(state) if item.name != "round"}
    return {name: np.asarray(value) for name, value in values.items() if not isinstance(value, (str, tuple))}


def unpacked(kind: type[Any], round: int, values: Mapping[str, Array]) -> Any:
    """Undo `packed`."""
    return kind(round=round, **{name: value if value.ndim else value.item() for name, value in values.items()})


@dataclass(frozen=True)
class ScaledState:
    """A state of a program whose columns may be standardised.

    Attributes
    ----------
    packed : dict of arrays
        The program's own state.
    means, scales : arrays of shape (k,)
        What was subtracted, and divided by.
    names : str
        The standardised columns, one to a line; empty where there are none.
    """

    round: int
    packed: dict[str, Array]
    means: Array
    scales: Array
    names: str = ""

    @classmethod
    def of(cls, state: Any, scale: Scaling | None) -> ScaledState:
        """Put a program's own state and a scaling together."""
        known = scale or Scaling((), (), ())
        return cls(state.round, packed(state), np.array(known.means), np.array(known.scales), "\n".join(known.names))

    def own(self, kind: type[Any]) -> Any:
        """The program's own state."""
        return unpacked(kind, self.round, self.packed)

    @property
    def scaling(self) -> Scaling | None:
        """What standardised the columns, where they were."""
        names = tuple(self.names.split("\n")) if self.names else ()
        return Scaling(names, tuple(self.means.tolist()), tuple(self.scales.tolist())) if names else None

    @property
    def converged(self) -> bool:
        return bool(self.packed.get("converged", np.array(False)))


def scaling_for(
    federation: Federation, spec: Design, start: ScaledState | None, wanted: bool, *, target: bool
) -> Scaling | None:
    """Ask for what standardises the columns of a design, where that is wanted; a run that is continued knows it."""
    if start is not None or not wanted:
        return start.scaling if start else None
    return scaling_of(federation, spec, target=target)  # parties are told means and deviations, though not a hidden model
