"""A box that stops the best theta of a squared loss: the forecast follows the path, by records and by moments alike."""

import numpy as np
import pytest

from hedgerow.learn.queries import Inputs, QueryLoss, Steps
from hedgerow.market import PilotEstimate, estimate_of, propagate
from hedgerow.market.forecasts.forecast import of_zero
from hedgerow.market.forecasts.known_loss import KnownLoss
from hedgerow.market.forecasts.second_moments import PilotState


def boxed_loss(box):
    """A squared loss whose best theta lies on a wall of its box, by records and by their exact moments."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.55, 0.55, (2000, 3))
    y = np.clip(x @ [0.9, -0.3, 0.2] + rng.normal(0, 0.2, 2000), -1, 1)
    loss = QueryLoss("squared", 0.01)
    spec = Inputs(("a", "b", "c"), "t", (0.0,) * 3, (1.0,) * 3, radius=1.0)
    state = PilotState(1, x.T @ x, x.T @ y, float(y @ y), 0.0)
    return PilotEstimate.of_records(loss, x, y, box, "records"), estimate_of(state, loss, spec, 2000, box), (loss, x, y)


def test_a_box_that_stops_the_best_theta_of_a_squared_loss_is_followed():
    steps, horizon, deviation = Steps("algorithm-2", 1.0, 0.4), 60, 0.01
    rng = np.random.default_rng(1)
    estimate, _, (loss, x, y) = boxed_loss(steps.box)
    runs, found = [], propagate(estimate, steps, horizon)
    gram, towards = x.T @ x / len(y), x.T @ y / len(y)
    for _ in range(60):
        theta = average = np.zeros(3)
        for k in range(1, horizon + 1):
            gradient = 2 * (gram @ theta - towards) + loss.ridge * theta + rng.normal(0, deviation, 3)
            moved = steps.move(theta, gradient, k, horizon)
            theta, average = moved, steps.average(average, theta, moved, k, horizon)
        runs.append(float(loss.cost(average, x, y, np.ones(len(y)))) - estimate.least)
    assert np.mean(runs) == pytest.approx(found.excess(deviation**2), rel=0.05)


def test_moments_in_an_active_box_say_the_same_as_records():
    steps = Steps("algorithm-2", 1.0, 0.4)
    estimate, moments, _ = boxed_loss(steps.box)
    assert moments.best == pytest.approx(estimate.best, abs=1e-6)
    assert moments.least == pytest.approx(estimate.least, rel=1e-9)
    assert of_zero(moments) == pytest.approx(of_zero(estimate), rel=1e-6)
    one, other = (propagate(each, steps, 60) for each in (estimate, moments))
    assert one.bias == pytest.approx(other.bias, rel=1e-4)
    assert one.amplification == pytest.approx(other.amplification, rel=1e-6)
    assert one.sampling == pytest.approx(other.sampling, rel=0.1), "moments take residuals for independent of inputs"
    known = KnownLoss.of(moments, steps, 60)
    assert any("wall of its box" in limit for limit in known.limits)
