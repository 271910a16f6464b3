"""Counts, means, histograms, cross tables and survival as programs of study files."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency
from statsmodels.duration.survfunc import SurvfuncRight

from hedgerow.errors import StudyInvalid
from hedgerow.stats.sparse import sparse
from hedgerow.store import last
from hedgerow.study import parse, rehearse, run_study
from hedgerow.study.build import build

CASES = {
    "means": {"columns": ["age", "died"]},
    "counts": {"columns": ["arm", "died"]},
    "histogram": {"column": "age", "edges": [18, 40, 60, 90]},
    "contingency": {"rows": "arm", "columns": "died"},
    "survival_counts": {"time": "months", "event": "died", "times": [6, 12, 24, 36], "group": "arm"},
}
HIDDEN = {"protection": {"aggregation": {"by": "additive", "records": 400}}}
NOISY = {"protection": {"mechanism": {"law": "laplace", "noise_multiplier": 3.0}}}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    columns = {
        "age": rng.integers(18, 91, 400),
        "arm": rng.choice(["drug", "placebo"], 400),
        "months": rng.integers(1, 49, 400),
    }
    return pd.DataFrame(columns | {"died": rng.integers(0, 2, 400)})


@pytest.fixture
def study(frame, tmp_path):
    """Makes studies of one CSV file of a trial."""
    frame.to_csv(tmp_path / "trial.csv", index=False)

    def make(name, sections=None, **program):
        data = {"path": str(tmp_path / "trial.csv"), "ranges": {"age": [18, 90], "months": [0, 60]}}
        data["columns"] = {"arm": {"levels": ["drug", "placebo"]}, "died": {"kind": "binary"}}
        whole = {"name": "small", "data": data, "partition": {"by": "iid", "parties": 4}, "baselines": False}
        return parse(whole | {"program": {"name": name, **CASES[name], **program}} | (sections or {}))

    return make


def outcome(study):
    built = build(study)
    state = last(built.listing.program(built.settings)(built.federation))
    return built.listing.outcome(built.federation, built.settings, state)


def test_a_cross_table_comes_with_pearsons_test(study, frame):
    found, cross = outcome(study("contingency")), pd.crosstab(frame["arm"], frame["died"])
    np.testing.assert_array_equal(found.tables["arm by died"][["0", "1"]], cross)
    expected = chi2_contingency(cross, correction=False)
    assert (found.metrics["chi-square"], found.metrics["p"]) == pytest.approx((expected.statistic, expected.pvalue))


def test_a_histogram_is_that_of_numpy(study, frame):
    found = outcome(study("histogram")).tables["Histogram of age"]
    np.testing.assert_array_equal(found["count"], np.histogram(frame["age"], [18, 40, 60, 90])[0])
    assert found["share"].sum() == pytest.approx(1)


def test_means_are_those_of_pandas(study, frame):
    found = outcome(study("means")).tables["Means"].set_index("column")
    np.testing.assert_allclose(found["mean"], frame[["age", "died"]].mean(), rtol=1e-13)
    assert (found["n"] == 400).all()


def test_survival_is_that_of_statsmodels_and_has_a_figure(study, frame):
    found = outcome(study("survival_counts", {"protection": {"disclosure": 1.0}}, times=list(range(1, 49))))
    drug = found.tables["Survival"].query("arm == 'drug'").set_index("time")
    expected = SurvfuncRight(*(frame.query("arm == 'drug'")[name] for name in ("months", "died")))
    np.testing.assert_allclose(drug.loc[expected.surv_times, "survival"], expected.surv_prob, rtol=1e-12)
    assert [series.name for series in found.curves[0].series] == ["drug", "placebo"]
    assert found.curves[0].series[0].y[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_one_runs_in_the_open_behind_hidden_rows_and_through_noise(name, study, tmp_path):
    plain = run_study(study(name), tmp_path / "plain")
    assert (plain.folder / "coefficients.csv").exists()
    for title, table in outcome(study(name)).tables.items():
        hidden = outcome(study(name, HIDDEN)).tables[title].select_dtypes("number")
        np.testing.assert_allclose(hidden, table[hidden.columns], atol=1e-4)
    budget = {"budget": {"epsilon": 9.0, "delta": 1e-6, "unit": "record"}}
    noisy = run_study(study(name, NOISY | budget), tmp_path / "noisy")
    assert noisy.run.stopped == "finished"
    assert noisy.outcome.tables


@pytest.mark.parametrize("name", CASES)
def test_a_rehearsal_asks_one_question_with_a_bound(name, study):
    entry = rehearse(study(name, NOISY)).entries[0]
    assert len(rehearse(study(name, NOISY)).entries) == 1
    assert "per record" in entry.bound


def test_through_noise_there_is_no_test_and_no_interval(study):
    assert not outcome(study("contingency", NOISY)).metrics
    assert "low" not in outcome(study("survival_counts", NOISY)).tables["Survival"]


# ---- sparse cells ---------------------------------------------------------------------------------------------------
def test_sparse_cells_are_printed_as_such_and_zero_is_zero():
    table = pd.DataFrame({"level": list("abc"), "count": [0.0, 3.0, 7.0], "share": [0, 0.3, 0.7]})
    found = sparse(table, 5, ["count"], beside=["share"])
    assert found["count"].tolist() == [0, "< 5", 7]
    assert found["share"].tolist() == [0, None, 0.7]
    assert sparse(table, 0, ["count"]) is table


def test_rows_with_few_at_risk_are_left_empty(study):
    found = outcome(study("survival_counts", times=[12, 47, 48], least=20)).tables["Survival"]
    late = found[found["at risk"] == "< 20"]
    assert len(late) > 0
    assert late[["events", "survival", "low", "if censored first"]].isna().all(axis=None)


def test_least_changes_nothing_that_is_asked(study):
    texts = [str(rehearse(study("counts", least=least)).entries) for least in (0, 10)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("counts", {"least": -1}), ("survival_counts", {"interval": "wide"}), ("survival_counts", {"level": 1.0})],
)
def test_wrong_settings_are_refused(name, wrong, study):
    with pytest.raises(StudyInvalid, match=f"HR-101[\\s\\S]*{next(iter(wrong))}"):
        build(study(name, **wrong))
