"""Made-up patients with every kind of column, and federations of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tree_patients import SCHEMA, patients

from hedgerow.core import Federation
from hedgerow.data import Partition, Schema, Table, iid
from hedgerow.engines import InProcess, simulate


@pytest.fixture
def table() -> Table:
    return patients()


@pytest.fixture(scope="session")
def weighted_schema() -> Schema:
    """The patients' schema with weights up to 10, in the column `dose`."""
    return SCHEMA.replace(replace(SCHEMA["dose"], role="weight"))


@pytest.fixture
def federate() -> Callable[..., Federation]:
    """Make a federation of eight parties of unequal size: `federate(table, engine)`."""

    def make(table: Table, engine: Any = None, seed: int = 3) -> Federation:
        whole = iid(parties=8)(table, 1)
        order, cuts = np.concatenate(whole.indices), [20, 55, 100, 160, 210, 270, 330]
        uneven: Partition = replace(whole, indices=tuple(np.split(order, cuts)))
        return simulate(table, uneven, seed=seed, engine=engine or InProcess())

    return make
