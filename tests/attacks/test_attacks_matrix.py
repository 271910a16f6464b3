"""Matrices of attacks: cells are lawful studies, acts succeed on the mean, what was stopped ends the same, words follow."""

import json

import pytest

from hedgerow.compare import matrix_cells, run_matrix
from hedgerow.compare.attack_matrix.matrix_measured import MatrixMeasured, place_rows
from hedgerow.compare.attack_matrix.matrix_report import matrix_report
from hedgerow.compare.attack_matrix.matrix_runs import MatrixRun, read_runs
from hedgerow.compare.attack_matrix.matrix_words import sentences
from hedgerow.errors import CannotWrite, CheckpointMismatch, HedgerowError, StudyInvalid
from hedgerow.report import Report, render
from hedgerow.study import load, run_study
from hedgerow.study.catalogue import PROGRAMS
from hedgerow.study.keys import settings_of
from hedgerow.study.study import parse

ACTS = [
    {"act": "none"},
    {"act": "label-flip"},
    {"act": "backdoor", "boost": 2.0},
    {"act": "ipm", "strength": 0.9, "label": "IPM 0.9"},
    {"act": "sign-flip"},
    {"act": "scale", "strength": -1000, "kind": "forge", "label": "forge"},
]
DIGITS = {
    "name": "small",
    "data": {"name": "digits", "records": 700},
    "partition": {"by": "iid", "parties": 10},
    "program": {"name": "fedavg", "rounds": 12, "steps": 4, "batch_size": 32, "learning_rate": 0.5, "expect": 0.4},
    "attack": {"act": "none", "parties": 0.4, "knows": "all", "target": 0, "trigger": {"at": [6, 0], "size": 2}},
    "evaluation": {"holdout": 0.3},
    "matrix": {"acts": ACTS, "rules": ["mean", "trimmed"], "seeds": 1, "last": 3},
}


def small(**matrix):
    return parse(DIGITS | {"matrix": DIGITS["matrix"] | matrix})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix") / "run"
    return run_matrix(small(), folder, jobs=1)


def values(result, metric):
    return {(run.act, run.rule): run.metrics[metric] for run in result.runs}


@pytest.mark.slow
def test_each_act_succeeds_on_the_plain_mean_and_a_rule_that_holds_costs_little(whole):
    accuracy, success = values(whole, "test accuracy"), values(whole, "backdoor success")
    clean = accuracy["none", "mean"]
    assert clean > 0.85
    assert accuracy["none", "trimmed"] > clean - 0.05
    for act, least in (("label flip", 0.08), ("IPM 0.9", 0.015), ("sign flip", 0.5), ("forge", 0.5)):
        assert accuracy[act, "mean"] < clean - least, act
    assert success["backdoor", "mean"] > 0.8 > 0.2 > success["none", "mean"]
    assert accuracy["forge", "trimmed"] > accuracy["forge", "mean"] + 0.3
    assert accuracy["IPM 0.9", "trimmed"] < accuracy["IPM 0.9", "mean"] - 0.02, "the defence is the weakness"


@pytest.mark.slow
def test_the_page_says_what_the_runs_measured(whole):
    report = whole.report
    assert {grid.title for grid in report.tables} == {
        "Accuracy, percent",
        "Success of the backdoor, percent",
        "What a rule costs while nobody lies",
        "What holds against what",
        "The acts",
    }
    (heat,) = report.heats
    assert heat.rows == ("none", "label flip", "backdoor", "IPM 0.9", "sign flip", "forge")
    assert heat.columns == ("mean", "trimmed")
    assert heat.counts[0][0] == round(100 * values(whole, "test accuracy")["none", "mean"])
    assert int(heat.marks[2][0]) == round(100 * values(whole, "backdoor success")["backdoor", "mean"])
    assert "the backdoor passes mean" in heat.sentence
    assert f"<b>{heat.marks[2][0]}</b>" in render(report)
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report
    lines = (whole.folder / "matrix.csv").read_text().splitlines()
    assert lines[0] == "partition,act,rule,metric,runs,median,least,most"
    assert len(lines) == 1 + len(place_rows(small(), whole.runs))


@pytest.mark.slow
def test_a_matrix_that_was_stopped_ends_as_if_it_had_not(whole, tmp_path):
    study = small()
    stopped = tmp_path / "run"
    stopped.mkdir()
    lines = (whole.folder / "runs-0.jsonl").read_text().splitlines(keepends=True)
    (stopped / "runs-0.jsonl").write_text("".join(lines[:7]) + lines[7][:40])  # a crash cut the eighth line
    (stopped / "digest").write_text((whole.folder / "digest").read_text())
    again = run_matrix(study, stopped, jobs=1, resume=True)
    assert [(run.key, run.metrics) for run in again.runs] == [(run.key, run.metrics) for run in whole.runs]
    assert again.report.tables == whole.report.tables
    assert again.report.heats == whole.report.heats


@pytest.mark.slow
def test_processes_side_by_side_measure_the_same(whole, tmp_path):
    few = small(acts=ACTS[:2], rules=["mean"])
    found = run_matrix(few, tmp_path / "run", jobs=2)
    wanted = {run.key: run.metrics for run in whole.runs}
    assert len(found.runs) == 2
    assert len(list((tmp_path / "run").glob("runs-*.jsonl"))) == 2
    for run in found.runs:
        assert run.metrics == pytest.approx(wanted[run.key], abs=1e-9)


def test_a_cell_is_a_study_that_runs_by_itself(tmp_path):
    cell = next(cell for cell in matrix_cells(small()) if cell.act == "backdoor" and cell.rule == "trimmed")
    study = cell.study
    assert study.matrix is None
    assert study.attack.act == "backdoor"
    assert study.attack.trigger.at == (6, 0)
    assert study.program.model_extra["rule"] == "trimmed"
    assert study.program.model_extra["expect"] == 0.4
    quick = study.model_copy(update={"program": study.program.model_copy(update={"rounds": 1})})
    run_study(quick, tmp_path / "run")
    last = json.loads((tmp_path / "run" / "rounds.jsonl").read_text().splitlines()[-1])
    assert 0 <= last["backdoor success"] <= 1


def test_cells_differ_in_act_rule_partition_and_seed_alone():
    study = small(
        rules=["mean", {"name": "groups", "groups": 5, "expect": 2}],
        partitions=[{"by": "iid", "parties": 10}, {"by": "shards", "parties": 10, "shards_per_party": 2}],
        seeds=2,
    )
    found = matrix_cells(study)
    assert len(found) == len({cell.key for cell in found}) == 6 * 2 * 2 * 2 == study.matrix.runs
    assert len({cell.study.digest for cell in found}) == len(found)
    assert [cell.seed for cell in found] == [0] * 24 + [1] * 24
    for cell in found:
        program = cell.study.program.model_extra
        assert program.get("expect") == (2 if cell.rule == "groups" else None), "the mean holds against nobody"
        assert program["model_seed"] == cell.study.seed == cell.seed
        assert cell.study.partition.by == cell.partition


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ({"acts": [{"act": "label-flip"}]}, 'act = "none"'),
        ({"acts": [{"act": "none"}, {"act": "ipm"}, {"act": "ipm", "knows": "own"}]}, "two acts are called 'ipm'"),
        ({"rules": ["mean", {"name": "norm", "radius": 1.0}, {"name": "norm", "radius": 2.0}]}, "two rules"),
        ({"rules": []}, "rules"),
        ({"seeds": 0}, "seeds"),
        ({"sedes": 2}, "seeds"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix, words):
    with pytest.raises(StudyInvalid, match=words):
        small(**matrix)


def test_a_wrong_cell_is_refused_by_its_name_before_any_run(tmp_path):
    for matrix, words in (
        ({"rules": ["mean", "trimed"]}, "trimed"),
        ({"acts": [*ACTS[:1], {"act": "backdoor", "share": 2.0}]}, "backdoor, mean"),
        ({"rules": [{"name": "groups", "groups": 5}]}, "groups"),
    ):
        with pytest.raises(HedgerowError, match=words):
            run_matrix(small(**matrix), tmp_path / "run", jobs=1)
        assert not (tmp_path / "run").exists()


def test_a_matrix_is_no_single_run_and_keeps_to_its_folder(tmp_path):
    with pytest.raises(StudyInvalid, match="run_matrix"):
        run_study(small(), tmp_path / "one")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "digest").write_text("matrix of something else")
    with pytest.raises(CannotWrite, match="already holds"):
        run_matrix(small(acts=ACTS[:1], rules=["mean"]), folder, jobs=1)
    with pytest.raises(CheckpointMismatch, match="no run of this matrix"):
        run_matrix(small(acts=ACTS[:1], rules=["mean"]), folder, jobs=1, resume=True)


def test_a_study_without_a_matrix_keeps_its_digest():
    one = parse({name: value for name, value in DIGITS.items() if name != "matrix"})
    assert "matrix" not in json.dumps(one.model_dump(mode="json", exclude_none=True))
    assert one.digest != small().digest


# ---- words, of numbers by hand --------------------------------------------------------------------------------------
BY_HAND = {
    ("none", "mean"): (0.90, 0.01),
    ("none", "trimmed"): (0.80, 0.01),
    ("label flip", "mean"): (0.88, 0.01),
    ("label flip", "trimmed"): (0.78, 0.02),
    ("backdoor", "mean"): (0.89, 0.97),
    ("backdoor", "trimmed"): (0.80, 0.03),
    ("IPM 0.9", "mean"): (0.83, 0.01),
    ("IPM 0.9", "trimmed"): (0.39, 0.15),
    ("sign flip", "mean"): (0.10, 0.0),
    ("sign flip", "trimmed"): (0.79, 0.01),
    ("forge", "mean"): (0.10, 0.0),
    ("forge", "trimmed"): (0.80, 0.01),
}


def by_hand(shift=(0.0, 0.01, -0.01)):
    return [
        MatrixRun(act, rule, "", seed, {"test accuracy": accuracy + by, "backdoor success": success}, 1.0)
        for (act, rule), (accuracy, success) in BY_HAND.items()
        for seed, by in enumerate(shift)
    ]


def test_sentences_follow_from_the_numbers():
    said = " ".join(sentences(MatrixMeasured.of(small(seeds=3), by_hand())))
    assert "While nobody lies, trimmed costs most: 10 points of accuracy." in said
    assert "Backdoor: the backdoor passes mean (97 %)." in said
    assert "IPM 0.9 is worse for trimmed (39 %) than for the mean (83 %)." in said
    assert "Label flip is worse" not in said
    assert "No rule holds against every act." in said


def test_tables_hold_medians_ranges_prices_and_verdicts():
    study = small(seeds=3)
    how = {"seconds": 1.0, "jobs": 1, "interrupted": False, "command": ""}
    report = matrix_report(study, by_hand(), 36, **how)
    tables = {grid.title: grid for grid in report.tables}
    assert tables["Accuracy, percent"].rows[0] == ("none", "90.0 (89.0 to 91.0)", "80.0 (79.0 to 81.0)")
    assert tables["What a rule costs while nobody lies"].rows == (("trimmed", "10.0 (10.0 to 10.0)"),)
    held = {row[0]: row[1:] for row in tables["What holds against what"].rows}
    assert held["label flip"] == ("mean, trimmed", "none")
    assert held["backdoor"] == ("trimmed", "mean")
    assert held["IPM 0.9"] == ("none", "mean, trimmed")
    assert dict(report.metrics)["rule whose least accuracy is the highest"] == "trimmed"
    assert not report.warnings
    late = matrix_report(study, by_hand()[:30], 36, **how)
    assert "6 of 36 runs have not been made" in late.warnings[0]


def test_a_model_without_finite_numbers_is_told_of_and_its_last_state_measured():
    study = small()
    runs = [MatrixRun("forge", "mean", "", 0, {"test accuracy": 0.1}, 1.0, "PartyDeclined [HR-221]: not finite.")]
    report = matrix_report(study, runs, 12, seconds=1.0, jobs=1, interrupted=True, command="")
    assert "1 of 1 runs stopped before their last round" in report.warnings[0]
    assert "forge with mean" in report.warnings[0]
    assert report.heats[0].counts[5][0] == 10.0


@pytest.mark.parametrize("name", ["attacks-matrix", "attacks-matrix-adult"])
@pytest.mark.parametrize("quick", [False, True])
def test_every_cell_of_a_bundled_matrix_is_lawful_as_far_as_its_data_do_not_decide(name, quick):
    study = load(name, (load(name).quick if quick else {}) | {"matrix.seeds": 1})
    found = matrix_cells(study)
    assert len(found) == 6 * 8 * 2
    for cell in found[::5]:
        settings_of(PROGRAMS[cell.study.program.name], cell.study.program.model_extra)
    assert load(name).matrix.runs == 480


def test_runs_on_disk_are_read_without_torn_lines(tmp_path):
    one = MatrixRun("none", "mean", "", 0, {"test accuracy": 0.5}, 1.0)
    (tmp_path / "runs-1.jsonl").write_text(json.dumps(vars(one)) + "\n" + json.dumps(vars(one))[:30])
    assert read_runs(tmp_path) == {one.key: one}
