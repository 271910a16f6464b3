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
