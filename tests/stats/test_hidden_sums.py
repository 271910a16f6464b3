"""Where rows are hidden every sum has a bound, it is true for every record, and fits are those of plain sums."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from clinic import SCHEMA, clinic, federation
from hiding import Hiding
from hypothesis import given, settings
from hypothesis import strategies as st
from test_statistics_bounds import WEIGHTED, party, records

from hedgerow import Gaussian
from hedgerow.data import Table
from hedgerow.errors import RangeExceeded, UnboundedSum
from hedgerow.stats import (
    Design,
    contingency,
    correlation,
    counts,
    gamma_regression,
    histogram,
    linear_regression,
    logistic_regression,
    moments,
    newton,
    poisson_regression,
    quantiles,
)
from hedgerow.stats.firth import corrected_score
from hedgerow.stats.glm import EVERYTHING
from hedgerow.stats.linear.losses import loss_of
from hedgerow.stats.linear.reach import Reach, predictor_range, reach_of, refuse_beyond
from hedgerow.stats.linear.sums import linear_sums, symmetric, triangle
from hedgerow.stats.multinomial import class_design, class_limits, softmax_score_and_information
from hedgerow.stats.negative_binomial import joint_limits, joint_score_and_information
from hedgerow.stats.penalty.folds import fold_sums

REGRESSIONS = {
    "binomial": (logistic_regression, "ill ~ age + stage + dose"),
    "gaussian": (linear_regression, "pain ~ age + stage * dose"),
    "poisson": (poisson_regression, "visits ~ age + smoker + stage"),
    "gamma": (gamma_regression, "dose ~ age + stage"),
}
WEIGHTS = [{}, {"weights": "copies", "offset": "exposure"}]


def hidden(table=None, n_parties=8, **settings):
    return federation(table, n_parties=n_parties).protect(aggregation=Hiding(**settings))


# ---- the same fits --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", WEIGHTS, ids=["", "weights and offset"])
@pytest.mark.parametrize("name", REGRESSIONS)
def test_fits_are_those_of_plain_sums(name, settings):
    regression, formula = REGRESSIONS[name]
    found, expected = regression(hidden(records=1600), formula, **settings), regression(federation(), formula, **settings)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-8)
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-10)
    assert found.rounds == expected.rounds


@pytest.mark.parametrize("name", REGRESSIONS)
def test_stores_of_one_record_are_those_of_plain_sums(name):
    regression, formula = REGRESSIONS[name]
    table = clinic(1000)
    found = regression(hidden(table, n_parties=1000, records=1), formula)
    np.testing.assert_allclose(found.coef_, regression(federation(table), formula).coef_, rtol=1e-8)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_fewer_bits_cost_digits_and_no_more(name):
    regression, formula = REGRESSIONS[name]
    found, expected = regression(hidden(bits=32), formula), regression(federation(), formula)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3 * expected.se_.max())
    assert found.rounds <= expected.rounds + 3


def test_states_are_in_the_columns_own_units():
    spec = Design.of("ill ~ age + dose", SCHEMA)
    states = list(newton(hidden(), spec))
    plain = list(newton(federation(), spec))
    for found, expected in zip(states, plain, strict=True):
        np.testing.assert_allclose(found.information, expected.information, rtol=1e-8)
        np.testing.assert_allclose(found.trial, expected.trial, rtol=1e-7)
    *_, resumed = newton(hidden(), spec, start=states[2])
    np.testing.assert_allclose(resumed.beta, states[-1].beta, rtol=1e-10)


def test_only_the_upper_triangle_is_asked_for():
    fed = hidden()
    logistic_regression(fed, "ill ~ age + dose")
    assert "information (6,)" in fed.ledger.entries[0].contribution
    assert "per record" in fed.ledger.entries[0].bound


@pytest.mark.slow
def test_noise_with_hidden_rows_takes_the_bounds_of_noise():
    fit = linear_regression(hidden().protect(mechanism=Gaussian(0.1)), "pain ~ age")
    assert np.isfinite(fit.coef_).all()


# ---- other statistics -----------------------------------------------------------------------------------------------
def test_moments_keep_the_digits_of_small_columns():
    table = clinic()
    tiny = replace(table.schema["dose"], name="tiny", low=0.0, high=1e-5)
    huge = replace(table.schema["dose"], name="huge", low=0.0, high=1e7)
    rng = np.random.default_rng(0)
    wide = Table({"tiny": rng.random(300) * 1e-6, "huge": rng.random(300) * 1e7}, type(table.schema)((tiny, huge)))
    found, expected = moments(hidden(wide)), moments(federation(wide))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-9)
    np.testing.assert_allclose(correlation(hidden(wide)), correlation(federation(wide)), atol=1e-9)


def test_counts_and_quantiles_are_exact():
    for ask in (
        counts,
        partial(contingency, rows="stage", columns="smoker"),
        partial(histogram, column="age", edges=[18, 40, 60, 90]),
        partial(quantiles, column="age"),
    ):
        np.testing.assert_allclose(ask(hidden()), ask(federation()), rtol=1e-12)


# ---- refused --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("regression", "formula", "named"),
    [(linear_regression, "pain ~ age + open", "open"), (linear_regression, "open ~ age", "open")],
)
def test_columns_without_ranges_are_named_before_any_party_is_asked(regression, formula, named):
    fed = hidden()
    with pytest.raises(UnboundedSum, match=f"^.*{named} declares no range"):
        regression(fed, formula)
    assert len(fed.ledger) == 0


def test_a_range_of_the_aggregation_stands_in_for_those_of_columns():
    fit = linear_regression(hidden(largest=1e9), "open ~ age + pain")
    np.testing.assert_allclose(fit.coef_, linear_regression(federation(), "open ~ age + pain").coef_, rtol=1e-6)


def test_a_gamma_target_that_may_be_zero_is_refused():
    table = clinic().declare(dose=(0, 10))
    with pytest.raises(UnboundedSum, match="lower end above zero"):
        gamma_regression(hidden(table), "dose ~ age")


def with_one_exposed(offset, visits):
    """Visits of 0 and 1, but for one record with an offset of its own."""
    table = clinic(200)
    one = np.arange(200) == 7
    schema = table.schema.replace(replace(table.schema["exposure"], high=9.0))
    schema = schema.replace(replace(schema["visits"], high=100))
    values = {"exposure": np.where(one, offset, 0.0), "visits": np.where(one, visits, np.asarray(table["visits"]) % 2)}
    return federation(Table({**table.columns, **values}, schema))


def test_means_within_eight_times_the_declared_range_are_those_of_plain_sums():
    fed = with_one_exposed(5.0, 90)
    found = poisson_regression(fed.protect(aggregation=Hiding()), "visits ~ 1", offset="exposure")
    np.testing.assert_allclose(found.coef_, poisson_regression(fed, "visits ~ 1", offset="exposure").coef_, rtol=1e-8)


def test_means_beyond_that_are_refused():
    fed = with_one_exposed(9.0, 90)
    poisson_regression(fed, "visits ~ age", offset="exposure")
    with pytest.raises(RangeExceeded, match="beyond 8 times"):
        poisson_regression(fed.protect(aggregation=Hiding()), "visits ~ age", offset="exposure")
    with pytest.raises(RangeExceeded, match="beyond 8 times"):
        refuse_beyond(1.0, Design.of("visits ~ age", SCHEMA))


# ---- bounds are true for every record -------------------------------------------------------------------------------
TARGETS = {"binomial": "ill", "gaussian": "pain", "poisson": "visits", "gamma": "dose", "negative binomial": "visits"}
BETAS = st.lists(st.floats(-3, 3), min_size=8, max_size=8)


def assert_limits(found, limits, w):
    assert set(found) <= set(limits)
    for key, value in found.items():
        assert np.abs(value).max() <= w * limits[key] * (1 + 1e-8) + 1e-9, f"{key}: {value} exceeds {limits[key]}"


def assert_bounds(found, bounds):
    assert set(found) == set(bounds)
    for key, value in found.items():
        assert np.abs(value).max() <= bounds[key].radius * (1 + 1e-8) + 1e-9, f"{key}: {value} exceeds {bounds[key]}"


@pytest.mark.slow
@pytest.mark.parametrize("family", TARGETS)
@settings(max_examples=60)
@given(record=records, beta=BETAS, centre=st.floats(-5, 20), alpha=st.floats(0.05, 4))
def test_sums_of_one_record_keep_to_their_limits(family, record, beta, centre, alpha):
    spec = Design.of(f"{TARGETS[family]} ~ age + stage * smoker + 0 + arm", WEIGHTED, offset="exposure").to_unit()
    law, beta = loss_of(family, alpha), np.array(beta)[: spec.size]
    assert spec.size <= 8
    broadcast = {"beta": beta, "centre": np.array(centre)}
    keys = (*EVERYTHING, *(name for name in ("saturated", "pearson") if law.has(name)))
    if law.log_link:
        broadcast["reach"] = np.array(reach_of(spec, law, beta))
        keys = (*keys, "beyond")
    ask = partial(linear_sums, loss=family, shape=alpha, keys=keys, upper=True)
    bounds = Reach.by_column(spec, law, [beta], centre).bounds(law, keys, lengths=False)
    assert_bounds(ask(broadcast, party(record, spec), None), bounds)


@pytest.mark.slow
@settings(max_examples=60)
@given(record=records, beta=BETAS, alpha=st.floats(0.01, 20))
def test_derivatives_in_alpha_keep_to_their_limits(record, beta, alpha):
    spec = Design.of("visits ~ age + stage", WEIGHTED, offset="exposure").to_unit()
    beta = np.array(beta)[: spec.size]
    reach = reach_of(spec, loss_of("poisson"), beta)
    broadcast = {"beta": beta, "log_alpha": np.array(np.log(alpha)), "reach": np.array(reach)}
    found = joint_score_and_information(broadcast, party(record, spec), None)
    assert_limits(found, joint_limits(spec, reach, alpha), record["copies"])


@pytest.mark.slow
@settings(max_examples=60)
@given(record=records, beta=BETAS)
def test_scores_of_levels_keep_to_their_limits(record, beta):
    spec = Design.of("stage ~ age + dose + smoker", WEIGHTED, classes=True).to_unit()
    beta = np.array(beta).reshape(2, 4)
    one = party(record)
    one.columns |= class_design(one.columns, spec=spec)
    assert_limits(softmax_score_and_information(beta, one, None), class_limits(spec, beta), record["copies"])


@pytest.mark.slow
@settings(max_examples=60)
@given(record=records, beta=BETAS)
def test_the_predictor_keeps_to_its_range(record, beta):
    for formula in ("ill ~ age + stage * smoker", "ill ~ 0 + stage:dose + log(dose)", "ill ~ arm:age"):
        spec = Design.of(formula, WEIGHTED, offset="exposure")
        one, b = party(record, spec), np.array(beta)[: spec.size]
        eta = (one["X"] @ b + one["offset"]).item()
        low, high = predictor_range(spec, b)
        assert low - 1e-9 <= eta <= high + 1e-9


@settings(max_examples=30)
@given(record=records, beta=BETAS)
def test_corrected_scores_and_folds_keep_to_their_limits(record, beta):
    spec = Design.of("ill ~ age + dose", WEIGHTED).to_unit()
    one, b = party(record, spec), np.array(beta)[: spec.size]
    score = corrected_score({"beta": b, "inverse": 1e6 * np.eye(3)}, one, None)
    assert np.abs(score).max() <= 1.5 * record["copies"] + 1e-9
    models = np.tile(b, (2, 4, 1))
    found = fold_sums({"beta": models}, one, None, family="binomial", n_folds=3)
    law, keys = loss_of("binomial"), ("score", "information", "deviance", "beyond", "n")
    bounds = Reach.by_column(spec, law, [b]).bounds(law, keys, lengths=False)
    assert_bounds(found, bounds | {"left_out": bounds["deviance"]})


def test_triangles_are_turned_back_into_matrices():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(3, 4, 4))
    matrix = matrix + np.swapaxes(matrix, -1, -2)
    np.testing.assert_array_equal(symmetric(triangle(matrix)), matrix)
