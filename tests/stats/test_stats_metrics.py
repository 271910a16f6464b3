"""Metrics are those of scikit-learn on the pooled records, odds ratios those of statsmodels."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import statsmodels.formula.api as smf
from clinic import SCHEMA, clinic, federation
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from hedgerow import data
from hedgerow.core import Party
from hedgerow.crypto import SecAgg
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.privacy import Gaussian
from hedgerow.stats import (
    Design,
    Fitted,
    binary_metrics,
    calibration,
    design,
    gradient_descent,
    huber_regression,
    linear_metrics,
    linear_regression,
    logistic_regression,
    odds_ratio_table,
    roc,
    svm,
)
from hedgerow.stats.counts import count_bound
from hedgerow.stats.quality.calibration import calibrated
from hedgerow.stats.quality.metrics import LIMIT, classified, classified_bounds, error_bounds, squared_errors
from hedgerow.stats.quality.odds import _tables, events_by_column, table_bounds
from hedgerow.stats.quality.roc import scores_by_class

ILL, PAIN = "ill ~ age + dose + stage", "pain ~ age + dose + stage"


@pytest.fixture(scope="module")
def ill():
    """A federation, its fit, and truth and probabilities of the pooled records."""
    fed, frame = federation(), clinic().to_pandas()
    fit = logistic_regression(fed, ILL)
    return fed, fit, frame["ill"].to_numpy(), fit.predict(frame)


# ---- numbers --------------------------------------------------------------------------------------------------------
def test_errors_of_a_linear_regression_are_those_of_scikit_learn():
    fed, new = federation(), clinic(120, seed=7)
    fit = linear_regression(fed, PAIN)
    for table in (clinic(), new):
        y, predicted = table["pain"], fit.predict(table.to_pandas())
        found = linear_metrics(federation(table), fit)
        np.testing.assert_allclose(found.mse, sk.mean_squared_error(y, predicted), rtol=1e-12)
        np.testing.assert_allclose(found.mae, sk.mean_absolute_error(y, predicted), rtol=1e-12)
        np.testing.assert_allclose(found.r_squared, sk.r2_score(y, predicted), rtol=1e-10)
        assert found.n == len(y)
    np.testing.assert_allclose(linear_metrics(fed, fit).r_squared, fit.r_squared, rtol=1e-12)


def test_coefficients_alone_need_a_formula_and_give_the_same():
    fed = federation()
    fit = linear_regression(fed, PAIN)
    asked = len(fed.ledger)
    found = linear_metrics(fed, fit.coef_, formula=PAIN)
    np.testing.assert_allclose(found.r_squared, fit.r_squared, rtol=1e-12)
    assert len(fed.ledger) == asked + 2  # the second about the mean that the first one gave
    with pytest.raises(SettingsInvalid, match="no formula"):
        linear_metrics(fed, fit.coef_)
    with pytest.raises(SettingsInvalid, match="5 columns"):
        linear_metrics(fed, np.zeros(3), formula=PAIN)


def test_a_state_with_standardised_columns_is_measured_in_standard_deviations():
    fed = federation()
    *_, state = gradient_descent(fed, formula=PAIN, learning_rate=0.2, rounds=300, standardise=True)
    found, exact = linear_metrics(fed, state, formula=PAIN), linear_regression(fed, PAIN)
    np.testing.assert_allclose(found.r_squared, exact.r_squared, rtol=1e-9)
    np.testing.assert_allclose(found.mse, (1 - exact.r_squared) * 299 / 300, rtol=1e-9)


def test_robust_lines_and_machines_are_measured_too(ill):
    fed, _, y, _ = ill
    line = huber_regression(fed, "pain ~ age")
    predicted = line.coef_[0] + line.coef_[1] * clinic()["age"]
    np.testing.assert_allclose(linear_metrics(fed, line).mse, sk.mean_squared_error(clinic()["pain"], predicted), rtol=1e-10)
    machine = svm(fed, "ill ~ age + dose", C=0.1)
    assert roc(fed, machine, tol=1e-7).auc == pytest.approx(sk.roc_auc_score(y, machine.decide(clinic().to_pandas())), abs=1e-6)


# ---- binary targets -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_metrics_of_a_logistic_regression_are_those_of_scikit_learn(ill, threshold):
    fed, fit, y, p = ill
    found, predicted = binary_metrics(fed, fit, threshold=threshold), p > threshold
    np.testing.assert_array_equal(found.confusion, sk.confusion_matrix(y, predicted).ravel())
    np.testing.assert_allclose(found.log_loss, sk.log_loss(y, p), rtol=1e-12)
    np.testing.assert_allclose(found.brier, sk.brier_score_loss(y, p), rtol=1e-12)
    expected = [sk.accuracy_score(y, predicted), sk.precision_score(y, predicted), sk.recall_score(y, predicted)]
    np.testing.assert_allclose([found.accuracy, found.precision, found.recall], expected, rtol=1e-12)
    np.testing.assert_allclose(found.f1, sk.f1_score(y, predicted), rtol=1e-12)
    np.testing.assert_allclose(found.specificity, sk.recall_score(1 - y, ~predicted), rtol=1e-12)


def test_a_log_loss_has_a_public_limit_as_in_scikit_learn():
    fed, y = federation(), clinic()["ill"]
    found = binary_metrics(fed, np.array([-1e4]), formula="ill ~ 1")
    np.testing.assert_allclose(found.log_loss, y.mean() * LIMIT, rtol=1e-12)
    np.testing.assert_allclose(found.log_loss, sk.log_loss(y, np.zeros(len(y))), rtol=1e-12)
    assert np.isnan(found.precision)
    assert found.recall == 0


# ---- the ROC curve --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("formula", [ILL, "ill ~ smoker + stage", "ill ~ visits"])
def test_the_area_is_that_of_scikit_learn_ties_included(formula):
    fed = federation()
    fit = logistic_regression(fed, formula)
    found = roc(fed, fit, tol=0)
    expected = sk.roc_auc_score(clinic()["ill"], fit.predict(clinic().to_pandas()).round(12))
    np.testing.assert_allclose(found.auc, expected, rtol=1e-12)
    assert found.error == 0
    assert found.rounds <= 5


@pytest.mark.parametrize("bins", [2, 5, 20, 100])
def test_one_question_bounds_its_own_error(ill, bins):
    fed, fit, y, p = ill
    found = roc(fed, fit, bins=bins, max_rounds=1)
    assert found.rounds == 1
    assert 0 < abs(found.auc - sk.roc_auc_score(y, p)) <= found.error
    asked = len(fed.ledger)
    finer = roc(fed, fit, bins=bins, tol=found.error / 4)
    assert abs(finer.auc - sk.roc_auc_score(y, p)) <= finer.error <= found.error / 4
    assert len(fed.ledger) == asked + finer.rounds


def test_the_curve_passes_through_points_of_the_exact_one(ill):
    fed, fit, y, p = ill
    found = roc(fed, fit, tol=0)
    x, height, _ = sk.roc_curve(y, p, drop_intermediate=False)
    exact = set(zip(x.round(9), height.round(9), strict=True))
    ours = set(zip(found.false_positive_rate.round(9), found.true_positive_rate.round(9), strict=True))
    assert ours <= exact
    assert np.trapezoid(found.true_positive_rate, found.false_positive_rate) == pytest.approx(found.auc)
    above = [(p[y == 1] > t).mean() for t in found.thresholds]
    np.testing.assert_allclose(found.true_positive_rate, above, atol=1e-12)


def test_delongs_interval_is_that_of_the_placements(ill):
    fed, fit, y, p = ill
    found, events, others = roc(fed, fit, tol=0), p[y == 1], p[y == 0]
    wins = (events[:, None] > others) + 0.5 * (events[:, None] == others)
    variance = wins.mean(1).var(ddof=1) / len(events) + wins.mean(0).var(ddof=1) / len(others)
    np.testing.assert_allclose(found.standard_error(), np.sqrt(variance), rtol=1e-10)
    np.testing.assert_allclose(found.conf_int(), wins.mean() + np.array([-1, 1]) * 1.959963984540054 * np.sqrt(variance))
    assert found.standard_error("hanley") == pytest.approx(found.standard_error(), rel=0.2)


def test_hanley_and_mcneils_formula_by_hand(ill):
    fed, fit, *_ = ill
    found = roc(fed, fit)
    a, m, n = found.auc, found.events.sum(), found.others.sum()
    q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
    variance = (a * (1 - a) + (m - 1) * (q1 - a * a) + (n - 1) * (q2 - a * a)) / (m * n)
    np.testing.assert_allclose(found.standard_error("hanley"), np.sqrt(variance))


@pytest.mark.parametrize("size", [1e3, 1e8])
def test_scores_beyond_every_probability_are_still_ordered(size):
    fed, frame = federation(), clinic().to_pandas()
    found = roc(fed, np.array([size, size * 0.01, -size * 0.1]), formula="ill ~ age + dose", tol=0)
    expected = sk.roc_auc_score(frame["ill"], 1 + 0.01 * frame["age"] - 0.1 * frame["dose"])
    np.testing.assert_allclose(found.auc, expected, atol=1e-9)


def test_classes_that_are_separated_have_an_area_of_one():
    fed = federation()
    found = roc(fed, np.array([-0.5, 1.0]), formula="smoker ~ I(smoker > 0)")
    assert (found.auc, found.error, found.rounds) == (1.0, 0.0, 2)  # coefficients do not say how many events there were
    assert found.conf_int() == (1.0, 1.0)


# ---- calibration ----------------------------------------------------------------------------------------------------
def test_calibration_counts_what_came_true_in_each_bin(ill):
    fed, fit, y, p = ill
    found = calibration(fed, fit, least=0)
    bins = np.minimum((p * 10).astype(int), 9)
    np.testing.assert_allclose(found.n, np.bincount(bins, minlength=10))
    np.testing.assert_allclose(found.events, np.bincount(bins, weights=y, minlength=10))
    np.testing.assert_allclose(found.expected, np.bincount(bins, weights=p, minlength=10), rtol=1e-12)
    np.testing.assert_allclose(found.ratio, 1.0, rtol=1e-8)  # of a fit with an intercept
    naive = sum(abs(y[bins == b].sum() - p[bins == b].sum()) for b in range(10)) / len(y)
    np.testing.assert_allclose(found.error, naive, rtol=1e-10)
    statistic, p_value = found.hosmer_lemeshow
    by_hand = sum(
        (y[bins == b].sum() - p[bins == b].sum()) ** 2 / (p[bins == b].sum() * (1 - p[bins == b].mean()))
        for b in np.unique(bins)
    )
    np.testing.assert_allclose(statistic, by_hand, rtol=1e-10)
    assert 0.01 < p_value < 1


# ---- odds ratios ----------------------------------------------------------------------------------------------------
def test_odds_ratios_by_themselves_and_adjusted_are_those_of_statsmodels():
    formula, frame, fed = "ill ~ age + smoker + stage + dose:smoker", clinic().to_pandas(), federation()
    table = odds_ratio_table(fed, formula)
    assert list(table.index) == ["age", "smoker", "stage[T.II]", "stage[T.III]", "dose:smoker"]
    adjusted = smf.logit(formula, frame).fit(disp=0, method="newton", tol=1e-10)
    names = [name if name in adjusted.params.index else "smoker:dose" for name in table.index]
    np.testing.assert_allclose(table["adjusted"], np.exp(adjusted.params[names]), rtol=1e-7)
    np.testing.assert_allclose(table[["adjusted low", "adjusted high"]], np.exp(adjusted.conf_int().loc[names]), rtol=1e-7)
    for term in ("age", "smoker", "stage", "dose:smoker"):
        alone = smf.logit(f"ill ~ {term}", frame).fit(disp=0, method="newton", tol=1e-10)
        rows = [name for name in table.index if name.startswith(term)]
        np.testing.assert_allclose(table.loc[rows, "odds ratio"], np.exp(alone.params.iloc[1:]), rtol=1e-6)
        np.testing.assert_allclose(table.loc[rows, ["low", "high"]], np.exp(alone.conf_int().iloc[1:]), rtol=1e-6)


def test_indicators_take_one_question_together():
    fed = federation()
    odds_ratio_table(fed, "ill ~ smoker + stage + arm")
    asked = [entry.query for entry in fed.ledger.entries]
    assert sum(name.endswith("events_by_column") for name in asked) == 1
    alone = federation()
    logistic_regression(alone, "ill ~ smoker + stage + arm")
    assert len(asked) == len(alone.ledger) + 1


def test_an_empty_cell_has_no_interval():
    table = clinic()
    spoilt = data.Table(table.columns | {"arm": np.where(table["ill"] > 0.5, 1, 0) * table["arm"]}, SCHEMA)
    fed, spec = federation(spoilt), Design.of("ill ~ arm", SCHEMA)
    log_ratio, *interval = _tables(fed, replace(spec, terms=spec.terms[1:]), 0.95)[0]
    assert log_ratio == np.inf
    assert np.isnan(interval).all()


# ---- protected channels ---------------------------------------------------------------------------------------------
def test_hidden_rows_give_the_same_metrics_and_every_sum_has_a_bound():
    hidden, plain = federation().protect(aggregation=SecAgg(records=1000)), federation()
    fit, line = logistic_regression(plain, ILL), linear_regression(plain, PAIN)
    found, expected = ([linear_metrics(fed, line).r_squared, linear_metrics(fed, line).mae] for fed in (hidden, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found, expected = (binary_metrics(fed, fit) for fed in (hidden, plain))
    assert found.confusion == expected.confusion
    np.testing.assert_allclose(found.log_loss, expected.log_loss, rtol=1e-9)
    np.testing.assert_allclose(calibration(hidden, fit).expected, calibration(plain, fit).expected, rtol=1e-9)
    assert roc(hidden, fit, bins=200, tol=1e-3).auc == roc(plain, fit, bins=200, tol=1e-3).auc
    assert all(entry.bound != "none" for entry in hidden.ledger.entries)


def test_numbers_without_a_declared_range_are_refused_where_rows_are_hidden():
    hidden = federation().protect(aggregation=SecAgg())
    with pytest.raises(UnboundedSum, match="open declares no range"):
        linear_metrics(hidden, np.zeros(2), formula="pain ~ open")
    assert len(hidden.ledger) == 0
    assert binary_metrics(federation().protect(aggregation=SecAgg()), np.zeros(2), formula="ill ~ open").n == 300


@pytest.mark.slow
def test_noise_is_added_to_every_metric_and_the_curve_is_asked_once():
    plain = federation()
    fit, line = logistic_regression(plain, ILL), linear_regression(plain, PAIN)
    noisy = federation().protect(mechanism=Gaussian(1e-3))
    np.testing.assert_allclose(binary_metrics(noisy, fit).log_loss, binary_metrics(plain, fit).log_loss, atol=0.01)
    np.testing.assert_allclose(linear_metrics(noisy, line).mse, linear_metrics(plain, line).mse, rtol=0.1)
    np.testing.assert_allclose(roc(noisy, fit, bins=50).auc, roc(plain, fit).auc, atol=0.02)
    assert roc(noisy, fit, bins=50).rounds == 1
    assert all(entry.event.kind != "nonprivate" for entry in noisy.ledger.entries)


# ---- local functions ------------------------------------------------------------------------------------------------
WEIGHTED = SCHEMA.with_roles(weight="copies")


def extremes(column):
    if column.kind == "category":
        return st.integers(0, len(column.levels) - 1)
    low, high = (float(0 if column.low is None else column.low), float(1 if column.high is None else column.high))
    return st.sampled_from([low, high]) | (st.floats(low, high) if column.kind == "number" else st.sampled_from([low, high]))


records = st.fixed_dictionaries({column.name: extremes(column) for column in WEIGHTED})
PAINFUL, ILLNESS, INDICATORS = (Design.of(f, WEIGHTED) for f in (PAIN, ILL, "ill ~ 0 + smoker + stage"))


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(record=records, beta=st.lists(st.floats(-3, 3), min_size=5, max_size=5), centre=st.floats(-20, 40))
def test_one_record_adds_at_most_its_bound(record, beta, centre):
    columns = {name: np.array([value], dtype=float) for name, value in record.items()}
    w, beta = np.array([record["copies"]], dtype=float), np.array(beta)
    line, curve, table = (Party("one", design(columns, spec=spec), w) for spec in (PAINFUL, ILLNESS, INDICATORS))
    edges, at_edges = np.linspace(0, 1, 6), {"beta": beta, "edges": np.array([-1.0, 0, 2])}
    for found, bounds in [
        (squared_errors({"beta": beta, "centre": np.array(centre)}, line, None), error_bounds(Fitted(PAINFUL, beta), centre)),
        (classified(beta, curve, None, threshold=0.5), classified_bounds(4.0)),
        (calibrated({"beta": beta, "edges": edges}, curve, None), dict.fromkeys(("n", "events", "expected"), count_bound(4.0))),
        ({"": scores_by_class(at_edges, curve, None)}, {"": count_bound(4.0)}),
        (events_by_column(None, table, None), table_bounds(4.0)),
    ]:
        assert set(found) == set(bounds)
        for key, bound in bounds.items():
            assert bound.size(np.reshape(found[key], (1, -1))).item() <= bound.radius * (1 + 1e-12), key


LOCALS = {
    "squared_errors": (squared_errors, {"beta": np.full(5, 0.1), "centre": np.array(2.0)}),
    "classified": (partial(classified, threshold=0.4), np.full(5, 0.02)),
    "calibrated": (calibrated, {"beta": np.full(5, 0.02), "edges": np.linspace(0, 1, 4)}),
    "scores_by_class": (scores_by_class, {"beta": np.full(5, 0.02), "edges": np.array([0.5, 1.0])}),
    "events_by_column": (events_by_column, None),
}


@pytest.mark.parametrize(("ask", "broadcast"), LOCALS.values(), ids=LOCALS)
def test_stacked_parties_add_up_like_single_ones_and_padding_counts_nothing(ask, broadcast):
    rng = np.random.default_rng(0)
    columns = SCHEMA.synthetic(24, rng)
    columns |= design(columns, spec=Design.of(ILL, SCHEMA))
    w = rng.integers(0, 3, 24).astype(float)
    stacked = Party("2 parties", {k: c.reshape(2, 12, *c.shape[1:]) for k, c in columns.items()}, w.reshape(2, 12))
    alone = [Party("one", {k: c[part] for k, c in columns.items()}, w[part]) for part in (slice(0, 12), slice(12, 24))]
    together, single = as_dict(ask(broadcast, stacked, None)), [as_dict(ask(broadcast, one, None)) for one in alone]
    for key, found in together.items():
        np.testing.assert_allclose(found, np.stack([one[key] for one in single]), rtol=1e-12, atol=1e-12)
    for value in as_dict(ask(broadcast, Party("padding", columns, np.zeros(24)), None)).values():
        assert not np.any(value)


def as_dict(contribution):
    return contribution if isinstance(contribution, dict) else {"": contribution}


# ---- refused beforehand ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "ask",
    [
        partial(binary_metrics, model=np.zeros(2), formula="pain ~ age"),
        partial(linear_metrics, model=np.zeros(2), formula="ill ~ age"),
        partial(roc, model=np.zeros(2), formula="pain ~ age"),
        partial(roc, model=np.zeros(2), formula="ill ~ age", bins=1),
        partial(roc, model=np.zeros(2), formula="ill ~ age", resolution=0.0),
        partial(binary_metrics, model=np.zeros(2), formula="ill ~ age", threshold=1.0),
        partial(calibration, model=np.zeros(2), formula="ill ~ age", bins=np.array([0.2, 1.0])),
        partial(calibration, model=np.zeros(2), formula="ill ~ age", bins=-3),
        partial(odds_ratio_table, formula="ill ~ age", level=95),
    ],
)
def test_metrics_that_do_not_fit_are_refused_before_any_party_is_asked(ask):
    fed = federation()
    with pytest.raises(SettingsInvalid):
        ask(fed)
    assert len(fed.ledger) == 0


def test_intervals_need_a_level_and_odds_ratios_odds():
    fed = federation()
    fits = [logistic_regression(fed, "ill ~ age"), huber_regression(fed, "pain ~ age"), linear_regression(fed, "pain ~ age")]
    for fit in fits:
        with pytest.raises(SettingsInvalid, match="level=95"):
            fit.conf_int(95)
    with pytest.raises(SettingsInvalid, match="linear regression"):
        fits[-1].odds_ratios()
