"""A party that lies about how long its row is: what it sends counts as zero, and it is named."""

from fractions import Fraction

import ministation
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from ministation import CLINIC, at_stations, remote
from spread import scaled

import hedgerow as hr
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import Bound, l1, l2, linf
from hedgerow.core.engine import Inbox
from hedgerow.core.federation import inside
from hedgerow.engines.network import Network
from hedgerow.engines.overlong import without_overlong
from hedgerow.errors import ContributionInvalid
from hedgerow.privacy.grid import Block
from hedgerow.privacy.within import within
from hedgerow.wire.names import Names
from hedgerow.wire.values import pack, unpack
from helpers import outbox

WEIGHTS = np.array([3.0, 4.0])
HOMES = {"alpha": ("party 1", "party 2"), "beta": ("party 3",), "gamma": ("party 4", "party 5")}


@pytest.fixture(autouse=True)
def _names(monkeypatch):
    monkeypatch.setattr(ministation, "NAMES", Names(("hedgerow", "spread")))


def lying(rail, name, lie):
    """Let a station change what it says."""
    station = rail.up[name]
    honest = station.host.answer
    station.host.answer = lambda *parts: pack(lie(unpack(honest(*parts))))


def total(lie, record_views=False, mechanism=None, name="beta", homes=HOMES):
    """What is released, before noise, in units; and who was said to have sent too much."""
    held = hr.simulate(CLINIC, hr.data.iid(parties=5), seed=1, record_views=record_views)
    there, rail = at_stations(held, homes)
    named = []
    there.overlong = named.extend
    asked = remote(held, there)
    if record_views:
        asked = hr.engines.watch(asked)
    lying(rail, name, lie)
    found = asked.protect(clip=l2(2.0), mechanism=mechanism).sum(scaled, WEIGHTS)
    return found, named, asked


def times(factor):
    def lie(told):
        made = {key: None if told[key] is None else told[key] * factor for key in ("total", "rows")}
        return told | made

    return lie


honest = times(1)
FINE = hr.Gaussian(1e-7)
"""Noise that no test sees: releases are compared at 1e-3."""


@pytest.mark.parametrize("record_views", [False, True], ids=["total", "rows"])
@pytest.mark.parametrize("mechanism", [FINE, None], ids=["noise", "clip alone"])
def test_a_row_that_is_too_long_counts_as_zero_and_its_party_is_named(mechanism, record_views):
    all_five, nobody, _ = total(honest, record_views, mechanism=mechanism)
    assert nobody == []
    found, named, asked = total(times(1000), record_views, mechanism=mechanism)
    np.testing.assert_allclose(found, all_five * 4 / 5, atol=1e-3)  # every row has the length of the clip
    assert named == ["party 3"]
    if record_views:
        seen = {one.source: one.values for one in hr.engines.view(asked, "server") if one.kind == "row"}
        assert not seen["party 3"].any()
        assert seen["party 1"].any()


@pytest.mark.parametrize("factor", [2, -2, 2**40, -(2**62)])
def test_whatever_it_sends_the_others_rows_are_left_as_they_are(factor):
    expected, *_ = total(honest, mechanism=FINE)
    found, named, _ = total(times(factor), mechanism=FINE)
    np.testing.assert_allclose(found, expected * 4 / 5, atol=1e-3)
    assert named == ["party 3"]


def test_a_station_of_several_parties_is_held_to_all_their_bounds():
    expected, *_ = total(honest, mechanism=FINE)
    found, named, _ = total(times(3), mechanism=FINE, name="alpha")
    np.testing.assert_allclose(found, expected * 3 / 5, atol=1e-3)
    assert named == ["party 1", "party 2"]


def test_fractions_behind_noise_are_no_answer():
    """A sum in floating point would round the rows of the others, by more than noise allows for."""
    expected, *_ = total(honest, mechanism=FINE)
    codes = {}

    def lie(told):
        return told | {"total": told["total"] * 1.0}

    held = hr.simulate(CLINIC, hr.data.iid(parties=5), seed=1)
    there, rail = at_stations(held, HOMES)
    there.told = codes.update
    lying(rail, "beta", lie)
    found = remote(held, there).protect(clip=l2(2.0), mechanism=FINE).sum(scaled, WEIGHTS)
    np.testing.assert_allclose(found, expected * 4 / 5, atol=1e-3)
    assert codes == {"party 3": ContributionInvalid.code}


def test_a_twin_that_believes_every_row_is_caught(monkeypatch):
    monkeypatch.setattr(Network, "_held", lambda network, outbox, read: dict(read))
    found, named, _ = total(times(1000), mechanism=FINE)
    assert named == []
    assert np.linalg.norm(found) > 1000


# ---- in whole numbers -----------------------------------------------------------------------------------------------


def block(bound, step):
    return Block(slice(0, 4), bound, step, 1.0)


LENGTHS = {1: lambda row: sum(map(abs, row)), 2: lambda row: sum(v * v for v in row), np.inf: lambda row: max(map(abs, row))}


@given(
    row=some.lists(some.integers(-(2**63), 2**63 - 1) | some.integers(-5000, 5000), min_size=4, max_size=4),
    norm=some.sampled_from([1, 2, np.inf]),
    radius=some.sampled_from([1.0, 0.3, 4096.0, 2.0**30, 2.0**45]),
    parties=some.integers(1, 5),
)
def test_lengths_are_those_of_python_integers(row, norm, radius, parties):
    bound, step = Bound(norm, radius), 2.0**-3
    limit = parties * Fraction(radius) / Fraction(step)
    expected = LENGTHS[norm](row) <= limit ** (2 if norm == 2 else 1)
    assert within(np.array([row], np.int64), [block(bound, step)], parties).tolist() == [expected]


@pytest.mark.parametrize("radius", [64.0, 2.0**20, 2.0**34])
def test_a_step_too_many_is_seen(radius):
    row = np.array([[int(radius), 0, 0, 0]])
    for bound in (l1(radius), l2(radius), linf(radius)):
        assert within(row, [block(bound, 1.0)]).tolist() == [True]
        assert within(row + np.array([[1, 0, 0, 0]]), [block(bound, 1.0)]).tolist() == [False]
    assert within(row + np.array([[0, 1, 0, 0]]), [block(l2(radius), 1.0)]).tolist() == [False]


@given(some.integers(0, 2**32 - 1), some.sampled_from([1e-7, 1e-3, 0.3, 1.1]), some.sampled_from([1, 2, np.inf]))
def test_what_a_party_rounds_is_within_its_bound_to_the_last_step(seed, multiplier, norm):
    """Whatever a party contributes, in either precision, the server that looks at it finds it within the bound."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 200))
    rows = rng.normal(size=(1, d)) * 10.0 ** rng.integers(-3, 4)
    rows = rows.astype(rng.choice([np.float32, np.float64]))
    bound, layout = Bound(norm, 0.7), Layout((("", (d,)),))
    mechanism = (hr.Laplace if norm == 1 else hr.Gaussian)(multiplier)
    steps = mechanism.at_party(rows, bound, layout, lambda k: bytes)
    assert mechanism.within(steps, bound, layout).all()


def test_rows_that_cannot_be_judged_are_left():
    """Bounds per record, noise at the party, and sums whose shape nobody knows."""
    rows, layout = np.full((1, 2), 2**50), Layout((("", (2,)),))
    assert hr.Gaussian(1.0).within(rows, l2(1.0, unit="record"), layout).all()
    assert hr.Gaussian(1.0, at="party").within(rows, l2(1.0), layout).all()
    assert not hr.Gaussian(1.0).within(rows, l2(1.0), layout).any()
    nothing = Inbox(("party 1",))
    assert without_overlong(outbox(scaled), nothing) == (nothing, ())


def test_whose_rows_counted_as_zeros_stays_with_the_run():
    _, named, asked = total(times(100.0))
    assert named
    assert dict(inside(asked).run.overlong) == dict.fromkeys(named, 1)
