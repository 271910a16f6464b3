"""Private fits at the parties: what a record pays, what leaves a party, and that neighbours are as close as is said."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.events import Event
from hedgerow.crypto import SecAgg
from hedgerow.data import Column, Schema, Table, iid, load
from hedgerow.engines import simulate
from hedgerow.errors import BudgetInvalid, MixedUnits, SettingsInvalid, UnlawfulChannel
from hedgerow.stats.private import locally, private_local
from hedgerow.stats.private.locally import LocalState, _score
from hedgerow.stats.private.minima import PlannedMinimum
from hedgerow.stats.private.nearest import minimise
from hedgerow.stats.private.objective import MarginLoss, objective_noise, objective_penalty

DATA = Path(os.environ.get("HEDGEROW_DATA", Path(__file__).parents[4] / "shared" / "data"))
FORMULA = "malignant ~ mean_texture + mean_smoothness"


def federation(parties=3, n=200, **more):
    return simulate(load("breast_cancer").take(range(n)), iid(parties=parties), seed=0, **more)


def unit(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1)[:, None], (rng.random(n) < 0.5).astype(float), np.ones(n)


@pytest.mark.slow
@pytest.mark.parametrize("parties", [1, 4])
@pytest.mark.parametrize(
    ("method", "delta", "kind"),
    [("objective", 1e-5, "approximate"), ("objective", 0.0, "pure"), ("output", 1e-5, "gaussian"), ("output", 0.0, "pure")],
)
def test_a_record_pays_for_its_own_partys_answer_alone(parties, method, delta, kind):
    asked = federation(parties)
    fit = locally(asked, FORMULA, epsilon=2.0, delta=delta, method=method)
    (entry,) = asked.ledger.entries
    assert entry.event.kind == kind
    assert asked.ledger.epsilon(delta=delta or 1e-12, unit="record") == pytest.approx(2.0, rel=1e-9)
    with pytest.raises(MixedUnits):
        asked.ledger.epsilon(delta=1e-5, unit="party")
    assert fit.spent is not None
    assert fit.spent[0] == pytest.approx(2.0, rel=1e-9)
    assert "not differentially private" not in fit.summary()
    assert fit.covariance is None


def test_with_a_large_budget_it_is_the_penalised_fit_of_each_party():
    rows = federation(1)
    fit = locally(rows, FORMULA, epsilon=1e7, delta=1e-2, penalty=3.0)
    X = fit.rows.rows(load("breast_cancer").take(range(200)).columns, 200)
    y = fit.rows.targets(load("breast_cancer").take(range(200)).columns)
    exact = minimise(X, y, np.ones(200), np.zeros(X.shape[1]), loss=MarginLoss(), penalty=3.0, tolerance=1e-8).theta
    assert fit.coef_ == pytest.approx(exact, abs=1e-3)


def test_the_mean_is_over_the_parties_that_answered():
    (state,) = private_local(federation(4), formula=FORMULA, epsilon=1e7, delta=1e-2, penalty=3.0)
    assert state.parties == 4
    assert list(private_local(federation(4), formula=FORMULA, epsilon=1.0, delta=1e-5, start=state)) == []


def test_noise_of_the_plan_is_the_sigma_of_its_budget():
    plan = PlannedMinimum("objective", 1.0, 1e-5, objective_penalty(1.0))
    assert plan.sigma == pytest.approx(objective_noise(1.0, 1e-5, objective_penalty(1.0)), rel=2e-3)
    assert plan.distance * plan.output_noise < 1e-2 * plan.sigma / plan.penalty  # what covers the solver is next to nothing


def told_apart(plan, epsilon, n=1200):
    """Whether answers with and without a record differ by more than epsilon and delta on a half-line (chance 1e-5)."""
    source = np.random.default_rng(3).bytes
    drawn = [np.array([plan.released(np.ones((k, 1)), np.ones(k), np.ones(k), source)[0] for _ in range(n)]) for k in (0, 1)]
    for a, b in (drawn, drawn[::-1]):
        for cut in np.quantile(np.concatenate(drawn), [0.1, 0.3, 0.5, 0.7, 0.9]):
            for sign in (1, -1):
                p, q = (float((sign * values <= sign * cut).mean()) for values in (a, b))
                slack = 5 * math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / n)
                if p > math.exp(epsilon) * q + plan.delta + slack:
                    return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("method", "delta"), [("objective", 1e-2), ("objective", 0.0), ("output", 1e-2), ("output", 0.0)])
def test_neighbours_are_as_close_as_is_said_and_a_twin_with_little_noise_is_caught(method, delta):
    assert not told_apart(PlannedMinimum(method, 0.5, delta, 2.0), 0.5)
    assert told_apart(PlannedMinimum(method, 60.0, delta, 2.0), 0.5)


def test_a_row_that_is_too_long_or_not_finite_is_held():
    plan = PlannedMinimum("objective", 1.0, 1e-5, 2.0, heaviest=2.0)
    X, y, w = plan.within(
        np.array([[30.0, 40.0], [np.nan, 0.0], [0.3, 0.4]]), np.array([7.0, 1.0, 0.0]), np.array([9.0, 1.0, 1.0])
    )
    assert np.linalg.norm(X, axis=1) == pytest.approx([1.0, 0.0, 0.5])
    assert (np.linalg.norm(X, axis=1) <= 1).all()
    assert y.tolist() == [1.0, 0.0, 0.0]
    assert w.tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(("method", "delta"), [("objective", 1e-5), ("objective", 0.0), ("output", 1e-5), ("output", 0.0)])
def test_what_leaves_is_on_a_grid_that_no_record_decides(method, delta):
    plan = PlannedMinimum(method, 1.0, delta, 2.0)
    for n in (0, 40):
        found = plan.released(*unit(n, 3), np.random.default_rng(n).bytes)
        steps = found / 2.0**-60  # a step is a power of two far above this
        assert (np.abs(found) < 1e3).all()
        assert (steps % 2.0**10 == 0).all()


def test_behind_secure_aggregation_it_is_the_same_mean():
    plain = locally(federation(4), FORMULA, epsilon=1.0, delta=1e-5)
    hidden = locally(federation(4).protect(aggregation=SecAgg(largest=1e3)), FORMULA, epsilon=1.0, delta=1e-5)
    assert hidden.coef_ == pytest.approx(plain.coef_, abs=1e-5)
    assert hidden.spent == plain.spent


def labelled(label="binary"):
    """Six records: the first lacks its number, the second is three times as heavy as others."""
    columns = {"x": [math.nan, 0.9, 0.8, 0.1, 0.2, 0.3], "b": [1, 0, 1, 0, 0, 0], "w": [1, 3, 1, 1, 1, 1]}
    declared = (
        Column("x", "number", low=0.0, high=1.0, optional=True),
        Column("b", "binary") if label == "binary" else Column("b", label, low=0, high=1),
        Column("w", "number", low=0.0, high=3.0),
    )
    return Table({name: np.array(values, float) for name, values in columns.items()}, Schema(declared))


def test_the_score_is_of_records_that_lack_nothing_by_their_weights():
    state, table = LocalState(1, np.array([-0.5, 1.0]), 1.0), labelled()
    assert _score({"formula": "b ~ x"}, state, table.schema, table) == pytest.approx(4 / 5)
    assert _score({"formula": "b ~ x", "weights": "w"}, state, table.schema, table) == pytest.approx(4 / 7)


@pytest.mark.parametrize("loss", ["logistic", "svm"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_default_settings_are_lawful_at_every_epsilon(loss, delta):
    """A quarter of a large epsilon left a penalty of exactly the hinge's curvature, which is refused."""
    assert locally(federation(1, 40), FORMULA, epsilon=1e4, delta=delta, loss=loss).spent[0] == pytest.approx(1e4)


def test_an_epsilon_too_small_for_floating_point_numbers_is_refused_before_a_party_is_asked():
    asked = federation()
    with pytest.raises(BudgetInvalid, match="too large for floating-point numbers"):
        locally(asked, FORMULA, epsilon=1e-9)
    assert len(asked.ledger) == 0


def test_refusals():
    with pytest.raises(BudgetInvalid, match="determinant"):
        PlannedMinimum("objective", 1.0, 1e-5, 0.25)
    with pytest.raises(SettingsInvalid):
        PlannedMinimum("functional", 1.0, 1e-5, 2.0)
    with pytest.raises(BudgetInvalid):
        PlannedMinimum("output", 0.0, 1e-5, 2.0)
    with pytest.raises(SettingsInvalid, match="two classes"):
        locally(
            simulate(load("diabetes").take(range(50)).declare(progression=(1, 400)), iid(parties=1)),
            "progression ~ bmi",
            epsilon=1.0,
        )
    for label in ("number", "binary"):
        table = labelled(label)
        if label == "binary":
            locally(simulate(table, iid(parties=1)), "b ~ x", epsilon=1.0, delta=1e-5)
            continue
        with pytest.raises(SettingsInvalid, match="two classes"):
            locally(simulate(table, iid(parties=1)), "b ~ x", epsilon=1.0, delta=1e-5)
    for method in ("objective", "output"):
        with pytest.raises(SettingsInvalid, match="penalty is 0"):
            locally(federation(), FORMULA, epsilon=1.0, delta=1e-5, method=method, penalty=0.0)
    noisy = federation().protect(mechanism=hr.Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="own noise"):
        locally(noisy, FORMULA, epsilon=1.0, delta=1e-5)


def test_the_event_is_that_of_the_noise():
    plan = PlannedMinimum("output", 1.0, 1e-5, 30.0)
    assert plan.event() == Event("gaussian", plan.output_noise)
    assert plan.distance > 1 / 30


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="no data folder")
def test_cardio_is_as_accurate_as_the_note_says(monkeypatch):
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    table = load("cardio")
    order = np.random.default_rng(0).permutation(len(table))
    train, test = table.take(order[:52561]), table.take(order[52561:])
    fit = locally(simulate(train, iid(parties=1), seed=1), "cardio ~ . - id", epsilon=0.1, delta=1e-5, bins=8)
    right = (fit.predict(test) > 0.5) == (test.columns["cardio"] > 0)
    assert right.mean() > 0.71  # 72.5 % measured
