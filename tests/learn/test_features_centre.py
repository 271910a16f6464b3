"""Straightening moves an image by what it shows alone; the private centre is a bounded, charged mean."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.core.federation import inside
from hedgerow.core.party import Party
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.features import centre, centring, straighten, straightening
from hedgerow.learn.features.centre import NAME, sum_of_directions
from hedgerow.learn.features.rows import reading
from hedgerow.privacy import Gaussian

SCHEMA = hr.data.Schema((hr.data.Column("x", "number", shape=(5,)), hr.data.Column("y", "binary", role="target")))


def records(n=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 5)) + 2.0


def federation(x, parties=3):
    table = hr.data.Table(SCHEMA.admit({"x": x, "y": np.arange(len(x)) % 2.0}), SCHEMA)
    return hr.simulate(table, hr.data.iid(parties=parties), seed=0)


def total(x, w=None):
    party = Party("one", {"x": x, "y": np.zeros(len(x))}, np.ones(len(x)) if w is None else w)
    return sum_of_directions(None, party, None, reads=reading(SCHEMA))


def moments(x):
    """Centre (v, u) of mass of one image, and covariance of u and v over the variance of v."""
    at, share = np.arange(x.shape[0]) - (x.shape[0] - 1) / 2, x / x.sum()
    v, u = (share.sum(1) * at).sum(), (share.sum(0) * at).sum()
    dv, du = at[:, None] - v, at[None] - u
    return v, u, (share * dv * du).sum() / (share * dv**2).sum()


# ---- straightening ------------------------------------------------------------------------------------------------------
def bar(slope=0.0, at=(0.0, 0.0), side=28):
    """A blurred bar through a point, leaning by so many pixels to the right for each pixel down."""
    v, u = np.mgrid[:side, :side] - (side - 1) / 2
    inside = np.exp(-(((v - at[0]) / 5) ** 4)) * np.exp(-0.5 * (u - at[1] - slope * (v - at[0])) ** 2)
    return torch.from_numpy(inside)


@pytest.mark.parametrize(("slope", "at"), [(0.5, (0, 0)), (-0.4, (2, -3)), (0.0, (1.5, 2.5))])
def test_a_leaning_bar_stands_upright_in_the_middle(slope, at):
    found = straighten(bar(slope, at)[None])[0].numpy()
    v, u, slant = moments(found)
    assert abs(v) < 0.05
    assert abs(u) < 0.05
    assert abs(slant) < 0.03
    assert np.abs(found - bar().numpy()).max() < 0.15  # bilinear weights blur a little


def test_an_upright_image_in_the_middle_stays_as_it_is():
    torch.testing.assert_close(straighten(bar()[None])[0], bar(), atol=1e-6, rtol=0)


def test_an_empty_image_stays_empty_and_a_single_pixel_moves_to_the_middle():
    dot = torch.zeros(2, 9, 9)
    dot[1, 2, 7] = 1.0
    found = straighten(dot)
    assert not found[0].any()
    assert int(found[1].argmax()) == 4 * 9 + 4


def test_a_record_is_straightened_alone_as_among_others():
    many = torch.stack([bar(s, (a, -a)) for s, a in [(0.1, 0), (0.3, 1), (-0.2, 2)]])
    for i in range(3):
        torch.testing.assert_close(straighten(many)[i], straighten(many[i : i + 1])[0])


def test_columns_that_are_no_images_cannot_be_straightened():
    with pytest.raises(SettingsInvalid, match="one column of images"):
        straightening(SCHEMA)


# ---- the centre ---------------------------------------------------------------------------------------------------------
def test_without_noise_it_is_the_mean_of_records_of_length_one():
    x = records()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(centre(federation(x), 60), unit.mean(0), rtol=1e-6)


def test_centred_records_have_length_one_and_point_away_from_the_centre():
    x = records()
    fed = federation(x)
    mean = centre(fed, 60)
    ready = centring(fed.schema, mean).at_parties(fed)
    held = hr.engines.records(ready).prepared(inside(ready).view, together=True).columns
    away = held["x"] / np.linalg.norm(held["x"], axis=1, keepdims=True) - mean
    np.testing.assert_allclose(held[NAME], away / np.linalg.norm(away, axis=1, keepdims=True), atol=1e-3)  # float16
    assert ready.schema.features == (NAME,)


@given(st.integers(0, 19), st.lists(st.floats(-1e200, 1e200), min_size=5, max_size=5), st.floats(0, 1))
def test_a_record_moves_the_sum_by_at_most_its_weight(i, values, weight):
    x, w = records(20), np.ones(20)
    x[i], w[i] = values, weight
    moved = total(x, w) - total(np.delete(x, i, 0), np.delete(w, i))
    assert np.linalg.norm(moved) <= weight * (1 + 1e-9) + 1e-12  # l2(heaviest, unit="record")


def test_a_record_moves_the_sum_by_its_whole_weight():
    assert np.linalg.norm(total(records(1), np.array([0.25]))) == pytest.approx(0.25)


def test_the_divisor_is_public_so_a_record_more_changes_the_sum_alone():
    """A mean over the records that came would tell how many came."""
    x = records()
    few, all_of_them = centre(federation(x[:59]), 60), centre(federation(x), 60)
    np.testing.assert_allclose(all_of_them - few, x[59] / np.linalg.norm(x[59]) / 60, atol=1e-6)


def test_each_release_is_charged_and_a_party_without_sampled_records_adds_zeros():
    fed = federation(records()).protect(mechanism=Gaussian(2.0))
    centre(fed, 30, rounds=2, sampling_rate=0.5)
    assert [(e.sampling.kind, e.sampling.rate, e.event.noise_multiplier) for e in fed.ledger.entries] == [
        ("records", 0.5, 2.0)
    ] * 2
    np.testing.assert_array_equal(total(records(0)), np.zeros(5))


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"batch_size": 0}])
def test_a_centre_of_nothing_is_refused(wrong):
    with pytest.raises(SettingsInvalid, match="HR-511"):
        centre(federation(records()), **{"batch_size": 60} | wrong)
