"""Single records held to the bound that noise is scaled by, whatever a server says of settings and broadcast."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow import Gaussian
from hedgerow.core.bound import l2, linf
from hedgerow.core.party import Parties
from hedgerow.core.question import local
from hedgerow.core.randomness import Streams
from hedgerow.core.records import held_to_bounds
from hedgerow.core.release import Release
from hedgerow.engines import InProcess
from helpers import norm_of_x, outbox, with_question, zeros

RNG = np.random.default_rng(5)
SIZES = [7, 3, 90]
X = RNG.uniform(-1, 1, (100, 2))


@local(additive=True, stackable=True)
def scaled_sums(broadcast, party, rng, *, by=1.0):
    """Sums that a server may scale."""
    x = party["x"] * by * broadcast
    return {"sum": (party.w[..., None] * x).sum(-2), "n": party.n}


def noised(unit="record"):
    return Release(bounds={"sum": l2(np.sqrt(2.0), unit), "n": linf(1.0, unit)}, mechanism=Gaussian(1e-4, at="server"))


def total(box, *, held=None, x=X):
    engine = InProcess(threads=1).hosting(held or Parties(("a", "b", "c"), {"x": x}, SIZES))
    inbox = engine.exchange(box)
    return box.release.open(inbox.total, inbox.layout, np.random.default_rng(0).bytes, box.public)


def asked(broadcast=1.0, release=None, ids=("a", "b", "c"), **settings):
    ask = partial(scaled_sums, **settings)
    return outbox(ask, np.float64(broadcast), release or noised(), ids=ids, streams=Streams(1))


def test_records_within_their_bound_add_up_as_they_are():
    assert_allclose(total(asked()), [*X.sum(0), 100], atol=1e-2)


@pytest.mark.parametrize("box", [asked(1e6), asked(by=1e6), asked(-1e300)], ids=["broadcast", "setting", "overflow"])
def test_no_record_adds_more_than_its_bound_whatever_is_asked(box):
    found = total(box)
    assert np.linalg.norm(found[:2] - total(box, x=np.vstack([X[:-1], -X[-1:]]))[:2]) <= 2 * np.sqrt(2.0) + 0.02
    assert np.linalg.norm(found[:2]) <= 100 * np.sqrt(2.0) + 0.02


def test_a_record_that_is_not_finite_counts_as_nothing_and_the_others_count():
    x = X.copy()
    x[0] = np.nan
    assert_allclose(total(asked(), x=x), [*X[1:].sum(0), 99], atol=1e-2)


def test_one_party_alone_is_held_to_bounds_as_well():
    found = total(asked(1e6, ids=("a",)), held=Parties(("a",), {"x": X}, [100]))
    assert_allclose(found[:2], (X / np.linalg.norm(X, axis=1, keepdims=True) * np.sqrt(2)).sum(0), atol=1e-2)


@pytest.mark.parametrize(
    "box",
    [asked(release=noised("party")), asked(release=Release()), with_question(asked(), local=norm_of_x)],
    ids=["per party", "no noise", "no sum over records"],
)
def test_other_questions_are_asked_as_they_are(box):
    assert held_to_bounds(box.question, box.release) is box.question.local
    other = partial(zeros, size=3)
    assert held_to_bounds(with_question(box, local=other).question, box.release) is other
