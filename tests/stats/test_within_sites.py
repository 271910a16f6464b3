"""Regressions with an intercept for every site are the pooled ones with the site as a factor, and the intercepts stay."""

import numpy as np
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from hiding import Hiding
from survivors import hearts, sites

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import (
    FormulaInvalid,
    NotIdentified,
    PartyDeclined,
    RangeExceeded,
    Separated,
    SettingsInvalid,
    UnboundedSum,
    UnlawfulChannel,
)
from hedgerow.stats.meta.intercepts import own_intercept, within_sizes
from hedgerow.stats.meta.site_effects import within_design, within_sites, within_sites_newton

NAMES = ["age", "serum_creatinine"]
RIGHT = "age + serum_creatinine"
MODELS = {
    "binomial": ("death_event", sm.families.Binomial()),
    "poisson": ("time", sm.families.Poisson()),
    "gaussian": ("ejection_fraction", None),
}


def close(found, expected, rtol=1e-9):
    np.testing.assert_allclose(found, expected, rtol=rtol)


def frame_of(table):
    return table.to_pandas().assign(**{name: np.asarray(table[name]) for name in ("site", "death_event", "time")})


def pooled(family, table, more=""):
    target, law = MODELS[family]
    formula, frame = f"{target} ~ {RIGHT}{more} + C(site)", frame_of(table)
    return smf.ols(formula, frame).fit() if law is None else smf.glm(formula, frame, family=law).fit(tol=1e-14)


# ---- the pooled fit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", MODELS)
def test_it_is_the_pooled_fit_with_the_site_as_a_factor(family):
    table = hearts()
    fit, expected = within_sites(sites(table), f"{MODELS[family][0]} ~ {RIGHT}", family), pooled(family, table)
    close(fit.coef_, expected.params[NAMES])
    close(fit.se_, expected.bse[NAMES])
    close(fit.conf_int(), expected.conf_int().loc[NAMES])
    close(fit.p_values, expected.pvalues[NAMES], 1e-7)
    close([fit.log_likelihood, fit.aic], [expected.llf, expected.aic])
    close(fit.bic, -2 * expected.llf + np.log(299) * 6)
    close(fit.df_residual, expected.df_resid)
    assert (fit.n_sites, fit.n_silent, fit.names) == (4, 0, ("age", "serum_creatinine"))
    assert "an intercept for every site" in fit.summary()


def test_the_linear_one_is_the_within_estimator():
    table = hearts()
    fit, expected = within_sites(sites(table), f"ejection_fraction ~ {RIGHT}"), pooled("gaussian", table)
    close(fit.dispersion, expected.mse_resid)
    frame = frame_of(table)[[*NAMES, "ejection_fraction", "site"]]
    within = frame[[*NAMES, "ejection_fraction"]] - frame.groupby("site").transform("mean")
    close(fit.r_squared, sm.OLS(within["ejection_fraction"], within[NAMES]).fit().rsquared)
    alone = smf.ols("ejection_fraction ~ C(site)", frame_of(table)).fit()
    test = expected.compare_f_test(alone)
    close(fit.f_test, test[:2])
    assert fit.rounds == 2
    assert fit.left == "score (2,), information (3,), deviance, n, sites, silent, twice"


def test_the_null_is_the_sites_alone():
    table = hearts()
    fit = within_sites(sites(table), f"death_event ~ {RIGHT}", "binomial")
    alone = smf.glm("death_event ~ C(site)", frame_of(table), family=sm.families.Binomial()).fit(tol=1e-14)
    close(fit.null_log_likelihood, alone.llf)
    close(fit.n_events, 96)


def test_an_offset_and_levels_count():
    table = hearts(begun=np.linspace(0.5, 3, 299))
    fit = within_sites(sites(table), f"time ~ {RIGHT} + C(sex)", "poisson", offset="log(begun + 1)")
    law, frame = MODELS["poisson"][1], frame_of(table).assign(sex=np.asarray(table["sex"]), more=np.log(table["begun"] + 1))
    expected = smf.glm(f"time ~ {RIGHT} + sex + C(site)", frame, family=law, offset=frame["more"]).fit(tol=1e-14)
    close(fit.coef_[:2], expected.params[NAMES])
    close(fit.log_likelihood, expected.llf)


def test_an_intercept_solves_its_equation_far_away_too():
    from hedgerow.stats.linear.losses import loss_of

    rng = np.random.default_rng(0)
    for family, y in (("binomial", np.r_[1.0, np.zeros(49)]), ("poisson", np.r_[9.0, np.zeros(49)])):
        eta = 40 * rng.normal(size=50)
        loss = loss_of(family)
        at = own_intercept(loss, y, eta, np.ones(50))
        assert abs(loss.part("slope", y, eta + at).sum()) < 1e-9


# ---- sites that tell nothing ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_a_site_without_variation_adds_nothing_and_is_counted(family):
    target = MODELS[family][0]
    table = hearts()
    quiet = np.where(np.asarray(table["site"]) == 2, 0, np.asarray(table[target]))
    table = hearts(**{target: quiet})
    fit = within_sites(sites(table), f"{target} ~ {RIGHT}", family)
    others = table.take(np.flatnonzero(np.asarray(table["site"]) != 2))
    expected = within_sites(sites(others), f"{target} ~ {RIGHT}", family)
    close(fit.coef_, expected.coef_, 1e-13)
    assert (fit.n_sites, fit.n_silent, fit.n_records) == (3, 1, len(others))
    assert "1 sites whose targets are all alike" in fit.method


def with_gaps(lost):
    """The records of which `lost` (n,) have no age."""
    table = hearts()
    optional = Column("age", "number", low=40, high=95, optional=True)
    schema = Schema(tuple(optional if column.name == "age" else column for column in table.schema))
    columns = {name: table[name] for name in table.schema.names}
    return Table(schema.admit(columns | {"age": np.where(lost, np.nan, table["age"])}), schema)


def test_an_empty_site_and_a_single_record_change_nothing():
    place, site = np.arange(299), np.asarray(hearts()["site"])
    lost = (site == 2) | ((site == 3) & (place != 3)) | (place % 7 == 0)
    fit = within_sites(sites(with_gaps(lost)), f"ejection_fraction ~ {RIGHT}")
    expected = smf.ols(f"ejection_fraction ~ {RIGHT} + C(site)", frame_of(hearts())[~lost]).fit()
    close(fit.coef_, expected.params[NAMES])
    close(fit.se_, expected.bse[NAMES])
    assert (fit.n_sites, fit.n_silent, fit.cases.left_out) == (3, 0, lost.sum())


# ---- behind hidden rows ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", MODELS)
def test_behind_secure_aggregation_it_is_the_same(family):
    formula = f"{MODELS[family][0]} ~ {RIGHT}"
    plain = within_sites(sites(), formula, family)
    hidden = within_sites(sites().protect(aggregation=hr.SecAgg()), formula, family, most=100)
    close(hidden.coef_, plain.coef_)
    close(hidden.se_, plain.se_)


@pytest.mark.parametrize("family", MODELS)
def test_what_a_party_adds_lies_within_its_declared_range(family):
    federation = sites().protect(aggregation=Hiding(records=75.0))  # as many as the largest site has
    assert within_sites(federation, f"{MODELS[family][0]} ~ {RIGHT}", family).n_records == 299
    assert all("per party" in str(entry.bound) for entry in federation.ledger.entries)


def test_a_range_that_is_too_small_is_seen(monkeypatch):
    from hedgerow.stats.meta import site_effects

    def halved(*given):
        return {key: size / 8 for key, size in within_sizes(*given).items()}

    monkeypatch.setattr(site_effects, "within_sizes", halved)
    with pytest.raises(RangeExceeded):
        within_sites(sites().protect(aggregation=Hiding(records=75.0)), f"ejection_fraction ~ {RIGHT}")


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_what_is_constant_at_each_site_has_no_estimate():
    table = hearts(begun=np.arange(299) % 4 * 1.1)
    for federation, more in ((sites(table), {}), (sites(table).protect(aggregation=hr.SecAgg()), {"most": 100})):
        with pytest.raises(NotIdentified, match="'begun' is constant at each site"):
            within_sites(federation, f"death_event ~ {RIGHT} + begun", "binomial", **more)


def test_separated_and_silent_targets_are_named():
    with pytest.raises(Separated, match="I"):
        within_sites(sites(), f"death_event ~ {RIGHT} + I(death_event * age)", "binomial")
    with pytest.raises(NotIdentified, match="no site's targets vary"):
        within_sites(sites(hearts(death_event=np.zeros(299))), "death_event ~ age", "binomial")


def test_refusals_before_anybody_is_asked():
    federation = sites()
    noisy = federation.protect(mechanism=hr.privacy.Gaussian(noise_multiplier=1.0), clip=hr.l2(1.0))
    with pytest.raises(UnlawfulChannel, match="each site solves something of its own"):
        within_sites(noisy, "death_event ~ age", "binomial")
    with pytest.raises(UnboundedSum, match="how many records a party has"):
        within_sites(sites().protect(aggregation=Hiding(records=None)), "death_event ~ age", "binomial")
    for formula in ("death_event ~ 0 + age", "death_event ~ 1"):
        with pytest.raises(FormulaInvalid):
            within_sites(federation, formula, "binomial")
    with pytest.raises(SettingsInvalid, match="family='gamma'"):
        within_sites(federation, "death_event ~ age", "gamma")
    assert not len(federation.ledger)
    with pytest.raises(PartyDeclined):
        within_sites(federation, "death_event ~ age", "binomial", most=70)


def test_it_goes_on_from_a_state_and_predicts_nothing():
    given = {"formula": f"death_event ~ {RIGHT}", "family": "binomial"}
    states = list(within_sites_newton(sites(), **given))
    again = list(within_sites_newton(sites(), **given, start=states[2]))
    assert len(again) == len(states) - 3
    np.testing.assert_array_equal(again[-1].beta, states[-1].beta)
    with pytest.raises(SettingsInvalid, match="predicts nothing"):
        within_sites(sites(), **given).predict(hearts())
    assert within_design(sites(), given["formula"], "binomial", None).names == ("age", "serum_creatinine")
