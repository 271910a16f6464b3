"""Meta-analyses by sums over sites are those of statsmodels and metafor of the sites' own fits, which stay at the sites."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from hiding import Hiding
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.stats.meta_analysis import combine_effects
from survivors import FORMULA, hearts, sites

import hedgerow as hr
from hedgerow.errors import (
    FormulaInvalid,
    MissingColumn,
    NotConverged,
    NotIdentified,
    PartyDeclined,
    SettingsInvalid,
    UnboundedSum,
    UnlawfulChannel,
)
from hedgerow.stats.meta.analysis import meta_analysis, meta_rounds
from hedgerow.stats.meta.combining import KEYS, MEANS, MOMENTS, combine_estimates, site_terms
from hedgerow.stats.meta.result import meta_of, show_meta
from hedgerow.stats.meta.site_effects import within_sites
from hedgerow.stats.survival import cox

NAMES = ["mean_texture", "mean_smoothness"]
CANCER = "malignant ~ mean_texture + mean_smoothness"


def close(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=rtol)


def clinics(parties=6, **settings):
    return hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=parties), seed=0, **settings)


# ---- estimates put together -----------------------------------------------------------------------------------------
# R 4.2.2, metafor 3.8-1: c <- list(threshold = 1e-15, maxiter = 10000)
# rma(y, v, method = "REML", control = c) gives tau2, mean, se, logLik; test = "adhoc" Hartung-Knapp's error, not below se
FIVE = ([0.061, -0.12, 0.35, 0.29, 0.18], [0.012, 0.031, 0.009, 0.05, 0.02])
GOLDEN = {
    "five": (*FIVE, 0.01604849111923, 0.1644909844532, 0.0846029210383, 0.0846029210383, 0.9773998395827),
    "alike": (
        *([0.2, 0.21, 0.19, 0.205], [0.02, 0.03, 0.01, 0.05]),
        *(0, 0.1972131147541, 0.07012868733183, 0.07012868733183, 2.782522878661),
    ),
    "three": (
        *([0.1, 0.9, -0.3], [0.02, 0.03, 0.05]),
        *(0.332161311742, 0.2414397772524, 0.3488430127179, 0.350708416221, -1.841805613359),
    ),
    "eight": (
        [-1.2, 0.4, 2.3, 0.7, 3.1, -0.2, 1.9, 0.05],
        [0.3, 0.2, 0.5, 0.1, 0.6, 0.2, 0.15, 0.4],
        *(1.552857712891, 0.8282120152856, 0.4802003711015, 0.492896558131, -12.27860307229),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("y", "v", "tau2", "mean", "se", "hk", "height"), GOLDEN.values(), ids=GOLDEN)
def test_restricted_likelihood_is_that_of_metafor(y, v, tau2, mean, se, hk, height):
    one = combine_estimates(y, v)
    np.testing.assert_allclose(one.tau2, tau2, rtol=1e-11, atol=1e-13)
    close([one.mean, one.se, one.hk_se], [mean, se, hk], 1e-11)


def test_the_rest_is_that_of_statsmodels_and_of_the_golden_numbers():
    for y, v, *_ in (GOLDEN[name] for name in ("five", "three", "eight")):
        one, expected = combine_estimates(y, v), combine_effects(np.array(y), np.array(v), method_re="dl", use_t=False)
        close(
            [one.fixed, one.fixed_se, one.q, one.i2], [expected.mean_effect_fe, expected.sd_eff_w_fe, expected.q, expected.i2]
        )
        close([one.tau2_dl, one.dl, one.dl_se], [expected.tau2, expected.mean_effect_re, expected.sd_eff_w_re])
        close(one.dl_hk_se, expected.sd_eff_w_re_hksj)
        close(one.p_heterogeneity, expected.test_homogeneity().pvalue, 1e-10)
    one = combine_estimates(*FIVE)
    close([one.fixed, one.fixed_se, one.q, one.i2], [0.1850380527, 0.05805496808, 7.528889355, 0.468713138], 1e-9)
    close([one.tau2_dl, one.dl, one.dl_hk_se], [0.01615745833, 0.1644317092, 0.08160802306], 1e-9)
    # m <- rma(...); m$beta + c(-1, 1) * qt(0.975, 3) * sqrt(m$tau2 + m$se^2); rma(..., test = "adhoc")$ci.lb, ci.ub, pval
    close(one.prediction(), [-0.3203089909374, 0.6492909598438], 1e-11)
    close(one.interval(), [-0.07040438154905, 0.3993863504554], 1e-11)
    close(one.fixed_interval(), [0.07125240611089, 0.2988236992286], 1e-11)


def test_an_error_below_the_ordinary_one_is_raised():
    assert combine_estimates(*GOLDEN["alike"][:2]).was_raised
    assert not combine_estimates(*GOLDEN["three"][:2]).was_raised


def test_whatever_the_units_and_numbers_the_maximum_is_the_highest():
    rng = np.random.default_rng(0)
    for _ in range(30):
        k, unit = rng.integers(3, 15), 10 ** rng.uniform(-6, 4)
        v = unit**2 * rng.gamma(1, 1, k) * 10 ** rng.uniform(-1, 1, k)
        y = unit * rng.normal(size=k) * rng.choice([0.1, 1, 3])

        def height(t, v=v, y=y):
            w = 1 / (v + t)
            return -(np.log(v + t).sum() + np.log(w.sum()) + w @ (y - w @ y / w.sum()) ** 2) / 2

        best = max(map(height, np.r_[0, unit**2 * np.logspace(-4, 4, 500)]))
        assert height(combine_estimates(y, v).tau2) >= best - 1e-9


def test_sentences_follow_from_the_test():
    differ, alike, two = (
        combine_estimates(*GOLDEN["three"][:2]),
        combine_estimates(*FIVE),
        combine_estimates([0.1, 0.2], [0.01, 0.02]),
    )
    assert differ.sentence.startswith("Sites differ by more than chance (Q 21.2 on 2 df, p <0.001)")
    assert "tau² is a guess" in differ.sentence
    assert alike.sentence.startswith("No sign that sites differ by more than chance")
    assert "not to say that they agree" in alike.sentence
    assert "guess" not in alike.sentence
    assert "Of two sites no variance" in two.sentence
    assert np.isnan([two.tau2, two.mean, *two.prediction()]).all()
    close(two.fixed, 0.4 / 3)
    with pytest.raises(NotIdentified):
        combine_estimates([0.1], [0.2])


# ---- sites' own fits ------------------------------------------------------------------------------------------------
def by_site(table, site="site"):
    frame = table.to_pandas().assign(**{name: np.asarray(table[name]) for name in (site, "death_event", "time")})
    return [rows for _, rows in frame.groupby(site)]


def own(table, fit, names):
    found = [fit(rows) for rows in by_site(table)]
    return np.array([[one[0][name] for name in names] for one in found]), np.array(
        [[one[1][name] for name in names] for one in found]
    )


def glm(target, family):
    def fit(rows):
        formula = f"{target} ~ age + serum_creatinine"
        one = smf.ols(formula, rows).fit() if family is None else smf.glm(formula, rows, family=family).fit(tol=1e-14)
        return one.params, one.bse**2

    return fit


MODELS = {
    "binomial": ("death_event ~ age + serum_creatinine", glm("death_event", sm.families.Binomial())),
    "poisson": ("time ~ age + serum_creatinine", glm("time", sm.families.Poisson())),
    "gaussian": ("ejection_fraction ~ age + serum_creatinine", glm("ejection_fraction", None)),
}


@pytest.mark.parametrize("family", MODELS)
def test_each_site_fits_its_own_model(family):
    formula, fit = MODELS[family]
    names = ["age", "serum_creatinine"]
    federation = sites()
    found, (y, v) = meta_analysis(federation, formula, family=family), own(hearts(), fit, names)
    for j, name in enumerate(names):
        one, expected = found[name], combine_estimates(y[:, j], v[:, j])
        close([one.fixed, one.fixed_se, one.q], [expected.fixed, expected.fixed_se, expected.q], 1e-9)
        close([one.dl, one.mean, one.hk_se], [expected.dl, expected.mean, expected.hk_se], 1e-9)
        np.testing.assert_allclose(one.tau2, expected.tau2, rtol=1e-7, atol=1e-14)
    pooled = within_sites(sites(), formula, family)
    close(found.pooled, pooled.coef_)
    close(found.pooled_se, pooled.se_)
    assert found.n_fitted == 4
    assert not sum(found.without.values())


def test_of_survival_too():
    names = ["age", "anaemia", "serum_creatinine"]

    def fit(rows):
        one = PHReg(rows["time"], rows[names].astype(float), status=rows["death_event"], ties="efron").fit(disp=0, tol=1e-14)
        return dict(zip(names, one.params, strict=True)), dict(zip(names, one.bse**2, strict=True))

    found, (y, v) = meta_analysis(sites(), FORMULA, family="cox"), own(hearts(), fit, names)
    for j, name in enumerate(names):
        expected = combine_estimates(y[:, j], v[:, j])
        close([found[name].fixed, found[name].mean, found[name].hk_se], [expected.fixed, expected.mean, expected.hk_se], 1e-8)
    pooled = cox(sites(), FORMULA)
    close(found.pooled, pooled.coef_, 1e-8)
    close(found.pooled_se, pooled.se_, 1e-8)
    assert found.ratio == "hazard ratio"


def test_what_left_a_party_is_counted():
    federation = clinics()
    found = meta_analysis(federation, CANCER, "mean_texture", pooled=False)
    entries = federation.ledger.entries
    assert len(entries) == found.rounds == 5
    sums = "w (1, {0}), wy (1, {0}), wyy (1, {0}), ww (1, {0}), wwy (1, {0}), wwyy (1, {0}), log (1, {0}), k"
    assert found.left == f"fitted, troubles (4,), n, once; {sums.format(1)}, once; {sums.format(8)}, 3 times"
    assert found.names == ("mean_texture",)
    assert np.isnan(found.pooled).all()
    assert "pooled" not in found.summary().split("protection")[0]


def test_the_set_of_a_few_sites_estimates_can_be_solved_from_totals():
    # Sum of 1 / (v + t) over k sites is a ratio of polynomials: eight values of t give its poles, and so every variance.
    y, v = np.array([0.4, -0.2, 0.7]), np.array([0.05, 0.4, 2.0])
    t = np.array([0.0, 1e-4, 1e-3, 0.01, 0.05, 0.2, 1.0, 10.0])
    sums = {key: sum(site_terms(y[i : i + 1], v[i : i + 1], t[None], np.zeros(1))[key][0] for i in range(3)) for key in KEYS}
    w, powers = sums["w"], t[:, None] ** np.arange(3)
    solved = np.linalg.lstsq(np.hstack([powers, -w[:, None] * powers]), w * t**3, rcond=None)[0]
    variances = np.sort(-np.roots(np.r_[1, solved[:2:-1]]).real)
    close(variances, v, 1e-6)
    close(np.linalg.lstsq(1 / (variances + t[:, None]), sums["wy"], rcond=None)[0], y, 1e-5)


# ---- sites without estimates ----------------------------------------------------------------------------------------
def test_sites_without_estimates_add_nothing_and_are_counted_by_why():
    table = hearts()
    site, event, place = np.asarray(table["site"]), np.asarray(table["death_event"]).copy(), np.arange(299)
    event[(site == 3) & (place > 40)] = 0  # a few events
    age = np.where(site == 2, 60 + 10 * event, table["age"])  # separated
    patient = np.where(site == 1, 7, place)  # constant there
    table = hearts(death_event=event, age=age, patient=patient)
    formula = "death_event ~ age + patient"
    with pytest.raises(
        NotIdentified, match=r"1 site .*1 with too few events, 1 where columns separate .*1 where columns say the same"
    ):
        meta_analysis(sites(table), formula)
    found = meta_analysis(sites(table), "death_event ~ age")
    assert found.without == {"few": 1, "separated": 1, "unidentified": 0, "beyond": 0}
    assert (found.n_fitted, found.n_records) == (2, (site < 2).sum())
    assert np.isnan(found["age"].tau2)
    assert "1 too few events; 1 columns separate the outcomes: add nothing" in " ".join(found.summary().split())
    everybody = meta_analysis(sites(table), "death_event ~ age", least=1)
    assert everybody.without["few"] == 0


def test_an_intercept_can_be_put_together_too():
    found = meta_analysis(clinics(), CANCER, ["Intercept", "mean_texture"])
    assert np.isnan(found.pooled[0])
    assert np.isfinite(found.pooled[1])
    assert "pooled" in found.summary()
    assert found["Intercept"].k == 6


def test_two_sites_have_a_fixed_effect_alone():
    found = meta_analysis(clinics(2), CANCER)
    one = found["mean_texture"]
    assert one.k == 2
    assert np.isfinite([one.fixed, one.q, one.p_value]).all()
    assert np.isnan([one.tau2, one.mean]).all()
    assert "another site" not in found.summary()
    close(found.to_frame().loc["mean_texture", "mean of sites"], one.fixed)
    with pytest.raises(NotIdentified, match="1 site has estimates"):
        meta_analysis(clinics(1), CANCER)


# ---- sites that show themselves -------------------------------------------------------------------------------------
def test_sites_are_shown_where_they_agree():
    federation = clinics()
    found = meta_analysis(federation, CANCER, sites_shown=True)
    rows = found.rows["mean_texture"]
    one = combine_estimates([row.estimate for row in rows], [row.se**2 for row in rows])
    close(
        [one.fixed, one.mean, one.tau2],
        [found["mean_texture"].fixed, found["mean_texture"].mean, found["mean_texture"].tau2],
        1e-9,
    )
    close(sum(row.weight for row in rows), 1, 1e-9)
    frame = found.sites("mean_texture")
    assert list(frame.columns) == ["estimate", "se", "low", "high", "weight"]
    assert federation.ledger.entries[-1].contribution == "estimate (2,), variance (2,)"
    assert not len(meta_analysis(clinics(), CANCER).sites("mean_texture"))


def test_a_site_of_few_events_is_neither_drawn_nor_in_the_total_beside_those_that_are():
    event = np.asarray(hearts()["death_event"]).copy()
    few = np.flatnonzero((np.asarray(hearts()["site"]) == 3) & (event > 0))
    event[few[6:]] = 0
    federation = sites(hearts(death_event=event))
    with pytest.raises(SettingsInvalid, match="the total less those that are"):
        meta_analysis(federation, "death_event ~ age", least=5, sites_shown=True)
    assert not len(federation.ledger)
    found = meta_analysis(federation, "death_event ~ age", sites_shown=True)
    assert found["age"].k == 3
    assert meta_analysis(federation, "death_event ~ age", least=5)["age"].k == 4
    plot = found.forest("age")
    assert len(plot.rows) == len(found.rows["age"]) == 3
    close(plot.total.estimate, np.exp(found["age"].mean))
    close(1 / found["age"].fixed_se ** 2, sum(1 / row.se**2 for row in found.rows["age"]), 1e-9)
    assert plot.prediction == pytest.approx(np.exp(found["age"].prediction()))
    assert "<svg" in found.plot("age").svg


# ---- behind hidden rows ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("most", [100, 100_000])
@pytest.mark.parametrize("family", [*MODELS, "cox"])
def test_behind_secure_aggregation_it_is_the_same(family, most):
    formula = FORMULA if family == "cox" else MODELS[family][0]
    plain = meta_analysis(sites(), formula, family=family)
    hidden = meta_analysis(sites().protect(aggregation=hr.SecAgg()), formula, family=family, most=most, between="reml")
    for one, other in zip(plain.effects, hidden.effects, strict=True):
        close([other.fixed, other.fixed_se, other.q], [one.fixed, one.fixed_se, one.q], 1e-9)
        close([other.mean, other.se, other.dl], [one.mean, one.se, one.dl], 1e-9)
        np.testing.assert_allclose(other.tau2, one.tau2, rtol=1e-8, atol=1e-12)
    close(hidden.pooled, plain.pooled, 1e-7)


@pytest.mark.parametrize("family", [*MODELS, "cox"])
def test_where_rows_are_hidden_few_totals_are_asked(family):
    formula = FORMULA if family == "cox" else MODELS[family][0]
    federation = sites().protect(aggregation=hr.SecAgg())
    plain, hidden = (
        meta_analysis(sites(), formula, family=family),
        meta_analysis(federation, formula, family=family, most=100, pooled=False),
    )
    for one, other in zip(plain.effects, hidden.effects, strict=True):
        close([other.fixed, other.fixed_se, other.q], [one.fixed, one.fixed_se, one.q], 1e-9)
        close([other.mean, other.se, other.dl], [one.dl, one.dl_se, one.dl], 1e-9)
        np.testing.assert_allclose(other.scale, one.dl_scale, rtol=1e-7)
        np.testing.assert_allclose([other.tau2, other.tau2_dl], one.tau2_dl, rtol=1e-8, atol=1e-12)
    p = len(hidden.names)
    most = sum(entry.exact_numbers for entry in federation.ledger.entries[2:])  # after the sites and the sums of w
    assert most <= p * (4 + 4 + 3) + 3
    assert "DerSimonian and Laird" in hidden.summary()
    assert "REML" in plain.summary()


def test_of_two_sites_the_second_question_is_the_last():
    federation = clinics(2)
    found, plain = (
        meta_analysis(one, CANCER, pooled=False, **way) for one, way in ((federation, {"between": "dl"}), (clinics(2), {}))
    )
    close([one.fixed for one in found.effects], [one.fixed for one in plain.effects])
    assert len(federation.ledger) == 3


def test_estimates_of_four_sites_that_differ_have_the_same_few_totals():
    # Seven different numbers of eight unknown: along a line in them the totals stay, so they do not tell which it is.
    y, v = np.array([0.4, -0.2, 0.7, 0.1]), np.array([0.05, 0.4, 0.2, 0.1])

    def totals(x, t=0.03):
        found = [site_terms(x[:4], np.exp(x[4:]), np.full((4, 1), at), np.zeros(4)) for at in (0.0, t)]
        return np.array([found[0][key].sum() for key in MOMENTS] + [found[1][key].sum() for key in MEANS])

    x = np.concatenate([y, np.log(v)])
    slopes = np.array([(totals(x + step) - totals(x - step)) / 2e-6 for step in 1e-6 * np.eye(8)]).T
    assert np.linalg.matrix_rank(slopes, tol=1e-6) == 7


def test_what_a_site_adds_lies_within_its_declared_range():
    for (family, (formula, _)), between in itertools.product(MODELS.items(), ("reml", "dl")):
        federation = sites().protect(aggregation=Hiding(records=75.0))
        assert meta_analysis(federation, formula, family=family, between=between).n_records == 299
        assert all("per party" in str(entry.bound) for entry in federation.ledger.entries)


def test_an_estimate_beyond_the_declared_range_adds_nothing():
    table = hearts().declare(ejection_fraction=(0, 1e7))  # residuals are smaller than a thousandth of that
    hidden = sites(table).protect(aggregation=hr.SecAgg())
    with pytest.raises(NotIdentified, match="4 beyond the declared range"):
        meta_analysis(hidden, MODELS["gaussian"][0], family="gaussian", most=100)


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_refusals_before_anybody_is_asked():
    federation = clinics()
    noisy = clinics().protect(mechanism=hr.privacy.Gaussian(noise_multiplier=1.0), clip=hr.l2(1.0))
    with pytest.raises(UnlawfulChannel, match="a meta-analysis goes through no channel"):
        meta_analysis(noisy, CANCER)
    hidden = clinics().protect(aggregation=hr.SecAgg())
    with pytest.raises(UnlawfulChannel, match="sites_shown"):
        meta_analysis(hidden, CANCER, sites_shown=True, most=200)
    with pytest.raises(UnboundedSum, match="how many records a party has"):
        meta_analysis(clinics().protect(aggregation=Hiding(records=None)), CANCER)
    for settings in (
        {"coefficients": ["nothing"]},
        {"least": 0},
        {"between": "pm"},
        {"family": "gamma"},
        {"time": "mean_area"},
        {"coefficients": []},
    ):
        with pytest.raises(SettingsInvalid):
            meta_analysis(federation, CANCER, **settings)
    with pytest.raises(FormulaInvalid):
        meta_analysis(federation, "malignant")
    assert not len(federation.ledger)
    with pytest.raises(PartyDeclined):
        meta_analysis(federation, CANCER, most=20)
    with pytest.raises(MissingColumn, match="mean_area"):
        meta_analysis(federation, CANCER)["mean_area"]


def test_it_goes_on_from_any_state_to_the_same_numbers():
    given = {"formula": CANCER, "sites_shown": True}
    states = list(meta_rounds(clinics(), **given))
    last = meta_of(clinics(), given, states[-1])
    for i in (0, 2, len(states) - 3, len(states) - 2):
        *_, again = meta_rounds(clinics(), **given, start=states[i])
        assert meta_of(clinics(), given, again).effects == last.effects
        assert again.rows.keys() == states[-1].rows.keys()
    fewer = {key: value - (key == "fitted") for key, value in states[0].counts.items()}
    with pytest.raises(NotConverged, match="5 sites had estimates, and 6 answer now"):
        list(meta_rounds(clinics(), **given, start=replace(states[0], counts=fewer)))
    shown = show_meta(clinics(), given, states[-1])
    assert {"Meta-analysis", "Odds ratios", "Sites: mean_texture"} <= set(shown.tables)
    assert any("No sign that sites differ" in note for note in shown.notes)
    assert len(shown.forests) == 2
