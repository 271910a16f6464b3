"""Piecewise-exponential regression equals a Poisson regression of person-time, and a record moves its sums within bounds."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hiding import Hiding
from survivors import FORMULA, hearts, sites

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.errors import NotIdentified, Separated, SettingsInvalid, UnlawfulChannel
from hedgerow.stats import piecewise_exponential
from hedgerow.stats.linear.reach import ROOM
from hedgerow.stats.survival.piecewise import piecewise_sums

CUTS = [50.0, 100.0, 200.0]


def close(found, expected, rtol=1e-8):
    np.testing.assert_allclose(found, expected, rtol=rtol)


def person_time(table, names, cuts, entry=None):
    """A row for each record and interval: columns, events, and time at risk."""
    ends, begun = [0.0, *cuts, np.inf], np.zeros(len(table)) if entry is None else table[entry]
    rows, events, times = [], [], []
    for k in range(len(cuts) + 1):
        spent = np.minimum(table["time"], ends[k + 1]) - np.maximum(begun, ends[k])
        here = spent > 0
        X = np.column_stack([table[name] for name in names])[here]
        rows.append(np.hstack([np.tile(np.arange(len(cuts) + 1) == k, (here.sum(), 1)), X]))
        events.append((table["death_event"] * (table["time"] <= ends[k + 1]))[here])
        times.append(spent[here])
    return np.concatenate(rows).astype(float), np.concatenate(events), np.concatenate(times)


@pytest.mark.parametrize("entry", [None, "begun"])
@pytest.mark.parametrize("aggregation", [None, hr.SecAgg()], ids=["plain", "secagg"])
def test_it_is_the_poisson_regression_of_statsmodels(entry, aggregation):
    table = hearts()
    X, y, t = person_time(table, ["age", "anaemia", "serum_creatinine"], CUTS, entry)
    poisson = partial(sm.GLM, y, family=sm.families.Poisson(), offset=np.log(t))
    expected, null = (poisson(columns).fit(tol=1e-14) for columns in (X, X[:, :4]))
    federation = sites() if aggregation is None else sites().protect(aggregation=aggregation)
    fit = piecewise_exponential(federation, FORMULA, cuts=CUTS, entry=entry)
    close([*fit.log_hazards, *fit.coef_], expected.params)
    close(np.sqrt(np.diag(fit.parameters_covariance)), expected.bse)
    constant = (y * np.log(t)).sum()  # of a Poisson distribution alone
    close([fit.log_likelihood, fit.null_log_likelihood], [expected.llf - constant, null.llf - constant])
    close([fit.events.sum(), fit.at_risk.sum()], [y.sum(), t.sum()])


def test_a_column_that_is_constant_at_each_site_has_an_estimate():
    table = hearts()
    X, y, t = person_time(table, ["site"], CUTS)
    expected = sm.GLM(y, X, family=sm.families.Poisson(), offset=np.log(t)).fit(tol=1e-14)
    of_sites = sites(hearts(weighing=table["site"] / 2))
    fit = piecewise_exponential(of_sites, "time + death_event ~ I(2 * weighing)", cuts=CUTS)
    close([fit.coef_[0], fit.se_[0]], [expected.params[-1], expected.bse[-1]], 1e-7)


def test_hazards_and_survival_have_intervals():
    table = hearts()
    fit = piecewise_exponential(sites(), FORMULA, cuts=CUTS)
    one = table.take([0])
    hazards = fit.baseline(one)
    x = np.array([table[name][0] for name in ("age", "anaemia", "serum_creatinine")])
    close(hazards["hazard"], np.exp(fit.log_hazards + x @ fit.coef_))
    assert (hazards["low"] < hazards["hazard"]).all()
    close(hazards["rate"], fit.events / fit.at_risk)
    found = fit.survival([0.0, 50.0, 150.0], one)
    spent = np.array([[0, 0, 0, 0], [50, 0, 0, 0], [50, 50, 50, 0]])
    close(found["survival"], np.exp(-spent @ hazards["hazard"]))
    # one interval alone: the interval of its hazard
    close(
        found.loc[1, ["low", "high"]].to_numpy(dtype=float),
        np.exp(-50 * hazards.iloc[0][["high", "low"]].to_numpy(dtype=float)),
    )
    with pytest.raises(SettingsInvalid, match="one record"):
        fit.baseline(table.take([0, 1]))


def test_how_many_numbers_leave_a_site():
    federation, k, p = sites(), 4, 3
    fit = piecewise_exponential(federation, FORMULA, cuts=CUTS)
    assert {entry.numbers for entry in federation.ledger.entries} == {k + p + k + k * p + p * (p + 1) // 2 + 2}
    assert fit.rounds <= 8
    said = " ".join(fit.summary().split())
    assert "one for all sites, constant in (0, 50], (50, 100], (100, 200], > 200" in said


@pytest.mark.parametrize("seed", range(20))
def test_a_record_moves_hidden_sums_within_their_bounds(seed):
    heard = []
    federation = sites().protect(aggregation=Hiding(records=75.0))
    original = type(federation).sum

    def hear(self, local, broadcast=None, *, bound=None, init=None):
        heard.append((local, broadcast, bound))
        return original(self, local, broadcast, bound=bound, init=init)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(federation), "sum", hear)
        piecewise_exponential(federation, FORMULA, cuts=CUTS)
    rng = np.random.default_rng(seed)
    for local, theta, bound in heard[:: max(len(heard) // 3, 1)]:
        columns = {
            "X": rng.choice([-1.0, 1.0], (1, 3)),
            "y": rng.choice([0.0, 1.0], 1),
            "offset": np.zeros(1),
            "time": rng.choice([0.0, 49.9, 50.0, 365.0], 1),
        }
        alone = local(theta * rng.choice([1, 1, 5]), Party("one", columns, np.ones(1)), None)
        tight = local(theta, Party("one", columns, np.ones(1)), None)
        assert bound["hazards"].unit == "record"
        for key, values in tight.items():
            assert np.abs(values).max() <= bound[key].radius
        assert np.abs(alone["hazards"]).max() <= ROOM  # wherever it is asked, means are cut off


def test_stacked_parties_give_what_each_gives():
    rng, theta = np.random.default_rng(0), np.array([-3.0, -2.0, 0.3, -0.2])
    columns = {"X": rng.normal(size=(3, 20, 2)), "y": rng.integers(0, 2, (3, 20)) * 1.0, "offset": np.zeros((3, 20))}
    columns |= {"time": rng.uniform(0, 9, (3, 20))}
    w = rng.integers(0, 3, (3, 20)) * 1.0
    ask = partial(piecewise_sums, cuts=(4.0,))
    stacked = ask(theta, Party("all", columns, w), None)
    for i in range(3):
        alone = ask(theta, Party("one", {name: values[i] for name, values in columns.items()}, w[i]), None)
        for key, values in alone.items():
            np.testing.assert_allclose(stacked[key][i], values, atol=1e-12)


def test_what_has_no_estimate_is_refused():
    with pytest.raises(Separated, match=r"nobody has the event in \(0, 1\]"):
        piecewise_exponential(sites(), FORMULA, cuts=[1.0, 100.0])
    separated = sites(hearts(anaemia=hearts()["death_event"]))
    with pytest.raises(Separated, match="anaemia"):
        piecewise_exponential(separated, "time + death_event ~ anaemia", cuts=CUTS)
    with pytest.raises(NotIdentified):
        piecewise_exponential(sites(), "time + death_event ~ age + I(2 * age)", cuts=CUTS)
    federation = sites()
    with pytest.raises(SettingsInvalid, match="declared end of time"):
        piecewise_exponential(federation, FORMULA, cuts=[400.0])
    with pytest.raises(SettingsInvalid, match="Cox regressions"):
        piecewise_exponential(federation, FORMULA + " + strata(sex)", cuts=CUTS)
    with pytest.raises(UnlawfulChannel):
        piecewise_exponential(federation.protect(mechanism=hr.privacy.Gaussian(1.0)), FORMULA, cuts=CUTS)
    assert len(federation.ledger) == 0


def test_one_party_and_an_empty_site():
    table = hearts()
    alone = piecewise_exponential(hr.simulate(table, hr.data.iid(1), seed=0), FORMULA, cuts=CUTS)
    close(piecewise_exponential(sites(), FORMULA, cuts=CUTS).coef_, alone.coef_)
    assert isinstance(alone.to_frame(), pd.DataFrame)
    quiet = hearts(death_event=np.where(table["site"] == 3, 0, table["death_event"]))
    assert piecewise_exponential(sites(quiet), FORMULA, cuts=CUTS).n_parties == 4
