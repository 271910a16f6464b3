"""`vertical-cardio`: 5 | 6 columns of the same people, against the pooled fits."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from apart_double import AsHeld

import hedgerow as hr
from hedgerow.data import Table, load

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")


@pytest.fixture(autouse=True)
def folder_of_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))


CLINIC = ("age", "gender", "height", "weight", "smoke")
LABORATORY = ("ap_hi", "ap_lo", "cholesterol", "gluc", "alco", "active")
FORMULA = "cardio ~ " + " + ".join((*CLINIC, *LABORATORY))

GOLDEN = {
    "age": (0.000141060387, 3.70510482e-06),
    "gender[T.man]": (-0.0185527755, 0.0219151637),
    "height": (-0.00359539532, 0.00128271069),
    "weight": (0.0108869115, 0.00068705358),
    "smoke": (-0.142033236, 0.0347751334),
    "ap_hi": (0.0535718691, 0.000884445039),
    "ap_lo": (0.0159238439, 0.00139127139),
    "cholesterol": (0.49945116, 0.0155989785),
    "gluc": (-0.119533761, 0.017683725),
    "alco": (-0.21402901, 0.0422890897),
    "active": (-0.227436819, 0.0218842245),
}
"""Coefficients and standard errors of the pooled logistic regression of all 68 754 people, to nine digits."""


def cardio(rows: int | None = None) -> Table:
    """People with lawful blood pressures."""
    table = load("cardio")
    high, low = table["ap_hi"], table["ap_lo"]
    lawful = np.flatnonzero((high > 60) & (high < 250) & (low > 30) & (low < 160))
    return table.take(lawful if rows is None else lawful[:rows])


def aligned(table: Table) -> hr.vertical.Aligned:
    parts = {"clinic": table.select(["id", *CLINIC]), "laboratory": table.select(["id", *LABORATORY, "cardio"])}
    return hr.simulate(parts, on="id", seed=0).align(on="id", by=AsHeld())


def design(table: Table, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Columns in the order of coefficients, and their standard deviations."""
    given = {name: np.asarray(table[name], float) for name in (*CLINIC, *LABORATORY)} | {"Intercept": np.ones(len(table))}
    X = np.column_stack([given[name.partition("[")[0]] for name in names])
    return X, np.where(X.std(0) > 0, X.std(0), 1.0)


@pytest.mark.slow
def test_two_thousand_people_give_the_pooled_fits() -> None:
    table = cardio(2000)
    both = aligned(table)
    linear = hr.vertical.linear_regression(both, FORMULA)
    (X, sd), y = design(table, linear.names), np.asarray(table["cardio"], float)
    golden = sm.OLS(y, X).fit(method="qr")
    assert np.abs((linear.coef_ - golden.params) * sd).max() < 1e-8
    np.testing.assert_allclose(linear.se_, golden.bse, rtol=1e-6)
    np.testing.assert_allclose(linear.p_values, golden.pvalues, atol=1e-6)
    np.testing.assert_allclose(linear.conf_int(), golden.conf_int(), rtol=1e-5, atol=1e-7)
    assert linear.r_squared == pytest.approx(golden.rsquared, abs=1e-9)
    logistic = hr.vertical.logistic_regression(both, FORMULA)
    back = np.diag(1 / sd)
    means = np.where(sd != 1.0, X.mean(0), 0.0)
    back[0] -= means / sd
    pooled = sm.Logit(y, (X - means) / sd).fit(disp=0, tol=1e-10)
    assert np.abs((logistic.coef_ - back @ pooled.params) * sd).max() < 1e-7
    np.testing.assert_allclose(logistic.se_, np.sqrt(np.diag(back @ pooled.cov_params() @ back.T)), rtol=1e-6)


@pytest.mark.slow
def test_all_people_give_the_golden_coefficients_in_few_openings() -> None:
    table = cardio()
    both = aligned(table)
    assert both.n == 68_754
    fit = hr.vertical.logistic_regression(both, FORMULA)
    _, sd = design(table, fit.names)
    for name, coef, se, unit in zip(fit.names, fit.coef_, fit.se_, sd, strict=True):
        if name in GOLDEN:
            assert abs(coef - GOLDEN[name][0]) * unit < 1e-7
            assert se == pytest.approx(GOLDEN[name][1], rel=1e-6)
    woman, man = fit.coef_[fit.names.index("Intercept")], fit.coef_[fit.names.index("gender[T.man]")]
    assert woman - man == pytest.approx(-11.3169825, abs=1e-6), "the golden fit codes a woman 1 and a man 2"
    assert fit.rounds <= 5
    assert sum(sum(one.bytes.values()) for one in both.traffic) < 120e6
