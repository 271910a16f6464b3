"""Forecasts along the path of public records, for losses that are no parabola, and how well a pilot is known; real rows."""

import os
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries import Answers, Inputs, QueryLoss, Steps, inputs, length_of, noiseless, optimum, relative_fitness
from hedgerow.market import KnownLoss, PilotEstimate, estimate_of, forecast, mean_variance, propagate
from hedgerow.market.forecasts.second_moments import PilotState

DATA = Path(os.environ.get("HEDGEROW_DATA", Path(__file__).parents[3] / "shared" / "data"))
STEPS = Steps("algorithm-2", 2.0, 3.0)
T = 30


def population(n, seed, classes):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) * [0.6, 0.4, 0.3]
    x = np.column_stack([x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1), np.full(n, 0.5)])
    t = x @ [1.0, -0.8, 0.3, 0.5] + rng.normal(scale=0.4, size=n)
    return x, np.sign(t) if classes else np.clip(t, -1, 1)


def trainings(loss, x, y, variance, times, steps=STEPS, horizon=T, seed=0):
    """Results of so many noisy trainings: shape (times, d)."""
    rng, n = np.random.default_rng(seed), len(y)
    theta = average = np.zeros((times, x.shape[1]))
    for k in range(1, horizon + 1):
        gradient = loss.gradient_sums(theta, x, y, np.ones(n)) / n + loss.ridge * theta
        moved = steps.move(theta, gradient + rng.normal(0, variance**0.5, theta.shape), k, horizon)
        theta, average = moved, steps.average(average, theta, moved, k, horizon)
    return average


@pytest.mark.slow
@pytest.mark.parametrize("loss", [QueryLoss("logistic", 0.01), QueryLoss("hinge", 0.01)], ids=["logistic", "hinge"])
@pytest.mark.parametrize("variance", [1e-4, 4e-3])
def test_losses_that_are_no_parabola_are_forecast_along_their_path(loss, variance):
    """150 trainings: means are known to 5 %; steps leave so much that a parabola at theta* would be further off."""
    x, y = population(1500, 0, classes=True)
    steps = replace(STEPS, size=0.5)
    estimate = replace(PilotEstimate.of_records(loss, x, y, steps.box, "the same records"), replicas=())
    told = forecast(estimate, steps, T, variance * 1500**2, [500] * 3, sample=False)
    psi = relative_fitness(loss, trainings(loss, x, y, variance, 150, steps), estimate.best, x, y, np.ones(1500))
    assert psi.mean() == pytest.approx(told.relative_fitness, rel=0.1)
    assert np.mean((psi > told.low) & (psi < told.high)) == pytest.approx(0.9, abs=0.1)
    parabola = forecast(replace(estimate, rows=None), steps, T, variance * 1500**2, [500] * 3, sample=False)
    assert abs(psi.mean() / told.relative_fitness - 1) < 0.6 * abs(psi.mean() / parabola.relative_fitness - 1)
    assert any("around the path" in said for said in told.assumptions)


def test_a_sample_does_not_carry_a_result_past_the_walls_of_its_box():
    """theta* is on the wall and the gradient points at it: records that are a sample do not make steps better than none are."""
    loss, steps, n = QueryLoss("logistic"), Steps("algorithm-2", 6.0, 1.0), 300
    x, y = population(5000, 0, classes=True)
    estimate = replace(PilotEstimate.of_records(loss, x, y, steps.box, ""), replicas=())
    told, known = forecast(estimate, steps, T, 0.0, [n]), KnownLoss.of(estimate, steps, T, quadratic=False)
    rng, w = np.random.default_rng(0), np.ones(n)
    parts = [rng.choice(len(y), n) for _ in range(60)]
    runs = np.array([noiseless(loss, steps, T, x[part], y[part], w) for part in parts])
    psi = relative_fitness(loss, runs, estimate.best, x, y, np.ones(len(y)))
    assert psi.mean() == pytest.approx(told.relative_fitness, rel=0.15)
    assert np.mean((psi > told.low) & (psi < told.high)) > 0.7  # of samples, some have their best theta off the wall
    assert told.low > psi.min() / 2  # and not at zero
    assert known.run_ends(0.9, 0.0, 1 / n)[0] / known.least == pytest.approx(told.low)


def test_of_a_squared_loss_the_path_and_the_parabola_are_one():
    loss = QueryLoss("squared", 0.05)
    x, y = population(800, 1, classes=False)
    estimate = PilotEstimate.of_records(loss, x, y, 3.0, "")
    found = noiseless(loss, STEPS, T, x, y, np.ones(800))
    bias = float(loss.cost(found, x, y, np.ones(800))) - estimate.least
    assert propagate(estimate, STEPS, T).bias == pytest.approx(bias, rel=1e-9)


def test_without_noise_the_path_ends_where_the_rule_ends():
    loss = QueryLoss("hinge", 0.01)
    x, y = population(800, 1, classes=True)
    estimate = PilotEstimate.of_records(loss, x, y, 3.0, "")
    found = float(loss.cost(noiseless(loss, STEPS, T, x, y, np.ones(800)), x, y, np.ones(800))) - estimate.least
    assert propagate(estimate, STEPS, T).bias == pytest.approx(found, rel=1e-9)


# ---- how well the pilot is known --------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_doubt_is_the_deviation_over_pilots_and_the_interval_holds_for_pilot_and_run_together():
    """25 pilots of 400 public records: deviations are known to 14 %, each one's own to 27 %, their root mean square to 5 %."""
    loss, variance = QueryLoss("squared", 0.0), 2e-4
    steps = replace(STEPS, size=1.5)
    x, y = population(6000, 5, classes=False)
    best = optimum(loss, x, y, np.ones(len(y)), 3.0)
    given = (steps, T, variance * 6000**2, [6000])
    pilots = [PilotEstimate.of_records(loss, *population(400, 100 + i, classes=False), 3.0, "") for i in range(25)]
    told = [forecast(pilot, *given, sample=False) for pilot in pilots]
    doubts = np.array([one.doubt for one in told])
    assert np.sqrt(np.mean(doubts**2)) == pytest.approx(np.std([one.relative_fitness for one in told], ddof=1), rel=0.4)
    estimate = PilotEstimate.of_records(loss, x, y, 3.0, "")
    h = np.linalg.eigvalsh(estimate.curvature)
    found = propagate(estimate, steps, T)
    z = np.random.default_rng(0).normal(size=(25, 4))
    error = found.left * np.sqrt(h / 2) + z * np.sqrt(variance * found.amplifications)
    psi = np.square(error).sum(1) / float(loss.cost(best, x, y, np.ones(len(y))))
    inside = [one.low < value < one.high for one, value in zip(told, psi, strict=True)]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.17)


def test_moments_with_noise_have_a_doubt_and_exact_ones_have_none():
    loss, spec = QueryLoss("squared"), Inputs(("a", "b"), "t", (0.0,) * 2, (1.0,) * 2, radius=1.0)
    state = PilotState(1, np.diag([300.0, 200.0]), np.array([80.0, -60.0]), 150.0, 0.0)
    exact = estimate_of(state, loss, spec, 1000, 1.0)
    noisy = estimate_of(replace(state, noise=5.0), loss, spec, 1000, 1.0)
    noisier = estimate_of(replace(state, noise=10.0), loss, spec, 1000, 1.0)
    doubts = [forecast(one, STEPS, T, 100.0, [1000]).doubt for one in (exact, noisy, noisier)]
    assert doubts[0] == 0.0
    assert 0 < 1.5 * doubts[1] < doubts[2]
    again = estimate_of(replace(state, noise=5.0), loss, spec, 1000, 1.0)
    np.testing.assert_array_equal(again.replicas[0].curvature, noisy.replicas[0].curvature)


# ---- real rows ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="no real data here")
@pytest.mark.parametrize(("law", "epsilon"), [("laplace", 3.0), ("gaussian", 1.0)])
def test_loans_are_forecast_from_records_of_the_server(monkeypatch, law, epsilon):
    """A fifth of the loans; 100 trainings on the moments of the owners' records, epsilon times 5 for a fifth of the records."""
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    given = tomllib.loads((Path(hr.__file__).parent / "papers" / "wu" / "wu-forecast.toml").read_text())["program"]
    table = hr.data.load("lending_club_119987").take(slice(0, None, 5))
    projection = tuple(map(tuple, given["projection"]))
    spec = Inputs(
        table.schema.features,
        table.schema.target,
        tuple(given["centre"]),
        tuple(given["spread"]),
        projection,
        given["radius"],
        target_centre=given["target_centre"],
        target_spread=given["target_spread"],
    )
    made = inputs(table.columns, spec=spec)
    x, y = made["queried x"], made["queried y"]
    known = np.isfinite(x).all(1) & np.isfinite(y)
    mixed = np.random.default_rng(0).permutation(np.flatnonzero(known))
    public, owned = mixed[:4000], mixed[4000:]
    loss, steps = QueryLoss("squared"), Steps("algorithm-2", given["step"], 1.0)
    radius = length_of(loss, spec, 1.0, 1 if law == "laplace" else 2)
    delta = 1e-6 * (law == "gaussian")
    answers = Answers.of(dict.fromkeys("abc", 5 * epsilon), 100, radius=radius, law=law, delta=delta)
    records = [len(owned) / 3] * 3
    told = forecast(PilotEstimate.of_records(loss, x[public], y[public], 1.0, ""), steps, 100, answers, records, sample=False)
    x, y = x[owned], y[owned]
    average = trainings(loss, x, y, mean_variance(answers, records), 100, steps, 100)
    psi = relative_fitness(loss, average, optimum(loss, x, y, np.ones(len(y)), 1.0), x, y, np.ones(len(y)))
    assert 0.85 < psi.mean() / told.relative_fitness < 1.2
    assert np.mean((psi > told.low) & (psi < told.high)) > 0.8


@pytest.mark.parametrize("known", ["records", "moments"])
def test_steps_so_long_that_theta_leaves_its_box_are_followed_along_the_walls(known):
    loss, steps = QueryLoss("squared"), Steps("algorithm-2", 6.0, 1.0)
    x, y = population(500, 3, classes=False)
    y = 0.5 * y
    estimate = PilotEstimate.of_records(loss, x, y, 1.0, "")
    if known == "moments":
        estimate = replace(estimate, rows=None, replicas=(), slope=np.zeros(4))
    assert np.abs(estimate.best).max() < 0.9
    found = KnownLoss.of(estimate, steps, T)
    reached = float(loss.cost(noiseless(loss, steps, T, x, y, np.ones(500)), x, y, np.ones(500)))
    assert found.bias == pytest.approx(reached - estimate.least, rel=1e-6)
    free = KnownLoss.of(estimate, replace(steps, box=1e6), T)
    assert free.bias != pytest.approx(found.bias, rel=0.1)
    largest = np.linalg.eigvalsh(estimate.curvature)[-1]
    assert any("stops theta on its way" in one for one in found.limits)
    assert any(f"A step below {2 / largest:.3g} " in one for one in found.limits)
    assert any("too long" in one for one in forecast(estimate, steps, T, 0.0, [500]).assumptions)
    short = KnownLoss.of(estimate, replace(steps, size=1.9 / largest), T)
    assert not any("too long" in one for one in short.limits)


def test_too_few_public_records_are_refused():
    loss = QueryLoss("squared")
    x, y = population(200, 5, classes=False)
    least = 10 * x.shape[1]
    assert PilotEstimate.of_records(loss, x[:least], y[:least], 3.0, "").sampling > 0
    with pytest.raises(SettingsInvalid, match=f"{least - 1} are too few"):
        PilotEstimate.of_records(loss, x[: least - 1], y[: least - 1], 3.0, "some")
