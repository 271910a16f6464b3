"""Splines with declared knots equal patsy's, `missing(x)` notes what is absent, and curves follow from the covariance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import patsy
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

import hedgerow as hr
from hedgerow.errors import FormulaInvalid, MissingColumn, SettingsInvalid
from hedgerow.stats.design import Design
from hedgerow.stats.expressions import interval

AGE = "rcs(age, [30, 45, 60, 75])"
FORMULA = f"died ~ {AGE} + sex"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(22)
    n = 600
    age, marker = rng.uniform(18, 90, n).round(1), rng.normal(size=n).round(3)
    marker[rng.random(n) < 0.02 + 0.3 * (age > 60)] = np.nan
    sex = rng.choice(["f", "m"], n)
    eta = (age / 30 - 2) ** 2 - 1 + 0.4 * (sex == "m") + 0.7 * np.isnan(marker)
    died = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    return pd.DataFrame({"age": age, "sex": sex, "died": died, "marker": marker, "days": rng.integers(1, 400, n)})


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> hr.data.Table:
    declared = {"age": {"range": (18, 90)}, "sex": {"levels": ["f", "m"]}, "days": {"range": (0, 400)}}
    return hr.data.Table.from_frame(frame.drop(columns="marker"), target="died", declared=declared)


@pytest.fixture(scope="module")
def lacking(frame: pd.DataFrame) -> hr.data.Table:
    declared = {
        "age": {"range": (18, 90)},
        "sex": {"levels": ["f", "m"]},
        "marker": {"range": (-5, 5)},
        "died": {"kind": "binary"},
        "days": {"kind": "integer", "range": (0, 400)},
    }
    return hr.data.Table.from_frame(frame, target="died", declared=declared, missing="drop")


def simulated(table: hr.data.Table) -> hr.Federation:
    return hr.simulate(table, hr.data.iid(3), seed=0)


def hidden_rows(table: hr.data.Table) -> hr.Federation:
    return simulated(table).protect(aggregation=hr.SecAgg(records=600))


# ---- columns --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("written", "degree"), [("bs(age, knots=[40, 60])", 3), ("bs(age, [35, 50, 70], 2)", 2), ("bs(age, [], 1)", 1)]
)
def test_b_splines_are_patsys(frame: pd.DataFrame, table: hr.data.Table, written: str, degree: int) -> None:
    spec = Design.of(f"died ~ {written} - 1", table.schema)
    knots = {3: [40, 60], 2: [35, 50, 70], 1: []}[degree]
    text = f"bs(age, knots={knots}, degree={degree}, lower_bound=18, upper_bound=90) - 1"
    edge = pd.DataFrame({"age": [18.0, 90.0, *knots, *frame["age"]]})
    ours = spec.matrix({"age": edge["age"].to_numpy()}, len(edge))
    assert np.abs(ours - np.asarray(patsy.dmatrix(text, edge))).max() < 1e-15 * 2
    assert spec.limits == (1.0,) * spec.size
    assert spec.names[0] == f"bs(age, {knots}, {degree}, [18, 90])[1]"


def test_restricted_cubic_splines_are_harrells_and_straight_beyond_the_knots(table: hr.data.Table) -> None:
    spec = Design.of(f"died ~ {AGE} - 1", table.schema)
    assert spec.names == tuple(f"{AGE}[{j}]" for j in (1, 2, 3))
    # Harrell's formula, in units of (t4 - t1)^2, as rcspline.eval(norm=2) of R's Hmisc
    x = np.array([20.0, 40.0, 50.0, 70.0, 88.0])
    cube = lambda u: np.maximum(u, 0) ** 3  # noqa: E731
    bent = [(cube(x - t) - cube(x - 60) * (75 - t) / 15 + cube(x - 75) * (60 - t) / 15) / 45**2 for t in (30, 45)]
    assert np.allclose(spec.matrix({"age": x}, 5), np.column_stack([x, *bent]), rtol=1e-13, atol=0)
    outside = spec.matrix({"age": np.array([10.0, 20.0, 30.0, 75.0, 90.0, 105.0])}, 6)
    assert np.abs(np.diff(outside[:3], 2, axis=0)).max() == 0
    assert np.abs(np.diff(outside[3:], 2, axis=0)).max() < 1e-11
    limits = [interval(name, table.schema) for name in spec.names]
    assert limits[0] == (18.0, 90.0)
    assert limits[1][0] == limits[2][0] == 0.0  # type: ignore[index]
    highest = spec.matrix({"age": np.array([90.0])}, 1)[0]
    assert np.allclose([one[1] for one in limits if one], highest, rtol=0)
    assert np.allclose(spec.limits, highest)


def test_a_logistic_fit_spans_what_patsys_natural_cubic_spline_spans(frame: pd.DataFrame, table: hr.data.Table) -> None:
    fit = hr.stats.logistic_regression(simulated(table), FORMULA)
    natural = "died ~ cr(age, knots=[45, 60], lower_bound=30, upper_bound=75) + male - 1"
    theirs = smf.logit(natural, frame.assign(male=(frame["sex"] == "m").astype(float))).fit(disp=0)
    assert fit.log_likelihood == pytest.approx(theirs.llf, abs=1e-9)
    hidden = hr.stats.logistic_regression(hidden_rows(table), FORMULA)
    assert np.abs((hidden.coef_ - fit.coef_) / fit.se_).max() < 1e-5


@pytest.mark.parametrize(
    "formula",
    [f"died ~ {AGE}:sex", f"died ~ {AGE}*sex", "died ~ bs(age, [50]):days", f"died ~ sex + {AGE}:bs(days, [200], degree=1)"],
)
def test_interactions_span_what_products_of_the_columns_span(frame: pd.DataFrame, table: hr.data.Table, formula: str) -> None:
    spec = Design.of(formula, table.schema)
    X = spec.matrix(table.columns, len(table))
    assert X.shape[1] == spec.size == len(set(spec.names))
    assert np.linalg.matrix_rank(X / np.abs(X).max(0)) == spec.size
    assert (
        np.abs(X).max(0) <= np.array(spec.limits) * (1 + 1e-12)
        if False
        else (np.abs(X).max(0) <= np.array(spec.limits) * (1 + 1e-12)).all()
    )


def test_the_same_spline_written_twice_is_one(table: hr.data.Table) -> None:
    assert Design.of("died ~ rcs(age,[30,45,60]) + rcs(age, knots=[30.0, 45, 60])", table.schema).size == 3


@pytest.mark.parametrize(
    ("term", "why"),
    [
        ("rcs(age, [30, 45])", "between two it is straight"),
        ("rcs(age, [45, 30, 60])", "do not rise"),
        ("rcs(age, 4)", "how many knots, and not where"),
        ("rcs(age, days)", "not understood"),
        ("rcs(age)", "needs all records at once"),
        ("rcs(age, [30, 45, 60], 3)", "not understood"),
        ("rcs(sex, [1, 2, 3])", "is a category"),
        ("rcs(age, [30, 45, 60])[3]", "columns 1 to 2"),
        ("log(rcs(age, [30, 45, 60]))", "several columns"),
        ("bs(age, knots=[40, 95])", "outside of the declared range"),
        ("bs(age, knots=[40], range=[50, 90])", "do not lie between"),
        ("bs(age, knots=[40], degree=0)", "is of degree 0"),
        ("bs(age, df=5)", "names no knots"),
        ("bs(age / (days - 100), knots=[1])", "declares none"),
        ("cr(age, df=4)", "needs all records at once"),
        ("missing(age)", "no value of it may be missing"),
        ("missing(log(age))", "of an expression"),
        ("+".join(f"rcs(age, [{', '.join(str(i + j) for j in range(48))}])" for i in range(3)).replace("+", ":"), "terms"),
    ],
)
def test_what_cannot_be_computed_of_one_record_is_refused_with_a_reason(table: hr.data.Table, term: str, why: str) -> None:
    with pytest.raises(FormulaInvalid, match=why):
        Design.of(f"died ~ {term}", table.schema)


# ---- what is missing ------------------------------------------------------------------------------------------------
def test_missing_keeps_the_records_that_lack_the_column(frame: pd.DataFrame, lacking: hr.data.Table) -> None:
    frame = frame.assign(absent=frame["marker"].isna().astype(int))
    for ours, theirs in [
        ("died ~ age + missing(marker)", "died ~ age + absent"),
        ("missing(marker) ~ sex * age", "absent ~ sex * age"),
    ]:
        fit = hr.stats.logistic_regression(simulated(lacking), ours)
        reference = smf.logit(theirs, frame).fit(disp=0, tol=1e-12)
        assert fit.n_records == len(frame)
        assert np.allclose(fit.coef_, reference.params, rtol=1e-8)
        assert np.allclose(fit.se_, reference.bse, rtol=1e-7)
    fit = hr.stats.logistic_regression(simulated(lacking), "died ~ age + missing(marker)")
    assert "marker" not in fit.cases.columns
    reference = smf.logit("died ~ age + absent", frame).fit(disp=0, tol=1e-12)
    assert np.allclose(fit.predict(frame), reference.predict(frame), rtol=1e-7)
    hidden = hr.stats.logistic_regression(hidden_rows(lacking), "died ~ age + missing(marker)")
    assert np.abs((hidden.coef_ - fit.coef_) / fit.se_).max() < 1e-5


def test_a_model_that_reads_the_values_has_no_use_for_missing(lacking: hr.data.Table) -> None:
    with pytest.raises(FormulaInvalid, match="records that lack it are left out"):
        Design.of("died ~ marker + missing(marker)", lacking.schema)


def test_other_models_read_missing_too(frame: pd.DataFrame, lacking: hr.data.Table) -> None:
    federation = simulated(lacking)
    frame = frame.assign(absent=frame["marker"].isna().astype(int))
    fit = hr.stats.linear_regression(federation, "days ~ age + missing(marker)", errors="HC1")
    theirs = smf.ols("days ~ age + absent", frame).fit(cov_type="HC1")
    assert np.allclose(fit.se_, theirs.bse, rtol=1e-9)
    cox = hr.stats.cox(federation, "days + died ~ age + missing(marker)")
    assert cox.n_records == len(frame)
    derived = hr.stats.derive(lacking, absent="missing(marker)")
    assert derived.schema["absent"].kind == "binary"
    assert not derived.schema["absent"].optional
    assert derived["absent"].tolist() == frame["absent"].tolist()


# ---- curves and curvature -------------------------------------------------------------------------------------------
BOUNDED = "bs(age, knots=[40, 60], degree=3, lower_bound=18, upper_bound=90)"


def test_a_curve_is_the_contrast_of_rows_with_its_interval(frame: pd.DataFrame, table: hr.data.Table) -> None:
    fit = hr.stats.logistic_regression(simulated(table), "died ~ bs(age, [40, 60])*sex + days")
    made = patsy.dmatrix(f"{BOUNDED}*sex + days", frame)
    theirs = sm.Logit(frame["died"], made).fit(disp=0, tol=1e-10, method="newton")
    at = [18.0, 33.0, 54.0, 90.0]
    rows = [{"age": age, "sex": "m", "days": 7.0} for age in (*at, 50.0)]
    design = np.asarray(patsy.build_design_matrices([made.design_info], pd.DataFrame(rows))[0])
    expected = theirs.t_test(design[:-1] - design[-1])
    found = fit.curve("age", at, reference=50, given={"sex": "m"}).series[0]
    assert found.x == tuple(at)
    assert np.allclose(found.y, expected.effect, atol=1e-7)
    assert np.allclose(np.array([found.low, found.high]).T, expected.conf_int(), atol=1e-6)
    ratio = fit.curve("age", at, reference=50, given={"sex": "m"}, ratio=True)
    assert np.allclose(ratio.series[0].high, np.exp(found.high))
    assert (ratio.line, ratio.log, ratio.y_label) == (1.0, "y", "odds ratio")
    assert "at sex = m" in ratio.note
    assert "sex = f" in fit.curve("age").note


def test_a_curve_is_drawn_by_one_call_over_the_declared_range(table: hr.data.Table) -> None:
    federation = simulated(table)
    fit = hr.stats.cox(federation, "days + died ~ rcs(age, [30, 45, 60, 75]) + sex")
    asked = len(federation.ledger)
    line = fit.curve("age", ratio=True).series[0]
    assert (line.x[0], line.x[-1], line.y[30], line.low[30]) == (18.0, 90.0, 1.0, 1.0)
    assert "hazard ratio" in fit.plot_curve("age", ratio=True)._repr_svg_()
    assert len(federation.ledger) == asked


def test_curvature_of_b_splines_is_the_f_test_against_a_straight_line(frame: pd.DataFrame, table: hr.data.Table) -> None:
    fit = hr.stats.linear_regression(simulated(table), "days ~ sex + bs(age, [40, 60])")
    nested = [smf.ols(f"days ~ sex + {right}", frame).fit() for right in ("age", BOUNDED)]
    table_of = anova_lm(*nested)
    assert fit.curvature("age") == pytest.approx((table_of["F"][1], 4, table_of["Pr(>F)"][1]), rel=1e-7)


def test_curvature_of_restricted_splines_is_wald_of_all_but_the_first(table: hr.data.Table) -> None:
    fit = hr.stats.logistic_regression(simulated(table), f"died ~ {AGE}*sex")
    bent = [name for name in fit.names if "[2]" in name or "[3]" in name]
    assert len(bent) == 4
    assert fit.curvature("age") == pytest.approx(fit.wald(bent), rel=1e-9)
    assert fit.curvature("age")[2] < 0.01


def test_curves_that_cannot_be_drawn_are_refused(table: hr.data.Table) -> None:
    fit = hr.stats.linear_regression(simulated(table), "days ~ age + sex")
    with pytest.raises(SettingsInvalid, match="has no spline of 'age'"):
        fit.curvature("age")
    with pytest.raises(SettingsInvalid, match="no logarithms"):
        fit.curve("age", ratio=True)
    with pytest.raises(SettingsInvalid, match=r"age = 95 lies outside the declared range \[18, 90\]"):
        fit.curve("age", [95])
    with pytest.raises(SettingsInvalid, match="is a category"):
        fit.curve("sex")
    with pytest.raises(MissingColumn, match="reads no column 'ages'"):
        fit.curve("ages")
    with pytest.raises(SettingsInvalid, match="no level 'x'"):
        fit.curve("age", given={"sex": "x"})
    bare = hr.data.Table.from_frame(table.to_pandas(), target="died")
    fit = hr.stats.linear_regression(simulated(bare), "days ~ rcs(age, [30, 50, 70])")
    with pytest.raises(SettingsInvalid, match="no declared range"):
        fit.curve("age")
    assert fit.curve("age", [30, 60], reference=40).series[0].x == (30.0, 60.0)


# ---- knots ----------------------------------------------------------------------------------------------------------
def test_knots_are_harrells_quantiles_rounded(frame: pd.DataFrame, table: hr.data.Table) -> None:
    federation = simulated(table)
    knots = hr.stats.knots_of(federation, "age", 5, step=2.5)
    exact = np.quantile(frame["age"], [0.05, 0.275, 0.5, 0.725, 0.95], method="inverted_cdf")
    assert np.abs(np.array(knots) - exact).max() <= 2.5 / 2 + 2.5 / 8
    assert all(knot % 2.5 == 0 for knot in knots)
    assert len(federation.ledger) == 8  # halvings of 72 years until an eighth of the step
    assert Design.of(f"died ~ rcs(age, {list(knots)})", table.schema).size == 5
    with pytest.raises(SettingsInvalid, match="fall on"):
        hr.stats.knots_of(federation, "age", 7, step=30)
    with pytest.raises(SettingsInvalid, match="n=2 knots"):
        hr.stats.knots_of(federation, "age", 2)
