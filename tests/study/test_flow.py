"""Records left out in a study: a table in the report, baselines on the same records, counts that tell of nobody elsewhere."""

import json

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.core.party import Parties
from hedgerow.data import Column, Schema, read
from hedgerow.data.cases import whole_cases
from hedgerow.engines import InProcess
from hedgerow.errors import SchemaInvalid, StudyInvalid
from hedgerow.network.station.policy import admit_columns
from hedgerow.study import build_remote, rehearse
from hedgerow.study import run_study as run
from hedgerow.study.build import build
from hedgerow.study.flow import flow_of, records_left_out
from hedgerow.study.remote import same_columns
from hedgerow.study.study import parse

FORMULA = "y ~ x + C(ward)"


@pytest.fixture
def frame():
    """300 patients, of which a few lack x, more lack the ward, and most lack what no model reads."""
    rng = np.random.default_rng(5)
    made = pd.DataFrame({"x": rng.normal(size=300), "ward": rng.choice(["east", "west"], 300), "unread": rng.normal(size=300)})
    made["y"] = made.x + (made.ward == "west") + rng.normal(size=300)
    for name, few in (("x", 12), ("ward", 31), ("unread", 280)):
        made.loc[rng.choice(300, few, replace=False), name] = np.nan
    return made.astype({"ward": object}).where(made.notna(), None)


def study(folder, frame, **sections):
    frame.to_csv(folder / "patients.csv", index=False)
    made = {
        "name": "gaps",
        "data": {"path": str(folder / "patients.csv"), "target": "y", "missing": "drop"},
        "partition": {"by": "iid", "parties": 3},
        "program": {"name": "linear_regression", "formula": FORMULA},
    }
    return parse(made | sections)


def tables(result):
    return {grid.title: grid for grid in result.report.tables}


@pytest.mark.slow
def test_the_report_says_how_many_records_are_left_out_why_and_where(tmp_path, frame):
    result = run(study(tmp_path, frame), tmp_path / "run")
    lost = frame[["x", "ward", "y"]].isna()
    flow = tables(result)["Records left out"]
    counts = {which: (first, each) for _, which, first, each in flow.rows}
    assert counts["at the parties"][0] == 300
    assert counts["complete"][0] == (~lost.any(axis=1)).sum()
    assert counts["left out"][0] == lost.any(axis=1).sum()
    assert counts["lack x"] == (12, 12)
    assert counts["lack ward"] == ((lost.ward & ~lost.x).sum(), 31)
    by_party = tables(result)["Complete records by party"]
    assert sum(row[1] for row in by_party.rows) == 300
    assert sum(row[2] for row in by_party.rows) == counts["complete"][0]
    assert "Records left out" in (tmp_path / "run" / "report.html").read_text()
    assert "Records left out" in json.dumps(json.loads((tmp_path / "run" / "result.json").read_text()))


@pytest.mark.parametrize(
    ("lacking_x", "lacking_ward", "lost", "left"),
    [
        (2, 20, (("x or ward not recorded", 22),), 278),
        (12, 20, (("ward not recorded", 20), ("x not recorded", 12)), 268),
        (0, 3, (("ward not recorded", "below 5"),), "about 295"),
    ],
)
def test_a_page_never_shows_that_few_records_lack_a_value(tmp_path, frame, lacking_x, lacking_ward, lost, left):
    whole = frame.assign(x=1.0 + np.arange(300) % 7, ward=["east", "west"] * 150)
    whole.loc[range(lacking_x), "x"] = np.nan
    whole.loc[range(100, 100 + lacking_ward), "ward"] = None
    built = build(study(tmp_path, whole))
    hr.stats.linear_regression(built.federation, FORMULA)
    (flow,) = flow_of(built, {})
    assert sorted(flow.steps[-2].lost) == sorted(lost)
    assert flow.steps[-1].count == left


@pytest.mark.slow
def test_baselines_read_the_same_complete_cases(tmp_path, frame):
    result = run(study(tmp_path, frame), tmp_path / "run")
    scores = {name: value for name, value, _ in result.report.comparison.rows}
    assert scores["federated"] == pytest.approx(scores["centralised"], abs=1e-12)
    complete = frame[["x", "ward", "y"]].notna().all(axis=1).sum()
    assert f"all {complete} records of the parties that lack no value" in result.report.comparison.sentence
    assert sum(row[1] for row in result.report.parties.rows) == complete


@pytest.mark.slow
def test_a_test_table_with_gaps_is_measured_on_its_complete_records(tmp_path, frame):
    program = {"name": "fedavg", "model": "linear", "rounds": 2, "learning_rate": 0.01}
    data = {"path": str(tmp_path / "patients.csv"), "target": "y", "missing": "drop", "features": ["x", "ward"]}
    made = study(tmp_path, frame, program=program, data=data, evaluation={"holdout": 0.3}, baselines=False)
    result = run(made, tmp_path / "run")
    assert all(np.isfinite(value) for _, value in result.report.metrics)
    assert tables(result)["Records left out"].rows[0][0] == "x, ward, y"


@pytest.mark.slow
def test_a_resumed_run_knows_what_was_asked_before(tmp_path, frame):
    data = {"path": str(tmp_path / "patients.csv"), "target": "y", "missing": "drop", "features": ["x", "ward"]}
    program = {"name": "fedavg", "model": "linear", "rounds": 3, "learning_rate": 0.01}
    made = study(tmp_path, frame, program=program, data=data, baselines=False)
    whole = run(made, tmp_path / "whole")

    class Stopped(Exception):
        pass

    def stop(progress):
        if progress.round == 1:
            raise Stopped

    with pytest.raises(Stopped):
        run(made, tmp_path / "run", on_progress=stop)
    resumed = run(made, tmp_path / "run", resume=True)
    assert tables(resumed)["Records left out"].rows == tables(whole)["Records left out"].rows
    asked = [json.loads(line) for line in (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()]
    assert sum("cases:cases" in str(entry) for entry in asked) == 1


@pytest.mark.slow
def test_a_rehearsal_announces_the_question(tmp_path, frame):
    asked = [entry.query for entry in rehearse(study(tmp_path, frame)).entries]
    assert asked[0] == "hedgerow.data.cases:cases"
    complete = study(tmp_path, frame.dropna(), data={"path": str(tmp_path / "patients.csv"), "target": "y"})
    assert "hedgerow.data.cases:cases" not in [entry.query for entry in rehearse(complete).entries]


@pytest.mark.slow
def test_a_partition_by_labels_keeps_records_without_one_and_one_by_a_column_refuses_them(tmp_path, frame):
    built = build(study(tmp_path, frame, partition={"by": "dirichlet_labels", "parties": 3, "alpha": 5.0}))
    assert sum(map(len, built.partition.indices)) == 300
    by_ward = {"path": str(tmp_path / "patients.csv"), "target": "ward", "missing": "drop"}
    made = build(study(tmp_path, frame, data=by_ward))
    assert made.partition.heat.columns == ("east", "west", "missing")
    assert made.partition.heat.counts[:, 2].sum() == 31
    with pytest.raises(hr.errors.PartitionInvalid, match="31 of 300 records lack 'ward'"):
        build(study(tmp_path, frame, partition={"by": "by_column", "column": "ward"}))


# ---- records elsewhere ----------------------------------------------------------------------------------------------
def elsewhere(folder, frame, formula=FORMULA):
    """The same study, whose records are at two parties of which the server holds nothing."""
    asked = study(folder, frame, program={"name": "linear_regression", "formula": formula})
    table = read(folder / "patients.csv", missing="drop", target="y")
    held = Parties(("north", "south"), table.columns, [140, 160])
    made = build_remote(asked, table.schema, InProcess().hosting(held))
    return asked, made


@pytest.mark.slow
def test_counts_of_records_elsewhere_are_rounded_so_that_nested_models_tell_of_nobody(tmp_path, frame):
    asked, _ = elsewhere(tmp_path, frame)
    shown = {}
    for formula in (FORMULA, "y ~ x"):
        result = run(
            asked, tmp_path / formula[4:6], make=lambda study, *_, formula=formula: elsewhere(tmp_path, frame, formula)[1]
        )
        rows = tables(result)["Records left out"].rows
        shown[formula] = {which: first for _, which, first, _ in rows}
        assert all(count % 5 == 0 for row in rows for count in row[2:] if count is not None)
        assert "Complete records by party" not in tables(result)
        summary = dict(result.report.text)["Summary"]
        assert "complete about" in summary
        exact = len(frame[["x", "ward", "y"] if "ward" in formula else ["x", "y"]].dropna())
        assert exact % 5
        assert str(exact) not in summary.partition("log-likelihood")[0]
    assert shown["y ~ x"]["complete"] == 290  # 288
    assert shown["y ~ x"]["at the parties"] == 300


def test_stations_agree_though_values_are_missing_at_one_of_them_only():
    age = Column("age", "number", low=0, high=120)
    lacking = Column("age", "number", low=0, high=120, optional=True)
    agreed = same_columns({"north": Schema((age,)), "south": Schema((lacking,))}, ("age",))
    assert agreed["age"] == lacking
    assert admit_columns(("age",), Schema((age,)), (lacking,)) == Schema((lacking,))
    assert admit_columns(("age",), Schema((lacking,)), (lacking,)) == Schema((lacking,))
    with pytest.raises(SchemaInvalid, match="HR-409"):
        admit_columns(("age",), Schema((lacking,)), (age,))  # nobody would leave those records out
    with pytest.raises(StudyInvalid, match="differently"):
        same_columns(
            {"north": Schema((age,)), "south": Schema((Column("age", "number", low=0, high=90, optional=True),))}, ("age",)
        )


def test_the_table_of_a_run_without_gaps_is_empty(tmp_path, frame):
    frame.dropna().to_csv(tmp_path / "patients.csv", index=False)
    made = parse(
        {
            "name": "whole",
            "data": {"path": str(tmp_path / "patients.csv"), "target": "y"},
            "partition": {"by": "iid", "parties": 2},
            "program": {"name": "moments", "columns": ["x"]},
        }
    )
    assert records_left_out(build(made)) == ()
    assert len(whole_cases(build(made).table, ["x"])) == len(frame.dropna())
