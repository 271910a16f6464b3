"""Prediction quality against statsmodels, scipy and naive oracles; what leaves, hidden rows, and records that tell little."""

import os
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from clinic import clinic, federation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binomtest
from sklearn import metrics as sk
from test_safe_curves import delong, scored

import hedgerow as hr
from hedgerow.crypto import SecAgg
from hedgerow.data import load
from hedgerow.errors import DisclosureExceeded, SettingsInvalid, UnlawfulChannel
from hedgerow.privacy import Gaussian
from hedgerow.stats import calibration, calibration_line, logistic_regression, net_benefit, prediction_quality, roc
from hedgerow.stats.quality.calibration import clopper_pearson
from hedgerow.stats.quality.calibration_line import line_bounds, line_sums, terms_of
from hedgerow.stats.quality.cells import added_up, starts_of_cells

DATA = Path(os.environ.get("HEDGEROW_DATA", Path(__file__).parents[3] / "shared" / "data"))
ILL = "ill ~ age + dose + stage"
HEART = "death_event ~ age + ejection_fraction + serum_creatinine"


@pytest.fixture(scope="module")
def others():
    """A federation that a model was not fitted to, the model, and the truth and log-odds of its pooled records."""
    fit, new = logistic_regression(federation(), ILL), clinic(400, seed=9)
    return federation(new), fit, new["ill"], fit.spec.matrix(new.columns, 400) @ fit.coef_


@pytest.fixture(scope="module")
def heart():
    table = hr.data.load("heart_failure")
    fed = hr.simulate(table, hr.data.iid(4), seed=0)
    fit = logistic_regression(fed, HEART)
    return fed, fit, table["death_event"], expit(fit.spec.matrix(table.columns, len(table)) @ fit.coef_)


def shown(others, events, least):
    return all((part == 0) | (part >= least) for part in (others, events)) and others + events >= least


# ---- cells ----------------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8), st.integers(1, 8))
def test_cells_are_the_partition_that_hides_fewest_pairs(counts, least):
    """Of all partitions, by hand."""
    found = np.array(counts, dtype=float).T
    k, best = found.shape[1], np.inf
    for cuts in (cut for size in range(k) for cut in combinations(range(1, k), size)):
        cells = [found[:, a:b].sum(1) for a, b in pairwise((0, *cuts, k))]
        if all(shown(*cell, least) for cell in cells):
            best = min(best, sum(cell.prod() for cell in cells))
    starts = starts_of_cells(*found, least)
    cells = np.stack([added_up(part, starts) for part in found])
    if np.isfinite(best):
        assert all(shown(*cell, least) for cell in cells.T)
        assert cells.prod(0).sum() == best
    else:
        assert starts.tolist() == [0]


def test_no_cell_shows_one_to_nine_events(heart):
    fed, fit, *_ = heart
    found, told = roc(fed, fit), calibration(fed, fit)
    for counts in (found.events, found.others, told.events, told.n - told.events):
        assert ((counts == 0) | (counts >= 10)).all()
    assert len(found.events) >= 5
    assert len(found.to_frame()) == len(found.events)


@pytest.mark.parametrize(("bins", "off"), [(20, 0.00075), (50, 0.0021), (1024, 0.0002)])
def test_the_area_is_that_of_the_bins_not_of_the_cells(heart, bins, off):
    """Twenty bins of equal width; merged to cells of ten records each the area was off by 0.0015, of ten of a class by 0.02."""
    fed, fit, y, p = heart
    found = roc(fed, fit, bins=np.linspace(0, 1, bins + 1))
    area, error = delong(p, y)
    assert area == pytest.approx(0.78630, abs=5e-6)
    assert error == pytest.approx(0.02955, abs=5e-6)
    assert abs(found.auc - area) <= off
    assert found.standard_error() == pytest.approx(error, abs=0.0004)
    assert found.is_sharp


def test_a_separating_score_keeps_its_curve():
    """Cells without events are shown; were each to hold ten, three cells would be left of a nearly perfect score."""
    fed = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(4), seed=0)
    fit = logistic_regression(fed, "malignant ~ mean_radius + mean_texture + mean_smoothness")
    found = roc(fed, fit)
    drawn = np.trapezoid(found.true_positive_rate, found.false_positive_rate)
    assert found.auc > 0.97
    assert found.auc - drawn < 0.01


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="no data folder")
def test_cardio_is_as_far_off_as_the_note_says():
    table = hr.data.load("cardio", data_dir=DATA).take(np.random.default_rng(0).permutation(70_000)[:6000])
    fed = hr.simulate(table, hr.data.iid(4), seed=0)
    fit = logistic_regression(fed, "cardio ~ age + ap_hi + cholesterol + smoke")
    area, error = delong(fit.spec.matrix(table.columns, 6000) @ fit.coef_, table["cardio"])
    found = roc(fed, fit)
    assert abs(found.auc - area) < 0.001 < error
    assert found.standard_error() == pytest.approx(error, abs=3e-5)


# ---- the line -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("hidden", [False, True])
def test_slope_and_intercept_are_those_of_statsmodels(others, hidden):
    fed, fit, y, eta = others
    found = calibration_line(fed.protect(aggregation=SecAgg()) if hidden else fed, fit)
    line = sm.Logit(y, sm.add_constant(eta)).fit(disp=0, tol=1e-14)
    np.testing.assert_allclose(found.coef_, line.params, atol=1e-10)
    np.testing.assert_allclose(found.se_, line.bse, atol=1e-10)
    np.testing.assert_allclose(found.conf_int(), line.conf_int(), atol=1e-9)
    at_large = sm.GLM(y, np.ones(len(y)), offset=eta, family=sm.families.Binomial()).fit(tol=1e-14)
    np.testing.assert_allclose([found.at_large, found.at_large_se], [at_large.params[0], at_large.bse[0]], atol=1e-10)
    assert found.rounds <= 7
    assert "too far apart" in found.summary()


def test_a_smooth_curve_is_that_of_statsmodels_with_its_band(others):
    fed, fit, y, eta = others
    knots = (0.1, 0.3, 0.5, 0.8)
    found, rows = calibration_line(fed, fit, knots=knots), terms_of(eta, logit(knots))
    curve = sm.Logit(y, rows).fit(disp=0, tol=1e-14)
    np.testing.assert_allclose(found.coef_, curve.params, atol=1e-8)
    at = np.array([0.05, 0.4, 0.9])
    log_odds = curve.get_prediction(terms_of(logit(at), logit(knots)))
    np.testing.assert_allclose(found.curve(at)[:, 0], log_odds.predicted, atol=1e-8)
    low, high = found.curve(at)[:, 1:].T
    assert (low < found.curve(at)[:, 0]).all()
    assert (found.curve(at)[:, 0] < high).all()


def test_spline_terms_are_straight_beyond_the_knots():
    z = np.array([-9.0, -8.0, 7.0, 8.0, 9.0])
    bent = terms_of(z, [-2.0, -0.5, 0.5, 2.0])[:, 2:]
    np.testing.assert_allclose(bent[:2], 0.0)
    np.testing.assert_allclose(np.diff(bent[2:], 2, axis=0), 0.0, atol=1e-9)


def test_records_that_were_fitted_have_slope_one(heart):
    fed, fit, *_ = heart
    found = calibration_line(fed, fit)
    assert found.coef_ == pytest.approx([0, 1], abs=1e-6)
    assert "no sign" in found.summary()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_line_keeps_its_bounds(seed):
    """One record moves no number by more than its bound, as hidden sums take for granted; and may move each nearly so far."""
    rng = np.random.default_rng(seed)
    farthest, knots = 3.0, (-1.0, 0.0, 1.5)
    bounds = line_bounds(1.0, farthest, knots)
    at, large = rng.normal(size=3) * 3, rng.normal() * 3
    columns = {"X": rng.normal(size=(1, 1)) * 5, "y": rng.integers(0, 2, 1).astype(float), "offset": np.zeros(1)}
    party = hr.core.Party("one", columns, np.ones(1))
    broadcast = {"beta": np.ones(1), "at": at, "large": np.array(large)}
    for key, value in line_sums(broadcast, party, None, farthest=farthest, knots=knots).items():
        assert np.abs(value).max() <= bounds[key].radius


def test_clopper_and_pearson_are_those_of_scipy():
    events, n = np.array([0, 3, 17, 20.0, 0]), np.array([20, 20, 20, 20.0, 0])
    expected = [binomtest(int(k), int(m)).proportion_ci(0.95) for k, m in zip(events[:4], n[:4], strict=True)]
    found = clopper_pearson(events, n)
    np.testing.assert_allclose(found[:4], expected, atol=1e-12)
    assert np.isnan(found[4]).all()


# ---- net benefit ----------------------------------------------------------------------------------------------------
def test_net_benefit_is_that_of_the_records(others):
    fed, fit, y, eta = others
    at, before = [0.2, 0.4, 0.6, 0.8], len(fed.ledger)
    found = net_benefit(fed, fit, at)
    assert [entry.numbers for entry in fed.ledger.entries[before:]] == [10]
    for t, value, error, everybody in zip(at, found.net_benefit, found.standard_error, found.of_everybody, strict=True):
        odds, treated = t / (1 - t), expit(eta) > t
        gains = np.where(y == 1, 1.0, -odds) * treated
        assert value == pytest.approx(gains.mean(), abs=1e-12)
        assert error == pytest.approx(gains.std() / np.sqrt(len(y)), abs=1e-12)
        assert everybody == pytest.approx(np.where(y == 1, 1.0, -odds).mean(), abs=1e-12)
    assert (found.figure().series[0].low < found.net_benefit).all()


def test_thresholds_with_few_records_between_them_are_not_shown(others):
    fed, fit, *_ = others
    found = net_benefit(fed, fit, [0.3, 0.3001, 0.6, 0.9999])
    assert found.dropped
    assert len(found.thresholds) + len(found.dropped) == 4
    assert "Not shown" in found.figure().note


# ---- all together ---------------------------------------------------------------------------------------------------
def test_all_measures_are_those_of_scikit_learn(others):
    fed, fit, y, eta = others
    found, p = prediction_quality(fed, fit, thresholds=[0.3, 0.5], smooth=True), expit(eta)
    squares = (p - y) ** 2
    assert found.metrics.brier == pytest.approx(sk.brier_score_loss(y, p), abs=1e-12)
    assert found.metrics.brier_error == pytest.approx(squares.std(ddof=1) / np.sqrt(len(y)), abs=1e-12)
    assert found.curve.auc == pytest.approx(sk.roc_auc_score(y, p), abs=0.003)
    frame = found.to_frame()
    assert frame.loc["AUC", "low"] < sk.roc_auc_score(y, p) < frame.loc["AUC", "high"]
    assert frame.loc["calibration slope", "estimate"] == found.line.slope
    figures = found.figures()
    assert [figure.title for figure in figures] == ["ROC curve", "Calibration", "Net benefit"]
    for figure in figures:
        line = figure.series[0]
        assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    assert f"{found.numbers} numbers left each party" in found.summary()


def test_a_line_costs_ten_numbers_a_round_and_all_is_counted(others):
    fed, fit, *_ = others
    before = len(fed.ledger)
    found = prediction_quality(fed, fit)
    asked = [entry.numbers for entry in fed.ledger.entries[before:]]
    assert asked == [9, 40, 3 * len(found.groups.counted.n), *[10] * found.line.rounds]
    assert found.numbers == sum(asked)


def test_a_small_party_is_asked_no_more_than_a_third_of_its_values():
    table = clinic(40)
    fed = hr.simulate(table, hr.data.iid(4), seed=0, disclosure=1 / 3)
    with pytest.raises(DisclosureExceeded):
        prediction_quality(fed, np.array([0.0, 0.05, -0.2, 0, 0]), formula=ILL)


def test_hidden_rows_give_the_same(others):
    fed, fit, *_ = others
    plain, hidden = (prediction_quality(one, fit, thresholds=[0.3]) for one in (fed, fed.protect(aggregation=SecAgg())))
    np.testing.assert_allclose(hidden.to_frame(), plain.to_frame(), atol=1e-8)
    np.testing.assert_array_equal(hidden.curve.events, plain.curve.events)


def test_noise_leaves_the_line_and_every_interval_out(others):
    _, fit, *_ = others
    noisy = federation(clinic(400, seed=9)).protect(mechanism=Gaussian(1e-3))
    found = prediction_quality(noisy, fit)
    assert found.line is None
    assert np.isnan(found.to_frame()[["low", "high"]].to_numpy(float)).all()
    with pytest.raises(UnlawfulChannel):
        calibration_line(noisy, fit)
    assert all(figure.series[0].low == () for figure in found.figures())


# ---- records that tell little ---------------------------------------------------------------------------------------
def test_equal_scores_have_no_slope(others):
    (
        fed,
        *_,
    ) = others
    found = prediction_quality(fed, np.array([0.3, 0, 0, 0, 0]), formula=ILL)
    assert found.curve.auc == 0.5
    assert np.isnan(found.line.slope)
    assert np.isfinite(found.line.at_large)
    assert "do not tell a calibration slope" in found.summary()
    assert found.figures()


@pytest.mark.parametrize("value", [0, 1])
def test_one_class_has_no_area(value):
    table = clinic(100)
    same = hr.data.Table({**table.columns, "ill": np.full(100, value)}, table.schema)
    found = prediction_quality(federation(same), np.array([0.0, 0.05, -0.2, 0, 0]), formula=ILL)
    assert np.isnan(found.curve.auc)
    assert np.isnan(found.line.slope)
    assert np.isnan(found.line.at_large)
    assert found.line.rounds == 1
    assert found.figures()
    assert found.summary()


def test_fewer_events_than_least_have_one_cell_and_no_interval():
    fed, _, came = scored(400, -4.0, 1.0)
    found = prediction_quality(fed, np.array([0.0, 1.0]), formula="came ~ score", least=came.sum() + 1)
    assert len(found.curve.events) == 1
    assert np.isnan(found.curve.conf_int()).all()
    assert "of fewer than" in found.summary()


def test_one_party_is_as_good_as_many(others):
    fed, fit, *_ = others
    one = federation(clinic(400, seed=9), n_parties=1)
    np.testing.assert_allclose(prediction_quality(one, fit).to_frame(), prediction_quality(fed, fit).to_frame(), atol=1e-9)


@pytest.mark.parametrize("knots", [(0.1, 0.5), (0.5, 0.4, 0.6), (0.0, 0.5, 0.9)])
def test_knots_that_bend_nothing_are_refused_beforehand(others, knots):
    fed, fit, *_ = others
    before = len(fed.ledger)
    with pytest.raises(SettingsInvalid, match="knots"):
        calibration_line(fed, fit, knots=knots)
    with pytest.raises(SettingsInvalid, match="thresholds"):
        net_benefit(fed, fit, [0.5, 0.4])
    assert len(fed.ledger) == before


def test_groups_beside_the_curve_tell_no_small_count_as_a_difference():
    clinics = hr.simulate(load("heart_failure"), hr.data.iid(parties=3), seed=0)
    fit = hr.stats.logistic_regression(clinics, "death_event ~ age + ejection_fraction + C(sex)")
    found = hr.stats.prediction_quality(clinics, fit, thresholds=[0.2, 0.3, 0.4])
    assert len(found.groups.n) > 2
    assert set(logit(found.groups.edges[1:-1]).round(9)) <= set(found.curve.edges.round(9))
    places = np.concatenate([found.curve.edges, logit(found.benefit.thresholds)])
    events = np.cumsum(found.curve.events)[:-1], found.benefit.events - found.benefit.true_positives
    below = np.concatenate([[0.0], np.sort(np.concatenate(events)), [found.benefit.events]])
    assert len(found.benefit.thresholds) + len(found.benefit.dropped) == 3
    assert len(places) == len(below) - 2
    assert not ((np.diff(below) > 0) & (np.diff(below) < 10)).any()
