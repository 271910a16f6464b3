"""Pooled risk sets give the pooled fit, and nearly the records: ten of a cell are solved, and a site's own sums are not."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import least_squares
from statsmodels.duration.hazard_regression import PHReg
from survivors import FORMULA, hearts, sites

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.core.disclosure import MOST
from hedgerow.errors import DisclosureExceeded, NotIdentified, SettingsInvalid, UnlawfulChannel
from hedgerow.stats import cox, pooled_cox_sharing_records
from hedgerow.stats.survival.cox_sums import risk_set_sums
from hedgerow.stats.survival.pooled import cell_sums, from_cells

SIX = ["age", "anaemia", "ejection_fraction", "serum_creatinine", "serum_sodium", "high_blood_pressure"]
WIDE = "time + death_event ~ " + " + ".join(SIX)
SHARED = {"parties_share_records": True}


# ---- the pooled fit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_it_is_the_pooled_fit_of_statsmodels_and_r(ties):
    table = hearts()
    X = np.column_stack([table[name] for name in ("age", "anaemia", "serum_creatinine")])
    expected = PHReg(table["time"], X, status=table["death_event"], ties=ties).fit(disp=0, tol=1e-14)
    fit = pooled_cox_sharing_records(sites(), FORMULA, ties=ties, **SHARED)
    np.testing.assert_allclose([*fit.coef_, *fit.se_], [*expected.params, *expected.bse], rtol=1e-8)
    if ties == "efron":  # coxph(Surv(time, death_event) ~ age + anaemia + serum_creatinine, d)
        np.testing.assert_allclose(fit.coef_, [0.0414951718945, 0.2361684443447, 0.2877655589652], rtol=1e-9)
        np.testing.assert_allclose(fit.se_, [0.00866944829882, 0.20761558010390, 0.05796930754489], rtol=1e-9)
        np.testing.assert_allclose([fit.null_log_likelihood, fit.log_likelihood], [-509.205131152, -488.332937668], rtol=1e-9)
    said = " ".join(fit.summary().split())
    assert "of shared records" in said
    assert "nearly their records" in said


def test_nobody_is_asked_unless_parties_share_their_records():
    federation = sites()
    for claim in ({}, {"parties_share_records": 1}):
        with pytest.raises((SettingsInvalid, TypeError), match="parties_share_records"):
            pooled_cox_sharing_records(federation, FORMULA, **claim)
    for channel in ({"aggregation": hr.SecAgg()}, {"mechanism": hr.privacy.Gaussian(1.0)}):
        with pytest.raises(UnlawfulChannel, match="few records"):
            pooled_cox_sharing_records(federation.protect(**channel), FORMULA, **SHARED)
    assert len(federation.ledger) == 0
    with pytest.raises(NotIdentified, match="has the event"):
        pooled_cox_sharing_records(sites(hearts(death_event=np.zeros(299))), FORMULA, **SHARED)
    fit = pooled_cox_sharing_records(federation, FORMULA, **SHARED)
    with pytest.raises(SettingsInvalid, match="stratified by site"):
        fit.schoenfeld(federation)


# ---- what it tells --------------------------------------------------------------------------------------------------
def test_the_rule_on_exact_numbers_refuses_pooled_risk_sets_and_lets_stratified_ones_pass():
    with pytest.raises(DisclosureExceeded, match="cell_sums"):
        pooled_cox_sharing_records(sites(disclosure=MOST), WIDE, **SHARED)
    assert cox(sites(disclosure=MOST), FORMULA).n_events == 96
    with pytest.raises(DisclosureExceeded, match=r"risk_set_sums[\s\S]*hide rows"):  # seven rounds of 30 of sites of 74
        cox(sites(disclosure=MOST), WIDE)
    assert cox(sites(disclosure=MOST).protect(aggregation=hr.SecAgg()), WIDE).n_events == 96
    with pytest.raises(DisclosureExceeded, match="risk_set_sums"):  # sites of ten
        cox(sites(hearts().take(range(40)), disclosure=MOST), FORMULA)


@lru_cache
def standardised():
    table = hearts()
    X = np.column_stack([table[name] for name in SIX])
    return (X - X.mean(0)) / X.std(0), table["time"] * 1.0, table["death_event"] * 1.0, table["site"]


def party(X, time, event):
    n = len(X)
    columns = {"X": X, "time": time, "y": event, "offset": np.zeros(n), "stratum": np.zeros(n, int)}
    return Party("one", columns, np.ones(n))


@lru_cache
def path(rounds=6):
    """Newton's path of the pooled fit: what parties are asked at."""
    X, time, event, _ = standardised()
    points, beta = [], np.zeros(X.shape[1])
    for _ in range(rounds):
        points.append(beta)
        sums = cell_sums({"beta": beta, "ends": np.unique(time[event == 1])}, party(X, time, event), None)
        score, information, _ = from_cells(sums, "efron")
        beta = beta + np.linalg.solve(information, score)
    return points


def solved(told, goal, m, p, starts):
    """The records whose sums are nearest to what was told, by least squares from random beginnings."""
    rng, best = np.random.default_rng(0), None
    for _ in range(starts):
        found = least_squares(
            lambda v: told(v.reshape(m, p)) - goal, rng.normal(size=m * p), xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200
        )
        best = found if best is None or found.cost < best.cost else best
        if best.cost < 1e-18:
            break
    return best.x.reshape(m, p)


def distances(found, records):
    """By how much each record is missed, in standard deviations."""
    return np.array([np.abs(found - record).max(1).min() for record in records])


@pytest.mark.slow
def test_ten_records_of_a_merged_cell_are_solved_from_pooled_sums():
    X, *_ = standardised()
    records = X[np.random.default_rng(0).choice(len(X), 10, replace=False)]
    nothing = np.zeros(10)

    def told(Z):
        """What one cell of time adds, asked along Newton's path."""
        asked = [cell_sums({"beta": beta, "ends": np.array([9.0])}, party(Z, nothing, nothing), None) for beta in path()]
        return np.concatenate([sums["all"][0] for sums in asked])

    off = distances(solved(told, told(records), 10, 6, starts=8), records)
    assert off.max() < 1e-6


@pytest.mark.slow
def test_records_of_a_site_are_not_solved_from_its_own_risk_sets():
    X, time, event, site = standardised()
    mine = site == 0
    records, own_time, own_event = X[mine], time[mine], event[mine]
    m, p = records.shape  # 75 records, of which the attacker knows times and events

    def told(Z):
        settings = {"ties": "efron", "columns": (tuple(range(p)),)}
        asked = [risk_set_sums(beta, party(Z, own_time, own_event), None, **settings) for beta in path()]
        return np.concatenate([np.ravel(sums[key]) for sums in asked for key in ("score", "information", "log_likelihood")])

    rng = np.random.default_rng(0)
    goal, start = told(records), rng.normal(size=m * p)
    assert len(goal) < m * p  # fewer numbers than unknowns
    found = least_squares(lambda v: told(v.reshape(m, p)) - goal, start, max_nfev=6).x.reshape(m, p)
    guess = distances(rng.normal(size=(m, p)), records)
    off = distances(found, records)
    assert (off < 0.01).sum() == 0
    assert np.median(off) > 0.5 * np.median(guess)
