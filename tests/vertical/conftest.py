"""A town and a tax office that know different things about some of the same people."""

import pytest
from tables_apart import tables

import hedgerow as hr
from hedgerow.vertical import X25519


@pytest.fixture
def two():
    """The two tables, and what they have in common."""
    return tables()


@pytest.fixture
def aligned(two):
    """Both parties behind one handle."""
    return hr.simulate(two[0], on="nin", seed=0).align(on="nin", by=X25519(least=10))
