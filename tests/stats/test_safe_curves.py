"""ROC curves and calibration by one question, at a resolution that singles nobody out; intervals by a naive oracle."""

import numpy as np
import pytest
from clinic import clinic, federation
from scipy.special import expit
from sklearn import metrics as sk

import hedgerow as hr
from hedgerow import data
from hedgerow.errors import SettingsInvalid
from hedgerow.stats import calibration, logistic_regression, roc

ILL = "ill ~ age + dose + stage"


def delong(p, y):
    """Area and its variance from all pairs of an event and another record."""
    events, others = p[y == 1], p[y == 0]
    wins = (events[:, None] > others) + 0.5 * (events[:, None] == others)
    return wins.mean(), np.sqrt(wins.mean(1).var(ddof=1) / len(events) + wins.mean(0).var(ddof=1) / len(others))


def scored(n, base, spread, seed=0):
    """A federation whose log-odds are the column `score`, with their probabilities and outcomes."""
    rng = np.random.default_rng(seed)
    score = base + spread * rng.normal(size=n)
    came = (rng.random(n) < expit(score)).astype(int)
    columns = [data.Column("score", "number", low=-40, high=40), data.Column("came", "binary", role="target")]
    table = data.Table({"score": score, "came": came}, data.Schema(tuple(columns)))
    return hr.simulate(table, hr.data.iid(4), seed=0), expit(score), came


def asked(fed):
    return [entry for entry in fed.ledger.entries if entry.query.endswith("scores_by_class")]


@pytest.fixture(scope="module")
def ill():
    fed, frame = federation(), clinic().to_pandas()
    fit = logistic_regression(fed, ILL)
    return fed, fit, frame["ill"].to_numpy(), fit.predict(frame)


# ---- what leaves ----------------------------------------------------------------------------------------------------
def test_a_curve_is_one_question_of_twenty_bins(ill):
    fed, fit, *_ = ill
    before = len(asked(fed))
    found = roc(fed, fit)
    entries = asked(fed)[before:]
    assert [entry.numbers for entry in entries] == [40]
    assert (found.rounds, found.bins) == (1, 20)


def test_no_cell_that_is_shown_holds_fewer_than_ten_records(ill):
    fed, fit, *_ = ill
    found = roc(fed, fit)
    assert (found.others + found.events).min() >= 10
    assert len(found.edges) + 1 == len(found.others) == len(found.events) <= 20
    told = calibration(fed, fit)
    assert told.n.min() >= 10
    assert (told.edges[0], told.edges[-1], len(told.edges)) == (0.0, 1.0, len(told.n) + 1)


def test_few_records_are_alone_in_a_bin_of_their_party(ill):
    """At each of the four parties of seventy-five records; of 1024 bins more than half of them were."""
    fed, fit, _, p = ill
    edges = expit(roc(fed, fit, least=0).edges)
    alone = [(np.bincount(np.searchsorted(edges, p[part])) == 1).sum() / 75 for part in np.arange(300).reshape(4, 75)]
    fine = [(np.bincount((p[part] * 1024).astype(int)) == 1).sum() / 75 for part in np.arange(300).reshape(4, 75)]
    assert np.mean(alone) < 0.1 < 0.5 < np.mean(fine)


def test_a_fine_resolution_is_there_for_who_names_it(ill):
    fed, fit, y, p = ill
    found = roc(fed, fit, bins=2000, least=0)
    assert (found.bins, len(found.events), found.least) == (2000, 2000, 0)
    assert abs(found.auc - sk.roc_auc_score(y, p)) < 1e-3
    exact = roc(fed, fit, tol=0)
    assert exact.auc == pytest.approx(sk.roc_auc_score(y, p), abs=1e-12)


def test_edges_of_the_probability_may_be_declared(ill):
    fed, fit, *_ = ill
    found = roc(fed, fit, bins=np.array([0, 0.1, 0.3, 0.6, 1.0]), least=0)
    np.testing.assert_allclose(found.thresholds, [1, 0.6, 0.3, 0.1, 0], atol=1e-12)


# ---- how far off it is ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("base", [0.0, -2.0, -4.0], ids=["half", "15 %", "3 %"])
def test_twenty_bins_leave_the_area_and_its_error_within_the_error(base):
    """Of 4000 records; of a rare outcome bins of equal width were off by four standard errors and more."""
    fed, p, came = scored(4000, base, 1.0)
    found = roc(fed, np.array([0.0, 1.0]), formula="came ~ score")
    area, error = delong(p, came)
    assert area == pytest.approx(sk.roc_auc_score(came, p), abs=1e-12)
    assert abs(found.auc - area) < 0.35 * error
    assert found.standard_error() == pytest.approx(error, rel=0.03)
    low, high = found.conf_int()
    assert (low, high) == pytest.approx((area - 1.96 * error, area + 1.96 * error), abs=0.35 * error)


def test_of_many_records_there_are_more_bins():
    fed, p, came = scored(60_000, 0.0, 1.0)
    found = roc(fed, np.array([0.0, 1.0]), formula="came ~ score")
    assert 40 < found.bins < 60
    assert abs(found.auc - sk.roc_auc_score(came, p)) < 0.3 * found.standard_error()


@pytest.mark.parametrize("settings", [{"least": -1}, {"tol": -1.0}, {"bins": np.array([0.0, 0.5])}, {"bins": 1}])
def test_what_cannot_be_asked_is_refused_beforehand(ill, settings):
    fed, fit, *_ = ill
    before = len(fed.ledger)
    with pytest.raises(SettingsInvalid):
        roc(fed, fit, **settings)
    assert len(fed.ledger) == before
