"""Phan's belief net: a polynomial of softplus, constants by brute force, moments of length one, and what sizes cost."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.bound import l1, l2
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import load
from hedgerow.errors import SettingsInvalid
from hedgerow.papers.haug import belief_net as net
from hedgerow.papers.haug import layers
from hedgerow.papers.haug.auto_encoder import distance as output_distance
from hedgerow.papers.haug.belief_net import distance, patch_rows, private_belief_net, score


def digits(seed=0):
    return hr.simulate(load("digits").take(range(150)), hr.data.iid(3), seed=seed)


@pytest.mark.parametrize("reach", [1.0, 4.0])
def test_the_polynomial_is_near_softplus_and_its_odd_coefficients_beyond_the_first_are_zero(reach):
    t, a = np.linspace(-reach, reach, 101), np.array(net.softplus_coefficients(reach))
    np.testing.assert_allclose(np.polyval(a[::-1], t), np.logaddexp(0, t), atol=3e-3)
    np.testing.assert_allclose(a[[3, 5, 7]], 0, atol=1e-12)
    assert a[1] == pytest.approx(0.5)


@pytest.mark.parametrize("degree", [1, 2, 4, 6])
def test_monomials_with_their_counts_are_powers_of_a_product(degree):
    rng = np.random.default_rng(0)
    w, p = rng.normal(size=4), rng.normal(size=4)
    found = (net.monomials(4, degree)[1] * net.powers(w, degree) * net.powers(p, degree)).sum()
    assert found == pytest.approx((w @ p) ** degree)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_constant_is_reached_at_a_corner_and_never_exceeded(d):
    length, a = 2.0, net.softplus_coefficients(2.0 * math.sqrt(d))
    worst = 0.0
    for corner in product((0.0, 1.0), repeat=d):
        p = np.array(corner)
        worst = max(worst, sum(np.abs(a[k] * length**k * net.monomials(d, k)[1] * net.powers(p, k)).sum() for k in net.DEGREES))
    assert distance(d, 1, length) == pytest.approx(worst)
    inside = np.random.default_rng(1).uniform(size=(50, d))
    for p in inside:
        assert sum(np.abs(a[k] * length**k * net.monomials(d, k)[1] * net.powers(p, k)).sum() for k in net.DEGREES) < worst


def test_constants_grow_with_the_filter_and_rows_reach_them():
    assert distance(9, 1, 2.0) > 5 * distance(4, 1, 2.0) > 5 * distance(1, 1, 2.0)
    ones = patch_rows(np.ones((1, 16)), 2, 2.0, printed=True)
    assert np.abs(ones).sum() == pytest.approx(distance(4, 9, 2.0))


def test_moments_of_a_record_have_length_one_at_most_and_reach_it_where_all_patches_are_alike():
    rng = np.random.default_rng(2)
    long = np.linalg.norm(patch_rows(rng.uniform(size=(40, 16)), 2, 2.0, printed=False), axis=1)
    assert (long < 1).all()
    alike = np.linalg.norm(patch_rows(np.ones((1, 16)), 2, 2.0, printed=False))
    assert 0.999999 < alike <= 1.0
    raw = np.concatenate([np.sqrt(net.monomials(4, k)[1]) * net.powers(np.ones(4), k) / 2 for k in net.DEGREES])
    assert np.linalg.norm(raw) > 1  # the twin: patches that are not divided by their lengths


@pytest.mark.parametrize("printed", [True, False])
def test_one_record_moves_both_sums_within_their_bounds(printed):
    rng, n = np.random.default_rng(3), 8
    columns = {"cube": rng.uniform(size=(n, 16)).astype(np.float32), "label": rng.integers(0, 3, n)}
    columns["cube"][0] = 1.0
    first = partial(net.patch_sums, None, rng=None, side=2, length=2.0, printed=printed)
    filters = {"filters": np.linalg.qr(rng.normal(size=(4, 4)))[0][:2]}
    second = partial(net.output_sums, filters, rng=None, side=2, length=2.0, pool=1, labels=3, printed=printed)
    for ask, radius in ((first, distance(4, 9, 2.0)), (second, output_distance(3, 36))):
        bound = l1(radius, "record") if printed else l2(1.0, "record")
        held = partial(ask, bounds=in_steps(bound))
        whole = held(party=Party("a", columns, np.ones(n)))
        np.testing.assert_allclose(whole, ask(party=Party("a", columns, np.ones(n))), rtol=1e-4, atol=2e-4)
        for i in range(n):
            moved = whole - held(party=Party("a", columns, 1.0 - np.eye(n)[i]))
            assert np.linalg.norm(moved, ord=bound.norm) <= bound.radius
    assert output_distance(3, 36) < output_distance(3, 36, "printed")


def test_records_that_are_no_squares_are_filled_up_with_zeros():
    patches = net.patches_of(np.arange(1.0, 8.0)[None], 2)
    np.testing.assert_array_equal(patches[0, :, :, 0], [[1, 2], [4, 5]])
    assert patches[0, 1, 1].tolist() == [5, 6, 0, 0]


def test_pooled_units_are_the_largest_of_their_block():
    rng = np.random.default_rng(4)
    x, filters = rng.uniform(size=(2, 25)), np.eye(4)[:1]
    one = net.pooled(x, filters, 2, 2.0, 1).reshape(2, 4, 4, 2)
    four = net.pooled(x, filters, 2, 2.0, 2).reshape(2, 2, 2, 2)
    np.testing.assert_array_equal(four[:, 0, 1], one[:, :2, 2:].max((1, 2)))
    patch = x[0].reshape(5, 5)[:2, :2].reshape(-1)
    assert one[0, 0, 0, 0] == pytest.approx(1 / (1 + np.exp(-2 * patch[0] / np.linalg.norm(patch))), abs=1e-6)
    assert one[0, 0, 0, 1] == pytest.approx(1 - one[0, 0, 0, 0], abs=1e-6)


@pytest.mark.slow
def test_both_forms_keep_their_budget():
    for form, delta in (("corrected", 1e-5), ("printed", 1e-12)):
        fed = digits()
        hr.last(private_belief_net(fed, filters=1, epsilon=1.0, delta=1e-5, form=form))
        assert len(fed.ledger) == 2
        assert 0.99 < fed.ledger.epsilon(delta=delta, unit="record") <= 1.0


@pytest.mark.slow
def test_a_second_fit_that_exceeds_what_is_left_is_refused_before_its_first_question():
    fed = digits().within(hr.Budget(1.2, 1e-5, unit="record"))
    hr.last(private_belief_net(fed, filters=1, epsilon=1.0, delta=1e-5, form="corrected"))
    with pytest.raises(hr.errors.BudgetExhausted, match="what 2 earlier questions left"):
        hr.last(private_belief_net(fed, filters=1, epsilon=1.0, delta=1e-5, form="corrected"))
    assert len(fed.ledger) == 2


@pytest.mark.slow
def test_it_learns_and_a_seed_repeats_it_and_a_started_run_goes_on():
    table, settings = load("digits"), {"filters": 3, "epsilon": 200.0, "delta": 1e-5}
    runs = [list(private_belief_net(digits(), **settings)) for _ in range(2)]
    np.testing.assert_array_equal(runs[0][1].output, runs[1][1].output)
    told = {"side": 2, "length": 2.0, "pool": 2, "form": "corrected"}
    assert score(told, runs[0][1], table.schema, table) > 0.35
    np.testing.assert_allclose(runs[0][1].filters @ runs[0][1].filters.T, np.eye(3), atol=1e-9)
    (last,) = private_belief_net(digits(), **settings, start=runs[0][0])
    assert last.round == 2


def test_refused_before_anybody_is_asked():
    fed = digits()
    for more in (
        {"filters": 5},
        {"side": 4},
        {"pool": 8},
        {"form": "mended"},
    ):
        with pytest.raises(SettingsInvalid):
            next(private_belief_net(fed, **more))
    assert not fed.ledger.entries
    assert layers.width(fed.schema) == 64
