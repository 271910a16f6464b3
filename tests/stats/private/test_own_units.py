"""Coefficients in the units of their columns, beside those of an ordinary implementation."""

import numpy as np
import pytest
import statsmodels.api as sm

import hedgerow as hr
from hedgerow.data import Table, iid
from hedgerow.data.entry import binary, category, declare, number
from hedgerow.errors import SettingsInvalid
from hedgerow.stats import private

SCHEMA = declare(
    number("dose", 0, 50),
    number("age", 18, 90),
    category("site", "north south west"),
    number("change", -4, 4),
    binary("ill", role="target"),
)


def table(n=400):
    rng = np.random.default_rng(0)
    dose, age, site = rng.uniform(0, 50, n), rng.uniform(18, 90, n), rng.integers(0, 3, n)
    change = np.clip(0.05 * dose - 0.4 * site + rng.normal(size=n) * 0.3, -4, 4)
    ill = (rng.random(n) < 1 / (1 + np.exp(-0.03 * dose))).astype(int)
    return Table({"dose": dose, "age": age, "site": site, "change": change, "ill": ill}, SCHEMA)


def parties(records):
    return hr.simulate(records, iid(parties=3), seed=0)


def test_without_a_constant_a_coefficient_is_for_one_unit_of_its_column():
    records = table()
    fit = private.logistic(parties(records), "ill ~ dose - 1", rows="fixed", penalty=1e-9)
    truth = sm.Logit(records["ill"], records["dose"][:, None]).fit(disp=0).params
    assert fit.own_units().to_numpy() == pytest.approx(truth, rel=1e-6)


def test_without_a_constant_levels_and_targets_have_units_too():
    records = table()
    fit = private.linear(parties(records), "change ~ dose + site - 1")
    X = np.column_stack([records["dose"], *(records["site"] == k for k in range(3))])
    assert fit.names[0] == "dose"
    assert fit.own_units().to_numpy() == pytest.approx(sm.OLS(records["change"], X).fit().params, abs=1e-9)


def test_without_a_constant_a_range_that_starts_elsewhere_is_refused():
    fit = private.logistic(parties(table()), "ill ~ age - 1", rows="fixed")
    with pytest.raises(SettingsInvalid, match="without a constant"):
        fit.own_units()


# ---- values beyond their declared ranges ----------------------------------------------------------------------------
def beyond(n=400):
    rng = np.random.default_rng(1)
    dose = rng.uniform(-100, 200, n)
    return Table(
        {"dose": dose, "change": 0.05 * dose + 0.3 * rng.normal(size=n)},
        declare(number("dose", 0, 50), number("change", -4, 4)),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fitted", [private.linear, private.inference])
def test_exact_sums_are_of_values_beyond_their_ranges_too(fitted):
    records = beyond()
    truth = sm.OLS(records["change"], sm.add_constant(records["dose"])).fit().params
    fit = fitted(parties(records), "change ~ dose")
    assert fit.own_units().to_numpy() == pytest.approx(truth, abs=1e-9)
    assert "values are as they are" in fit.summary()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("channel", [False, True])
def test_behind_noise_a_value_beyond_its_range_counts_as_the_nearer_end(channel):
    records = beyond()
    cut = Table(
        {name: records[name].clip(*ends) for name, ends in {"dose": (0, 50), "change": (-4, 4)}.items()}, records.schema
    )
    fits = []
    for one in (records, cut):
        asked = parties(one).protect(mechanism=hr.Gaussian(2.0)) if channel else parties(one)
        given = {} if channel else {"epsilon": 2.0, "delta": 1e-5}
        fits.append(private.linear(asked, "change ~ dose", **given))
    assert (fits[0].coef_ == fits[1].coef_).all()
    assert "a value counts as the nearer end of its declared range" in " ".join(fits[0].summary().split())


def test_a_number_below_its_range_is_zero_in_a_row():
    rows = private.UnitRows.of("change ~ dose + dose:site", SCHEMA, length="fixed")
    x = rows.rows({"dose": np.array([-5.0, 0.0, 60.0]), "site": np.array([1, 1, 1])}, 3) * rows.factor
    assert x[:, rows.names.index("dose")].tolist() == [0.0, 0.0, 1.0]
