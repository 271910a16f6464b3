"""Random intercepts: equal to lme4 and to textbook formulas, behind hidden rows too; what left a party; what is refused."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import hedgerow as hr
from hedgerow import errors as err
from hedgerow.stats import mixed_linear, mixed_logistic
from hedgerow.stats.mixed.linear import reml
from hedgerow.stats.mixed.logistic import laplace_newton

INVESTED = "invest ~ value + capital + (1 | firm)"
DIED = "death_event ~ I(age/10) + serum_creatinine + (1 | site)"


def grunfeld():
    frame = sm.datasets.grunfeld.load_pandas().data
    frame = frame.assign(invest=frame.invest / 100, value=frame.value / 1000, capital=frame.capital / 1000)
    table = hr.data.Table.from_frame(frame[["invest", "value", "capital", "firm"]])
    return nested(table.declare(invest=(0, 20), value=(0, 7), capital=(0, 3)))


def nested(table, name="firm"):
    """The table with a column whose clusters lie each within one party."""
    columns = (replace(column, role="cluster") if column.name == name else column for column in table.schema)
    return hr.data.Table(table.columns, hr.data.Schema(tuple(columns)))


def firms(table=None, by="firm"):
    return hr.simulate(table or grunfeld(), partition=hr.data.by_column(by), seed=0)


def wards():
    table = hr.data.load("heart_failure").declare(age=(18, 110), serum_creatinine=(0, 20))
    return hr.simulate(table, partition=hr.data.by_column("ejection_fraction"), seed=0)


@pytest.fixture(scope="module")
def fit():
    return mixed_linear(firms(), INVESTED)


@pytest.fixture(scope="module")
def died():
    return mixed_logistic(wards(), DIED)


# ---- linear ---------------------------------------------------------------------------------------------------------
def test_reml_is_that_of_lme4(fit):
    # lmer(invest ~ value + capital + (1 | firm), control = lmerControl(optCtrl = list(ftol_abs = 1e-14, xtol_abs = 1e-14)))
    np.testing.assert_allclose(fit.coef_, [-0.540318206058, 1.093519794875, 3.081997218806], rtol=1e-8)
    np.testing.assert_allclose(fit.se_, [0.2662355112150, 0.0998668032841, 0.1636768869928], rtol=1e-7)
    np.testing.assert_allclose([fit.between, fit.within], [0.674089830904, 0.252755158548], rtol=1e-7)
    assert fit.log_likelihood == pytest.approx(-184.170612764, abs=1e-8)
    assert fit.icc == pytest.approx(0.72730, abs=1e-5)


def test_ordinary_likelihood_is_that_of_lme4():
    ml = mixed_linear(firms(), INVESTED, criterion="ML")  # lmer(..., REML = FALSE)
    np.testing.assert_allclose(ml.coef_, [-0.539125433175, 1.092891898182, 3.079772290194], rtol=1e-5)
    np.testing.assert_allclose([ml.between, ml.within], [0.597021565286, 0.250622485186], rtol=1e-4)
    assert ml.log_likelihood == pytest.approx(-181.312455101, abs=1e-8)


def test_errors_are_those_of_all_records_at_the_estimated_variances(fit):
    frame = grunfeld().to_pandas()
    X = np.column_stack([np.ones(len(frame)), frame.value, frame.capital])
    D = pd.get_dummies(frame.firm).to_numpy(float)
    V = fit.within * np.eye(len(X)) + fit.between * D @ D.T
    expected = np.linalg.inv(X.T @ np.linalg.solve(V, X))
    np.testing.assert_allclose(fit.covariance, expected, rtol=1e-8)
    np.testing.assert_allclose(fit.coef_, expected @ X.T @ np.linalg.solve(V, frame.invest), rtol=1e-8)


def test_clusters_may_lie_in_parties_of_any_number(fit):
    frame = grunfeld().to_pandas()
    frame["house"] = frame.firm.rank(method="dense") % 3
    table = hr.data.Table.from_frame(frame)
    for partition in (hr.data.iid(1), hr.data.by_column("house")):
        found = mixed_linear(hr.simulate(table, partition, seed=0), INVESTED, nested=True)
        np.testing.assert_allclose(found.coef_, fit.coef_, rtol=1e-9)
        assert found.between == pytest.approx(fit.between, rel=1e-8)


def test_sites_are_clusters_and_hidden_rows_change_next_to_nothing(fit):
    hidden = firms().protect(aggregation=hr.SecAgg())
    found = mixed_linear(hidden, INVESTED.replace("firm", "site"), most=25)
    np.testing.assert_allclose(found.coef_, fit.coef_, rtol=1e-8)
    np.testing.assert_allclose([found.between, found.within], [fit.between, fit.within], rtol=1e-6)
    entry = hidden.ledger.entries[0]
    assert (len(hidden.ledger.entries), entry.numbers, entry.aggregation) == (4, 8 * (10 + 10 + 2) + 2, "SecAgg")


def test_clusters_that_do_not_differ_have_no_variance():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "ward": np.arange(200) % 10})
    noise = rng.normal(size=200)
    frame["y"] = frame.x + noise - pd.Series(noise).groupby(frame.ward).transform("mean")
    found = mixed_linear(
        hr.simulate(hr.data.Table.from_frame(frame), hr.data.iid(1), seed=0), "y ~ x + (1 | ward)", nested=True
    )
    pooled = sm.OLS(frame.y, sm.add_constant(frame.x)).fit()
    assert found.between == 0.0
    np.testing.assert_allclose(found.coef_, pooled.params, rtol=1e-9)
    np.testing.assert_allclose(found.se_, pooled.bse, rtol=1e-9)
    assert "none was found" in found.summary()


def test_no_variance_between_clusters_is_found_behind_hidden_rows():
    table = hr.data.load("heart_failure")
    plain = hr.simulate(table, hr.data.iid(parties=4), seed=0)
    found, hidden = (
        mixed_linear(one, "serum_sodium ~ age + (1 | site)", most=100)
        for one in (plain, plain.protect(aggregation=hr.SecAgg()))
    )
    assert found.between == hidden.between == 0
    np.testing.assert_allclose(hidden.coef_, found.coef_, rtol=1e-9)


def test_a_large_target_loses_no_digits(fit):
    table = grunfeld()
    frame = table.to_pandas()
    frame["invest"] += 1e6
    moved = mixed_linear(firms(nested(hr.data.Table.from_frame(frame))), INVESTED)
    np.testing.assert_allclose(moved.coef_ - [1e6, 0, 0], fit.coef_, rtol=1e-6, atol=1e-8)
    assert moved.between == pytest.approx(fit.between, rel=1e-6)


def test_records_that_lack_a_value_are_left_out():
    frame = grunfeld().to_pandas()
    whole = mixed_linear(firms(hr.data.Table.from_frame(frame.iloc[7:])), INVESTED.replace("firm", "site"))
    frame.loc[frame.index[:7], "value"] = np.nan
    gaps = hr.data.Table.from_frame(frame, missing="drop")
    found = mixed_linear(firms(gaps), INVESTED.replace("firm", "site"))
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-9)
    assert (found.n_records, found.n_clusters) == (213, 11)


def test_a_run_goes_on_from_any_state():
    states = list(reml(firms(), formula=INVESTED))
    again = list(reml(firms(), formula=INVESTED, start=states[1]))
    np.testing.assert_array_equal(again[-1].beta, states[-1].beta)
    assert len(again) == len(states) - 2


# ---- logistic -------------------------------------------------------------------------------------------------------
def test_quadrature_is_that_of_lme4(died):
    # glmer(DEATH_EVENT ~ I(age/10) + serum_creatinine + (1 | ejection_fraction), family = binomial, nAGQ = 25) stops at 1e-5
    np.testing.assert_allclose(died.coef_, [-4.63194257947, 0.53587298812, 0.59167814364], rtol=2e-5)
    np.testing.assert_allclose(died.se_, [0.910971622752, 0.133994069268, 0.182917718147], rtol=1e-5)
    assert math.sqrt(died.between) == pytest.approx(1.16983638554, rel=1e-4)
    assert died.log_likelihood == pytest.approx(-153.392749218, abs=1e-7)
    assert died.log_likelihood > -153.392749218


def test_the_likelihood_is_that_of_a_dense_grid_and_at_its_top(died):
    frame = hr.data.load("heart_failure").to_pandas()
    X = np.column_stack([np.ones(len(frame)), frame.age / 10, frame.serum_creatinine])
    ward, u = pd.factorize(frame.ejection_fraction)[0], np.linspace(-9, 9, 1001)

    def likelihood(theta):
        at = (X @ theta[:3])[:, None] + theta[3] * u
        by_record = frame.death_event.to_numpy()[:, None] * at - np.logaddexp(0, at)
        by_ward = np.zeros((17, len(u)))
        np.add.at(by_ward, ward, by_record)
        return np.log(np.exp(by_ward - u**2 / 2).sum(1) * (u[1] - u[0]) / math.sqrt(2 * math.pi)).sum()

    top = np.append(died.coef_, math.sqrt(died.between))
    assert died.log_likelihood == pytest.approx(likelihood(top), abs=1e-9)
    h = 1e-3 * np.eye(4)
    slopes = [(likelihood(top + step) - likelihood(top - step)) / 2e-3 for step in h]
    np.testing.assert_allclose(slopes, 0, atol=2e-5)
    second = [[(likelihood(top + a + b) - likelihood(top + a - b) - likelihood(top - a + b) + likelihood(top - a - b)) / 4e-6
               for a in h] for b in h]  # fmt: skip
    np.testing.assert_allclose(died.se_, np.sqrt(np.diag(np.linalg.inv(-np.array(second))))[:3], rtol=1e-4)


def test_logistic_fits_behind_hidden_rows(died):
    hidden = wards().protect(aggregation=hr.SecAgg())
    found = mixed_logistic(hidden, DIED, most=60)
    np.testing.assert_allclose(found.coef_, died.coef_, rtol=1e-4)
    assert found.between == pytest.approx(died.between, rel=1e-3)
    assert {entry.numbers for entry in hidden.ledger.entries} == {1 + 4 + 10 + 3}


def test_a_logistic_run_goes_on_from_any_state():
    states = list(laplace_newton(wards(), formula=DIED))
    again = list(laplace_newton(wards(), formula=DIED, start=states[3]))
    np.testing.assert_allclose(again[-1].beta, states[-1].beta, rtol=1e-12)


# ---- what is refused, and what is said ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("formula", "error"),
    [
        ("invest ~ value", err.FormulaInvalid),
        ("invest ~ value + (value | firm)", err.FormulaInvalid),
        ("invest ~ (1 | firm) + (1 | site)", err.FormulaInvalid),
        ("invest ~ value + (1 | capital)", err.FormulaInvalid),
        ("invest ~ value + (1 | frim)", err.MissingColumn),
    ],
)
def test_other_terms_are_refused_before_anybody_is_asked(formula, error):
    federation = firms()
    with pytest.raises(error):
        mixed_linear(federation, formula)
    assert not federation.ledger.entries


def test_noise_and_undeclared_sizes_are_refused():
    with pytest.raises(err.UnlawfulChannel, match="whole cluster"):
        mixed_linear(firms().protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0)), INVESTED)
    undeclared = hr.data.Table.from_frame(grunfeld().to_pandas())
    with pytest.raises(err.UnboundedSum, match="declare"):
        mixed_linear(firms(undeclared).protect(aggregation=hr.SecAgg()), INVESTED, nested=True)
    with pytest.raises(err.PartyDeclined, match="HR-243"):
        mixed_linear(firms().protect(aggregation=hr.SecAgg()), INVESTED, most=10)


def test_one_cluster_and_clusters_of_one_record_tell_nothing():
    frame = grunfeld().to_pandas()
    frame["alone"] = np.arange(len(frame))
    table = hr.data.Table.from_frame(frame)
    with pytest.raises(err.NotIdentified, match="one record"):
        mixed_linear(firms(table), "invest ~ value + (1 | alone)", nested=True)
    with pytest.raises(err.NotIdentified, match="one cluster"):
        mixed_linear(hr.simulate(table, hr.data.iid(1), seed=0), "invest ~ value + (1 | site)")


def test_clusters_that_nobody_calls_nested_are_refused_since_a_split_one_counts_as_several(fit):
    table = hr.data.Table.from_frame(grunfeld().to_pandas())
    spread = hr.simulate(table, hr.data.iid(3), seed=0)  # each firm's years lie at three parties
    with pytest.raises(err.SettingsInvalid, match="lies within one party"):
        mixed_linear(spread, INVESTED)
    assert not spread.ledger.entries
    wrong = mixed_linear(spread, INVESTED, nested=True)  # what a false word leads to
    assert wrong.n_clusters == 33
    assert wrong.between < 0.95 * fit.between


def test_no_variance_between_clusters_has_no_error():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=400), "ward": np.arange(400) % 20})
    frame["ill"] = np.arange(400) // 20 % 2.0  # half of each ward: wards differ less than by chance
    found = mixed_logistic(
        hr.simulate(hr.data.Table.from_frame(frame), hr.data.iid(1), seed=0), "ill ~ x + (1 | ward)", nested=True
    )
    assert found.between < 1e-8
    assert math.isnan(found.between_se)
    pooled = sm.Logit(frame.ill, sm.add_constant(frame.x)).fit(disp=0)
    np.testing.assert_allclose(found.se_, pooled.bse, rtol=1e-6)


def test_few_clusters_are_said_to_tell_little():
    table = hr.data.load("heart_failure")
    found = mixed_linear(hr.simulate(table, hr.data.iid(4), seed=0), "serum_sodium ~ age + (1 | site)")
    assert "4 clusters tell little" in " ".join(found.summary().split())
    assert list(found.to_frame().columns) == ["coef", "se", "z", "p", "low", "high"]
    assert "<svg" in found.plot().svg


def test_predictions_are_of_an_average_cluster(died):
    new = pd.DataFrame({"age": [60.0], "serum_creatinine": [1.2]})
    expected = 1 / (1 + math.exp(-(died.coef_ @ [1, 6.0, 1.2])))
    assert died.predict(new)[0] == pytest.approx(expected)
    assert died.odds_ratios().shape == (3, 3)
