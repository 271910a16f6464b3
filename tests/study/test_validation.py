"""Held-out records of each party: never trained on, and exactly what is measured."""

import numpy as np
import pytest
from comparing import study

import hedgerow as hr
from hedgerow.errors import StudyInvalid
from hedgerow.learn import evaluate_on, fedavg
from hedgerow.learn.results import module_for
from hedgerow.store import last
from hedgerow.study import load, parse, rehearse, run_study
from hedgerow.study.build import build
from hedgerow.study.first_question import Nobody
from hedgerow.study.remote import build_remote
from hedgerow.study.rounds import read_rounds
from hedgerow.study.validation import draw

HELD = {"on": "parties", "validation": 0.2, "holdout": 0.0}


def test_each_party_holds_out_its_share_and_keeps_one_record():
    table = hr.data.load("digits")
    partition = hr.data.dirichlet_quantity(parties=40, alpha=0.4)(table, 0)
    held = draw(partition, len(table), 0.25, seed=3)
    sizes = np.array([len(records) for records in partition.indices])
    counts = np.array([held[records].sum() for records in partition.indices])
    assert (np.abs(counts - 0.25 * sizes) < 1).all()
    assert (counts < sizes).all()
    assert set(held) == {0.0, 1.0}
    np.testing.assert_array_equal(held, draw(partition, len(table), 0.25, seed=3))
    assert (held != draw(partition, len(table), 0.25, seed=4)).any()


def test_small_parties_have_their_part_on_average():
    table = hr.data.load("digits")
    partition = hr.data.iid(parties=len(table) // 2)(table, 0)  # two records each, three at one
    share = draw(partition, len(table), 0.1, seed=0).mean()
    assert abs(share - 0.1) < 5 * np.sqrt(0.1 / len(table))  # about one false alarm in a million seeds
    assert draw(hr.data.stores()(table, 0), len(table), 0.9, seed=0).sum() == 0


@pytest.mark.slow
def test_a_run_measures_on_exactly_the_held_out_records_and_trains_on_the_others(tmp_path):
    made = study(evaluation=HELD)
    result, built = run_study(made, tmp_path / "run"), build(made)
    held = built.table["held out"] == 1
    module = module_for(built.schema, built.settings)
    expected = evaluate_on(built.table.take(held), module, result.run.state.weights)
    row = read_rounds(tmp_path / "run" / "rounds.jsonl")[-1]
    assert row["validation accuracy"] == pytest.approx(expected["accuracy"], abs=1e-12)
    assert row["validation loss"] == pytest.approx(expected["loss"], rel=1e-5)
    scores = {name: value for name, value, _ in result.report.comparison.rows}
    assert scores["federated"] == pytest.approx(expected["accuracy"], abs=1e-12)
    assert f"{held.sum()} records that the parties held out" in result.report.comparison.sentence


@pytest.mark.slow
def test_what_is_held_out_does_not_move_the_model():
    """Other labels in the held-out records change what is measured there, and not the weights."""
    built = build(study(evaluation=HELD))
    held, labels = built.table["held out"] == 1, built.table["digit"].copy()
    labels[held] = (labels[held] + 1) % 10
    columns = built.table.columns | {"digit": labels}
    module, settings = module_for(built.schema, built.settings), {"learning_rate": 0.5, "held_out": "held out"}

    def trained(table_columns):
        table = type(built.table)(table_columns, built.schema)
        return last(fedavg(hr.simulate(table, built.partition, seed=0), module, rounds=2, **settings)).weights

    first, second = trained(built.table.columns), trained(columns)
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


def test_the_column_is_no_feature():
    built = build(study(evaluation=HELD))
    assert "held out" not in built.schema.features
    assert built.settings["held_out"] == "held out"


def test_a_program_that_cannot_leave_records_out_is_refused():
    made = load("diabetes-tree", {"evaluation": HELD})
    with pytest.raises(StudyInvalid, match="'decision_tree' cannot leave records out"):
        build(made)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"evaluation": {**HELD, "on": "test"}}, 'choose on = "parties"'),
        ({"evaluation": {**HELD, "validation": 1.0}}, "validation"),
        ({"evaluation": HELD, "program": {"held_out": "digit"}}, "both say what is held out"),
        ({"evaluation": HELD, "partition": {"by": "stores"}}, "without a record to measure on"),
    ],
)
def test_validation_that_contradicts_the_study_is_refused(changes, said):
    with pytest.raises(StudyInvalid, match=said):
        build(study(**changes))


@pytest.mark.slow
def test_a_rehearsal_holds_out_too():
    asked = [entry.query for entry in rehearse(study(evaluation=HELD | {"every": 1})).entries]
    assert [name.partition(":")[2][:5] for name in asked[:2]] == ["local", "score"]


def test_a_study_takes_so_many_of_its_records_and_stations_take_all():
    whole = {"name": "few", "data": {"name": "breast_cancer", "records": 60}, "evaluation": {"holdout": 0.25}}
    whole |= {"partition": {"by": "iid", "parties": 3}, "program": {"name": "fedavg", "rounds": 1}}
    built = build(parse(whole))
    assert (len(built.table), len(built.test)) == (45, 15)
    with pytest.raises(StudyInvalid, match="which a simulation draws"):
        build_remote(parse(whole), built.schema, None)


@pytest.mark.parametrize(
    "program",
    [
        {"name": "private_logistic", "formula": "malignant ~ mean_radius", "epsilon": 1.0, "delta": 1e-5},
        {"name": "decision_tree", "depth": 2},
    ],
)
def test_programs_without_metrics_at_the_parties_refuse_to_be_measured_there(program):
    text = {"name": "x", "data": {"name": "breast_cancer"}, "partition": {"by": "iid", "parties": 3}, "program": program}
    measured = parse(text | {"evaluation": {"on": "parties"}})
    with pytest.raises(StudyInvalid, match="no metrics by sums"):
        build(measured)
    with pytest.raises(StudyInvalid, match="no metrics by sums"):
        build_remote(measured, hr.data.load("breast_cancer").schema, Nobody(("a", "b", "c")))
    build(parse(text))
