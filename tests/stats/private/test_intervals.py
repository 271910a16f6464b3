"""Intervals of private fits: the known noise, the public conditions, and coverage by simulation at fixed seeds."""

import importlib.util
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.core.whole import in_steps
from hedgerow.crypto import SecAgg
from hedgerow.data import Column, Schema, Table, iid, load
from hedgerow.engines import simulate
from hedgerow.errors import FormulaInvalid, NotBinary, SettingsInvalid
from hedgerow.stats import linear_regression, logistic_regression
from hedgerow.stats.private import inference, linear, logistic, private_inference
from hedgerow.stats.private.inference_plan import PRODUCTS, InferencePlan
from hedgerow.stats.private.intervals import MOST_NOISE, from_last_step, from_moments, kept_columns_of, noise_along
from hedgerow.stats.private.newton import damped, null_model
from hedgerow.stats.private.rows import UnitRows
from hedgerow.stats.private.second_moments import residual_moments

DATA = Path(os.environ.get("HEDGEROW_DATA", Path(__file__).parents[4] / "shared" / "data"))
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SHARE = Column("share", "number", low=0.0, high=1.0, role="target")
CLASSES = "malignant ~ mean_texture + mean_smoothness"


@pytest.fixture(scope="module")
def cancer():
    return simulate(load("breast_cancer"), iid(parties=3), seed=0)


def symmetric(rng, d, noise):
    found = noise * rng.normal(size=(d, d))
    return (found + found.T) / 2


# ---- the mathematics ----------------------------------------------------------------------------------------------------
def test_the_noise_of_a_matrix_times_a_vector_is_as_said():
    rng, theta = np.random.default_rng(0), np.array([1.0, -2.0, 0.5])
    flat = 2.0 * rng.normal(size=(10000, 3, 3))
    drawn = (flat + flat.transpose(0, 2, 1)) / 2 @ theta
    assert np.cov(drawn.T) == pytest.approx(noise_along(theta, 2.0), abs=0.7)


def moments(n, d=4, residual=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.random((n, d - 1))]) / math.sqrt(d)
    theta = np.linspace(0.5, -0.5, d)
    y = X @ theta + residual * rng.normal(size=n)
    return X, y, theta


def test_without_noise_moments_give_the_textbook_intervals():
    X, y, _ = moments(500)
    found = from_moments(X.T @ X, X.T @ y, float(y @ y), n=500, noise=(0.0, 0.0, 0.0))
    theta, squares, *_ = np.linalg.lstsq(X, y)
    assert found.coef == pytest.approx(theta)
    assert found.covariance == pytest.approx(squares[0] / 496 * np.linalg.inv(X.T @ X))


def test_the_covariance_is_that_of_repeated_releases():
    """Records stay, noise is drawn anew: what varies is the noise, whose part of the covariance is known."""
    X, y, _ = moments(20000)
    noise, rng = (10.0, 12.0, 20.0), np.random.default_rng(1)
    gram, score, square = X.T @ X, X.T @ y, float(y @ y)
    exact = from_moments(gram, score, square, n=20000, noise=(0.0, 0.0, 0.0))
    found = [
        from_moments(
            gram + symmetric(rng, 4, noise[0]),
            score + noise[1] * rng.normal(size=4),
            square + noise[2] * rng.normal(),
            n=20000,
            noise=noise,
        )
        for _ in range(800)
    ]
    of_noise = np.cov(np.array([one.coef for one in found]).T)
    said = np.mean([one.covariance for one in found], axis=0) - exact.covariance
    assert np.diag(of_noise) == pytest.approx(np.diag(said), rel=0.2)
    middle = np.mean([one.coef for one in found], axis=0)
    assert np.abs(middle - exact.coef).max() < 4 * math.sqrt(of_noise.max() / 800)  # the bias of E is taken off


def test_a_twin_that_forgets_the_noise_of_the_matrix_is_caught():
    X, y, _ = moments(20000)
    gram, score, square, rng = X.T @ X, X.T @ y, float(y @ y), np.random.default_rng(2)
    noise = 25.0
    found = [from_moments(gram + symmetric(rng, 4, noise), score, square, n=20000, noise=(noise, 0.0, 0.0)) for _ in range(300)]
    spread = np.array([one.coef for one in found]).std(0)
    ours = np.median([np.sqrt(np.diag(one.covariance)) for one in found], axis=0)
    twin = np.sqrt(np.diag(from_moments(gram, score, square, n=20000, noise=(0.0, 0.0, 0.0)).covariance))
    assert (ours > 0.8 * spread).all()
    assert (twin < 0.6 * spread).all()


@pytest.mark.parametrize(("share", "told"), [(0.9, True), (1.1, False)])
def test_a_matrix_that_noise_makes_uncertain_gives_no_intervals(share, told):
    X, y, _ = moments(20000)
    gram = X.T @ X
    noise = share * np.linalg.eigvalsh(gram)[0] / math.sqrt(4)
    for found in (
        from_moments(gram, X.T @ y, float(y @ y), n=20000, noise=(noise * MOST_NOISE["moments"], 0.0, 0.0)),
        from_last_step(np.zeros(4), np.zeros(4), gram, n=20000, weight=5000, noise=(1.0, noise * MOST_NOISE["last step"])),
    ):
        assert (found.covariance is not None) == told
        assert found.words.startswith("no intervals") != told


def test_other_reasons_for_no_intervals():
    X, y, theta = moments(5000, residual=0.01)
    residual = from_moments(X.T @ X, X.T @ y, float(y @ y), n=5000, noise=(0.0, 0.0, 3.0))
    assert "residual" in residual.words
    assert residual.covariance is None
    far = from_last_step(np.zeros(4), X.T @ X @ (2 * theta), X.T @ X, n=20000, weight=5000, noise=(1.0, 0.0))
    assert "last step" in far.words
    assert far.coef == pytest.approx(2 * theta)
    singular = from_moments(np.zeros((2, 2)), np.ones(2), 1.0, n=5, noise=(1.0, 1.0, 1.0))
    assert singular.covariance is None
    assert np.isfinite(singular.coef).all()


@pytest.mark.parametrize(("n", "told"), [(2000, True), (200000, False)])
def test_what_a_last_step_leaves_out_is_held_against_the_standard_error(n, told):
    """A step of 0.15 in log-odds: its square is far below a standard error of 2 000 records, and not of 200 000."""
    information = 0.05 * n * np.diag([0.5, 0.5])
    found = from_last_step(np.zeros(2), information @ [0.15, 0.15], information, n=n, weight=0.05 * n, noise=(0.0, 0.0))
    assert (found.covariance is not None) == told
    assert ("last step" in found.words and "leave out" in found.words) != told


def test_the_noise_of_residual_squares_refuses_nothing_where_that_of_the_moments_is_larger():
    """A refusal by squares alone would keep the releases whose errors made squares large, and intervals would not hold them."""
    X, y, _ = moments(20000, residual=0.02)
    noise, rng = (10.0, 12.0, 3.0), np.random.default_rng(3)
    gram, score, square = X.T @ X, X.T @ y, float(y @ y)
    exact = np.linalg.solve(gram, score)
    inside = []
    for _ in range(200):
        drawn = gram + symmetric(rng, 4, noise[0]), score + noise[1] * rng.normal(size=4), square + noise[2] * rng.normal()
        found = from_moments(*drawn, n=20000, noise=noise)
        assert found.covariance is not None
        inside.append(np.abs(found.coef - exact) < 1.96 * np.sqrt(np.diag(found.covariance)))
    assert 0.93 <= np.mean(inside) <= 0.97


def test_the_first_step_of_a_logistic_regression_is_the_constant_alone():
    assert null_model(-4500.0, 10000.0, 0.0) == pytest.approx(math.log(0.05 / 0.95))
    assert 0 < null_model(4.0, 10.0, 2.0) < null_model(4.0, 10.0, 1.0) < math.log(9)  # never beyond its noise
    assert null_model(5.0, 0.0, 1.0) == 0.0


def test_a_damped_step_is_no_longer_than_said():
    assert damped(np.eye(2), 0.0, np.array([1.0, -2.0]), 3.0) == pytest.approx([1.0, -2.0])
    assert damped(np.eye(2), 0.0, np.array([2.0, -6.0]), 3.0) == pytest.approx([1.0, -3.0])
    assert np.abs(damped(-np.eye(2), 0.5, np.array([1.0, 1.0]), 100.0)).max() == pytest.approx(math.sqrt(2))


# ---- over parties -------------------------------------------------------------------------------------------------------
def test_categories_lose_their_reference_and_nothing_else():
    schema = load("breast_cancer").schema
    rows = UnitRows.of(CLASSES, schema)
    assert kept_columns_of(rows).all()
    table = load("diabetes").declare(progression=(1, 400))
    rows = UnitRows.of("progression ~ bmi + sex + bmi:sex", table.schema)
    lost = [name for name, kept in zip(rows.names, kept_columns_of(rows), strict=True) if not kept]
    assert lost == ["sex[1]", "bmi:sex[1]"]


def test_without_noise_it_is_logistic_regression(cancer):
    fit, exact = inference(cancer, CLASSES), logistic_regression(cancer, CLASSES)
    own = fit.own_intervals()
    assert own["coef"].to_numpy() == pytest.approx(exact.coef_, rel=2e-2)
    assert own["se"].to_numpy() == pytest.approx(exact.se_, rel=5e-2)
    assert fit.spent is None


def test_without_noise_it_is_linear_regression():
    table = load("diabetes").declare(progression=(1, 400))
    asked = simulate(table, iid(parties=2), seed=0)
    fit, exact = inference(asked, "progression ~ bmi + sex"), linear_regression(asked, "progression ~ bmi + sex")
    own = fit.own_intervals().drop("sex[1]")
    assert own["coef"].to_numpy() == pytest.approx(exact.coef_)
    assert own["se"].to_numpy() == pytest.approx(exact.se_)
    assert fit.own_intervals().loc["sex[1]"].abs().max() == 0.0


@pytest.mark.slow
def test_a_budget_is_spent_and_said(cancer):
    asked = simulate(load("breast_cancer"), iid(parties=3), seed=0)
    fit = inference(asked, CLASSES, epsilon=1.0, delta=1e-5)
    assert asked.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(1.0, rel=1e-3)
    assert fit.covariance is None
    assert fit.inference in fit.summary().replace("\n                 ", " ")
    for refused in (fit.conf_int, fit.own_intervals):
        with pytest.raises(SettingsInvalid, match="no intervals") as told:
            refused()
        assert "Take intervals=True" not in str(told.value)
    large = inference(simulate(load("breast_cancer"), iid(parties=3), seed=0), CLASSES, epsilon=1e4, delta=1e-2)
    exact = inference(cancer, CLASSES)
    assert large.coef_ == pytest.approx(exact.coef_, rel=0.1)
    assert (large.se_ > exact.se_ * 0.9).all()
    assert "no standard errors" not in large.summary()


def test_a_run_goes_on_where_it_ended(cancer):
    states = list(private_inference(cancer, formula=CLASSES))
    rest = list(private_inference(cancer, formula=CLASSES, start=states[4]))
    assert [state.round for state in states] == list(range(1, 12))
    assert rest[-1].coef == pytest.approx(states[-1].coef)
    plan = InferencePlan.of(
        cancer.schema, dict.fromkeys(("epsilon", "delta", "weights")) | {"formula": CLASSES, "noise_at": "server", "least": 0}
    )
    assert plan.estimated(cancer, rest[-1]).coef == pytest.approx(plan.estimated(cancer, states[-1]).coef)


def test_refusals(cancer):
    with pytest.raises(FormulaInvalid, match="constant"):
        inference(cancer, CLASSES + " - 1", epsilon=1.0, delta=1e-5)
    levels = simulate(load("diabetes").declare(progression=(1, 400)), iid(parties=2), seed=0)
    with pytest.raises(FormulaInvalid, match="constant"):  # the levels of sex add up to one, which is no constant
        inference(levels, "progression ~ bmi + sex - 1")
    with pytest.raises(SettingsInvalid, match="Laplace"):
        inference(cancer, CLASSES, epsilon=1.0)
    with pytest.raises(SettingsInvalid, match="Gaussian"):
        inference(cancer.protect(mechanism=hr.Laplace(1.0)), CLASSES)


def test_some_of_the_parties_give_no_intervals(cancer):
    before = len(cancer.ledger)
    for some in (cancer.sample(rate=0.5), cancer.pick(cancer.names[:2])):
        with pytest.raises(SettingsInvalid, match="some of the parties"):
            inference(some, CLASSES)
    assert len(cancer.ledger) == before
    numbers = simulate(load("diabetes").declare(progression=(1, 400)), iid(parties=2), seed=0)
    assert inference(numbers.sample(records=0.9), "progression ~ bmi").covariance is not None


def test_a_number_in_the_unit_interval_is_a_linear_regression():
    table = load("diabetes").declare(progression=(1, 400))
    share = np.asarray(table["progression"]) / 400
    numbers = Table({"bmi": table["bmi"], "share": share}, Schema((table.schema["bmi"], SHARE)))
    fit = inference(simulate(numbers, iid(parties=2), seed=0), "share ~ bmi")
    assert (fit.model, fit.rounds) == ("linear", 1)


def test_the_calls_have_intervals(cancer):
    fit = logistic(cancer, CLASSES, intervals=True)
    assert fit.coef_ == pytest.approx(inference(cancer, CLASSES).coef_)
    assert fit.covariance is not None
    numbers = simulate(load("diabetes").declare(progression=(1, 400)), iid(parties=2), seed=0)
    assert linear(numbers, "progression ~ bmi", intervals=True).covariance is not None
    with pytest.raises(SettingsInvalid, match="bins=4"):
        logistic(cancer, CLASSES, intervals=True, bins=4)
    with pytest.raises(SettingsInvalid, match="method='gradient'"):
        logistic(cancer, CLASSES, intervals=True, method="gradient")
    with pytest.raises(SettingsInvalid, match="method='adassp'"):
        linear(numbers, "progression ~ bmi", intervals=True, method="adassp")
    with pytest.raises(NotBinary, match="a number"):
        logistic(numbers, "progression ~ bmi", intervals=True)


# ---- residuals of any variance ------------------------------------------------------------------------------------------
PROGRESSION = "progression ~ bmi + bp + s1"


def test_without_noise_robust_intervals_are_hc1_of_statsmodels():
    table = load("diabetes").declare(progression=(1, 400))
    asked = simulate(table, iid(parties=2), seed=0)
    own = inference(asked, PROGRESSION, robust=True).own_intervals()
    X = sm.add_constant(np.column_stack([table[name] for name in ("bmi", "bp", "s1")]))
    exact = sm.OLS(np.asarray(table["progression"], float), X).fit(cov_type="HC1")
    np.testing.assert_allclose(own["coef"], exact.params, rtol=1e-9)
    np.testing.assert_allclose(own["se"], exact.bse, rtol=1e-9)
    hidden = simulate(table, iid(parties=3), seed=0).protect(aggregation=SecAgg())
    np.testing.assert_allclose(inference(hidden, PROGRESSION, robust=True).own_intervals()["se"], exact.bse, rtol=1e-6)


def test_robust_intervals_ask_twice_and_spend_one_budget():
    table = load("diabetes").declare(progression=(1, 400))
    asked = simulate(table, iid(parties=2), seed=0)
    fit = inference(asked, PROGRESSION, epsilon=1.0, delta=1e-5, robust=True)
    assert asked.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(1.0, rel=1e-3)
    assert [entry.numbers for entry in asked.ledger.entries] == [4 * 4 + 4 + 1, 4 * 4]
    assert fit.covariance is None  # 442 records are too few
    plan = {"formula": PROGRESSION, "robust": True}
    states = list(private_inference(simulate(table, iid(parties=2), seed=0), **plan))
    again = list(private_inference(simulate(table, iid(parties=2), seed=0), **plan, start=states[0]))
    assert [state.round for state in again] == [2]
    np.testing.assert_allclose(again[-1].information, states[-1].information)


def test_robust_is_of_linear_regression(cancer):
    with pytest.raises(SettingsInvalid, match="robust"):
        inference(cancer, CLASSES, robust=True)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31))
def test_a_record_adds_no_more_than_the_ball_to_products_with_residuals(seed):
    """However far its residual is, and whatever its row: one record more moves the sum by no more than the bound."""
    rng = np.random.default_rng(seed)
    n, d, bound = int(rng.integers(1, 6)), 3, PRODUCTS.bound(2, 3)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    y = rng.normal(size=n) * 10.0 ** rng.integers(-3, 6)
    broadcast = {"theta": rng.normal(size=d), "most": np.array(10.0 ** rng.integers(-4, 1))}
    bounds = in_steps(bound)

    def total(rows):
        party = hr.core.Party("one", {"X": X[:rows], "y": y[:rows]}, np.ones(rows))
        return residual_moments(broadcast, party, None, parts=PRODUCTS, bounds=bounds)

    assert np.linalg.norm(total(n) - total(n - 1)) <= bound.radius
    broken = X[-1:].T @ (X[-1:] * (y[-1] - X[-1] @ broadcast["theta"]) ** 2 / broadcast["most"])  # nothing cut off
    assert np.linalg.norm(total(n) - total(n - 1)) <= np.linalg.norm(broken) * (1 + 1e-6) + 1e-6


# ---- coverage -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def command():
    """`benchmarks/coverage.py`, under a name that is no other package's."""
    spec = importlib.util.spec_from_file_location("coverage_of_intervals", BENCHMARKS / "coverage.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_intervals_cover(command, model):
    """100 runs at fixed seeds, six coefficients each, so that the error of a coverage is about one percent."""
    row = command.cell(model, 5000, 4.0, 100)
    assert row["with intervals"] == 100
    assert 0.93 <= row["coverage"] <= 0.97


@pytest.mark.slow
def test_intervals_of_a_rare_class_cover(command):
    """100 runs of 20 000 records at a rate of 5 percent, where steps by a majoriser would be far too short."""
    row = command.cell("rare", 20000, 8.0, 100)
    assert row["with intervals"] == 100
    assert 0.93 <= row["coverage"] <= 0.97


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="no data folder")
@pytest.mark.parametrize(("model", "n", "epsilon"), [("robust", 50_000, 10.0), ("logistic", 10_000, 10.0)])
def test_intervals_cover_on_cardio_where_no_model_is_true(model, n, epsilon, monkeypatch):
    """60 draws of `benchmarks/private_coverage.py`; with one variance of residuals, linear ones cover 92 percent."""
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    spec = importlib.util.spec_from_file_location("coverage_on_cardio", BENCHMARKS / "private_coverage.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    table = made.people()
    found = made.row(table, made.whole(table, model), model, n, epsilon, 60)
    assert found["given"] == 1.0
    assert 0.93 <= found["coverage"] <= 0.97


@pytest.mark.slow
def test_where_noise_is_too_large_there_are_none(command):
    assert command.cell("logistic", 2000, 0.5, 3)["with intervals"] == 0
