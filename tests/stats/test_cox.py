"""Cox regression stratified by site equals that of the pooled records in R and statsmodels, and says what it told."""

from dataclasses import replace

import numpy as np
import pytest
from hiding import Hiding
from statsmodels.duration.hazard_regression import PHReg
from survivors import FORMULA, hearts, sites, women

import hedgerow as hr
from hedgerow.errors import (
    FormulaInvalid,
    NotBinary,
    NotIdentified,
    OutOfRange,
    PartyDeclined,
    Separated,
    SettingsInvalid,
    UnboundedSum,
    UnlawfulChannel,
)
from hedgerow.stats import cox
from hedgerow.stats.survival.risk_sets import RiskSets

NAMES = ["age", "anaemia", "serum_creatinine"]
BREAST = "time + cens ~ horth + I(age / 10) + I(tsize / 10) + I(pnodes / 5)"


def close(found, expected, rtol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=rtol)


# ---- the pooled fit -------------------------------------------------------------------------------------------------
# R 4.2.2, survival 3.5-3: coxph(Surv(time, cens) ~ horm + I(age/10) + I(tsize/10) + I(pnodes/5) + strata(tgrade), GBSG2,
# control = coxph.control(eps = 1e-14)); then $loglik, $score, $wald.test, concordance(), ties = "breslow", robust = TRUE
def test_gbsg2_by_grade_is_that_of_r():
    fit = cox(women(), BREAST)
    close(fit.coef_, [-0.34574147322935, 0.00368812245801, 0.07205690092350, 0.24703063589103])
    close(fit.se_, [0.1288692551164, 0.0601958319649, 0.0385065349835, 0.0373943032318])
    close([fit.null_log_likelihood, fit.log_likelihood], [-1546.06218774, -1518.93522544])
    close(fit.tests()["statistic"], [2 * (1546.06218774 - 1518.93522544), 74.0056579164, 75.962506625])
    close([fit.concordance, fit.concordance_se], [0.640584552405, 0.0173338458137])
    assert (fit.n_records, fit.n_events, fit.rounds) == (686, 299, 8)
    assert fit.left.startswith("score (4,), information (10,), log_likelihood, n, events, 7 times")


def test_ties_by_breslow_and_robust_errors_are_those_of_r():
    fit = cox(women(), BREAST, ties="breslow")
    close(fit.coef_, [-0.34569346369460, 0.00367453241373, 0.07211388849607, 0.24694733451709])
    close(fit.se_, [0.1288658145804, 0.0601924486965, 0.0385060404563, 0.0374012023409])
    robust = cox(women(), BREAST, errors="robust")
    close(robust.se_, [0.1270164705874, 0.0621879885072, 0.0386680817143, 0.0525700879351])
    assert robust.n_clusters == 686


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_it_is_that_of_statsmodels_with_the_site_as_stratum(ties):
    table = hearts()
    X = np.column_stack([table[name] for name in NAMES])
    model = PHReg(table["time"], X, status=table["death_event"], strata=table["site"], ties=ties)
    expected, fit = model.fit(disp=0, tol=1e-14), cox(sites(table), FORMULA, ties=ties)
    close(fit.coef_, expected.params, 1e-8)
    close(fit.se_, expected.bse, 1e-8)
    close(fit.log_likelihood, model.loglike(expected.params))
    frame = fit.hazard_ratios()
    close(frame["low"], np.exp(expected.conf_int()[:, 0]), 1e-8)
    close(fit.predict(table.take(range(5))), np.exp(X[:5] @ expected.params), 1e-8)


# coxph(Surv(time, death_event) ~ age + anaemia + serum_creatinine + strata(site), d, ...) of heart failure, site = i %% 4
ROBUST = {"errors": "robust"}
CASES = {
    "robust": (
        ROBUST,
        [0.0429340996177, 0.2332978383323, 0.2872373378182],
        [0.0090689604887, 0.2049473744576, 0.0628585321578],
    ),
    "cluster": (  # cluster(patient), patient = i %% 4 * 100 + i %/% 12
        {"cluster": "patient"},
        [0.0429340996177, 0.2332978383323, 0.2872373378182],
        [0.00873572757662, 0.20862979358046, 0.06132652114490],
    ),
    "weights": (  # weights = 0.5 + i %% 5 / 4, robust = TRUE
        {"probability": "weighing"},
        [0.036539618072, 0.252221097479, 0.297272487437],
        [0.00970926307621, 0.22371576638346, 0.06410441961262],
    ),
    "weights by Breslow": (
        {"probability": "weighing", "ties": "breslow"},
        [0.0365344583542, 0.2524035358252, 0.2970893673594],
        [0.0097112552682, 0.2235738485629, 0.0640401946511],
    ),
    "strata": (  # strata(site, sex)
        {"strata": "sex"},
        [0.0434342212783, 0.2361157461035, 0.2840074201210],
        [0.00905343629924, 0.21323178056073, 0.06393647650291],
    ),
    "entry": (  # Surv(begun, time, death_event), begun = time %/% 3 where i is even, else 0
        {"entry": "begun"},
        [0.0327515096092, 0.1227768210732, 0.2511042094292],
        [0.00878224258845, 0.21217279003461, 0.06347348136999],
    ),
}


@pytest.mark.parametrize(("settings", "coef", "se"), CASES.values(), ids=CASES)
def test_errors_weights_strata_and_late_entries_are_those_of_r(settings, coef, se):
    fit = cox(sites(), FORMULA, **settings)
    close(fit.coef_, coef)
    close(fit.se_, se)
    if "entry" in settings:  # concordance(fit)
        close([fit.concordance, fit.concordance_se], [0.641105121294, 0.034060675391])


def test_coefficients_that_change_at_cuts_are_those_of_split_records_in_r():
    # l <- survSplit(Surv(time, death_event) ~ ., d, cut = c(60, 150), episode = "ep")
    # coxph(Surv(tstart, time, death_event) ~ anaemia + serum_creatinine + age:factor(ep) + strata(site), l), and cluster(id)
    fit = cox(sites(), FORMULA, cuts=[60, 150], varying=["age"], errors="robust")
    assert fit.names == ("age (0, 60]", "age (60, 150]", "age > 150", "anaemia", "serum_creatinine")
    close(fit.coef_, [0.0433143747536, 0.0456517966521, 0.0346756572329, 0.2349206223218, 0.2858797036737])
    close(fit.se_, [0.0112654177758, 0.0185810418711, 0.0218434668139, 0.2046632671033, 0.0641010862061])
    close(fit.log_likelihood, -356.174226479)
    model = np.sqrt(np.diag(fit.model_covariance))
    close(model, [0.0111315338334, 0.0172170316091, 0.0259209455884, 0.2100609732291, 0.0615720042012])
    with pytest.raises(SettingsInvalid, match="change at the cuts"):
        fit.predict(hearts())


# ---- behind hidden rows ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [{}, {"cuts": [60, 150]}, {"cluster": "patient", "entry": "begun"}], ids=str)
def test_behind_secure_aggregation_it_is_the_same(settings):
    plain = cox(sites(), FORMULA, errors="robust", **settings)
    hidden = cox(sites().protect(aggregation=hr.SecAgg()), FORMULA, errors="robust", most=100, **settings)
    close(hidden.coef_, plain.coef_, 1e-10)
    close(hidden.model_covariance, plain.model_covariance, 1e-10)
    close(hidden.covariance, plain.covariance, 1e-8)
    close([hidden.concordance_se], [plain.concordance_se], 1e-5)


def test_what_a_party_adds_lies_within_its_declared_range():
    federation = sites().protect(aggregation=Hiding(records=75.0))  # as many as the largest site has
    assert cox(federation, FORMULA, errors="robust").n_records == 299
    entries = federation.ledger.entries
    assert all("per party" in str(entry.bound) for entry in entries)


def test_a_party_with_more_records_than_declared_refuses():
    with pytest.raises(PartyDeclined) as refusal:
        cox(sites(), FORMULA, most=74)
    assert set(refusal.value.codes.values()) == {"HR-243"}


def test_hidden_sums_need_declared_ranges():
    table = hearts()
    bare = hr.data.Table(table.columns, table.schema.with_columns([hr.data.Column("age", "number")]))
    with pytest.raises(UnboundedSum, match="age declares no range"):
        cox(sites(bare).protect(aggregation=hr.SecAgg()), FORMULA)


# ---- what leaves ----------------------------------------------------------------------------------------------------
def test_how_many_numbers_leave_a_site():
    federation, p = sites(), 3
    cox(federation, FORMULA)
    *rounds, closing = [entry.numbers for entry in federation.ledger.entries]
    assert set(rounds) == {p + p * (p + 1) // 2 + 3}
    assert len(rounds) <= 7
    assert closing == 6


def test_noise_and_clips_are_refused_before_anybody_is_asked():
    federation = sites().protect(mechanism=hr.privacy.Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="risk sets of others"):
        cox(federation, FORMULA)
    with pytest.raises(UnlawfulChannel, match="risk sets of others"):
        cox(sites().protect(clip=hr.l2(1.0)), FORMULA)
    assert len(federation.ledger) == 0


# ---- edges ----------------------------------------------------------------------------------------------------------
def test_one_party_and_sites_without_events_or_records():
    table = hearts()
    # coxph(Surv(time, death_event) ~ age + anaemia + serum_creatinine, d)
    alone = hr.simulate(table, hr.data.iid(1), seed=0)
    close(cox(alone, FORMULA).coef_, [0.0414951718945, 0.2361684443447, 0.2877655589652])
    events = np.where(table["site"] == 3, 0, table["death_event"])
    quiet = hearts(death_event=events)
    kept = quiet.take(quiet["site"] != 3)
    close(cox(sites(quiet), FORMULA).coef_, cox(sites(kept), FORMULA).coef_)
    assert cox(hr.simulate(kept, hr.data.iid(2), seed=0), FORMULA).n_parties == 2


def test_missing_values_leave_records_out():
    table = hearts()
    schema = table.schema.with_columns([replace(table.schema["age"], optional=True)])
    age = np.where(np.arange(299) % 10 == 0, np.nan, table["age"])
    columns = {name: table[name] for name in table.schema.names} | {"age": age}
    fit = cox(sites(hr.data.Table(schema.admit(columns), schema)), FORMULA)
    close(fit.coef_, cox(sites(table.take(np.arange(299) % 10 != 0)), FORMULA).coef_)
    assert (fit.n_records, fit.cases.left_out) == (269, 30)


def test_whole_weights_count_as_repeated_records_and_fractions_are_refused():
    table = hearts()
    times = 1 + np.arange(299) % 3

    def weighed(values, kind):
        schema = table.schema.with_columns([hr.data.Column("copies", kind, low=0, high=3, role="weight")])
        columns = {name: table[name] for name in table.schema.names}
        return sites(hr.data.Table(schema.admit(columns | {"copies": values}), schema))

    repeated = cox(sites(table.take(np.repeat(np.arange(299), times))), FORMULA, errors="robust")
    fit = cox(weighed(times, "integer"), FORMULA, errors="robust")
    close([*fit.coef_, *fit.se_], [*repeated.coef_, *repeated.se_])
    with pytest.raises(PartyDeclined) as refusal:
        cox(weighed(times / 2, "number"), FORMULA)
    assert OutOfRange.code in refusal.value.codes.values()


def test_what_has_no_estimate_is_refused_by_name():
    of_sites = sites(hearts(weighing=hearts()["site"] / 2))
    with pytest.raises(NotIdentified, match=r"'weighing' is the same for everybody at risk[\s\S]*piecewise_exponential"):
        cox(of_sites, "time + death_event ~ age + weighing")
    with pytest.raises(NotIdentified, match="none of 299 records"):
        cox(sites(hearts(death_event=np.zeros(299))), FORMULA)
    with pytest.raises(Separated, match="anaemia"):
        cox(sites(hearts(anaemia=hearts()["death_event"])), "time + death_event ~ anaemia")
    with pytest.raises(NotIdentified, match="linear combinations"):
        cox(sites(), "time + death_event ~ age + I(2 * age)")


@pytest.mark.parametrize(
    ("formula", "settings", "error", "words"),
    [
        ("age ~ anaemia", {}, FormulaInvalid, "time and event"),
        ("~ age", {"event": "death_event"}, FormulaInvalid, "no column says when"),
        ("time + age ~ anaemia", {}, NotBinary, "compare it"),
        ("time + death_event ~ 0 + age", {}, FormulaInvalid, "intercept"),
        ("time + death_event ~ 1", {}, FormulaInvalid, "no columns"),
        ("time + death_event ~ age", {"time": "time"}, FormulaInvalid, "Give them once"),
        (FORMULA, {"cuts": [9, 3]}, SettingsInvalid, "do not rise"),
        (FORMULA, {"varying": ["age"]}, SettingsInvalid, "without cuts"),
        (FORMULA, {"cuts": [9], "varying": ["ages"]}, SettingsInvalid, "no term"),
        (FORMULA, {"ties": "exact"}, SettingsInvalid, "exact"),
    ],
)
def test_a_formula_is_refused_before_anybody_is_asked(formula, settings, error, words):
    federation = sites()
    with pytest.raises(error, match=words):
        cox(federation, formula, **settings)
    assert len(federation.ledger) == 0


@pytest.mark.parametrize(
    "formula",
    [
        "Surv(time, death_event) ~ age + anaemia + serum_creatinine + strata(sex) + cluster(patient)",
        "~ age + anaemia + serum_creatinine",
    ],
)
def test_formulas_may_be_written_as_in_r_or_by_settings(formula):
    more = {} if "Surv" in formula else {"time": "time", "event": "death_event", "strata": ["sex"], "cluster": "patient"}
    close(cox(sites(), formula, **more).se_, cox(sites(), FORMULA, strata="sex", cluster="patient").se_)


def test_the_summary_says_what_stays_at_the_site():
    fit = cox(sites(), FORMULA, cluster="patient")
    said = " ".join(fit.summary().split())
    expected = ("stratified by site", "baseline hazard each site's own", "it stays at the site", "clusters by patient")
    assert all(words in said for words in expected)
    assert list(fit.to_frame().columns) == ["coef", "se", "z", "p", "low", "high", "hazard ratio"]
    assert "svg" in fit.plot()._repr_svg_()


# ---- risk sets, by hand ---------------------------------------------------------------------------------------------
def naive(sets, beta):
    """Score, information and log-likelihood by the definition."""
    X, w, p = sets.X, sets.w, len(beta)
    entry = np.full(len(w), -1.0) if sets.entry is None else sets.entry
    wr, U, I, ll = w * np.exp(X @ beta), np.zeros(p), np.zeros((p, p)), 0.0
    for t in np.unique(sets.time[sets.event]):
        risk, dead = (sets.time >= t) & (entry < t), sets.event & (sets.time == t)
        d, mass = dead.sum(), w[dead].mean()
        U, ll = U + w[dead] @ X[dead], ll + w[dead] @ (X[dead] @ beta)
        for j in range(d):
            v = wr * (risk - (j / d if sets.ties == "efron" else 0.0) * dead)
            z0, z1 = v.sum(), v @ X
            U, ll = U - mass * z1 / z0, ll - mass * np.log(z0)
            I = I + mass * ((X * v[:, None]).T @ X / z0 - np.outer(z1, z1) / z0**2)
    return U, I, ll


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("late", [False, True])
def test_risk_sets_add_up_to_their_definition(ties, late):
    rng, beta = np.random.default_rng(0), np.array([0.3, -0.5, 0.2])
    n, p = 60, 3
    X, time = rng.normal(size=(n, p)), rng.integers(1, 15, n).astype(float)
    event, w = rng.random(n) < 0.6, rng.uniform(0.5, 2, n)
    entry = np.minimum(rng.integers(0, 5, n), time - 1).astype(float) if late else None
    sets = RiskSets(X, X @ beta, time, event, w, ties, entry)
    U, I, ll = naive(sets, beta)
    np.testing.assert_allclose(sets.score, U, atol=1e-12)
    np.testing.assert_allclose(sets.information(), I, atol=1e-12)
    assert sets.log_likelihood == pytest.approx(ll, abs=1e-12)
    np.testing.assert_allclose(w @ sets.score_residuals, U, atol=1e-12)
    np.testing.assert_allclose(sets.schoenfeld.sum(0), U, atol=1e-12)
    nobody = RiskSets(X[:0], time[:0], time[:0], event[:0], w[:0], ties)
    assert not nobody.score.any()
    assert nobody.log_likelihood == 0
