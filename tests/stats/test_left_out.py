"""Quality at each site, and models that are judged where they were not fitted, against plain loops over the sites."""

import numpy as np
import pytest
import statsmodels.api as sm
from clinic import SCHEMA, clinic
from sklearn import metrics as sk
from test_safe_curves import delong

import hedgerow as hr
from hedgerow.crypto import SecAgg
from hedgerow.data import Table
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.privacy import Gaussian
from hedgerow.stats import leave_one_site_out, logistic_regression, quality_by_site
from hedgerow.stats.quality.by_site import delong as weighted_delong
from hedgerow.stats.quality.by_site import site_mean
from hedgerow.testing.wired import Wired

ILL = "ill ~ age + dose + stage"
SIZES = (150, 250, 200, 300)


@pytest.fixture(scope="module")
def clinics():
    """Four sites as tables, and a federation of them."""
    tables = [clinic(n, seed=i) for i, n in enumerate(SIZES)]
    return tables, hr.simulate({f"site {i}": table for i, table in enumerate(tables)}, seed=0)


def scores(fit, table):
    return fit.spec.matrix(table.columns, len(table)) @ fit.coef_


def test_each_site_has_the_area_and_slope_of_its_own_records(clinics):
    tables, fed = clinics
    fit = logistic_regression(fed, ILL)
    found = quality_by_site(fed, fit)
    assert found.names == ("site 0", "site 1", "site 2", "site 3")
    for i, table in enumerate(tables):
        eta, y = scores(fit, table), table["ill"]
        area, error = delong(eta, y)
        line = sm.Logit(y, sm.add_constant(eta)).fit(disp=0, tol=1e-14)
        assert found.to_frame().loc[f"site {i}", "AUC"] == pytest.approx(area, abs=1e-12)
        assert np.sqrt(found.variance[i, 0]) * area * (1 - area) == pytest.approx(error, abs=1e-12)
        assert found.estimate[i, 1] == pytest.approx(line.params[1], abs=1e-9)
        assert found.variance[i, 1] == pytest.approx(line.bse[1] ** 2, abs=1e-10)
    assert [entry.numbers for entry in fed.ledger.entries[-1:]] == [6]
    assert "no sign that they differ" in found.summary() or "the sites differ" in found.summary()


def test_a_site_with_few_events_sends_nothing_of_its_own(clinics):
    tables, _ = clinics
    healthy = tables[0].take(np.flatnonzero(tables[0]["ill"] == 0))
    fed = hr.simulate({"a": tables[1], "b": healthy, "c": tables[2]}, seed=0)
    found = quality_by_site(fed, np.array([-2, 0.05, -0.2, 0, 0.5]), formula=ILL)
    assert found.names == ("a", "c")
    assert found.left_out == 1
    assert "too few" in found.summary()
    none = quality_by_site(fed, np.array([-2, 0.05, -0.2, 0, 0.5]), formula=ILL, least=1000)
    assert none.names == ()
    assert "No site" in none.summary()
    assert len(none.to_frame()) == 1


def test_hidden_rows_are_not_taken_apart(clinics):
    _, fed = clinics
    with pytest.raises(UnlawfulChannel):
        quality_by_site(fed.protect(aggregation=SecAgg()), np.zeros(5), formula=ILL)


def test_weights_of_an_area_count_as_repeated_records():
    rng = np.random.default_rng(0)
    score, y, w = rng.integers(0, 9, 60).astype(float), rng.random(60) < 0.4, rng.integers(0, 4, 60)
    again = np.repeat(np.arange(60), w)
    area, variance = weighted_delong(score, y, w.astype(float))
    expected = delong(score[again], y[again].astype(int))
    assert (area, np.sqrt(variance)) == pytest.approx(expected, abs=1e-12)


def test_the_mean_of_sites_is_that_of_dersimonian_and_laird():
    """R 4.2, metafor: rma(yi, vi, method = "DL")."""
    found = site_mean(np.array([0.061, -0.12, 0.35, 0.29, 0.18]), np.array([0.012, 0.031, 0.009, 0.05, 0.02]))
    assert found.q == pytest.approx(7.528889355, abs=1e-9)
    assert found.between == pytest.approx(0.01615745833, abs=1e-11)
    assert found.mean == pytest.approx(0.1644317092, abs=1e-10)


# ---- one site left out ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("hidden", [False, True])
def test_each_record_is_judged_by_the_model_that_did_not_see_its_site(clinics, hidden):
    tables, fed = clinics
    found = leave_one_site_out(fed.protect(aggregation=SecAgg()) if hidden else fed, ILL, sites=not hidden)
    etas = []
    for i, table in enumerate(tables):
        rest = Table(
            {name: np.concatenate([one[name] for j, one in enumerate(tables) if j != i]) for name in table.columns}, SCHEMA
        )
        model = sm.Logit(rest["ill"], logistic_rows(fed, rest)).fit(disp=0, tol=1e-12)
        np.testing.assert_allclose(found.models[i], model.params, atol=1e-7)
        etas.append(logistic_rows(fed, table) @ model.params)
    eta, y = np.concatenate(etas), np.concatenate([table["ill"] for table in tables])
    line = sm.Logit(y, sm.add_constant(eta)).fit(disp=0, tol=1e-14)
    assert found.quality.metrics.brier == pytest.approx(sk.brier_score_loss(y, 1 / (1 + np.exp(-eta))), abs=1e-8)
    np.testing.assert_allclose(found.quality.line.coef_, line.params, atol=1e-7)
    area, error = delong(eta, y)
    assert abs(found.quality.curve.auc - area) < 0.3 * error
    if not hidden:
        own = [delong(part, table["ill"])[0] for part, table in zip(etas, tables, strict=True)]
        np.testing.assert_allclose(found.sites.to_frame()["AUC"].iloc[:4], own, atol=1e-8)
    assert list(found.to_frame().index) == [f"site {i}" for i in range(4)]
    assert "judged by a model of the others" in found.summary()


def logistic_rows(fed, table):
    from hedgerow.stats import Design

    return Design.of(ILL, fed.schema).matrix(table.columns, len(table))


def test_what_left_a_party_is_three_fits_of_four_and_one_judgement(clinics):
    _, fed = clinics
    before = len(fed.ledger)
    found = leave_one_site_out(fed, ILL)
    entries = fed.ledger.entries[before:]
    fits = [entry for entry in entries if entry.sampling.rate < 1]
    assert {entry.sampling.rate for entry in fits} == {0.75}
    asked = sum(entry.numbers for entry in fits) * 3 / 4 + found.quality.numbers
    assert found.numbers == pytest.approx(asked, abs=1)
    groups = len(found.quality.groups.events)
    assert found.quality.numbers == 9 + 40 + 3 * groups + 10 * found.quality.line.rounds


def test_two_sites_and_noise_are_refused_beforehand(clinics):
    tables, fed = clinics
    two = hr.simulate({"a": tables[0], "b": tables[1]}, seed=0)
    with pytest.raises(SettingsInvalid, match="three or more"):
        leave_one_site_out(two, ILL)
    with pytest.raises(UnlawfulChannel, match="budget"):
        leave_one_site_out(fed.protect(mechanism=Gaussian(1.0)), ILL)
    with pytest.raises(UnlawfulChannel, match="hidden"):
        leave_one_site_out(fed.protect(aggregation=SecAgg()), ILL, sites=True)
    assert len(two.ledger) == 0


def test_questions_about_own_models_travel_as_bytes(clinics):
    """A function as a setting of another crosses the wire."""
    tables, fed = clinics
    wired = Wired()
    apart = hr.simulate({f"site {i}": table for i, table in enumerate(tables)}, seed=0, engine=wired)
    one, other = (leave_one_site_out(each, ILL).quality.to_frame() for each in (fed, apart))
    np.testing.assert_allclose(one, other, atol=1e-12)
