"""Records in blocks: a local function that adds up makes no copy of all its records at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce, wraps
from typing import Any

from hedgerow.core.arrays import Arrays
from hedgerow.core.columns import Rows
from hedgerow.core.party import Party

BLOCK = 4_096
"""Records of a block: some columns of so many numbers stay in a processor's cache, and take no new pages of memory."""


def by_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let an additive local function see its party's records block by block, and add up what it returns."""

    @wraps(function)
    def whole(broadcast: Any, party: Party, rng: Any, **settings: Any) -> Any:
        if party.w.shape[-1] <= BLOCK:
            return function(broadcast, party, rng, **settings)
        return reduce(added, (function(broadcast, block, rng, **settings) for block in blocks(party)))

    return whole


def blocks(party: Party, some: int = BLOCK) -> Iterator[Party]:
    """Split the records of a party, or of stacked parties, into blocks; of few records the party itself."""
    n, lead = party.w.shape[-1], (slice(None),) * (party.w.ndim - 1)
    if n <= some:
        yield party
        return
    for start in range(0, n, some):
        rows: Any = (*lead, slice(start, start + some))
        yield Party(party.id, Rows(party.columns, rows), party.w[rows])


def added(one: Arrays, other: Arrays) -> Any:
    """Add one contribution to another."""
    if isinstance(one, dict):
        return {key: value + other[key] for key, value in one.items()}  # type: ignore[index,call-overload]
    return one + other  # type: ignore[operator]
