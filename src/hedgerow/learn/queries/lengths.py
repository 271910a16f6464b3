"""How long a record's gradient can be, from which bounds and owners' noise follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hedgerow.core.bound import Bound, l1, l2
from hedgerow.core.federation import Federation
from hedgerow.errors import UnboundedSum

from .answers import Answers, Neighbours, NoiseLaw
from .inputs import Inputs
from .losses import QueryLoss

if TYPE_CHECKING:
    from hedgerow.data import Schema


def length_of(loss: QueryLoss, spec: Inputs, box: float, norm: int) -> float:
    """Largest l1- or l2-length of one record's gradient, the thesis's Xi.

    A margin x'theta reaches at most |x|_1 box, and a gradient is the slope there times x.
    """
    return loss.steepest(spec.length(1) * box) * spec.length(norm)


def longest_of(schema: Schema | None, loss: QueryLoss, spec: Inputs, box: float, norm: int) -> float | None:
    """The same for a record of the largest declared weight; None where weights declare no range."""
    heaviest = 1.0 if schema is None else schema.heaviest
    return None if heaviest is None else heaviest * length_of(loss, spec, box, norm)


def bound_of(federation: Federation, loss: QueryLoss, spec: Inputs, box: float, times: int = 1) -> Bound | None:
    """The bound of one record's gradient, in the norm of the channel's noise; None where weights declare no range.

    Parameters
    ----------
    times : int
        So many gradients are asked at once.
    """
    norm = 1 if federation.protection.law in ("laplace", "geometric") else 2
    longest = longest_of(federation.schema, loss, spec, box, norm)
    if longest is None:
        return None
    return l1(times * longest, unit="record") if norm == 1 else l2(times**0.5 * longest, unit="record")


def answers_for(
    schema: Schema | None,
    epsilons: Mapping[str, float],
    horizon: int,
    loss: QueryLoss,
    spec: Inputs,
    box: float,
    *,
    law: NoiseLaw = "laplace",
    neighbours: Neighbours = "replace-one",
    delta: float = 0.0,
    repeats: int = 1,
    weights: Mapping[str, float] | None = None,
) -> Answers:
    """Plan the owners' answers to `gradient_queries`.

    Parameters
    ----------
    epsilons : mapping from owner to float
        Over the horizon.
    horizon : int
        Questions on which the owners agree.
    box : float
        That of the steps.
    law, neighbours, delta, repeats, weights
        As of `Answers.of`.

    Raises
    ------
    UnboundedSum (HR-210)
        Record weights declare no range.
    BudgetInvalid (HR-214)
        An epsilon, a horizon or a delta that is out of its range.
    SettingsInvalid (HR-511)
        A weight outside (0, 1], of a stranger, or missing.
    """
    radius = longest_of(schema, loss, spec, box, 1 if law == "laplace" else 2)
    if radius is None:
        raise UnboundedSum("record weights declare no range, so a record's gradient has no bound.", remedy="Declare it.")
    return Answers.of(
        epsilons, horizon, radius=radius, law=law, neighbours=neighbours, delta=delta, repeats=repeats, weights=weights
    )
