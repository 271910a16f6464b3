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

from hedgerow import Federation, Party, linf, local
from hedgerow.stats.columns import heaviest


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


@local(additive=True, stackable=True)
def above(threshold: np.ndarray, party: Party, rng: np.random.Generator, *, column: str) -> dict[str, np.ndarray]:
    """Count the records above a threshold, and all records, by weight."""
    return {"above": (party.w * (party[column] > threshold)).sum(-1), "n": party.n}


def share(federation: Federation, *, column: str, threshold: float, start: ShareState | None = None) -> Iterator[ShareState]:
    """Ask which part of the records has more than `threshold` in `column`.

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
    name, weight = federation.schema[column].name, heaviest(federation.schema)
    bound = None if weight is None else linf(weight, unit="record")  # None: the range of the weights is not declared
    total = federation.sum(partial(above, column=name), np.array(threshold), bound=bound)
    yield ShareState(1, float(total["above"] / total["n"]), float(total["n"]))
