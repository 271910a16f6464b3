"""Comparisons and sweeps become cells; what is wrong with them is said before anything runs."""

import pytest
from comparing import TABLE, compared, study

from hedgerow.compare import cells, sweep
from hedgerow.compare import records as shared
from hedgerow.compare.run import check_cells
from hedgerow.errors import HedgerowError, StudyInvalid
from hedgerow.study import load, run_study
from hedgerow.study.build import build, records_of


def test_cells_are_rows_by_columns_each_a_study_of_its_own():
    found = cells(compared())
    assert [cell.folder for cell in found] == [
        *("IID--FedAvg", "IID--FedProx-mu=1", "few-labels--FedAvg", "few-labels--FedProx-mu=1")
    ]
    first, last = found[0].study, found[-1].study
    assert (first.partition.by, last.partition.by) == ("iid", "shards")
    assert "shards_per_party" not in first.partition.model_extra
    assert (first.program.name, last.program.name, last.program.model_extra["mu"]) == ("fedavg", "fedprox", 1.0)
    assert not any(cell.study.baselines or cell.study.comparison for cell in found)


def test_baselines_stay_where_the_study_asks_for_them():
    asked = load_of(compared(), baselines=True)
    assert all(cell.study.baselines for cell in cells(asked))


def load_of(made, **more):
    return made.model_validate(made.model_dump(exclude_unset=True) | more)


def test_quick_comes_after_rows_and_columns_and_the_command_line_has_the_last_word():
    rows = [{"name": "long", "set": {"program.rounds": 50}}]
    made = compared(rows=rows, published={}, source="")
    assert {cell.study.program.model_extra["rounds"] for cell in cells(made)} == {50}
    assert {cell.study.program.model_extra["rounds"] for cell in cells(made, quick=True)} == {2}
    last = cells(made, quick=True, changes=[("program.rounds", 9), ("title", "other"), ("comparison.take", "last")])
    assert {cell.study.program.model_extra["rounds"] for cell in last} == {9}


def test_a_quick_run_takes_the_rows_and_columns_that_are_named_and_one_seed():
    made = compared(quick_rows=["few labels"], quick_columns=["FedAvg"], seeds=2)
    assert [(cell.row, cell.column) for cell in cells(made, quick=True)] == [("few labels", "FedAvg")]
    assert len(cells(made)) == 8
    assert made.comparison.quickly.published == {}
    assert compared().digest == compared(quick_rows=[]).digest != made.digest


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quick_rows": ["IIDD"]}, "quick_rows names row 'IIDD', which is none"),
        ({"reference": "IID", "quick_rows": ["few labels"]}, "quick_rows leaves out the reference 'IID'"),
        ({"rows": []}, "rows"),
        ({"columns": []}, "columns"),
        ({"published": {"IIDD": {"FedAvg": 1.0}}}, "published names row 'IIDD', which is none. Did you mean 'IID'"),
        ({"published": {"IID": {"FedAvgg": 1.0}}}, "published names column 'FedAvgg', which is none. Did you mean 'FedAvg'"),
        ({"source": ""}, "need their source"),
        ({"measure": ""}, "target needs the measure"),
        ({"take": "rounds", "target": None}, "counts rounds until a target"),
        ({"take": "first"}, "best"),
        ({"rows": [{"name": "a b"}, {"name": "A-b"}], "published": {}}, "would share a folder"),
        ({"rows": [{"name": "/"}], "published": {}}, "holds no letter or digit"),
        ({"rows": [{"name": "a", "sett": {}}], "published": {}}, "Did you mean 'set'"),
        ({"colums": []}, "Did you mean 'columns'"),
    ],
    ids=lambda value: str(list(value)) if isinstance(value, dict) else "",
)
def test_a_table_that_contradicts_itself_is_refused(changes, said):
    with pytest.raises(StudyInvalid) as caught:
        compared(**changes)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([{"name": "FedAvg", "set": {"program.mu": 1.0}}], "in the run 'IID, FedAvg': the section [program]"),
        ([{"name": "x", "set": {"program.name": "fedavgg"}}], "in the run 'IID, x': no program 'fedavgg'"),
        ([{"name": "x", "set": {"program.learning_rat": 1}}], "Did you mean 'learning_rate'"),
        ([{"name": "ok"}, {"name": "x", "set": {"program.epochs": 0}}], "in the run 'IID, x'"),
        ([{"name": "x", "set": {"evaluation.every": 0}}], "in the run 'IID, x'"),
        ([{"name": "x", "set": {"partition.by": "stars"}}], "in the run 'IID, x'"),
    ],
)
def test_every_cell_is_checked_and_the_wrong_one_is_named(columns, said):
    made = compared(columns=columns, published={}, source="")
    with pytest.raises(HedgerowError) as caught:
        check_cells(made, cells(made), None)
    assert said in str(caught.value)
    assert "No party was asked" in str(caught.value)


def test_a_measure_that_no_run_has_is_refused_with_those_that_it_has():
    made = compared(measure="accuracy")
    with pytest.raises(StudyInvalid, match=r"'accuracy' is none of its metrics[\s\S]*Did you mean 'test accuracy'"):
        check_cells(made, cells(made), None)


def test_a_study_that_measures_nothing_cannot_be_compared():
    made = study(comparison={**TABLE, "target": None}, evaluation={"holdout": 0.0})
    with pytest.raises(StudyInvalid, match="nothing is measured"):
        check_cells(made, cells(made), None)


@pytest.mark.parametrize("name", ["breast-cancer-glm", "diabetes-tree", "hie-visits"])
def test_a_measure_may_be_one_that_a_run_has_at_its_end(name):
    section = {"rows": [{"name": "a"}], "columns": [{"name": "b"}], "measure": "nothing"}
    made = load_of(load(name), comparison=section)
    with pytest.raises(StudyInvalid, match=r"log-likelihood|R2"):
        check_cells(made, cells(made), None)


def test_quick_needs_to_be_said():
    with pytest.raises(StudyInvalid, match="does not say what a quick run changes"):
        cells(compared(quick={}), quick=True)
    with pytest.raises(StudyInvalid, match=r"no \[comparison\]"):
        cells(study(), quick=True)


def test_a_comparison_is_no_single_run(tmp_path):
    with pytest.raises(StudyInvalid, match="is a comparison, not a single run"):
        run_study(compared(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("ledgers", "shared"),
    [((None, None), False), (("one", None), False), (("one", "other"), False), (("one", "one"), True)],
)
def test_runs_that_spend_budgets_of_parties_share_a_ledger(ledgers, shared):
    """With a ledger each, every run would spend them anew."""
    budgets = {"party 1": {"epsilon": 4.0, "delta": 1e-6}}
    sets = [{"budget": {"epsilon": 9.0, "delta": 1e-6, "unit": "record", "ledger": one}} if one else {} for one in ledgers]
    rows = [{"name": f"row {i}", "set": changes} for i, changes in enumerate(sets)]
    made = compared(rows=rows, columns=[{"name": "FedAvg"}], published={}, source="")
    made = load_of(made, party_budgets=budgets)
    if shared:
        assert len(cells(made)) == 2
    else:
        with pytest.raises(StudyInvalid, match="all 2 runs, which have no ledger in common") as caught:
            cells(made)
        assert "ledger = " in caught.value.remedy
    alone = compared(rows=rows[:1], columns=[{"name": "FedAvg"}], published={}, source="")
    assert len(cells(load_of(alone, party_budgets=budgets))) == 1, "one run alone needs none"


def test_a_sweep_has_a_row_for_each_combination():
    made = sweep(study(), ["program.learning_rate=0.1,0.3", "program.solver=sgd,adam"])
    assert [row.name for row in made.comparison.rows] == [
        *("learning_rate=0.1, solver=sgd", "learning_rate=0.1, solver=adam"),
        *("learning_rate=0.3, solver=sgd", "learning_rate=0.3, solver=adam"),
    ]
    assert [row.set for row in made.comparison.rows][1] == {"program.learning_rate": 0.1, "program.solver": "adam"}
    assert made.comparison.choose
    assert len({cell.folder for cell in cells(made)}) == 4


def test_keys_of_a_sweep_that_end_alike_are_written_out():
    made = sweep(study(), ["seed=1", "partition.parties=3,4", "program.parties=5"])
    assert made.comparison.rows[0].name == "seed=1, partition.parties=3, program.parties=5"


@pytest.mark.parametrize("text", ["program.rounds", "=1,2", "program.rounds=", "program.rounds=1,1", "program.rounds=a,,b"])
def test_a_sweep_without_key_or_values_is_refused(text):
    with pytest.raises(StudyInvalid, match="--sweep"):
        sweep(study(), [text])


def test_a_comparison_cannot_be_swept():
    with pytest.raises(StudyInvalid, match="is a comparison already"):
        sweep(compared(), ["program.rounds=1,2"])


def test_paths_of_data_in_rows_are_those_of_the_file(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[data]\npath = "a.csv"\n[program]\nname = "moments"\n[comparison]\ncolumns = [{ name = "x" }]\n'
        'rows = [{ name = "one", set = { "data.path" = "b.csv" } }, { name = "two", set = { data = { path = "c.csv" } } }]\n'
    )
    found = cells(load(tmp_path / "s.toml"))
    assert [cell.study.data.path for cell in found] == [str(tmp_path / "b.csv"), str(tmp_path / "c.csv")]


def test_data_that_runs_share_is_read_once(monkeypatch):
    read = []
    monkeypatch.setattr(shared, "records_of", lambda *what: read.append(what) or records_of(*what))
    ready = check_cells(compared(), cells(compared()), None)
    assert len(ready) == 4
    assert len(read) == 1


def test_runs_of_other_data_have_their_own(monkeypatch):
    by = {"by": "iid", "parties": 3}
    rows = [{"name": "digits"}, {"name": "cancer", "set": {"data.name": "breast_cancer", "partition": by}}]
    study = compared(rows=rows, published={}, source="")
    records = shared.SharedRecords(None)
    built = [records.build(cell.study) for cell in cells(study)]
    assert [one.digest for one in built] == [build(cell.study).digest for cell in cells(study)]
    assert built[0].schema.names != built[2].schema.names
