"""The noisy question before the first gradient: its ball by brute force, engines, its estimate, and declared bounds."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.learn.queries import Inputs, QueryLoss, Steps, inputs, loss_of, optimum
from hedgerow.market import PilotEstimate, estimate_of, forecast, pilot_moments, propagate, worst_case
from hedgerow.market.forecasts.second_moments import FLOOR, PilotState, moment_rows, parts_of
from hedgerow.stats.private.second_moments import unit_moments
from helpers import ENGINE_NAMES, ENGINES

BOXED = Inputs(("a", "b", "c"), "t", (0.0,) * 3, (1.0,) * 3)
SPECS = {"box": BOXED, "ball": replace(BOXED, radius=1.0), "ball and constant": replace(BOXED, radius=1.0, constant=0.5)}
LOSSES = {"squared": QueryLoss("squared"), "hinge": QueryLoss("hinge", 3.0)}
SQUARED = LOSSES["squared"]


def table(n=300, classes=False):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (n, 3))
    t = np.clip(x @ [0.5, -0.4, 0.1] + rng.normal(scale=0.2, size=n), -1, 1)
    columns = [hr.data.Column(name, "number", low=-1, high=1) for name in "abc"]
    target = hr.data.Column("t", "binary", "target") if classes else hr.data.Column("t", "number", "target", low=-1, high=1)
    values = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "t": (t > 0).astype(float) if classes else t}
    return hr.data.Table(values, hr.data.Schema((*columns, target)))


def federation(engine=None, **kwargs):
    return hr.simulate(table(**kwargs), hr.data.iid(parties=3), seed=0, engine=engine)


def asked(fed, loss=SQUARED, spec=BOXED, **more):
    (state,) = pilot_moments(fed, loss=loss, spec=spec, **more)
    return state


def contribution(loss, spec, row, target):
    columns = {**dict(zip("abc", np.array(row, float)[:, None], strict=True)), "t": np.array([target])}
    party = Party("one", moment_rows(columns, spec=spec), np.ones(1))
    return unit_moments(None, party, None, parts=parts_of(loss, spec), labels=False)


@pytest.mark.parametrize("shape", SPECS)
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("norm", [1, 2])
def test_no_record_is_beyond_the_ball_and_some_corner_reaches_it(kind, shape, norm):
    loss, spec = LOSSES[kind], SPECS[shape]
    bound = parts_of(loss, spec).bound(norm, 1, l1=spec.length(1), l2=spec.length(2))
    corners = [c for c in product([-9.0, -1.0, 0.0, 1.0, 9.0], repeat=3) if any(c)]
    lengths = [np.linalg.norm(contribution(loss, spec, c, t), norm) for c in corners for t in (-1.0, 0.3, 1.0)]
    assert max(lengths) == pytest.approx(bound.radius)
    assert max(lengths) <= bound.radius * (1 + 1e-12)


def test_the_whole_matrix_of_inputs_and_target_has_the_length_of_the_row_squared():
    assert parts_of(SQUARED, SPECS["ball"]).bound(2, 1).radius == pytest.approx(2.0)  # |x|^2 + t^2


def test_without_noise_the_estimate_is_the_one_of_the_records():
    x = np.column_stack([table()[name] for name in "abc"])
    loss = QueryLoss("squared", 0.01)
    state = asked(federation(), loss, epsilon=None)
    found = estimate_of(state, loss, BOXED, 300, 1.0)
    exact = PilotEstimate.of_records(loss, x, table()["t"], 1.0, "the records")
    np.testing.assert_allclose(found.curvature, exact.curvature, atol=1e-12)
    np.testing.assert_allclose(found.best, exact.best, atol=1e-9)
    assert found.least == pytest.approx(exact.least)
    assert found.sampling == pytest.approx(exact.sampling, rel=0.1)  # residuals are as large everywhere in this table


def test_with_noise_every_seed_is_charged_what_it_was_given_and_the_estimate_is_near():
    fed = federation()
    state = asked(fed, epsilon=2.0, delta=1e-6)
    assert fed.ledger.epsilon(delta=1e-6) == pytest.approx(2.0, rel=1e-3)
    exact = asked(federation(), epsilon=None)
    assert np.abs(state.score - exact.score).max() < 5 * state.noise
    assert np.abs(np.diag(state.gram - exact.gram)).max() < 5 * 2**0.5 * state.noise
    assert not np.array_equal(state.gram, exact.gram)


def test_the_declared_deviation_is_that_of_the_noise():
    """50 noisy scores and diagonals of 3 numbers each: deviations are known to 6 %."""
    one = partial(asked, epsilon=1.0, spec=SPECS["ball"])
    states = [one(hr.simulate(table(30), hr.data.iid(parties=3), seed=seed)) for seed in range(50)]
    exact = asked(hr.simulate(table(30), hr.data.iid(parties=3), seed=0), epsilon=None, spec=SPECS["ball"])
    scores = np.array([s.score for s in states]) - exact.score
    diagonals = np.array([np.diag(s.gram) for s in states]) - np.diag(exact.gram)
    assert scores.std() == pytest.approx(states[0].noise, rel=0.25)
    assert diagonals.std() == pytest.approx(2**0.5 * states[0].noise, rel=0.25)


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_every_engine_asks_the_same(engine):
    found = asked(federation(engine), epsilon=1.0)
    np.testing.assert_array_equal(found.gram, asked(federation(), epsilon=1.0).gram)


def test_eigenvalues_and_the_least_loss_have_a_floor_that_noise_cannot_break():
    state = PilotState(1, -np.eye(3), np.ones(3), -5.0, 1.0)
    found = estimate_of(state, SQUARED, BOXED, 100, 1.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(found.curvature), 2 * FLOOR)
    assert found.least == FLOOR
    assert np.abs(found.best).max() <= 1.0


def test_a_hinge_with_ridge_enough_needs_no_curvature():
    spec = replace(SPECS["ball"], classes=True)
    loss, fed = loss_of("svm"), federation(classes=True)
    state = asked(fed, loss, spec, epsilon=None)
    assert not state.gram.any()
    found = estimate_of(state, loss, spec, 300, 1.0)
    prepared = inputs(table(classes=True).columns, spec=spec)
    x, y = prepared["queried x"], prepared["queried y"]
    np.testing.assert_allclose(found.best, optimum(loss, x, y, np.ones(300), 1.0), atol=1e-5)
    np.testing.assert_array_equal(found.curvature, np.eye(3))
    assert found.least == pytest.approx(float(loss.cost(found.best, x, y, np.ones(300))))
    assert found.sampling >= PilotEstimate.of_records(loss, x, y, 1.0, "").sampling - 1e-9


def test_a_hinge_with_less_ridge_is_refused_before_anybody_is_asked():
    fed = federation(classes=True)
    with pytest.raises(SettingsInvalid, match="on the kink"):
        asked(fed, loss_of("svm", 0.001), replace(SPECS["ball"], classes=True))
    with pytest.raises(SettingsInvalid, match="no bound"):
        worst_case(loss_of("svm", 0.001), SPECS["ball"], Steps(), 10, 1.0, 0.1)
    assert not len(fed.ledger)


def test_a_logistic_loss_is_refused_before_anybody_is_asked():
    """Its parabola at theta = 0 told a fifth of what was reached on made classes: no interval around that is right."""
    fed = federation(classes=True)
    with pytest.raises(SettingsInvalid, match="up to five times"):
        asked(fed, QueryLoss("logistic", 0.05), replace(SPECS["ball"], classes=True))
    assert not len(fed.ledger)


def test_weights_without_a_range_are_refused():
    schema = hr.data.Schema((*table().schema.columns, hr.data.Column("w", "number", "weight")))
    weighted = hr.data.Table({**table().columns, "w": np.ones(300)}, schema)
    with pytest.raises(UnboundedSum):
        asked(hr.simulate(weighted, hr.data.iid(parties=3), seed=0))


# ---- declared bounds ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_no_curvature_within_the_bounds_has_a_worse_forecast(kind):
    """60 curvatures and optima within the bounds, some at their ends."""
    loss, spec, steps, v = QueryLoss(kind, 0.01), SPECS["ball"], Steps("algorithm-2", 0.5, 1.0), 0.01
    worst = worst_case(loss, spec, steps, 30, v, 0.1)
    most = propagate(worst, steps, 30).excess(v)
    rng, top = np.random.default_rng(0), 0.01 + (2.0 if kind == "squared" else 0.25)
    for _ in range(60):
        h = 0.01 + (top - 0.01) * rng.random(3) ** rng.integers(1, 6)
        at = rng.normal(size=3)
        at *= min(1.0, np.linalg.norm(worst.best) / np.linalg.norm(at))
        some = PilotEstimate(np.diag(h), at, 0.1, np.zeros((3, 3)), "")
        assert propagate(some, steps, 30).excess(v) <= most * (1 + 1e-3)
    assert forecast(worst, steps, 30, v, [1.0]).excess == pytest.approx(most)
    assert "pessimistic" in worst.source


def test_a_least_loss_has_to_be_declared():
    with pytest.raises(SettingsInvalid, match="least loss of 0"):
        worst_case(SQUARED, SPECS["ball"], Steps(), 10, 1.0, 0.0)


def test_what_is_raised_to_the_floor_is_said():
    loss, spec = loss_of("linear", 0.0), Inputs(("a", "b"), "t", (0.0,) * 2, (1.0,) * 2, radius=1.0)
    fine = PilotState(1, np.diag([200.0, 300.0]), np.array([50.0, 20.0]), 90.0, 4.0)
    assert "rough" not in estimate_of(fine, loss, spec, 1000, 1.0).source
    drowned = PilotState(1, np.diag([200.0, -30.0]), np.array([90.0, 20.0]), 20.0, 40.0)
    said = estimate_of(drowned, loss, spec, 1000, 1.0).source
    assert (
        "below 0.001, and taken for that: 1 of 2 eigenvalues of their second moments and f*, so the forecast is rough" in said
    )
