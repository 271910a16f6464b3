"""Moments, correlations and standardisation equal those of pooled records."""

import numpy as np
import pytest
from clinic import clinic, federation

from hedgerow import Gaussian
from hedgerow.data import Table
from hedgerow.errors import MissingColumn, SchemaInvalid, UnboundedSum
from hedgerow.stats import centred_sums, correlation, logistic_regression, moments, scaling, standardise
from helpers import altered


def test_moments_are_those_of_the_pooled_records():
    frame = clinic().to_pandas()[["age", "visits", "ill"]]
    found = moments(federation(), ["age", "visits", "ill"])
    assert found.n == 300
    np.testing.assert_allclose(found.mean, frame.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.variance, frame.var(), rtol=1e-12)
    np.testing.assert_allclose(found.standard_error, frame.sem(), rtol=1e-12)
    assert list(found.to_frame().columns) == ["n", "mean", "sd", "variance", "standard error"]


def test_numeric_features_and_target_are_read_by_default():
    assert moments(federation()).names == ("age", "dose", "visits", "smoker", "ill")


def test_weights_count_as_repeated_records():
    table = clinic().with_roles(weight="copies")
    repeated = np.repeat(table["age"], table["copies"].astype(int))
    found = moments(federation(table), ["age"])
    assert found.n == len(repeated)
    np.testing.assert_allclose([found.mean[0], found.sd[0]], [repeated.mean(), repeated.std(ddof=1)], rtol=1e-12)


def test_a_mean_far_from_zero_costs_no_digits():
    table = clinic()
    far = Table({**table.columns, "open": table["open"] + 1e9}, table.schema)
    np.testing.assert_allclose(moments(federation(far), ["open"]).sd, far["open"].std(ddof=1), rtol=1e-9)


def test_one_record_has_no_variance():
    found = moments(federation(clinic(1), n_parties=1), ["age"])
    assert np.isnan(found.variance[0])


def test_correlation_is_that_of_the_pooled_records():
    names = ["age", "dose", "visits", "pain"]
    found = correlation(federation(), names)
    np.testing.assert_allclose(found, clinic().to_pandas()[names].corr(), atol=1e-12)
    assert list(found.index) == names


def test_a_constant_column_correlates_with_nothing():
    table = clinic()
    flat = Table({**table.columns, "dose": np.full(300, 2.0)}, table.schema)
    found = correlation(federation(flat), ["age", "dose"])
    assert found.loc["age", "age"] == 1
    assert np.isnan(found.loc["age", "dose"])


def test_noise_is_paid_for_once_and_stays_near():
    protected = federation(clinic(2000)).protect(mechanism=Gaussian(0.5))
    assert len(list(centred_sums(protected, ["age"]))) == 1
    np.testing.assert_allclose(moments(protected, ["age"]).mean, clinic(2000)["age"].mean(), atol=1)


def test_standardised_columns_have_mean_zero_and_sd_one():
    scaled = standardise(federation(), ["age", "dose"])
    found = moments(scaled, ["age", "dose", "visits"])
    np.testing.assert_allclose(found.mean[:2], 0, atol=1e-12)
    np.testing.assert_allclose(found.sd[:2], 1, rtol=1e-12)
    np.testing.assert_allclose(found.mean[2], clinic()["visits"].mean())


def test_declared_ranges_are_standardised_too():
    fed = federation()
    kept = scaling(fed, ["age"])
    column = kept.apply(fed).schema["age"]
    assert (column.low, column.high) == ((18 - kept.means[0]) / kept.scales[0], (90 - kept.means[0]) / kept.scales[0])


def test_a_fit_of_standardised_columns_predicts_from_standardised_frames():
    kept, frame = scaling(federation()), clinic().to_pandas()
    fit = logistic_regression(standardise(federation()), "ill ~ age + dose + stage")
    expected = logistic_regression(federation(), "ill ~ age + dose + stage")
    np.testing.assert_allclose(fit.coef_[1:3], expected.coef_[1:3] * kept.scales[:2], rtol=1e-8)
    np.testing.assert_allclose(fit.predict(kept.apply_to_frame(frame)), expected.predict(frame), rtol=1e-8)


def test_a_scaling_applies_to_another_federation_without_asking():
    kept, other = scaling(federation()), federation(clinic(50, seed=9))
    assert kept.names == ("age", "dose", "visits")
    scaled = kept.apply(other)
    assert len(other.ledger) == 0
    expected = (clinic(50, seed=9)["age"].mean() - kept.means[0]) / kept.scales[0]
    np.testing.assert_allclose(moments(scaled, ["age"]).mean, expected)


def test_a_constant_column_is_only_centred():
    table = clinic()
    flat = Table({**table.columns, "dose": np.full(300, 2.0)}, table.schema)
    assert scaling(federation(flat), ["dose"]).scales == (1.0,)


@pytest.mark.parametrize(
    ("names", "error", "match"),
    [(["agee"], MissingColumn, "agee"), (["stage"], SchemaInvalid, "category"), ([], SchemaInvalid, "no column")],
)
def test_columns_without_numbers_are_refused_before_any_party_is_asked(names, error, match):
    fed = federation()
    with pytest.raises(error, match=match):
        moments(fed, names)
    assert len(fed.ledger) == 0


def test_a_federation_without_schema_is_refused():
    with pytest.raises(SchemaInvalid, match="no schema"):
        moments(altered(federation(), schema=None))


def test_noise_needs_declared_ranges():
    fed = federation().protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnboundedSum):
        moments(fed, ["age", "open"])
    assert len(fed.ledger) == 0
