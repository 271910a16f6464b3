"""Standard errors that are forecast before a question, against what noisy questions give."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.market.forecasts.delta_method import errors_from_moments, errors_of_last_step, errors_of_means
from hedgerow.privacy import Gaussian

RNG = np.random.default_rng(0)


def test_means_with_a_noisy_count_scatter_as_forecast():
    """4 000 draws of sample and noise: deviations are known to 1.1 %."""
    mean, sd, n, noise, count = 3.0, 2.0, 500, 40.0, 15.0
    told = errors_of_means(np.array([mean]), np.array([sd**2]), n, noise, count)
    sums = n * mean + np.sqrt(n) * sd * RNG.normal(size=4000) + noise * RNG.normal(size=4000)
    means = sums / (n + count * RNG.normal(size=4000))
    assert means.std() == pytest.approx(told.total[0], rel=0.05)
    assert told.first_order == pytest.approx(0.03)


@pytest.mark.slow
def test_a_question_through_a_channel_scatters_as_forecast():
    """60 noisy means of the same records: deviations are known to 9 %."""
    x = np.clip(RNG.normal(size=200), -1, 1)
    schema = hr.data.Schema((hr.data.Column("x", "number", low=-1, high=1),))
    found = []
    for seed in range(60):
        federation = hr.simulate(hr.data.Table({"x": x}, schema), hr.data.iid(parties=2), seed=seed)
        found.append(float(hr.stats.means(federation.protect(mechanism=Gaussian(8.0)))["x"]))
    told = errors_of_means(np.array([x.mean()]), np.array([x.var()]), 200, 8.0 * 2**0.5, 8.0 * 2**0.5)  # two keys, one noise
    assert np.std(found) == pytest.approx(told.noise[0], rel=0.35)


def test_least_squares_of_noisy_moments_scatter_as_forecast():
    """4 000 draws of symmetric noise on the matrix and of noise on the score; a twin without beta beta' is further off."""
    gram, coef = np.array([[900.0, 200.0], [200.0, 400.0]]), np.array([1.5, -0.5])
    sigma, score = 10.0, 8.0
    told = errors_from_moments(gram, coef, 0.25, sigma, score)
    drawn = RNG.normal(0, sigma, (4000, 2, 2))
    noisy = gram + (drawn + drawn.transpose(0, 2, 1)) / 2
    found = np.linalg.solve(noisy, (gram @ coef + RNG.normal(0, score, (4000, 2)))[..., None])[..., 0]
    np.testing.assert_allclose(found.std(0), told.noise, rtol=0.06)
    np.testing.assert_allclose(told.sample, np.sqrt(0.25 * np.diag(np.linalg.inv(gram))))
    inverse = np.linalg.inv(gram)
    twin = np.sqrt(np.diag(inverse @ ((score**2 + sigma**2 * coef @ coef / 2) * np.eye(2)) @ inverse))
    assert np.abs(found.std(0) / twin - 1).max() > 0.1


def test_logistic_regression_with_noise_in_the_last_score_scatters_as_forecast():
    """300 samples of 400 records: deviations are known to 4 %."""
    beta, n, noise = np.array([0.8, -0.4]), 400, 5.0
    x = RNG.normal(size=(20_000, 2))
    p = 1 / (1 + np.exp(-x @ beta))
    information = n * (x.T * (p * (1 - p))) @ x / len(x)
    told = errors_of_last_step(information, 1.0, noise)
    found = []
    for _ in range(300):
        xs = RNG.normal(size=(n, 2))
        p = 1 / (1 + np.exp(-xs @ beta))
        y, at = (RNG.random(n) < p), beta.copy()
        for _ in range(6):
            fitted = 1 / (1 + np.exp(-xs @ at))
            at = at + np.linalg.solve((xs.T * (fitted * (1 - fitted))) @ xs, xs.T @ (y - fitted))
        found.append(at + np.linalg.solve(information, RNG.normal(0, noise, 2)))
    np.testing.assert_allclose(np.std(found, axis=0), told.total, rtol=0.15)


def test_what_is_not_determined_is_refused():
    with pytest.raises(SettingsInvalid, match="not determined"):
        errors_of_last_step(np.diag([1.0, 0.0]), 1.0, 1.0)
    with pytest.raises(SettingsInvalid, match="0 records"):
        errors_of_means(np.zeros(1), np.ones(1), 0, 1.0)
