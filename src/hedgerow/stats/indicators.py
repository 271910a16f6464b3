"""Indicators of missing values: `missing(x)` is noted at each party, before records that lack a value are left out.

A model of `missing(x)` keeps the records that lack x, unless it reads x besides. What is noted is a function of one record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.question import elementwise, minds_missing, travels
from hedgerow.data import Column, complete_cases

from .design import Design
from .expressions import indicator

if TYPE_CHECKING:
    from .survival.design import SurvivalDesign


@travels
@elementwise
@minds_missing
def note_missing(columns: Mapping[str, Array], *, read: tuple[Column, ...]) -> dict[str, Array]:
    """Prepare columns named `missing(x)` of ones and zeros."""
    return {indicator(one.name): one.lacks(np.asarray(columns[one.name])).astype(np.float64) for one in read}


def cases_of_model(federation: Federation, spec: Design | SurvivalDesign, *, count: bool = True) -> Federation:
    """Return the federation without the records that lack a value that a model reads, and with the indicators that it has.

    Releases
    --------
    As `hedgerow.data.complete_cases`.
    """
    return with_indicators(
        complete_cases(federation, spec.valued, count=count), spec if isinstance(spec, Design) else spec.rows
    )


def with_indicators(federation: Federation, *specs: Design) -> Federation:
    """Return the federation with the indicators of missing values that designs have; itself where they have none."""
    noted = {name: spec.schema[name] for spec in specs for name in spec.indicated}
    return federation.prepare(note_missing, read=tuple(noted.values())) if noted else federation
