"""Verified shares that are simulated: what they refuse and what they add up is what the protocol itself does."""

import dataclasses

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.attacks import Liars, ScaledRows
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import SLACK
from hedgerow.core.engine import Inbox
from hedgerow.core.federation import inside
from hedgerow.core.release import Release
from hedgerow.crypto.field_encoding import field_encoding_for
from hedgerow.crypto.unproved_rows import fits, without_unproved
from hedgerow.engines import Acting, InProcess
from hedgerow.errors import RoundRefused

LAYOUT = Layout.of({"update": np.zeros(4)})


def encoding(bound, n=5, **more):
    return field_encoding_for(Release(clip=bound), LAYOUT, parties=n, aggregators=2, **more)


def inbox(rows, **more):
    return Inbox(tuple(f"party {i}" for i in range(len(rows))), LAYOUT, rows.sum(0), rows, **more)


@pytest.mark.parametrize("bound", [hr.l2(2.0), hr.l1(2.0), hr.linf(2.0)])
def test_rows_at_the_bound_pass_and_rows_beyond_it_are_in_no_total(bound):
    rng = np.random.default_rng(0)
    rows = bound.clip(100 * rng.normal(size=(5, 4)))
    forged = rows.copy()
    forged[1] *= 1000
    forged[3] = np.nan
    one = encoding(bound)
    assert fits(forged, one).tolist() == [True, False, True, False, True]
    found = without_unproved(inbox(forged), one, 3)
    assert found.answered == ("party 0", "party 2", "party 4")
    assert found.refused == 2
    assert found.rows is None
    np.testing.assert_allclose(found.total, rows[[0, 2, 4]].sum(0), atol=1e-4)


def test_a_row_just_beyond_the_bound_is_refused_and_one_that_rounding_made_longer_is_not():
    one = encoding(hr.l2(1.0))
    rows = np.array([[1.0, 0, 0, 0], [1.0 + 2 * SLACK, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], [0.6, 0.8, 0, 0]])
    assert fits(rows, one).tolist() == [True, False, True, True]


def test_rows_that_an_engine_found_too_long_are_refused_by_name_to_nobody():
    rows = np.ones((4, 4)) / 4
    found = without_unproved(inbox(rows, overlong=("party 2",)), encoding(hr.l2(1.0)), 3)
    assert (found.refused, found.overlong) == (1, ())
    assert "party 2" not in found.answered


def test_too_few_rows_that_are_left_make_no_total():
    rows = np.eye(4) * [[1], [1000], [1000], [1]]
    with pytest.raises(RoundRefused, match=r"2 of 4 rows were refused.*2 are left, 3 are needed"):
        without_unproved(inbox(rows), encoding(hr.l2(1.0)), 3)


def update(broadcast, party, rng):
    """A direction of the party's own."""
    return np.tanh(party["image"].reshape(len(party.w), -1).astype(float).sum(0) / 100)


CHANNELS = {
    "l2": {"clip": hr.l2(1.0)},
    "l1": {"clip": hr.l1(3.0)},
    "noise at aggregators": {"clip": hr.l2(1.0), "mechanism": hr.Gaussian(0.1, at="aggregators")},
    "noise at the server": {"clip": hr.l2(1.0), "mechanism": hr.Gaussian(0.1)},
}


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("factor", [None, 1000.0, -1000.0, 1.5, 0.3])
def test_a_simulated_total_has_the_bits_of_the_protocol(name, factor):
    acts = None if factor is None else Acting(Liars(("party 1", "party 4"), (ScaledRows(factor, kind="forge"),)))
    table = hr.data.load("digits").take(range(60))
    totals, refused = [], []
    for mode in ("real", "simulated"):
        federation = hr.simulate(table, hr.data.iid(6), seed=0, engine=InProcess(threads=1, acts=acts))
        shares = hr.AdditiveShares(aggregators=2, verified=True, mode=mode)
        totals.append(federation.protect(**CHANNELS[name], aggregation=shares).sum(update))
        refused.append(sum(one.refused for one in inside(federation).run.judged))
    np.testing.assert_array_equal(*totals)
    assert refused == ([0, 0] if factor in (None, 0.3) else [2, 2])


def test_the_twin_that_refuses_nobody_is_caught(monkeypatch):
    monkeypatch.setattr("hedgerow.crypto.unproved_rows.fits", lambda rows, encoding: np.ones(len(rows), bool))
    rows = np.eye(4) * [[1], [1000], [1], [1]]
    free = dataclasses.replace(encoding(hr.l2(1.0)), heeds_range=False)
    assert without_unproved(inbox(rows), free, 3).total[1] > 999
