"""How unequally labels are spread over the parties.

    shares of the whole      q_l  = sum_k n_kl / n
    mean distance to it      1/K sum_k 1/2 sum_l |n_kl / n_k - q_l|

Releases : counts of levels, or the sum of the parties' shares; then, with q broadcast, the sum of distances and K.
State    : none.
Unit     : record or party, as the caller asks; both sums have bounds by themselves.

Parties are asked one by one: in the midst of a training they may keep states of different kinds, which cannot be stacked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.bound import Bounds, l1, linf
from hedgerow.core.events import Unit
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.core.whole import held
from hedgerow.data import complete_cases
from hedgerow.errors import SchemaInvalid


@dataclass(frozen=True)
class LabelSpread:
    """How far the labels of a party are from those of the whole.

    Attributes
    ----------
    shares : dict from level to float
        Of the whole.
    distance : float
        Mean over parties of the total variation distance, half the sum of absolute differences, between a party's shares
        and these: 0 where all are alike, 1 - 1/L where each of L equally frequent labels is with parties of its own.
    """

    shares: Mapping[str, float]
    distance: float


@local(additive=True, holds=True)
def label_counts(
    broadcast: None, party: Party, rng: Any, *, target: str, n_levels: int, bounds: Bounds | None = None
) -> np.ndarray:
    """Weighted number of records of each level, shape (L,)."""
    w = held(party.w, bounds)
    return np.stack([(w * (party[target] == level)).sum(-1) for level in range(n_levels)], axis=-1)


@travels
def label_shares(broadcast: None, party: Party, rng: Any, *, target: str, n_levels: int) -> np.ndarray:
    """Shares of the levels among a party's records, shape (L,)."""
    counts = label_counts(broadcast, party, rng, target=target, n_levels=n_levels)
    return counts / np.maximum(counts.sum(-1, keepdims=True), 1e-12)


@travels
def label_distance(shares: np.ndarray, party: Party, rng: Any, *, target: str, counted: bool) -> dict[str, np.ndarray]:
    """Total variation distance of a party's shares to those broadcast, and 1."""
    own = label_shares(None, party, rng, target=target, n_levels=len(shares))
    distance = np.abs(own - shares).sum(-1) / 2
    return {"distance": distance} | ({"parties": np.ones_like(distance)} if counted else {})


def label_spread(federation: Federation, *, unit: Unit = "record") -> LabelSpread:
    """Measure by two sums how unequally labels are spread over the parties.

    Parameters
    ----------
    unit : {"record", "party"}
        Whose presence noise hides. With "record" the shares of the whole are by records, and a record moves one count by
        its weight and one party's distance by at most 1; with "party" they are the mean of the parties' shares, of which
        one party adds at most l1(1).

    Releases
    --------
    Counts (or the sum of shares) of the levels, shape (L,); then the sum of distances, and where nothing is clipped or
    noised the number of parties.

    Notes
    -----
    Costs and random streams are as those of `hedgerow.learn.spread`. Noisy shares below zero are raised to it.
    """
    schema = federation.schema
    target = None if schema is None or schema.target is None else schema[schema.target]
    if target is None or target.kind not in ("category", "binary"):
        raise SchemaInvalid(
            f"the target {'is missing' if target is None else f'{target.name!r} is of kind {target.kind!r}'}.",
            remedy="Declare a category or a binary column as the target.",
        )
    federation = complete_cases(federation, [target.name], count=False)
    levels = tuple(target.levels) if target.kind == "category" else ("0", "1")
    heaviest, counted = schema.heaviest, federation.protection.exact
    bounds = {key: linf(1.0, unit) for key in (("distance", "parties") if counted else ("distance",))}
    ask, bound = label_shares, l1(1.0)
    if unit == "record":
        ask, bound = label_counts, None if heaviest is None else l1(heaviest, "record")
    total = np.maximum(federation.aside().sum(partial(ask, target=target.name, n_levels=len(levels)), bound=bound), 0.0)
    shares = total / total.sum() if total.sum() > 0 else np.full(len(levels), 1 / len(levels))
    found = federation.aside().sum(partial(label_distance, target=target.name, counted=counted), shares, bound=bounds)
    parties = float(found["parties"]) if counted else federation.expected_size
    distance = float(found["distance"]) / parties if parties > 0 else math.nan
    return LabelSpread(dict(zip(levels, shares.tolist(), strict=True)), distance)
