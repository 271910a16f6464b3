"""Private models end to end: what they cost, what they refuse, and that without noise they are the pooled fit."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

import hedgerow as hr
from hedgerow.data.entry import declare, number
from hedgerow.errors import HedgerowError, HedgerowWarning, NotBinary, SettingsInvalid, SlotFilled, UnboundedSum
from hedgerow.stats import private
from hedgerow.stats.private.calls import DEFAULTS
from hedgerow.stats.private.models import PrivateModel

FORMULA = "malignant ~ mean_radius + mean_texture + mean_smoothness"


def cancer(n=200):
    return hr.data.load("breast_cancer").take(range(n))


def parties(table=None, k=3, **settings):
    return hr.simulate(cancer() if table is None else table, hr.data.iid(parties=k), seed=1, **settings)


def rows_of(table, formula, **settings):
    rows = private.UnitRows.of(formula, table.schema, **settings)
    return rows, rows.rows(table.columns, len(table)), rows.targets(table.columns)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_ledger_has_the_epsilon_that_was_asked_for(epsilon):
    federation = parties()
    fit = private.logistic(federation, FORMULA, epsilon=epsilon, delta=1e-5)
    spent = federation.ledger.epsilon(delta=1e-5, unit="record")
    assert 0 <= epsilon - spent <= 1e-6 * epsilon
    assert fit.spent == (spent, 1e-5)
    assert fit.rounds == len(federation.ledger) == (21 if epsilon < 0.2 else 13)


def test_a_budget_beside_a_noisy_channel_is_refused():
    noisy = parties().protect(mechanism=hr.privacy.Gaussian(5.0))
    with pytest.raises(SlotFilled):
        private.logistic(noisy, FORMULA, epsilon=1.0, delta=1e-5)
    assert len(noisy.ledger) == 0


def test_a_number_is_no_class():
    with pytest.raises(NotBinary):
        private.logistic(parties(), "mean_radius ~ mean_texture")


# ---- the budget -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("method", ["majorised", "gradient"])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_every_method_spends_what_it_was_given(method, epsilon):
    federation = parties()
    fit = private.svm(federation, FORMULA, epsilon=epsilon, delta=1e-6, method=method)
    assert 0 <= epsilon - federation.ledger.epsilon(delta=1e-6, unit="record") <= 1e-6 * epsilon
    assert fit.shares == ({"gram": 0.3, "score": 0.7} if method == "majorised" else {"count": 0.02, "score": 0.98})


def test_without_a_delta_epsilon_is_pure():
    federation = parties()
    fit = private.logistic(federation, FORMULA, epsilon=2.0)
    assert fit.spent == (pytest.approx(2.0, rel=1e-6), 0.0)
    assert fit.spent[0] <= 2.0
    assert "Laplace" in fit.protection
    assert all(entry.bound.startswith("l1") for entry in federation.ledger.since(0))


def test_many_columns_and_no_delta_are_warned_of():
    with pytest.warns(HedgerowWarning, match="without a delta"):
        private.logistic(parties(), FORMULA, epsilon=2.0, bins=8)


def test_a_channel_of_its_own_is_asked_for_products_until_their_share_is_near_a_third():
    noisy = parties().protect(mechanism=hr.privacy.Gaussian(40.0))
    fit = private.logistic(noisy, FORMULA)
    shapes = [entry.contribution for entry in noisy.ledger.since(0)]
    assert len(shapes) == 17
    assert len(set(shapes[:5])) == len(set(shapes[5:])) == 1
    assert shapes[4] != shapes[5]
    assert fit.shares == {}
    assert fit.spent == (noisy.ledger.epsilon(delta=1e-5, unit="record"), 1e-5)


def test_rounds_are_those_that_are_given():
    federation = parties()
    private.logistic(federation, FORMULA, epsilon=1.0, delta=1e-5, rounds=3)
    assert len(federation.ledger) == 4


def test_records_left_out_are_not_counted_where_a_budget_is_spent():
    table = hr.data.load("breast_cancer").take(range(120))
    columns = dict(table.columns)
    texture = np.array(columns["mean_texture"])
    texture[::7] = np.nan
    optional = table.schema.with_columns([replace(table.schema["mean_texture"], optional=True)])
    missing = hr.data.Table(columns | {"mean_texture": texture}, optional)
    federation = parties(missing)
    fit = private.logistic(federation, FORMULA, epsilon=1.0, delta=1e-5)
    assert len(federation.ledger) == 13
    assert federation.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    assert not fit.cases.known
    exact = private.logistic(parties(missing), FORMULA, tol=1e-9)
    kept = table.take(np.flatnonzero(np.arange(120) % 7 != 0))
    np.testing.assert_allclose(exact.coef_, private.logistic(parties(kept), FORMULA, tol=1e-9).coef_, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"rounds": 0},
        {"penalty": -1.0},
        {"method": "newton"},
        {"rows": "long"},
        {"bins": 1},
        {"log": ("mean_radius",)},
        {"tol": 0.0},
    ],
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(settings):
    federation = parties()
    with pytest.raises(HedgerowError):
        private.logistic(federation, FORMULA, epsilon=1.0, delta=1e-5, **settings)
    assert len(federation.ledger) == 0


def test_widths_and_shares_are_checked():
    table = hr.data.load("diabetes").take(range(50)).declare(progression=(0, 400))
    for call, settings in [
        (private.huber, {"threshold": 0.0}),
        (private.quantile, {"corner": -1.0}),
        (private.quantile, {"share": 1.0}),
    ]:
        with pytest.raises(SettingsInvalid):
            call(parties(table), "progression ~ bmi", epsilon=1.0, delta=1e-5, **settings)


def test_what_declares_no_range_has_no_bound():
    table = cancer()
    undeclared = hr.data.Table(
        dict(table.columns), table.schema.with_columns([replace(table.schema["mean_radius"], low=None, high=None)])
    )
    with pytest.raises(UnboundedSum, match="mean_radius"):
        private.logistic(parties(undeclared), FORMULA, epsilon=1.0, delta=1e-5)


# ---- use ------------------------------------------------------------------------------------------------------------
def test_predictions_and_scores_are_those_of_the_rows():
    table = cancer()
    fit = private.logistic(parties(), FORMULA, bins=4)
    _, X, y = rows_of(table, FORMULA, bins=4)
    frame = table.to_pandas()
    np.testing.assert_allclose(fit.decide(frame), X @ fit.coef_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fit.predict_proba(frame).sum(1), 1.0, rtol=0, atol=1e-12)
    assert fit.classes_ == ("0", "1")
    assert (fit.classify(table) == (X @ fit.coef_ > 0).astype(int).astype(str)).all()
    assert fit.metrics(frame)["AUC"] == pytest.approx(roc_auc_score(y, X @ fit.coef_))
    assert fit.score(frame) == np.mean((X @ fit.coef_ > 0) == y)


def test_a_numbers_scores_are_in_its_own_units():
    table = hr.data.load("diabetes").take(range(200)).declare(progression=(0, 400))
    fit = private.huber(parties(table), "progression ~ bmi + bp", threshold=400.0, penalty=1e-6)
    y, predicted = table["progression"], fit.predict(table)
    assert fit.score(table) == pytest.approx(r2_score(y, predicted))
    assert fit.metrics(table)["mean absolute error"] == pytest.approx(np.abs(y - predicted).mean())
    assert fit.score(table) > 0.3
    with pytest.raises(SettingsInvalid):
        fit.classify(table)
    with pytest.raises(SettingsInvalid):
        fit.predict_proba(table)


@pytest.mark.parametrize("method", ["majorised", "gradient"])
def test_a_summary_says_where_noise_is_large_for_the_records_and_where_it_is_of_a_seed(method):
    for epsilon, seed in ((1.0, 0), (40.0, None)):
        asked = hr.simulate(cancer(), hr.data.iid(parties=3), seed=seed)
        fit = private.logistic(asked, FORMULA, epsilon=epsilon, delta=1e-5, method=method)
        said = " ".join(fit.summary().split())
        assert ("noise is large for some" in said) == (epsilon == 1.0)
        assert ("noise from a simulation seed, not for deployment: this is no release" in said) == (seed is not None)


def test_a_fit_says_what_was_spent_and_on_what():
    fit = private.logistic(parties(), FORMULA, epsilon=1.0, delta=1e-5)
    said = " ".join(fit.summary().split())
    assert "gram 30%; score 70%" in said
    assert "epsilon 1 at delta 1e-05" in said
    assert "x / |x|" in said
    assert "Gaussian" in said
    assert "<svg" in fit.plot()._repr_svg_()
    assert list(fit.to_frame().index) == list(fit.names)


@pytest.mark.slow
def test_noise_in_shares_and_at_parties_is_charged_alike():
    shares = parties(k=4).protect(aggregation=hr.crypto.SecAgg())
    fit = private.logistic(shares, FORMULA, epsilon=4.0, delta=1e-5, noise_at="shares", least=3, rounds=2)
    assert fit.spent[0] <= 4.0
    local = parties(k=4)
    assert private.logistic(local, FORMULA, epsilon=4.0, delta=1e-5, noise_at="party", rounds=2).spent[0] <= 4.0


# ---- accuracy -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("method", ["majorised", "gradient"])
def test_a_budget_of_eight_is_hardly_felt(method):
    table = hr.data.load("breast_cancer")
    exact = private.logistic(parties(table), FORMULA, bins=8).score(table)
    fit = private.logistic(parties(table), FORMULA, epsilon=8.0, delta=1e-5, bins=8, method=method)
    assert exact > 0.89
    assert fit.score(table) > exact - 0.03


@pytest.mark.slow
def test_adult_within_a_budget_of_one(monkeypatch):
    folder = Path(os.environ.get("HEDGEROW_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not (folder / "tabular" / "adult.data.gz").exists():
        pytest.skip("Adult is not at hand")
    monkeypatch.setenv("HEDGEROW_DATA", str(folder))
    table = hr.data.load("adult")
    names = [column.name for column in table.schema if column.role == "feature"]
    dollars = ("capital_gain", "capital_loss")
    formula = f"income_over_50k ~ {' + '.join(names)}"
    fit = private.logistic(parties(table), formula, epsilon=1.0, delta=1e-5, bins=16, log=dollars)
    found = fit.metrics(table.test)
    assert found["accuracy"] > 0.852
    assert found["AUC"] > 0.9


def test_a_corner_that_is_not_given_is_wider_within_a_budget():
    table = hr.data.load("diabetes").take(range(50)).declare(progression=(0, 400))
    settings = {**DEFAULTS, "model": "quantile", "formula": "progression ~ bmi"}
    exact, budgeted = (private.PrivateModel.of(table.schema, settings | more) for more in ({}, {"epsilon": 1.0, "delta": 1e-5}))
    assert (exact.loss.width, budgeted.loss.width) == (pytest.approx(0.04), pytest.approx(0.1))


# ---- what a ledger holds --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fitted", [private.logistic, private.locally])
def test_delta_is_zero_only_where_everything_in_the_ledger_is_pure(fitted):
    federation = parties()
    private.logistic(federation.protect(mechanism=hr.Gaussian(3.0)), FORMULA, rounds=1)
    fit = fitted(federation, FORMULA, epsilon=1.0)
    assert fit.spent == (federation.ledger.epsilon(delta=1e-5, unit="record"), 1e-5)
    assert fit.own == (pytest.approx(1.0, rel=1e-6), 0.0)
    assert "at delta 1e-05 by everything in the ledger; epsilon 1 at delta 0 by this fit" in " ".join(fit.summary().split())


def test_two_pure_fits_add_up_at_delta_zero():
    federation = parties()
    private.locally(federation, FORMULA, epsilon=1.0)
    fit = private.logistic(federation, FORMULA, epsilon=0.5, rounds=2)
    assert fit.spent == (pytest.approx(1.5, rel=1e-6), 0.0)
    assert fit.own == (pytest.approx(0.5, rel=1e-6), 0.0)
    assert private.logistic(parties(), FORMULA, epsilon=0.5, rounds=2).own is None


def test_gradient_descent_is_the_default_of_classes_within_a_small_budget_alone():
    def method(model, **settings):
        formula = "progression ~ bmi" if model in ("huber", "quantile") else "malignant ~ mean_radius"
        table = cancer() if formula == "malignant ~ mean_radius" else hr.data.load("diabetes").declare(progression=(0, 400))
        return PrivateModel.of(table.schema, {**DEFAULTS, "model": model, "formula": formula, "delta": 1e-5} | settings).method

    assert [method(model, epsilon=0.19) for model in ("logistic", "svm")] == ["gradient"] * 2
    assert [method(model, epsilon=0.19) for model in ("huber", "quantile")] == ["majorised"] * 2
    assert [method("logistic", epsilon=0.2), method("logistic", epsilon=None, delta=None)] == ["majorised"] * 2
    assert method("logistic", epsilon=0.1, method="majorised") == "majorised"


# ---- shares ---------------------------------------------------------------------------------------------------------
def test_a_share_in_the_unit_interval_is_a_number_everywhere():
    rng = np.random.default_rng(0)
    dose = rng.uniform(0, 50, 300)
    share = np.clip(0.4 + 0.004 * dose + 0.02 * rng.normal(size=300), 0, 1)
    table = hr.data.Table({"dose": dose, "share": share}, declare(number("dose", 0, 50), number("share", 0, 1, role="target")))
    for fitted in (private.linear, private.sufficient, private.inference):
        fit = fitted(parties(table), "share ~ dose")
        assert fit.model == "linear"
        assert fit.own_units().to_numpy() == pytest.approx([0.4, 0.004], abs=0.01)
        assert set(fit.metrics(table)) == {"R2", "mean absolute error"}
    assert PrivateModel.of(table.schema, {**DEFAULTS, "model": "huber", "formula": "share ~ dose"}).loss.width == 0.2
    for fitted in (private.logistic, private.svm):
        with pytest.raises(NotBinary):
            fitted(parties(table), "share ~ dose")
    with pytest.raises(SettingsInvalid, match="is a number"):
        private.locally(parties(table), "share ~ dose", epsilon=1.0)
