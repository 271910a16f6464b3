"""Coins: which record each of many models is trained on, decided by the record's own values, at its party.

    key     a number in [0, 1) of all values of a record
    in      a number in [0, 1) of key and model, below the share

The coins of a record are independent of each other, and of those of other records; equal records share theirs. Whoever knows a
record knows its coins, as an attacker does who draws the records of shadow models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import PRESENT
from hedgerow.core.question import elementwise, travels
from hedgerow.data import Column
from hedgerow.learn.queries.inputs import buckets

KEY = "key of a record's coins"
"""The column from which coins follow."""


@travels
@elementwise
def keyed(columns: Mapping[str, Array], *, of: tuple[str, ...]) -> dict[str, Array]:
    """Prepare the key of each record from all numbers of some columns."""
    values = [np.asarray(columns[name]) for name in of]
    rows = [value.reshape(len(value), -1) for value in values]
    return {KEY: buckets([np.asarray(row[:, i], float) for row in rows for i in range(row.shape[1])])}


@travels
@elementwise
def by_coin(columns: Mapping[str, Array], *, model: int, share: float) -> dict[str, Array]:
    """Leave out the records that a model is not trained on."""
    kept = coins(np.asarray(columns[KEY]), model, share)
    return {PRESENT: kept & np.asarray(columns[PRESENT]) if PRESENT in columns else kept}


def coins(keys: Array, model: int, share: float) -> Array:
    """Which records of these keys (n,) a model is trained on: booleans (n,)."""
    return np.asarray(buckets([keys, np.full(len(keys), float(model + 1))]) < share)


def with_keys(federation: Federation, names: Sequence[str]) -> Federation:
    """The federation whose parties prepare the keys of their records; nothing leaves."""
    return federation.prepare(keyed, declares=(Column(KEY, "number", low=0.0, high=1.0, role="ignore"),), of=tuple(names))
