"""A private centre: the mean of records of length one, released once with noise, from which records are then counted.

    x      <- record / |record|                       at the party
    m      <- (sum of x + noise) / B                  one sum; B is public
    record -> x - m, brought to length one            at the party from now on

What all records have in common tells no class from another, yet it makes up much of their length, and clipping and noise
are measured by length. Without it, the same noise hides less.

Releases : the sum, of shape (d,), once for each of `rounds`.
Unit     : record; l2(1), times the largest declared weight.
Source   : the normalisation by noisy means of Tramer & Boneh 2021, section 3.2, without variances, and with records of length
           one, so that the bound needs no clip.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.bound import Bounds
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import elementwise, local, travels
from hedgerow.core.whole import BITS, bound_in, whole
from hedgerow.data import Column, Schema
from hedgerow.errors import SettingsInvalid

from ..tensors import width
from .rows import FeatureReading, bound_of, of_length_one, reading, rows_of
from .steps import FeatureStep, Matrix

NAME = "centred"
"""The column that centring makes."""

AT_ONCE = 4096
"""Records whose numbers are held in float64 at once."""


@local(additive=True, holds=BITS)
def sum_of_directions(
    broadcast: None, party: Party, rng: Any, *, reads: FeatureReading, bounds: Bounds | None = None
) -> np.ndarray:
    """Sum of w x over records of length one, shape (d,)."""
    parts = [slice(start, start + AT_ONCE) for start in range(0, max(len(party.w), 1), AT_ONCE)]
    if bounds is not None:
        one = bound_in(bounds, "")
        held = (whole(party.w[part, None] * rows_of(party.columns, reads, part), one).sum(0) for part in parts)
        exact: np.ndarray = sum(held)
        return exact
    found: np.ndarray = sum(party.w[part] @ rows_of(party.columns, reads, part) for part in parts)
    return found


def centre(federation: Federation, batch_size: float, *, rounds: int = 1, sampling_rate: float | None = None) -> np.ndarray:
    """Estimate the mean of records of length one by noisy sums; shape (d,).

    Parameters
    ----------
    batch_size : float
        What a sum is divided by: public, such as the expected number of records that join.
    rounds : int
        Releases, whose mean is taken.
    sampling_rate : float, optional
        Each release asks about a sample, which every record joins by itself with this probability; all records otherwise.

    Raises
    ------
    SettingsInvalid (HR-511)
        Before any party is asked.
    """
    if rounds < 1 or not batch_size > 0:
        raise SettingsInvalid(f"a centre of {rounds} sums over {batch_size} records.", remedy="At least one of each.")
    ask = partial(sum_of_directions, reads=reading(federation.schema))
    total = np.zeros(math.prod(width(federation.schema)))
    for _ in range(rounds):
        cohort = federation if sampling_rate is None else federation.sample(records=sampling_rate)
        total += np.asarray(cohort.sum(ask, bound=bound_of(federation.schema)))
    return (total / (rounds * batch_size)).astype(np.float32)


@travels
@elementwise
def centred(columns: Any, *, reads: FeatureReading, mean: Matrix, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Make the column of records, less the mean, of length one; float16."""
    n = len(columns[reads.features[0]])
    made = np.empty((n, *shape), np.float16)
    for start in range(0, n, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        made[part] = of_length_one(rows_of(columns, reads, part) - mean.values[0]).reshape(-1, *shape)
    return {NAME: made}


def centring(schema: Schema, mean: np.ndarray) -> FeatureStep:
    """Return the step that counts records from a mean."""
    shape = width(schema)
    given = {"reads": reading(schema), "mean": Matrix.of(mean[None]), "shape": shape}
    return FeatureStep(centred, tuple(sorted(given.items())), Column(NAME, "number", shape=shape))
