"""Single records held to the bound that noise is scaled by, whatever a server says of settings and broadcast."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow import Gaussian
from hedgerow.core.bound import l2, linf
from hedgerow.core.engine import Outbox
from hedgerow.core.party import Parties
from hedgerow.core.question import Query, local
from hedgerow.core.randomness import Streams
from hedgerow.engines import InProcess
from hedgerow.engines.records import held_to_bounds
from helpers import norm_of_x, zeros

RNG = np.random.default_rng(5)
SIZES = [7, 3, 90]
X = RNG.uniform(-1, 1, (100, 2))


@local(additive=True, stackable=True)
def scaled_sums(broadcast, party, rng, *, by=1.0):
    """Sums that a server may scale."""
    x = party["x"] * by * broadcast
    return {"sum": (party.w[..., None] * x).sum(-2), "n": party.n}


def shield(unit="record"):
    return Shield(bounds={"sum": l2(np.sqrt(2.0), unit), "n": linf(1.0, unit)}, mechanism=Gaussian(1e-4, at="server"))


def total(query, *, bounded=True, x=X):
    engine = InProcess(threads=1, bounded=bounded).hosting(Parties(("a", "b", "c"), {"x": x}, SIZES))
    inbox = engine.exchange(Outbox(("a", "b", "c"), query))
    return query.shield.at_server(inbox.total, inbox.layout, np.random.default_rng(0).bytes, query.public)


def asked(broadcast=1.0, **settings):
    return Query(1, "sum", partial(scaled_sums, **settings), np.float64(broadcast), shield(), streams=Streams(1))


def test_records_within_their_bound_add_up_as_they_are():
    assert_allclose(total(asked()), [*X.sum(0), 100], atol=1e-2)
    assert_allclose(total(asked()), total(asked(), bounded=False), atol=1e-2)


@pytest.mark.parametrize("query", [asked(1e6), asked(by=1e6), asked(-1e300)], ids=["broadcast", "setting", "overflow"])
def test_no_record_adds_more_than_its_bound_whatever_is_asked(query):
    found = total(query)
    assert np.linalg.norm(found[:2] - total(query, x=np.vstack([X[:-1], -X[-1:]]))[:2]) <= 2 * np.sqrt(2.0) + 0.02
    assert np.linalg.norm(found[:2]) <= 100 * np.sqrt(2.0) + 0.02


def test_a_record_that_is_not_finite_counts_as_nothing_and_the_others_count():
    x = X.copy()
    x[0] = np.nan
    assert_allclose(total(asked(), x=x), [*X[1:].sum(0), 99], atol=1e-2)


def test_one_party_alone_is_held_to_bounds_as_well():
    query = replace(asked(1e6), shield=replace(shield(), mechanism=Gaussian(1e-4, at="server")))
    engine = InProcess(threads=1, bounded=True).hosting(Parties(("a",), {"x": X}, [100]))
    inbox = engine.exchange(Outbox(("a",), query))
    found = query.shield.at_server(inbox.total, inbox.layout, np.random.default_rng(0).bytes, query.public)
    assert_allclose(found[:2], (X / np.linalg.norm(X, axis=1, keepdims=True) * np.sqrt(2)).sum(0), atol=1e-2)


@pytest.mark.parametrize(
    "query",
    [replace(asked(), shield=shield(unit="party")), replace(asked(), shield=Shield()), replace(asked(), local=norm_of_x)],
    ids=["per party", "no noise", "no sum over records"],
)
def test_other_questions_are_asked_as_they_are(query):
    assert held_to_bounds(query) is query
    assert held_to_bounds(replace(query, local=partial(zeros, size=3))).local.func is zeros
