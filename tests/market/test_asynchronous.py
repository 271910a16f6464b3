"""Asynchronous queries: forecast against measurement, the note's ratios of noise, and what drawing in turn saves."""

import os
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.compare import cells
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries import Answers, QueryLoss, Steps, inputs
from hedgerow.learn.queries.inputs import X, Y
from hedgerow.learn.queries.keys import spec_of_keys
from hedgerow.market import PilotEstimate, asynchronous, mean_variance, propagate
from hedgerow.study import load

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
BOX, STEPS, ROUNDS = 50.0, Steps("algorithm-2", 0.2, 50.0), 30
OWNERS = tuple(f"owner {i}" for i in range(8))
RECORDS = dict.fromkeys(OWNERS, 400)


def rows(shift=0.0, n=400, seed=0, owners=8):
    """Records of owners whose best models lie `shift` apart: (owners, n, 3) and (owners, n)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (owners, n, 3)) * [1.0, 0.8, 0.6]
    own = np.array([0.5, -0.4, 0.2]) + shift * rng.normal(size=(owners, 3))
    return x, np.einsum("lnd,ld->ln", x, own) + rng.normal(scale=0.3, size=(owners, n))


def pooled(x, y):
    return PilotEstimate.of_records(QueryLoss("squared"), x.reshape(-1, x.shape[2]), y.ravel(), BOX, "the owners' own records")


def dealt(rng, runs, owners, every):
    """The step of each owner, of equally many owners in each but for one, shape (runs, owners)."""
    labels = rng.permuted(np.tile(np.arange(every), (runs, 1)), axis=1)
    return rng.permuted(labels[:, np.arange(owners) % every], axis=1)


def measured(x, y, answers, every, runs=600, coins=False, seed=1, steps=STEPS):
    """Mean excess of the loop of the box, many runs at once; noise of the plan's law and scale."""
    rng, n, d = np.random.default_rng(seed), x.shape[1], x.shape[2]
    h, c = 2 * np.einsum("lni,lnj->lij", x, x), 2 * np.einsum("lni,ln->li", x, y)
    scale = np.array([z for _, z in answers.multipliers])[:, None] * answers.bound.radius
    w = np.array([answers.weight(owner) for owner in OWNERS[: len(x)]])
    theta, average, horizon = np.zeros((runs, d)), np.zeros((runs, d)), answers.horizon * every
    draw = rng.laplace if answers.law == "laplace" else rng.normal
    for k in range(1, horizon + 1):
        if (k - 1) % every == 0:
            turn = dealt(rng, runs, len(x), every)
        asked = rng.random((runs, len(x))) < 1 / every if coins else turn == (k - 1) % every
        sums = np.einsum("lij,rj->rli", h, theta) - c + draw(scale=scale, size=(runs, len(x), d))
        total = np.einsum("rl,rli->ri", asked * w, sums)
        moved = steps.move(theta, every * total / (w.sum() * n), k, horizon)
        theta, average = moved, steps.average(average, theta, moved, k, horizon)
    best, curvature = pooled(x, y).best, 2 * np.einsum("lni,lnj->ij", x, x) / (len(x) * n)
    return float(np.einsum("ri,ij,rj->r", average - best, curvature, average - best).mean() / 2)


def gradients(x, y, best):
    return {OWNERS[i]: 2 * x[i].T @ (x[i] @ best - y[i]) / len(y[i]) for i in range(len(x))}


def planned(epsilon, law="laplace", rounds=ROUNDS, **more):
    return planned_for(OWNERS, epsilon, law, rounds, **more)


def planned_for(owners, epsilon, law="laplace", rounds=ROUNDS, **more):
    delta = 1e-6 if law == "gaussian" else 0
    return Answers.of(dict.fromkeys(owners, epsilon), rounds, radius=4.0, law=law, delta=delta, **more)


def forecast(x, y, answers, every, steps=STEPS):
    estimate = pooled(x, y)
    records = dict.fromkeys(OWNERS[: len(x)], x.shape[1])
    return asynchronous(estimate, steps, answers, records, every, gradients=gradients(x, y, estimate.best))


def from_the_best(shift, owners=8):
    """Records whose best model is zero: nothing is left to learn, and what is measured is noise and spread."""
    x, y = rows(shift, owners=owners)
    return x, y - x @ pooled(x, y).best


@pytest.mark.slow
@pytest.mark.parametrize("every", [2, 4])
@pytest.mark.parametrize(
    ("law", "epsilon", "shift"),
    [("laplace", 20.0, 0.0), ("gaussian", 20.0, 0.5), ("gaussian", 1e5, 1.0), ("laplace", 200.0, 0.5)],
)
def test_the_forecast_is_what_is_measured(law, epsilon, shift, every):
    for x, y in (rows(shift), from_the_best(shift)):
        answers = planned(epsilon, law)
        assert forecast(x, y, answers, every).excess / measured(x, y, answers, every) == pytest.approx(1, abs=0.12)


@pytest.mark.parametrize(("owners", "every"), [(3, 2), (4, 2), (4, 4), (5, 3)])
def test_the_forecast_knows_that_few_owners_are_dealt_evenly(owners, every):
    """Their terms depend on each other: of four owners the spread is 4/3 of what it is where each is dealt by itself."""
    (x, y), answers = from_the_best(1.0, owners), planned_for(OWNERS[:owners], 1e5, "gaussian", 12)
    found = forecast(x, y, answers, every)
    assert found.spread > 0.99 * found.excess
    assert found.excess / measured(x, y, answers, every, runs=1000) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("every", [2, 4])
def test_independent_coins_cost_what_the_note_says_and_turns_cost_a_twentieth_of_it(every):
    (x, y), answers = from_the_best(1.0), planned(1e5, "gaussian")
    found = forecast(x, y, answers, every)
    assert found.coins / measured(x, y, answers, every, coins=True) == pytest.approx(1, abs=0.12)
    assert measured(x, y, answers, every) < found.coins / 20


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
def test_the_forecast_is_what_is_measured_of_lending():
    """16 000 loans in the order of their years, eight owners; steps and radius of the bundled study."""
    study = next(cell.study for cell in cells(load("wu-queries")) if cell.row == "lending, linear regression")
    keys = {"constant": 0.0} | (study.program.model_extra or {})
    table = hr.data.load("lending_club_119987", data_dir=DATA).take(range(16_000))
    made = inputs(table.columns, spec=spec_of_keys(table.schema, keys))
    x, y, steps = made[X].reshape(8, 2000, -1), made[Y].reshape(8, 2000), Steps("algorithm-2", 2.0, BOX)
    for law, epsilon in (("laplace", 10.0), ("gaussian", 1.0)):
        answers = planned(epsilon, law, rounds=25)
        told = forecast(x, y, answers, 4, steps).excess
        assert 0.85 < told / measured(x, y, answers, 4, runs=100, steps=steps) < 1.2


@pytest.mark.parametrize(("law", "ratio"), [("laplace", lambda q: q), ("gaussian", lambda q: 1.0)])
@pytest.mark.parametrize("every", [2, 5])
def test_a_step_has_q_times_the_laplace_noise_and_all_of_the_gaussian_noise_of_everybody(law, ratio, every):
    together = mean_variance(planned(2.0, law, rounds=ROUNDS * every), [400] * 8)
    in_turn = every * mean_variance(planned(2.0, law), [400] * 8)
    assert in_turn / together == pytest.approx(ratio(1 / every), rel=1e-9)


def test_with_one_step_to_a_round_it_is_the_forecast_of_everybody():
    (x, y), answers = rows(0.5), planned(20.0, weights=dict(zip(OWNERS, np.linspace(0.2, 1, 8), strict=True)))
    found = forecast(x, y, answers, 1)
    assert (found.spread, found.coins) == pytest.approx((0, 0), abs=1e-18)
    assert found.excess == propagate(pooled(x, y), STEPS, ROUNDS).excess(mean_variance(answers, [400] * 8))


@pytest.mark.slow
def test_owners_that_are_drawn_alike_spread_as_the_scatter_of_their_records_says():
    """Mean over 40 draws of owners; a standard error is 4 %."""
    drawn = [forecast(*rows(0.0, 60, seed), planned(20.0), 3) for seed in range(40)]
    alike = [
        asynchronous(pooled(*rows(0.0, 60, seed)), STEPS, planned(20.0), RECORDS | dict.fromkeys(OWNERS, 60), 3)
        for seed in range(40)
    ]
    for cause in ("spread", "coins"):
        assert np.mean([getattr(one, cause) for one in alike]) / np.mean(
            [getattr(one, cause) for one in drawn]
        ) == pytest.approx(1, abs=0.15)


def test_a_declared_spread_is_that_of_gradients_of_its_length():
    """Owners on a sphere, in every direction of it alike: at a best model of zero both are the same number."""
    estimate = PilotEstimate(np.diag([0.5, 1.0, 0.2]), np.zeros(3), 1.0, np.zeros((3, 3)), "made")
    axes = [sign * 0.3 * np.eye(3)[i] for i in range(3) for sign in (1, -1)]
    owners = [f"owner {i}" for i in range(6)]
    answers, records = Answers.of(dict.fromkeys(owners, 1.0), 5, radius=4.0), dict.fromkeys(owners, 100)
    exact = asynchronous(estimate, STEPS, answers, records, 3, gradients=dict(zip(owners, axes, strict=True)))
    declared = asynchronous(estimate, STEPS, answers, records, 3, spread=0.3)
    assert declared.spread == pytest.approx(exact.spread, rel=1e-12)
    assert declared.coins == pytest.approx(exact.coins, rel=1e-12)


def test_the_ridge_is_nobodys_gradient():
    """One owner whose records pull to where the ridge pulls back: at the best model of both it still has a gradient."""
    x, y = rows()
    loss = QueryLoss("squared", 0.3)
    estimate = PilotEstimate.of_records(loss, x.reshape(-1, 3), y.ravel(), BOX, "own")
    own = gradients(x, y, estimate.best)
    np.testing.assert_allclose(np.mean(list(own.values()), axis=0), -0.3 * estimate.best, atol=1e-8)
    told = asynchronous(
        estimate, STEPS, planned(20.0), RECORDS, 3, ridge=0.3, gradients=dict.fromkeys(OWNERS, -0.3 * estimate.best)
    )
    guessed = asynchronous(estimate, STEPS, planned(20.0), RECORDS, 3, ridge=0.3, spread=0.0)
    assert guessed.spread == pytest.approx(told.spread, rel=1e-9)


@pytest.mark.parametrize(
    "wrong", [{"every": 0}, {"every": 1.5}, {"spread": -1.0}, {"gradients": {}}, {"records": {"owner 1": 5}}]
)
def test_what_is_not_said_or_out_of_range_is_refused(wrong):
    x, y = rows()
    settings = {"records": RECORDS, "every": 2} | wrong
    with pytest.raises(SettingsInvalid, match="HR-511"):
        asynchronous(pooled(x, y), STEPS, planned(20.0), **settings)
