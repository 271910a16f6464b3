"""Robust errors: equal to statsmodels and to R's sandwich, behind hidden rows too; what left a party; what is refused."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import hedgerow as hr
from hedgerow import errors as err
from hedgerow.stats import linear_regression, logistic_regression

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[3] / "shared" / "data")
DIED = "death_event ~ I(age / 10) + serum_creatinine"
PROGRESS = "progression ~ bmi + bp + s5"
RANGES = {"age": (18, 110), "serum_creatinine": (0, 20)}


def patients(parties=4):
    return hr.simulate(hr.data.load("heart_failure").declare(**RANGES), hr.data.iid(parties), seed=0)


def diabetes():
    return hr.data.load("diabetes")


def grunfeld():
    frame = sm.datasets.grunfeld.load_pandas().data
    frame = frame.assign(invest=frame.invest / 100, value=frame.value / 1000, capital=frame.capital / 1000)
    table = hr.data.Table.from_frame(frame[["invest", "value", "capital", "firm"]])
    return frame, table.declare(invest=(0, 20), value=(0, 7), capital=(0, 3))


# ---- against statsmodels and R --------------------------------------------------------------------------------------
@pytest.mark.parametrize("errors", ["HC0", "HC1", "HC2", "HC3"])
def test_linear_errors_are_those_of_statsmodels(errors):
    fit = linear_regression(hr.simulate(diabetes(), hr.data.iid(5), seed=0), PROGRESS, errors=errors)
    expected = smf.ols(PROGRESS, diabetes().to_pandas().astype(float)).fit(cov_type=errors, use_t=True)
    np.testing.assert_allclose(fit.se_, expected.bse, rtol=1e-11)
    np.testing.assert_allclose(fit.p_values, expected.pvalues, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(fit.f_test, [expected.fvalue, expected.f_pvalue], rtol=1e-8, atol=1e-14)
    assert f"robust, {errors}" in fit.summary()


@pytest.mark.parametrize(
    ("errors", "se"),
    [  # R: sqrt(diag(vcovHC(glm(DEATH_EVENT ~ I(age/10) + serum_creatinine, binomial), type = ...)))
        ("HC0", [0.7712304444747, 0.1168820234283, 0.2569813513976]),
        ("HC1", [0.7751288540373, 0.1174728377576, 0.2582803387040]),
        ("HC2", [0.7771993375730, 0.1178950983428, 0.2629854254716]),
        ("HC3", [0.7832866305767, 0.1189304407013, 0.2691838018954]),
    ],
)
def test_logistic_errors_are_those_of_sandwich(errors, se):
    np.testing.assert_allclose(logistic_regression(patients(), DIED, errors=errors).se_, se, rtol=1e-7)


def test_gamma_errors_are_those_of_sandwich():
    # R: vcovHC(glm(serum_creatinine ~ I(age/10) + sex, family = Gamma(link = "log")), type = "HC3")
    fit = hr.stats.gamma_regression(patients(), "serum_creatinine ~ I(age / 10) + sex", errors="HC3")
    np.testing.assert_allclose(fit.se_, [0.21451578616846, 0.03155641075636, 0.09267634772000], rtol=1e-7)


@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
def test_insurance_is_the_golden_number():
    table = hr.data.load("insurance", data_dir=DATA)
    fit = linear_regression(
        hr.simulate(table, hr.data.iid(3), seed=0), "I(charges/1000) ~ I(age/10) + I(bmi/10) + children + smoker", errors="HC3"
    )
    np.testing.assert_allclose(fit.se_, [0.991497071, 0.1185867362, 0.3007570538, 0.1312107038, 0.5737937996], rtol=1e-8)


@pytest.mark.parametrize("errors", ["cluster", "party"])
def test_clusters_are_those_of_statsmodels_within_a_party_and_as_parties(errors):
    frame, table = grunfeld()
    federation = hr.simulate(table, hr.data.by_column("firm"), seed=0)
    given = {"cluster": "firm"} if errors == "cluster" else {}
    fit = linear_regression(federation, "invest ~ value + capital", errors=errors, **given)
    groups = pd.factorize(frame.firm)[0]
    expected = smf.ols("invest ~ value + capital", frame).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    np.testing.assert_allclose(fit.se_, [0.1813627999, 0.1620044544, 0.8547781688], rtol=1e-8)
    np.testing.assert_allclose(fit.conf_int(), expected.conf_int(), rtol=1e-9)
    assert (fit.n_clusters, fit.df_inference) == (11, 10)
    assert "so few clusters make errors too small" in " ".join(fit.summary().split())


def test_logistic_clusters_are_those_of_statsmodels():
    table = hr.data.load("heart_failure")
    fit = logistic_regression(hr.simulate(table, hr.data.by_column("ejection_fraction"), seed=0), DIED, errors="party")
    frame = table.to_pandas()
    groups = pd.factorize(frame.ejection_fraction)[0]
    model = smf.logit(DIED.replace("I(age / 10)", "np.divide(age, 10)"), frame)
    expected = model.fit(disp=0, method="newton", tol=1e-10, cov_type="cluster", cov_kwds={"groups": groups})
    np.testing.assert_allclose(fit.se_, expected.bse, rtol=1e-9)


# ---- weights --------------------------------------------------------------------------------------------------------
def weighted():
    table = diabetes()
    rng = np.random.default_rng(1)
    frame = table.to_pandas().astype(float).assign(w=np.round(rng.uniform(0.5, 4, len(table)), 2))
    return frame, hr.data.Table.from_frame(frame).declare(w=(0, 5))


@pytest.mark.parametrize("errors", ["HC0", "HC1", "HC3"])
def test_probability_weights_count_a_record_once(errors):
    frame, table = weighted()
    federation = hr.simulate(table, hr.data.iid(4), seed=0)
    fit = linear_regression(federation, PROGRESS, probability="w", errors=errors)
    expected = smf.wls(PROGRESS, frame, weights=frame.w).fit(cov_type=errors, use_t=True)
    np.testing.assert_allclose(fit.coef_, expected.params, rtol=1e-10)
    np.testing.assert_allclose(fit.se_, expected.bse, rtol=1e-10)
    assert (fit.n_records, fit.log_likelihood) == (len(frame), None)
    halved = table.declare(w=(0, 5))
    halved.columns["w"] = halved.columns["w"] / 2
    again = linear_regression(hr.simulate(halved, hr.data.iid(4), seed=0), PROGRESS, probability="w", errors=errors)
    np.testing.assert_allclose(again.se_, fit.se_, rtol=1e-10)


def test_probability_weights_have_robust_errors_unasked():
    _, table = weighted()
    federation = hr.simulate(table, hr.data.iid(4), seed=0)
    assert linear_regression(federation, PROGRESS, probability="w").errors == "HC1"


def test_frequency_weights_repeat_records():
    frame = diabetes().to_pandas().astype(float)
    times = np.arange(len(frame)) % 3 + 1
    table = hr.data.Table.from_frame(frame.assign(times=times))
    long = hr.data.Table.from_frame(frame.loc[frame.index.repeat(times)])
    for errors in ("HC1", "HC3"):
        short = linear_regression(hr.simulate(table, hr.data.iid(3), seed=0), PROGRESS, weights="times", errors=errors)
        repeated = linear_regression(hr.simulate(long, hr.data.iid(3), seed=0), PROGRESS, errors=errors)
        np.testing.assert_allclose(short.se_, repeated.se_, rtol=1e-10)
        assert short.n_records == repeated.n_records == times.sum()


# ---- hidden rows, and what left -------------------------------------------------------------------------------------
@pytest.mark.parametrize("errors", ["HC1", "HC3", "party"])
def test_hidden_rows_change_next_to_nothing(errors):
    plain, hidden = patients(), patients().protect(aggregation=hr.SecAgg())
    fit, found = (logistic_regression(one, DIED, errors=errors, most=200) for one in (plain, hidden))
    np.testing.assert_allclose(found.se_, fit.se_, rtol=1e-6)
    last = plain.ledger.entries[-1]
    assert last.numbers == 6 + 2  # the triangle of the meat, rows, and leverages beyond or clusters
    assert len(plain.ledger.entries) == fit.rounds


def test_a_record_adds_at_most_what_is_declared_of_it():
    heard = patients().protect(aggregation=hr.SecAgg())
    logistic_regression(heard, DIED, errors="HC3")
    assert heard.ledger.entries[-1].unit == "record"
    clustered = patients().protect(aggregation=hr.SecAgg())
    logistic_regression(clustered, DIED, errors="party", most=200)
    assert clustered.ledger.entries[-1].unit == "party"


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_what_does_not_fit_is_refused_before_anybody_is_asked():
    federation = patients()
    for given in ({"errors": "HC5"}, {"errors": "cluster"}, {"errors": "HC1", "cluster": "sex"}):
        with pytest.raises(err.SettingsInvalid):
            logistic_regression(federation, DIED, **given)
    with pytest.raises(err.UnlawfulChannel, match="inference"):
        logistic_regression(federation.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0)), DIED, errors="HC1")
    with pytest.raises(err.SettingsInvalid, match="repeat"):
        logistic_regression(federation, DIED, weights="time", probability="time")
    assert not federation.ledger.entries


def test_one_cluster_and_a_party_that_is_too_large():
    with pytest.raises(err.NotIdentified, match="one cluster"):
        logistic_regression(patients(1), DIED, errors="party")
    with pytest.raises(err.PartyDeclined, match="HR-243"):
        logistic_regression(patients().protect(aggregation=hr.SecAgg()), DIED, errors="party", most=10)


def test_a_run_goes_on_from_the_converged_state():
    states = list(hr.stats.regression(patients(), formula=DIED, family="binomial", errors="HC1"))
    *_, again = hr.stats.regression(patients(), formula=DIED, family="binomial", errors="HC1", start=states[-2])
    np.testing.assert_array_equal(again.kept["meat"], states[-1].kept["meat"])
    assert again.round == states[-1].round


def test_a_test_of_several_coefficients_is_that_of_statsmodels():
    fit = linear_regression(hr.simulate(diabetes(), hr.data.iid(3), seed=0), PROGRESS, errors="HC1")
    expected = smf.ols(PROGRESS, diabetes().to_pandas().astype(float)).fit(cov_type="HC1", use_t=True).f_test("bmi = 0, bp = 0")
    value, k, p = fit.wald(["bmi", "bp"])
    assert (value, k) == (pytest.approx(float(expected.fvalue)), 2)
    assert p == pytest.approx(float(expected.pvalue), rel=1e-6, abs=1e-16)
    with pytest.raises(err.MissingColumn, match="bmx"):
        fit.wald(["bmx"])
