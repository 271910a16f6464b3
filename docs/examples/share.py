"""Share: which part of the records lies above a threshold.

    above, n  <- sum of w * (x > threshold), sum of w        sum
    share     <- above / n

Releases : above and n, once.
Unit     : record, which moves each of the two by at most its weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import hedgerow as hr


@dataclass(frozen=True)
class ShareState:
    """The answer.

    Attributes
    ----------
    share : float
        Between 0 and 1, noise aside.
    n : float
        Records, or the sum of their weights.
    """

    round: int
    share: float
    n: float


@hr.local(additive=True, stackable=True)
def above(threshold: np.ndarray, party: hr.Party, rng: np.random.Generator, *, column: str) -> dict[str, np.ndarray]:
    """Count the records above a threshold, and all records, by weight."""
    return {"above": (party.w * (party[column] > threshold)).sum(-1), "n": party.n}


def small() -> hr.Case:
    """A hundred records, on which the program is tested."""
    return hr.Case(hr.data.load("breast_cancer").take(range(100)), {"column": "mean_radius", "threshold": 15.0})


@hr.program("Which part of the records lies above a threshold.", case=small)
def share(federation: hr.Federation, *, column: str, threshold: float, start: ShareState | None = None) -> Iterator[ShareState]:
    """Ask which part of the records has more than `threshold` in `column`.

    Parameters
    ----------
    column : str
        Numbers, integers or a binary column.
    threshold : float
        In the column's unit.

    Yields
    ------
    ShareState
        Once.

    Raises
    ------
    MissingColumn (HR-403), UnboundedSum (HR-210)
        Before any party is asked.
    """
    if start is not None:
        return
    name, weight = federation.schema[column].name, federation.schema.heaviest
    bound = None if weight is None else hr.linf(weight, unit="record")  # None: the range of the weights is not declared
    total = federation.sum(partial(above, column=name), np.array(threshold), bound=bound)
    yield ShareState(1, float(total["above"] / total["n"]), float(total["n"]))
