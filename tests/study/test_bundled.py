"""The bundled studies: equal to trusted implementations, stopped by their budget, explained by their report."""

from functools import cache

import dp_accounting
import numpy as np
import pytest
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
    columns = ["mean_radius", "mean_texture", "mean_smoothness"]
    pooled = sm.Logit(table["malignant"], sm.add_constant(table[columns])).fit(disp=0, method="newton", tol=1e-10, maxiter=100)
    close(frame["coef"], pooled.params)
    close(frame["se"], pooled.bse)
    close(frame["p"], pooled.pvalues)
    close(frame[["low", "high"]], pooled.conf_int())
    close(frame["odds ratio"][1:3], np.exp(pooled.params)[1:3])
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
