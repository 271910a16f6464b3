"""Forecasts against runs: expected excess, intervals of a run, saturation, sampling, and what the owners' weights do."""

from dataclasses import replace

import numpy as np
import pytest
from recursions import runs

import hedgerow as hr
from hedgerow.core.bound import l2
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries import Answers, Steps
from hedgerow.market import Forecast, PilotEstimate, channel_variance, forecast, mean_variance, propagate
from hedgerow.privacy import Gaussian

RNG = np.random.default_rng(0)
H = np.diag([1.5, 0.4, 0.05])
ESTIMATE = PilotEstimate(H, np.array([0.3, -0.5, 0.4]), 0.2, np.diag([0.6, 0.1, 0.05]), "made up")
RECORDS = [4000, 2000, 500]
T = 40
RULES = {
    "algorithm-2": Steps("algorithm-2", 0.6, 50.0),
    "algorithm-1": Steps("algorithm-1", 600.0, 50.0),
    "strongly-convex": Steps("strongly-convex", 0.6, 50.0, convexity=0.05),
}


def answers(epsilons=(3.0, 2.0, 9.0), law="laplace", horizon=T):
    return Answers.of(
        {f"owner {i}": e for i, e in enumerate(epsilons)}, horizon, radius=1.0, law=law, delta=1e-6 * (law == "gaussian")
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_runs_of_the_recursion_have_the_forecast_mean_and_nine_of_ten_lie_in_the_interval(rule, law):
    """4 000 runs: the mean is known to about 2 %, coverage to 0.5 %."""
    noise = answers(law=law)
    told = forecast(ESTIMATE, RULES[rule], T, noise, RECORDS, sample=False)
    deviation = mean_variance(noise, RECORDS) ** 0.5
    rng = np.random.default_rng(1)

    def draw(shape):
        return rng.laplace(0, deviation / 2**0.5, shape) if law == "laplace" else rng.normal(0, deviation, shape)

    psi = runs(ESTIMATE, RULES[rule], T, draw, 4000) / ESTIMATE.least
    assert psi.mean() == pytest.approx(told.relative_fitness, rel=0.06)
    assert np.mean((psi > told.low) & (psi < told.high)) == pytest.approx(0.9, abs=0.02)
    assert told.excess == pytest.approx(told.bias + told.noise)


def test_without_noise_and_sample_the_forecast_is_a_point():
    told = forecast(ESTIMATE, RULES["algorithm-2"], T, 0.0, RECORDS, sample=False)
    assert told.low == told.high == pytest.approx(told.relative_fitness) == pytest.approx(told.bias / 0.2)


@pytest.mark.parametrize("best", [np.zeros(3), ESTIMATE.best], ids=["nothing to reach", "steps decide"])
def test_the_sample_moves_the_result_as_far_as_steps_follow(best):
    """Of n records all gradients have the same error, of covariance G / n; 20 000 draws of it."""
    at, n = replace(ESTIMATE, best=best), sum(RECORDS)
    told = forecast(at, RULES["algorithm-2"], T, 0.0, RECORDS)
    error = np.random.default_rng(0).multivariate_normal(np.zeros(3), at.scatter / n, 20_000)
    psi = runs(at, RULES["algorithm-2"], T, lambda shape: error, 20_000) / at.least
    assert psi.mean() == pytest.approx(told.relative_fitness, rel=0.03)
    assert np.mean((psi > told.low) & (psi < told.high)) == pytest.approx(0.9, abs=0.01)
    assert told.sampling < at.sampling / n  # that of the records' own best theta, where steps do not get


def test_a_parabola_at_a_wall_has_the_scatter_of_its_estimate():
    """One coefficient at its wall, where no sample moves it; the other free: s is what that one adds."""
    steps, free = Steps("algorithm-2", 0.6, 0.5), np.array([0.5, 0.2])
    at = PilotEstimate(np.diag([1.5, 1.0]), free, 0.2, np.diag([0.6, 0.1]), "made up", slope=np.array([-0.9, 0.0]))
    assert propagate(at, steps, 300).sampling == pytest.approx(0.1 / 1.0 / 2, rel=0.1)


def test_steps_that_have_ended_are_at_the_best_of_the_sample():
    curved = replace(ESTIMATE, curvature=np.diag([1.5, 1.0, 0.5]))
    told = forecast(curved, RULES["algorithm-2"], 500, 0.0, RECORDS)
    assert told.sampling == pytest.approx(curved.sampling / sum(RECORDS), rel=0.05)


def test_weights_count_once_in_the_noise_and_once_in_the_records():
    noise, w = answers(), np.array([1.0, 0.5, 0.1])
    told = forecast(ESTIMATE, RULES["algorithm-2"], T, noise, RECORDS, w)
    total = w @ RECORDS
    variances = [2 * (2 * T / e) ** 2 for e in (3.0, 2.0, 9.0)]
    assert told.variance == pytest.approx(np.square(w) @ variances / total**2)
    assert told.sampling == pytest.approx(
        propagate(ESTIMATE, RULES["algorithm-2"], T).sampling * (np.square(w) @ RECORDS) / total**2
    )
    scaled = forecast(ESTIMATE, RULES["algorithm-2"], T, noise, RECORDS, 7 * w)
    assert scaled.excess == pytest.approx(told.excess)


def test_a_forecast_worse_than_zeros_is_saturated_and_says_so():
    open_, closed = (forecast(ESTIMATE, RULES["algorithm-2"], T, answers((e,) * 3), RECORDS) for e in (100.0, 0.01))
    assert not open_.saturated
    assert "in 90 of 100 runs between" in open_.sentence
    assert closed.saturated
    assert closed.sentence.startswith("Saturated")
    zeros = ESTIMATE.best @ H @ ESTIMATE.best / 2 / ESTIMATE.least
    assert open_.ceiling == pytest.approx(zeros)
    assert any("heterogeneity" in said for said in closed.assumptions)


def test_the_section_of_a_study_holds_the_same_numbers():
    told = forecast(ESTIMATE, RULES["algorithm-2"], T, answers(), RECORDS)
    assert told.section == {
        "measure": "relative fitness",
        "expected": told.relative_fitness,
        "low": told.low,
        "high": told.high,
        "source": "made up",
    }
    assert isinstance(told, Forecast)


def test_noise_of_the_server_is_one_noise_and_that_of_parties_is_one_each():
    schema = hr.data.Schema((hr.data.Column("x", "number", low=-1, high=1),))
    table = hr.data.Table({"x": np.zeros(40)}, schema)
    federation = hr.simulate(table, hr.data.iid(parties=4), seed=0)
    bound = l2(3.0, unit="record")
    assert channel_variance(federation.protect(mechanism=Gaussian(5.0)), bound, 3) == pytest.approx(225.0, rel=5e-3)
    at_parties = federation.protect(mechanism=Gaussian(5.0, "party"))
    assert channel_variance(at_parties, bound, 3) == pytest.approx(4 * 225.0, rel=5e-3)
    assert channel_variance(federation, bound, 3) == 0.0


def test_records_weights_and_owners_match():
    with pytest.raises(SettingsInvalid, match="one number of each"):
        forecast(ESTIMATE, RULES["algorithm-2"], T, answers(), RECORDS[:2])
    with pytest.raises(SettingsInvalid, match="one number of each"):
        forecast(ESTIMATE, RULES["algorithm-2"], T, answers(), RECORDS, [0.0, 0.0, 0.0])


def test_noise_that_the_box_stops_is_said_and_the_forecast_is_then_too_high():
    """1 000 runs in a box that is near theta*: less is achieved than forecast; in a wide one nothing is stopped."""
    variance = 0.4
    tight = Steps("algorithm-2", 0.6, 0.6)
    told, wide = (forecast(ESTIMATE, steps, T, variance, [1.0], sample=False) for steps in (tight, RULES["algorithm-2"]))
    assert told.stopped > 0.01
    assert "The box stops" in told.sentence
    assert wide.stopped < 1e-6
    assert "The box stops" not in wide.sentence
    psi = runs(ESTIMATE, tight, T, lambda shape: RNG.normal(0, variance**0.5, shape), 1000) / ESTIMATE.least
    assert psi.mean() < told.relative_fitness * 0.97


def test_the_share_that_leaves_the_box_is_that_of_the_recursion():
    """Without a box 2 000 runs leave it as often as is told, but for what an iterate does after it would have been stopped."""
    variance, box = 0.2, 0.8
    theta, outside = np.zeros((2000, 3)), []
    for k in range(1, T + 1):
        gradient = (theta - ESTIMATE.best) @ H + RNG.normal(0, variance**0.5, theta.shape)
        theta = theta - RULES["algorithm-2"].length(k, T) * gradient
        outside.append(np.mean(np.abs(theta) > box))
    assert propagate(ESTIMATE, RULES["algorithm-2"], T).stopped(variance, box) == pytest.approx(np.mean(outside), rel=0.1)
