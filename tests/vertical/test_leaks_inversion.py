"""Feature inversion: ridge against a closed form, and linear predictors that give all columns away."""

import math

import numpy as np
import pytest

from hedgerow.errors import SettingsInvalid
from hedgerow.vertical.leaks import (
    columns_from_openings,
    columns_from_people,
    feature_leak,
    linked_by_rank,
    variance_recovered,
)
from hedgerow.vertical.leaks.inversion import columns_by_rank, recovered_features, ridge_inverse


def people(n=300, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d))


def test_ridge_is_that_of_the_normal_equations_of_an_extended_design():
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(40, 6)) * 3 + 1, rng.normal(size=(40, 4))
    centre, scale, solved = ridge_inverse(z, x, penalty=2.5)
    design = np.column_stack([(z - z.mean(0)) / z.std(0), np.ones(40)])
    stacked = np.vstack([design, math.sqrt(2.5) * np.eye(7)])
    assert solved == pytest.approx(np.linalg.lstsq(stacked, np.vstack([x, np.zeros((7, 4))]), rcond=None)[0])
    assert recovered_features((centre, scale, solved), z) == pytest.approx(design @ solved)


def test_a_cut_that_loses_nothing_gives_everything_back():
    x = people()
    z = x @ np.random.default_rng(1).normal(size=(5, 8))
    leak = feature_leak(z[:100], x[:100], z[100:], x[100:], penalty=1e-6)
    assert leak.recovered == pytest.approx(1.0, abs=1e-6)
    assert leak.shuffled < 0
    assert (leak.cut, leak.known, leak.people) == (8, 100, 200)
    assert math.isnan(leak.untrained)


def test_activations_that_have_nothing_to_do_with_features_give_nothing_back():
    x, z = people(), np.random.default_rng(2).normal(size=(300, 8))
    leak = feature_leak(z[:100], x[:100], z[100:], x[100:], untrained=(x[:100], x[100:]), dcor=0.25)
    assert leak.recovered < 0.02
    assert leak.untrained > 0.9  # what the same attack finds where there is something to find
    assert leak.dcor == 0.25
    assert "other people's" in str(leak)


def test_units_that_hardly_ever_fire_do_not_break_the_attack():
    """One such unit, standardised by its own deviation among known people, would drown everything that is recovered."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(2000, 4))
    rare = np.where(rng.random(2000) < 0.002, 1.0, 0.0)
    rare[:1000] *= 1e-4
    z = np.column_stack([x @ rng.normal(size=(4, 4)), rare])
    leak = feature_leak(z[:1000], x[:1000], z[1000:], x[1000:])
    assert leak.recovered > 0.99
    centre, scale = z[:1000].mean(0), z[:1000].std(0) + 1e-6
    design, other = (np.column_stack([(part - centre) / scale, np.ones(1000)]) for part in (z[:1000], z[1000:]))
    naive = other @ np.linalg.solve(design.T @ design + 10 * np.eye(6), design.T @ x[:1000])
    assert variance_recovered(naive, x[1000:]) < 0


def test_an_attacker_chooses_the_penalty_by_known_people():
    x, rng = people(n=400), np.random.default_rng(8)
    z = np.column_stack([x + rng.normal(size=x.shape), rng.normal(size=(400, 100))])
    chosen = feature_leak(z[:150], x[:150], z[150:], x[150:]).recovered
    fixed = [feature_leak(z[:150], x[:150], z[150:], x[150:], penalty=each).recovered for each in (0.3, 300.0)]
    assert chosen > min(fixed) + 0.05
    assert chosen > max(fixed) - 0.1


def test_a_narrow_cut_gives_its_share_back():
    x = np.random.default_rng(3).normal(size=(4000, 10))
    z = x[:, :3]
    assert feature_leak(z[:2000], x[:2000], z[2000:], x[2000:]).recovered == pytest.approx(0.3, abs=0.03)


def test_v2_as_many_openings_as_columns_are_the_columns():
    x, b = people(n=500), np.random.default_rng(4).normal(size=(7, 5))
    eta = b @ x.T
    assert abs(columns_from_openings(eta[:5], b[:5]) - x).max() < 1e-9
    fewer = [variance_recovered(columns_from_openings(eta[:t], b[:t]), x) for t in (1, 3)]
    assert fewer[0] < fewer[1] < 0.9


def test_v2_secret_coefficients_do_not_help_where_a_few_people_are_known():
    x = people(n=1000)
    eta = np.random.default_rng(5).normal(size=(5, 5)) @ x.T
    known = np.arange(10)
    assert abs(columns_from_people(eta, known, x[known]) - x).max() < 1e-8
    assert variance_recovered(columns_from_people(eta, known[:2], x[:2]), x) < 0.9


def test_v9_openings_in_a_fresh_order_are_linked_by_rank():
    """Newton's steps of a fit: near the optimum people keep their rank, so that sorted openings are lined up again."""
    x, rng = people(n=400), np.random.default_rng(6)
    final = rng.normal(size=5)
    steps = np.array([final * (1 + 1e-4 * t) + 0.3 ** (4 * t + 1) * rng.normal(size=5) for t in range(5)])
    shares = linked_by_rank(steps @ x.T)
    assert shares.shape == (4,)
    assert shares[0] < 0.5
    assert shares[-1] > 0.9


def test_v9_the_same_order_at_every_opening_gives_the_columns_of_people_by_rank():
    x = np.abs(people(n=50))
    b = np.eye(5) * 1e-6 + 1.0  # coefficients so near one another that no two people change places
    eta = b @ x.T
    assert linked_by_rank(eta) == pytest.approx(np.ones(4))
    order = np.argsort(eta[0])
    assert columns_by_rank(eta, b) == pytest.approx(x[order], abs=1e-5)


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(SettingsInvalid, match="3 activations of 2 people"):
        ridge_inverse(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(SettingsInvalid, match="2 openings of 3"):
        columns_from_openings(np.ones((2, 9)), np.ones((3, 4)))
    with pytest.raises(SettingsInvalid, match="shape"):
        columns_from_openings(np.ones(9), np.ones((1, 4)))


def test_features_that_do_not_vary_have_no_share():
    assert math.isnan(variance_recovered(np.ones((4, 2)), np.ones((4, 2))))
