"""Log-rank, proportional hazards, concordance and medians equal those of R, and numbers that leave are counted."""

import numpy as np
import pandas as pd
import pytest
from hiding import Hiding
from statsmodels.duration.survfunc import survdiff
from survivors import FORMULA, hearts, sites, women

import hedgerow as hr
from hedgerow.errors import NotIdentified, SettingsInvalid, UnlawfulChannel
from hedgerow.stats import cox, log_rank, median_survival, schoenfeld, survival_counts, survival_plot
from hedgerow.stats.survival.concordance import concordance_sums
from hedgerow.stats.survival.risk_sets import RiskSets

BREAST = "time + cens ~ horth + I(age / 10) + I(tsize / 10) + I(pnodes / 5)"
EVENT = {"time": "time", "event": "cens"}


def close(found, expected, rtol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=rtol)


# ---- log-rank -------------------------------------------------------------------------------------------------------
# R 4.2.2, survival 3.5-3: survdiff(Surv(time, cens) ~ horTh + strata(tgrade), GBSG2)
def test_by_site_it_is_the_stratified_test_of_r():
    federation = women()
    found = log_rank(federation, **EVENT, group="horth")
    close(found.statistic, 7.39579653792)
    close(found.observed, [205, 94])
    close(found.expected, [10.57436053368 + 117.28738671271 + 54.39128969980, 7.42563946632 + 84.71261328729 + 24.60871030020])
    assert (found.df, found.cells) == (1, 0)
    assert "of the same site" in found.on
    (entry,) = federation.ledger.entries
    assert entry.numbers == 3 * 2 + 1
    # survdiff(Surv(time, death_event) ~ anaemia + strata(site), d)
    close(log_rank(sites(), time="time", event="death_event", group="anaemia").statistic, 2.59706089441)


@pytest.mark.parametrize("hidden", [False, True])
def test_strata_within_sites_are_those_of_pooled_records(hidden):
    table = hearts()
    expected = survdiff(table["time"], table["death_event"], table["anaemia"], strata=table["sex"] + 2 * table["site"])
    federation = sites().protect(aggregation=Hiding(records=75.0)) if hidden else sites()
    found = log_rank(federation, time="time", event="death_event", group="anaemia", strata="sex")
    close([found.statistic, found.p_value], expected)


def test_on_every_time_that_occurs_cells_give_the_test_of_pooled_records():
    # survdiff(Surv(time, cens) ~ tgrade, GBSG2); parties are grades, so that no site could compare them
    cells = np.unique(hr.data.load("gbsg2")["time"])
    found = log_rank(women(), **EVENT, group="tgrade", by="cells", cells=cells)
    close(found.statistic, 21.0944345875)
    close(found.expected, [42.1623203506, 198.2095773199, 58.6281023295])
    coarse = log_rank(women(), **EVENT, group="tgrade", by="cells", cells=[365, 730, 1095, 1460])
    assert coarse.cells == 5
    assert "on 5 cells of time" in str(coarse)
    assert coarse.statistic == pytest.approx(21.09, rel=0.1)


def test_a_log_rank_test_refuses_what_it_cannot_compare():
    with pytest.raises(NotIdentified, match="by='cells'"):
        log_rank(women(), **EVENT, group="tgrade")
    for settings in ({"by": "cells"}, {"cells": [3.0]}, {"by": "cells", "cells": [5.0, 3.0]}, {"by": "groups"}):
        with pytest.raises(SettingsInvalid):
            log_rank(women(), **EVENT, group="horth", **settings)
    noisy = women().protect(mechanism=hr.privacy.Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="risk sets of others"):
        log_rank(noisy, **EVENT, group="horth")


# ---- proportional hazards -------------------------------------------------------------------------------------------
# cox.zph(m, transform = "identity" | log, terms = FALSE)$table of the fit of test_cox.py
ZPH = {
    "time": [0.0518644774752, 6.5055020942627, 0.0374963229468, 1.4753272657358, 8.0621831583146],
    "log": [0.0842992661965, 6.8101844993064, 0.1653661158966, 0.5076287143389, 7.4910470137536],
}


@pytest.mark.parametrize("transform", ZPH)
def test_the_test_of_proportional_hazards_is_that_of_r(transform):
    federation = women()
    fit = cox(federation, BREAST)
    found = schoenfeld(federation, fit, transform)
    close(found["statistic"], ZPH[transform], 1e-8)
    assert list(found["df"]) == [1, 1, 1, 1, 4]
    assert federation.ledger.entries[-1].numbers == 3 + 2 * 4 + 2 * 10


@pytest.mark.filterwarnings("ignore")
def test_with_average_information_it_is_that_of_lifelines():
    lifelines = pytest.importorskip("lifelines")
    from lifelines.statistics import proportional_hazard_test

    table = hearts()
    frame = table.to_pandas()[["age", "anaemia", "serum_creatinine", "time", "death_event", "site"]]
    model = lifelines.CoxPHFitter().fit(frame, "time", "death_event", strata=["site"], fit_options={"precision": 1e-13})
    expected = proportional_hazard_test(model, frame, time_transform="identity").test_statistic
    federation = sites()
    found = cox(federation, FORMULA).schoenfeld(federation, method="average")
    close(found["statistic"][:3], expected, 1e-6)
    assert federation.ledger.entries[-1].numbers == 3 + 2 * 3


def test_behind_hidden_rows_the_test_is_the_same():
    plain, hidden = sites(), sites().protect(aggregation=Hiding(records=75.0))
    expected = cox(plain, FORMULA).schoenfeld(plain, "log")
    close(cox(hidden, FORMULA).schoenfeld(hidden, "log"), expected, 1e-6)
    with pytest.raises(SettingsInvalid, match="rank"):
        schoenfeld(plain, cox(plain, FORMULA), "rank")
    with pytest.raises(SettingsInvalid, match="already"):
        schoenfeld(plain, cox(plain, FORMULA, cuts=[90]))


# ---- concordance ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("late", [False, True])
def test_pairs_are_those_of_their_definition(late):
    rng, n = np.random.default_rng(1), 80
    eta, time = rng.integers(0, 9, n) * 0.1, rng.integers(1, 20, n).astype(float)
    event, w = rng.random(n) < 0.5, rng.integers(1, 3, n).astype(float)
    entry = np.minimum(rng.integers(0, 8, n), time - 1).astype(float) if late else np.full(n, -1.0)
    after = (time[None, :] > time[:, None]) | ((time[None, :] == time[:, None]) & ~event[None, :])
    pairs = event[:, None] & after & (entry[None, :] < time[:, None])
    right, tied = pairs & (eta[None, :] < eta[:, None]), pairs & (eta[None, :] == eta[:, None])
    counts, weights = right + tied / 2, np.outer(w, w)
    a, b = counts @ w + w @ counts, pairs @ w + w @ pairs
    expected = [(weights * right).sum(), (weights * (pairs & ~right & ~tied)).sum(), (weights * tied).sum()]
    found = concordance_sums(RiskSets(np.zeros((n, 0)), eta, time, event, w, entry=entry if late else None))
    close(found, [*expected, w @ (a * a), w @ (a * b), w @ (b * b)], 1e-12)


# ---- Kaplan-Meier ---------------------------------------------------------------------------------------------------
# k <- survfit(Surv(time, cens) ~ horTh, GBSG2, conf.type = "log-log"); summary(k)$table; summary(k, times = c(500, 1000, 2000))
def test_medians_and_bands_are_those_of_r():
    times = np.unique(hr.data.load("gbsg2")["time"]).astype(float)
    found = survival_counts(women(), "time", "cens", times, "horth")
    medians = median_survival(found, "horth")
    np.testing.assert_array_equal(medians, [[1528, 1280, 1814], [2018, 1918, np.nan]])
    assert list(medians.index) == ["no", "yes"]
    at = [found[(found["horth"] == arm) & (found["time"] <= t)].iloc[-1] for arm in ("no", "yes") for t in (500, 1000, 2000)]
    lower = [0.783265500432, 0.571020280247, 0.364323190600, 0.851587165894, 0.659590447460, 0.440639542143]
    close([row["low"] for row in at], lower)
    drawn = survival_plot(found, "horth")
    (curve,) = drawn.drawn
    assert [line.name for line in curve.series] == ["no", "yes"]
    for line in curve.series:
        assert len(line.low) == len(line.high) == len(line.x)
        assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))


def test_a_stretch_at_exactly_one_half_has_its_middle_as_median():
    # survfit(Surv(1:4, c(1, 1, 1, 0)) ~ 1): 2.5
    table = hr.data.Table.from_pandas(pd.DataFrame({"t": [1.0, 2, 3, 4], "e": [1, 1, 1, 0]}))
    found = survival_counts(hr.simulate(table, hr.data.iid(2), seed=0), "t", "e", [1, 2, 3, 4])
    assert median_survival(found).loc["all", "median"] == 2.5
    assert np.isnan(median_survival(found, share=0.1).loc["all", "time"])


def test_the_outcome_of_a_study_draws_bands_and_medians():
    from hedgerow.stats.survival.counts import show_survival, survival_totals

    federation, settings = women(), {"time": "time", "group": "horth", "least": 0, "interval": "log-log", "level": 0.95}
    (state,) = survival_totals(federation, "time", "cens", [500.0, 1000.0, 2000.0], "horth")
    outcome = show_survival(federation, settings, state)
    assert {"Survival", "Median survival"} == set(outcome.tables)
    assert all(line.low for line in outcome.curves[0].series)
