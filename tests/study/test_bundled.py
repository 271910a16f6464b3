"""The bundled studies: equal to trusted implementations, stopped by their budget, explained by their report."""

import itertools
import os
from functools import cache
from pathlib import Path

import dp_accounting
import numpy as np
import pandas
import pytest
import sklearn.metrics
import statsmodels.api as sm
from dp_accounting import pld

import hedgerow as hr
from hedgerow.compare import cells
from hedgerow.data import partitioner
from hedgerow.data.sets_bundled import BUNDLED
from hedgerow.study import PROGRAMS, bundled, load, rehearse, run_study
from hedgerow.study.keys import settings_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    finished = {}

    def once(name):
        if name not in finished:
            finished[name] = run_study(load(name), tmp_path_factory.mktemp("runs") / name)
        return finished[name]

    return once


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_breast_cancer_glm_is_the_pooled_logit(run):
    result = run("breast-cancer-glm")
    frame, table = result.outcome.coefficients, hr.data.load("breast_cancer").to_pandas()
    table["smoothness"] = 100 * table["mean_smoothness"]
    columns = ["mean_radius", "mean_texture", "smoothness"]
    pooled = sm.Logit(table["malignant"], sm.add_constant(table[columns])).fit(disp=0, method="newton", tol=1e-10, maxiter=100)
    close(frame["coef"], pooled.params)
    close(frame["se"], pooled.bse)
    close(frame["p"], pooled.pvalues)
    close(frame[["low", "high"]], pooled.conf_int())
    close(frame["odds ratio"][1:], np.exp(pooled.params)[1:])
    assert frame["odds ratio"].iloc[1:].max() < 10  # units in which odds ratios can be read
    close(result.outcome.metrics["log-likelihood"], pooled.llf)
    assert result.run.state.round < 10


def test_hie_visits_is_the_pooled_least_squares(run):
    result = run("hie-visits")
    frame, table = result.outcome.coefficients, hr.data.load("hie").to_pandas().astype(float)
    pooled = sm.OLS(table["mdvis"], sm.add_constant(table.drop(columns="mdvis"))).fit()
    close(frame["coef"], pooled.params)
    close(frame["se"], pooled.bse)
    close(frame["p"], pooled.pvalues)
    close(frame[["low", "high"]], pooled.conf_int())
    close(result.outcome.metrics["R2"], pooled.rsquared)
    close(result.outcome.metrics["log-likelihood"], pooled.llf)


@pytest.mark.slow
def test_digits_fedavg_stops_by_budget_as_rehearsed_and_costs_what_dp_accounting_says(run):
    result, rehearsed = run("digits-fedavg"), rehearse(load("digits-fedavg"))
    rounds = result.run.state.round
    assert result.run.stopped == "budget"
    assert f"stops after {rounds} rounds" in rehearsed.ended
    step = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(2.0))

    @cache
    def epsilon(n):
        accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
        return accountant.compose(step, n).get_epsilon(1e-3)

    assert rehearsed.statement.epsilon == pytest.approx(epsilon(rounds), rel=1e-9)
    assert f"Epsilon {epsilon(rounds):.4g} of a budget of 8" in result.report.privacy
    assert epsilon(rounds) <= 8 < epsilon(rounds + 1)
    scores = {name: value for name, value, _ in result.report.comparison.rows}
    assert scores["centralised"] > scores["federated"] > 0.85 > scores["local only"]


def test_diabetes_tree_equals_the_tree_of_the_pooled_records(run):
    scores = {name: value for name, value, _ in run("diabetes-tree").report.comparison.rows}
    assert scores["federated"] == pytest.approx(scores["centralised"], abs=1e-12)
    assert scores["federated"] > scores["local only"]


HERE = [name for name in bundled() if load(name).comparison is load(name).matrix is None and load(name).data.name in BUNDLED]
"""Single runs whose data come with a package."""

TABLES = [name for name in bundled() if load(name).comparison is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_every_cell_of_a_bundled_comparison_is_lawful_as_far_as_its_data_do_not_decide(name):
    study = load(name)
    for cell in [*cells(study), *(cells(study, quick=True) if study.comparison.quick else ())]:
        settings_of(PROGRAMS[cell.study.program.name], cell.study.program.model_extra)
        partitioner(cell.study.partition.by, **cell.study.partition.model_extra)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * ("digits" in name)) for name in HERE])
def test_every_bundled_study_writes_what_it_promises(run, name):
    result = run(name)
    written = {path.name for path in result.folder.iterdir()}
    assert {"report.html", "result.json", "ledger.jsonl", "study.toml", "rounds.jsonl"} <= written
    assert written & {"model.safetensors", "coefficients.csv"}
    assert load(result.folder / "study.toml").digest == load(name).digest
    questions = sum(times for _, times, *_ in result.report.left.rows)
    assert len((result.folder / "ledger.jsonl").read_text().splitlines()) == questions


def test_the_page_of_a_tree_numbers_its_nodes_and_says_things_once(run):
    report = run("diabetes-tree").report
    nodes = next(grid for grid in report.tables if grid.title == "Nodes")
    assert nodes.columns[0] == "node"
    assert [row[0] for row in nodes.rows] == list(range(len(nodes.rows)))
    assert [curve.title for curve in report.curves] == ["Test R2"]
    assert report.heat.sentence not in report.notes


# ---- pages of findings ----------------------------------------------------------------------------------------------
DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
def test_readmission_is_the_pooled_logit_and_tells_where_records_were_lost(tmp_path):
    result = run_study(load("readmission"), tmp_path / "run", data_dir=DATA)
    frame, table = result.outcome.coefficients, hr.data.load("first_stays", data_dir=DATA).to_pandas()
    kept = table[table["woman"].notna() & table["race"].notna()]
    site, race = (pandas.get_dummies(kept[name], drop_first=True, dtype=float) for name in ("specialty", "race"))
    measured = {"age10": kept["age"] / 10, "woman": kept["woman"], "earlier_stays": kept["earlier_stays"], "days": kept["days"]}
    columns = pandas.concat([pandas.DataFrame(measured | {"drugs10": kept["drugs"] / 10}), race, site], axis=1)
    pooled = sm.Logit(kept["readmitted"].astype(float), sm.add_constant(columns.astype(float))).fit(disp=0, tol=1e-10)
    for name in ("age10", "woman", "earlier_stays", "days", "drugs10"):
        close(frame.loc[name, "coef"], pooled.params[name])
        close(frame.loc[name, "se"], pooled.bse[name])
    report = result.report
    assert [one.value for one in report.headlines] == ["28\u202f652", "8.8%", "× 1.48", "0.62"]
    (flow,) = report.flows
    assert [step.count for step in flow.steps] == [71_518, 29_997, 29_414, 28_652]
    for before, after in itertools.pairwise(flow.steps):
        assert before.count - sum(count for _, count in before.lost) == after.count
    (forest,) = report.forests
    assert len(forest.rows) == 8
    assert "No sign that sites differ" in forest.sentence  # Q is 3.7 on 7 degrees of freedom
    assert "2.6%" in report.warnings[-1]
    area = sklearn.metrics.roc_auc_score(kept["readmitted"], pooled.predict())
    assert dict(report.metrics)["AUC"] == pytest.approx(area, abs=0.002)  # of bins


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heart-survival", "breast-survival"])
def test_pages_on_survival_have_the_hazard_ratios_of_statsmodels(name, tmp_path):
    if name == "breast-survival":
        pytest.importorskip("lifelines")  # brings the data
    study = load(name)
    report = run_study(study, tmp_path / "run").report
    table = hr.data.load(study.data.name)
    made = table.to_pandas().assign(site=0)
    for site, at in enumerate(partitioner("iid", parties=study.partition.parties)(table, 0).indices):
        made.iloc[at, made.columns.get_loc("site")] = site
    if name == "heart-survival":
        made = made.assign(age10=made["age"] / 10, ejection10=made["ejection_fraction"] / 10)
        columns = ["age10", "ejection10", "serum_creatinine", "anaemia", "high_blood_pressure"]
        time, event, place = "time", "death_event", 1
    else:
        made = made.assign(horth=made["horth"] == "yes", two=made["tgrade"] == "II", three=made["tgrade"] == "III")
        made = made.assign(size10=made["tsize"] / 10, receptor100=made["progrec"] / 100)
        columns = ["horth", "two", "three", "pnodes", "size10", "receptor100"]
        time, event, place = "time", "cens", 0
    told = {"status": made[event].to_numpy(), "strata": made["site"].to_numpy(), "ties": "efron"}
    fit = sm.PHReg(made[time].astype(float).to_numpy(), made[columns].astype(float).to_numpy(), **told).fit(disp=0)
    cox = next(grid for grid in report.tables if grid.columns[1] == "Hazard ratio")
    assert [row[1] for row in cox.rows] == [f"{ratio:.2f}" for ratio in np.exp(fit.params)]
    assert "hazard; 95%" in report.headlines[2].beneath
    assert cox.rows[place][0] == report.headlines[2].label


def test_insurance_weights_has_errors_that_hold_though_spread_grows(tmp_path):
    if not DATA.is_dir():
        pytest.skip("set HEDGEROW_DATA to the folder of public data sets")
    table = hr.data.load("insurance", data_dir=DATA).to_pandas()
    result = run_study(load("insurance-weights"), tmp_path / "run", data_dir=DATA)
    design = pandas.get_dummies(table[["smoker", "age", "bmi", "sex", "region"]], drop_first=True, dtype=float)
    pooled = sm.OLS(table["charges"], sm.add_constant(design.astype(float))).fit(cov_type="HC3")
    close(result.outcome.coefficients.loc["smoker", "se"], pooled.bse["smoker"])
