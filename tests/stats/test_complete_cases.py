"""Complete cases are those of the model: every fit equals statsmodels with `missing="drop"` on the same formula."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy import log  # patsy finds it here  # noqa: F401
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.data import read
from hedgerow.data.cases import cases_of
from hedgerow.errors import NotFinite

FOLDER = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data") / "tabular"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")


def fertility() -> pd.DataFrame:
    """Births by country (World Bank, with statsmodels): 219 records, and a year of which nothing is known."""
    found = sm.datasets.fertility.load_pandas().data
    return found[["1960", "1970", "1980", "1990", "2000", "2011", "2012"]].add_prefix("y")


def diabetic() -> pd.DataFrame:
    """Hospital stays (Strack et al. 2014): `weight` is known of 3 % of them."""
    kept = ["race", "gender", "time_in_hospital", "num_medications", "number_inpatient", "medical_specialty", "weight"]
    found = pd.read_csv(FOLDER / "diabetic_data.csv.gz", na_values=["?"], usecols=[*kept, "readmitted"], nrows=5000)
    return found.assign(again=(found.readmitted != "NO").astype(float))


def adult() -> pd.DataFrame:
    """Census records (Kohavi & Becker 1996): workclass and occupation lack values."""
    names = [
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "years",
        "marital",
        "occupation",
        "relationship",
        "race",
        "sex",
        "gain",
        "loss",
        "hours",
        "country",
        "income",
    ]
    found = pd.read_csv(FOLDER / "adult.data.gz", names=names, na_values=["?"], skipinitialspace=True, nrows=4000)
    return found.assign(rich=(found.income == ">50K").astype(float))[["age", "years", "hours", "occupation", "sex", "rich"]]


def loans() -> pd.DataFrame:
    """Loans (Lending Club, 2007 to 2011): months since events that most have not had."""
    kept = ["loan_amnt", "annual_inc", "dti", "inq_last_6mths", "mths_since_last_delinq", "mths_since_last_record"]
    return pd.read_csv(FOLDER / "lendingclub_2007_2011.csv.gz", usecols=kept, nrows=6000)


def hospitals(frame: pd.DataFrame, folder: Path, **declared: Any) -> hr.Federation:
    """Four parties that hold the records of a file with gaps."""
    frame.to_csv(folder / "records.csv", index=False)
    table = read(folder / "records.csv", missing="drop", declared=declared)
    return hr.simulate(table, hr.data.iid(parties=4), seed=1)


def compare(fit: Any, reference: Any, tolerance: float = 1e-10) -> None:
    """Coefficients, errors and the number of records, by name."""
    order = [list(reference.params.index).index(name) for name in fit.names]
    assert_allclose(fit.coef_, reference.params.to_numpy()[order], rtol=tolerance, atol=tolerance)
    assert_allclose(fit.se_, reference.bse.to_numpy()[order], rtol=1e-8, atol=tolerance)
    assert fit.n_records == reference.nobs


def precise(model: Any) -> Any:
    """A likelihood's maximum to the last digits."""
    return model.fit(method="newton", disp=0, tol=1e-10, maxiter=100)


def test_a_linear_regression_of_births_reads_the_countries_that_have_its_years(tmp_path: Path) -> None:
    frame, formula = fertility(), "y2000 ~ log(y1960) + y1980 + I(y1970 / y1990)"
    fit = hr.stats.linear_regression(hospitals(frame, tmp_path), formula)
    compare(fit, smf.ols(formula, frame, missing="drop").fit())
    assert frame.dropna().empty  # a year that the model does not read is missing everywhere
    assert f"complete {fit.n_records:.0f} of {len(frame)}" in fit.summary()


@needs_data
def test_a_linear_regression_of_loans_reads_the_records_that_have_its_columns(tmp_path: Path) -> None:
    frame, formula = loans(), "loan_amnt ~ log(annual_inc) + dti + mths_since_last_delinq:dti + inq_last_6mths"
    fit = hr.stats.linear_regression(hospitals(frame, tmp_path), formula)
    compare(fit, smf.ols(formula, frame, missing="drop").fit(), 1e-9)
    assert fit.cases is not None
    lost = frame[["loan_amnt", "annual_inc", "dti", "inq_last_6mths", "mths_since_last_delinq"]].isna()
    assert fit.cases.left_out == lost.any(axis=1).sum() > 1000
    assert dict(zip(fit.cases.optional, fit.cases.each, strict=True)) == lost.sum().astype(float).to_dict()
    assert sum(fit.cases.counts) == len(frame)


@needs_data
@pytest.mark.parametrize("source", [adult, diabetic])
def test_a_logistic_regression_is_that_of_statsmodels(tmp_path: Path, source: Any) -> None:
    formula = {
        adult: "rich ~ age + log(hours) + sex * years + C(occupation)",
        diabetic: "again ~ race + gender + time_in_hospital + I(num_medications > 10)",
    }[source]
    frame = source()
    if source is adult:
        frame = frame[~frame.occupation.isin(["Armed-Forces", "Priv-house-serv"])]
    else:
        frame = frame[frame.gender.isin(["Female", "Male"])]
    fit = hr.stats.logistic_regression(hospitals(frame, tmp_path), formula)
    reference = precise(smf.logit(formula, frame, missing="drop"))
    named = reference.params.rename(lambda name: name.replace("I(num_medications > 10)[T.True]", "I(num_medications > 10)"))
    order = [list(named.index).index(name) for name in fit.names]
    assert_allclose(fit.coef_, named.to_numpy()[order], rtol=1e-10, atol=1e-10)
    assert fit.n_records == reference.nobs < len(frame)


@needs_data
def test_a_poisson_regression_and_a_multinomial_one_are_those_of_statsmodels(tmp_path: Path) -> None:
    frame = diabetic()
    federation = hospitals(frame, tmp_path)
    formula = "number_inpatient ~ race + time_in_hospital + log(num_medications)"
    compare(hr.stats.poisson_regression(federation, formula), precise(smf.poisson(formula, frame, missing="drop")))
    right = "~ race + time_in_hospital"
    fit = hr.stats.multinomial_regression(federation, "readmitted " + right)
    codes = frame.assign(code=frame.readmitted.map({word: i for i, word in enumerate(fit.levels)}))
    reference = precise(smf.mnlogit("code " + right, codes, missing="drop"))
    order = [list(reference.params.index).index(name) for name in fit.spec.names]
    assert_allclose(fit.coef_, reference.params.to_numpy()[order].T, rtol=1e-10, atol=1e-10)
    assert fit.n_records == reference.nobs == frame.race.notna().sum()


@needs_data
def test_a_model_does_not_lose_records_to_a_column_that_it_does_not_read(tmp_path: Path) -> None:
    """The trial of the notes: with `weight` in the table, none of 5000 records was left."""
    federation = hospitals(diabetic(), tmp_path)
    assert hr.stats.linear_regression(federation, "time_in_hospital ~ num_medications").n_records == 5000


def test_weights_and_offsets_that_are_missing_leave_a_record_out(tmp_path: Path) -> None:
    frame = fertility().assign(w=np.where(np.arange(219) % 7 == 0, np.nan, 1 + np.arange(219) % 3))
    federation = hospitals(frame, tmp_path, w={"kind": "integer"})
    known = frame.dropna(subset=["y2000", "y1990", "y1980", "w"])
    fit = hr.stats.linear_regression(federation, "y2000 ~ y1990", offset="y1980", weights="w")
    reference = smf.wls("I(y2000 - y1980) ~ y1990", known, weights=known.w).fit()
    assert_allclose(fit.coef_, reference.params, rtol=1e-10)
    assert fit.n_records == known.w.sum()


def test_moments_correlations_and_quantiles_are_those_of_pandas(tmp_path: Path) -> None:
    frame = fertility()
    federation = hospitals(frame, tmp_path)
    names = ["y1960", "y2011"]
    known = frame[names].dropna()
    found = hr.stats.moments(federation, names)
    assert found.n == len(known) < frame.y2011.count()
    assert_allclose(found.mean, known.mean(), rtol=1e-12)
    assert_allclose(found.sd, known.std(), rtol=1e-10)
    assert_allclose(hr.stats.correlation(federation, names), known.corr(), rtol=1e-10)
    assert_allclose(hr.stats.means(federation, ["y1960"]), frame[["y1960"]].mean(), rtol=1e-12)
    median = hr.stats.quantiles(federation, "y1960", [0.5], low=0, high=10, tol=1e-9)
    assert_allclose(median, np.quantile(frame.y1960.dropna(), 0.5, method="inverted_cdf"), atol=1e-8)
    bins = hr.stats.histogram(federation, "y1960", [0, 3, 5, 10])
    assert bins["count"].tolist() == np.histogram(frame.y1960.dropna(), [0, 3, 5, 10])[0].tolist()


@needs_data
def test_counts_are_of_the_records_that_have_each_column_and_pairs_of_those_that_have_both(tmp_path: Path) -> None:
    frame = diabetic()
    federation = hospitals(frame, tmp_path)
    found = hr.stats.counts(federation, ["race", "weight"])["count"]
    assert found["race"].to_dict() == frame.race.value_counts().to_dict()
    assert found["weight"].to_dict() == frame.weight.value_counts().to_dict()
    pairs = hr.stats.contingency(federation, "race", "medical_specialty")
    wanted = pd.crosstab(frame.race, frame.medical_specialty)
    assert_allclose(pairs.loc[wanted.index, wanted.columns], wanted)
    assert pairs.to_numpy().sum() == wanted.to_numpy().sum()


def test_survival_is_of_the_records_whose_time_event_and_group_are_known(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"t": rng.integers(1, 9, 300).astype(float), "died": rng.integers(0, 2, 300).astype(float)})
    frame["arm"] = rng.choice(["a", "b"], 300)
    for name in frame:
        frame.loc[rng.choice(300, 20, replace=False), name] = np.nan
    frame.loc[frame.arm.isna(), "arm"] = None
    known = frame.dropna()
    found = hr.stats.survival_counts(hospitals(frame, tmp_path), "t", "died", range(1, 9), group="arm")
    for arm, part in known.groupby("arm"):
        rows = found[found["arm"] == arm].set_index("time")
        assert_allclose(rows["events"], [(part.t[part.died == 1] == t).sum() for t in range(1, 9)])
        assert_allclose(rows["at risk"], [(part.t >= t).sum() for t in range(1, 9)])
        reference = sm.SurvfuncRight(part.t, part.died)
        assert_allclose(rows["survival"].loc[reference.surv_times], reference.surv_prob, rtol=1e-12)


def dense(frame: pd.DataFrame, names: list[str], folder: Path) -> hr.Federation:
    """The same parties, without the records that lack one of these columns."""
    gaps = hospitals(frame, folder)
    assert gaps.schema is not None
    known = frame[names].dropna()
    return hr.simulate(hr.data.Table.from_pandas(known), hr.data.iid(parties=4), seed=1)


METHODS = {
    "gamma": lambda f: hr.stats.gamma_regression(f, "y2000 ~ y1990").coef_,
    "negative binomial": lambda f: hr.stats.negative_binomial_regression(f, "births ~ y1990").coef_,
    "penalised": lambda f: hr.stats.penalised_regression(f, "y2000 ~ y1990 + y1980", penalty=0.01).coef_,
    "huber": lambda f: hr.stats.huber_regression(f, "y2000 ~ y1990").coef_,
    "quantile": lambda f: hr.stats.quantile_regression(f, "y2000 ~ y1990", share=0.5).coef_,
    "svm": lambda f: hr.stats.svm(f, "high ~ y1990 + y1980").coef_,
    "firth": lambda f: hr.stats.logistic_regression(f, "high ~ y1990", firth=True).coef_,
    "standardised": lambda f: hr.stats.linear_regression(hr.stats.standardise(f, ["y1990"]), "y2000 ~ y1990").r_squared,
    "odds ratios": lambda f: hr.stats.odds_ratio_table(f, "high ~ y1990 + low").to_numpy(),
}


READS = {
    "negative binomial": ["births", "y1990"],
    "penalised": ["y2000", "y1990", "y1980"],
    "svm": ["high", "y1990", "y1980"],
    "firth": ["high", "y1990"],
    "odds ratios": ["high", "y1990", "low"],
}


@pytest.mark.parametrize("method", METHODS)
def test_every_regression_reads_complete_cases(tmp_path: Path, method: str) -> None:
    frame = fertility()
    rng = np.random.default_rng(0)
    frame["births"] = np.where(frame.y2000.isna(), np.nan, rng.negative_binomial(2, 0.3, len(frame)))
    frame["high"] = np.where(frame.y2000.isna(), np.nan, frame.y2000 + rng.normal(size=len(frame)) > 3)
    frame["low"] = np.where(frame.y1960.isna(), np.nan, frame.y1960 + rng.normal(size=len(frame)) < 5)
    names = READS.get(method, ["y2000", "y1990"])
    found = METHODS[method](hospitals(frame, tmp_path))
    wanted = METHODS[method](dense(frame, names, tmp_path))
    assert_allclose(found, wanted, rtol=1e-4 if method in ("svm", "quantile") else 1e-7, atol=1e-6)


def test_metrics_of_a_fit_are_of_its_complete_cases(tmp_path: Path) -> None:
    frame = fertility()
    federation = hospitals(frame, tmp_path)
    fit = hr.stats.linear_regression(federation, "y2000 ~ y1990")
    found = hr.stats.linear_metrics(federation, fit)
    assert found.n == fit.n_records
    assert_allclose(found.r_squared, fit.r_squared, rtol=1e-9)


def test_how_many_are_left_out_is_asked_once_for_each_set_of_columns(tmp_path: Path) -> None:
    federation = hospitals(fertility(), tmp_path)
    for _ in range(2):
        hr.stats.linear_regression(federation, "y2000 ~ y1990")
    hr.stats.moments(federation, ["y1990", "y2000"])  # the same columns
    asked = [entry.query for entry in federation.ledger.entries]
    assert asked.count("hedgerow.data.cases:cases") == 1
    hr.stats.moments(federation, ["y1990"])
    assert [entry.query for entry in federation.ledger.entries].count("hedgerow.data.cases:cases") == 2
    found = cases_of(federation, ["y1990"])
    assert found is not None
    assert found.complete == fertility().y1990.count()


def test_a_model_without_a_complete_record_is_refused_with_the_column_that_is_missing(tmp_path: Path) -> None:
    frame = fertility()[["y1960", "y2000"]].assign(empty=np.nan)
    with pytest.raises(NotFinite, match="no record has all of y1960, empty; empty is missing most often"):
        hr.stats.moments(hospitals(frame, tmp_path), ["y1960", "empty"])
