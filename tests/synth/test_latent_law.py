"""The latent normal law: shares, scores, and correlations of which products of scores tell."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from hedgerow.data import Column, Schema
from hedgerow.synth import Codes
from hedgerow.synth.latent import correlations, cut_scale, hermite, onto_simplex, positive, scores_of, shares_of, smoothed

FEW = np.array([0.3, 0.5, 0.2])
MANY = np.diff(norm.cdf(np.concatenate([[-np.inf], np.linspace(-3, 3, 99), [np.inf]])))


def cells(p, q, rho):
    """Shares of pairs of codes under a latent correlation: an oracle by the bivariate normal distribution function."""
    law = multivariate_normal(cov=[[1, rho], [rho, 1]])
    at = [np.clip(cut_scale(r), -9, 9) for r in (p, q)]
    below = np.array([[law.cdf([a, b]) for b in at[1]] for a in at[0]])
    return np.diff(np.diff(below, axis=0), axis=1)


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.8])
@pytest.mark.parametrize("reach", [np.inf, 1.0])
def test_a_latent_correlation_comes_back_from_products_of_scores_of_few_levels(rho, reach):
    p, q = FEW, np.array([0.9, 0.1])
    s, r = scores_of(p, reach), scores_of(q, reach)
    moment = s @ cells(p, q, rho) @ r
    (found,) = correlations(np.array([moment]), hermite(p, s)[None], hermite(q, r)[None])
    assert found == pytest.approx(rho, abs=2e-3)
    assert abs(s @ cells(p, q, rho) @ r) < abs(rho) or rho == 0  # a product of scores itself is drawn towards zero


def test_of_many_bins_the_products_are_the_correlation():
    s = scores_of(MANY)
    a = hermite(MANY, s)
    assert a[0] == pytest.approx(0, abs=1e-12)
    assert a[1] == pytest.approx(1, abs=1e-3)
    (found,) = correlations(np.array([0.6]), a[None], a[None])
    assert found == pytest.approx(0.6, abs=1e-3)


def test_scores_by_hand():
    half = scores_of(np.array([0.5, 0.5]))
    np.testing.assert_allclose(half, np.array([-1, 1]) * np.sqrt(2 / np.pi))
    np.testing.assert_array_equal(scores_of(np.array([0.5, 0.5]), 1.0), [-1, 1])  # stretched to the reach
    assert np.abs(scores_of(MANY, 1.0)).max() == 1
    with_empty = scores_of(np.array([0.0, 0.4, 0.0, 0.6, 0.0]))
    assert np.isfinite(with_empty).all()
    assert (np.diff(with_empty) >= 0).all()


def test_a_column_with_one_level_says_nothing():
    p = np.array([0.0, 1.0])
    a = hermite(p, scores_of(p, 1.0))
    b = hermite(FEW, scores_of(FEW))
    assert correlations(np.array([0.7]), a[None], b[None]) == [0.0]


def test_noise_keeps_a_correlation_as_far_as_it_is_more_than_noise():
    a = hermite(MANY, scores_of(MANY))[None]
    found = [float(correlations(np.array([0.6]), a, a, tau)[0]) for tau in (0.0, 0.03, 0.3, 30.0)]
    assert found == sorted(found, reverse=True)
    assert found[2] == pytest.approx(0.3, abs=0.01)  # noise as large as what is usual: half
    assert found[3] < 1e-3


def test_shares_add_up_and_exact_ones_are_counts():
    counts = np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(shares_of(counts, 0.0, alike=np.ones(3, bool)), [[0.75, 0, 0.25], [1 / 3, 1 / 3, 1 / 3]])
    noisy = shares_of(np.array([30.0, -4.0, 10.0]), 3.0, alike=np.zeros(3, bool))
    np.testing.assert_allclose(noisy, [28 / 36, 0, 8 / 36])  # the total stays 36
    np.testing.assert_allclose(onto_simplex(np.array([3.0, 1.0, -1.0]), 2.0), [2, 0, 0])
    np.testing.assert_allclose(onto_simplex(np.array([0.5, 0.2, 0.9]), 1.0), [0.3, 0, 0.7], atol=1e-15)


@pytest.mark.parametrize("bins", [2, 5, 32, 33])
def test_smoothing_keeps_the_total_and_what_is_no_noise_and_brings_counts_nearer(bins):
    rng = np.random.default_rng(0)
    counts = 1000 * norm.pdf(np.linspace(-3, 3, bins))
    np.testing.assert_allclose(smoothed(counts, 0.0), counts, atol=1e-9)
    noisy = counts + rng.normal(scale=200, size=(200, bins))
    made = np.stack([smoothed(row, 200.0) for row in noisy])
    np.testing.assert_allclose(made.sum(1), noisy.sum(1))
    if bins > 8:
        assert np.square(made - counts).sum() < 0.8 * np.square(noisy - counts).sum()


def test_a_matrix_is_repaired_where_it_needs_it_and_nowhere_else():
    lawful = np.array([0.5, 0.2, -0.1])
    np.testing.assert_array_equal(positive(lawful, 3)[np.triu_indices(3, 1)], lawful)
    R = positive(np.array([0.9, 0.9, -0.9]), 3)
    assert np.linalg.eigvalsh(R)[0] > 0
    np.testing.assert_array_equal(np.diag(R), 1)
    np.testing.assert_array_equal(R, R.T)


def test_a_point_is_not_smoothed_into_its_neighbours():
    counts = np.full(16, 40.0)
    counts[5] = 1000.0
    alike = np.arange(16) != 5
    kept, spread = (shares_of(counts, 200.0, alike=mask)[5] for mask in (alike, np.ones(16, bool)))
    assert kept == pytest.approx(1000 / 1600)
    assert spread < 0.4


def test_only_bins_of_numbers_are_like_their_neighbours():
    schema = Schema([Column("x", "integer", low=0, high=9, optional=True), Column("c", "category", levels=("a", "b"))])
    codes = Codes.of(schema, bins=4, points={"x": [0, 7]})
    assert codes.alike(1).tolist() == [False, False]
    singles = np.append(codes.number({"x": np.array([0.0, 7.0]), "c": np.zeros(2, np.int16)})[:, 0], codes.sizes[0] - 1)
    assert np.flatnonzero(~codes.alike(0)).tolist() == singles.tolist()
