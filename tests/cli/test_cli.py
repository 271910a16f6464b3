"""The command: what a user sees, and what is refused before anybody is asked."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.errors import HedgerowError, StudyInvalid, UnknownDataset, UnknownStudy

SMALL = """
name = "small"
[data]
path = "small.csv"
target = "ill"
[partition]
by = "iid"
parties = 3
[program]
name = "logistic_regression"
formula = "ill ~ age + dose"
[protection]
disclosure = 10  # of a table for tests
"""


@pytest.fixture
def study(tmp_path):
    rows = ["age,dose,ill"] + [f"{20 + i},{(i * 7) % 5},{int((i * 13) % 7 + i / 20 > 4)}" for i in range(60)]
    (tmp_path / "small.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path / "small.toml"


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def test_rounds_are_logged_by_name(study, tmp_path):
    ended = invoke("run", study, "--out", tmp_path / "out", "--log", "csv")
    assert ended.exit_code == 0, ended.exception
    lines = (tmp_path / "out" / "rounds.csv").read_text().splitlines()
    assert lines[0].startswith("round,seconds")
    assert len(lines) > 2
    assert isinstance(invoke("run", study, "--out", tmp_path / "b", "--log", "csw").exception, StudyInvalid)


def test_a_study_from_a_file_leaves_a_whole_folder(study, tmp_path):
    ended = invoke("run", study, "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.exception
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"report.html", "result.json", "ledger.jsonl", "coefficients.csv", "study.toml", "rounds.jsonl"} <= names
    assert "No epsilon is claimed" in ended.output
    report = json.loads((tmp_path / "out" / "result.json").read_text())
    assert report["study"] == "small"


def test_the_resolved_study_runs_again(study, tmp_path):
    invoke("run", study, "--out", tmp_path / "one", "--set", "partition.parties=4")
    ended = invoke("run", tmp_path / "one" / "study.toml", "--out", tmp_path / "two")
    assert ended.exit_code == 0, ended.exception
    one, two = ((tmp_path / name / "coefficients.csv").read_text() for name in ("one", "two"))
    assert one == two
    assert "parties = 4" in (tmp_path / "two" / "study.toml").read_text()


def test_rehearse_asks_nobody_and_says_what_leaves(study, monkeypatch):
    from hedgerow.engines import InProcess

    asked, exchange = [], InProcess.exchange

    def remember(self, outbox):
        asked.append(self.held.columns["age"])
        return exchange(self, outbox)

    monkeypatch.setattr(InProcess, "exchange", remember)
    ended = invoke("rehearse", study)
    assert ended.exit_code == 0, ended.exception
    assert "no party was asked" in ended.output
    assert "linear_sums" in ended.output
    assert asked
    assert not any((ages == ages.round()).all() for ages in asked)  # the file's ages are whole, made-up ones are not


def test_report_writes_the_page_again(study, tmp_path):
    invoke("run", study, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    (tmp_path / "out" / "report.html").unlink()
    assert invoke("report", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "report.html").read_text() == page


def test_studies_lists_everything():
    output = invoke("studies").output
    for name in (
        "breast-cancer-glm",
        "hie-visits",
        "digits-fedavg",
        "diabetes-tree",
        "fedavg",
        "dirichlet_labels",
        "breast_cancer",
    ):
        assert name in output


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (["run", "digits-fedavgg"], UnknownStudy, "Did you mean 'digits-fedavg'"),
        (["run", "digits-fedavg", "--set", "program.round=3"], StudyInvalid, "Did you mean 'rounds'"),
        (["run", "digits-fedavg", "--set", "programme.rounds=3"], StudyInvalid, "Did you mean 'program'"),
        (["run", "digits-fedavg", "--set", "data.nam='x'"], StudyInvalid, "Did you mean 'name'"),
        (["run", "digits-fedavg", "--set", "data.name=digit"], UnknownDataset, "digits"),
        (["run", "digits-fedavg", "--set", "program.name=fedavgg"], StudyInvalid, "Did you mean 'fedavg'"),
        (["run", "digits-fedavg", "--set", "partition.by=shard"], HedgerowError, "Did you mean 'shards'"),
        (["run", "digits-fedavg", "--set", "partition.partys=3"], HedgerowError, "parties"),
        (["run", "digits-fedavg", "--set", "budget.epsilon=0"], HedgerowError, "HR-214"),
        (["run", "digits-fedavg", "--set", "budget.epsilon=-1"], HedgerowError, "HR-214"),
        (["run", "digits-fedavg", "--set", "rounds"], StudyInvalid, "key=value"),
        (["run", "digits-fedavg", "--set", "program.rounds=many"], StudyInvalid, "rounds"),
        (["run", "breast-cancer-glm", "--set", "program.formula=malignant ~ mean_radios"], HedgerowError, "mean_radius"),
        (["run", "breast-cancer-glm", "--set", "program.formula=mean_radius ~ mean_texture"], HedgerowError, "HR-311"),
        (["run", "digits-fedavg", "--set", "budget.epsilon=0.01"], HedgerowError, "HR-213"),
        (["run", "digits-fedavg", "--set", "program.model=lenear"], HedgerowError, "HR-510"),
        (["run", "digits-fedavg", "--set", "program.epochs=0"], HedgerowError, "HR-511"),
        (["run", "digits-fedavg", "--set", "program.rounds=0"], HedgerowError, "rounds is 0"),
        (["run", "digits-fedavg", "--set", "program.rate=0.0"], HedgerowError, "HR-214"),
        (["run", "digits-fedavg", "--set", "evaluation.holdout=0.0001"], StudyInvalid, "holdout"),
        (["run", "digits-fedavg", "--set", "engine.dropped=['party 1000']"], StudyInvalid, "no party"),
        (["run", "digits-fedavg", "--set", "name=../../evil"], StudyInvalid, "name"),
        (["run", "digits-fedavg", "--set", "protection.clip={bogus={radius=1.0}}"], HedgerowError, "bogus"),
        (["run", "breast-cancer-glm", "--set", "program.max_rounds=0"], HedgerowError, "max_rounds"),
        (["run", "breast-cancer-glm", "--resume"], HedgerowError, "no run to resume"),
        (["report", "nowhere"], UnknownStudy, "no finished run"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_bad_input_is_refused_with_the_nearest_word(arguments, kind, said, tmp_path):
    out = ["--out", tmp_path / "out"] if arguments[0] == "run" else []
    ended = invoke(*arguments, *out)
    assert isinstance(ended.exception, kind), ended.output
    assert said in str(ended.exception)
    assert any(words in str(ended.exception) for words in ("No party was asked", "This question was not asked"))
    assert not (tmp_path / "out").exists()


def test_noise_without_declared_ranges_is_refused(study, tmp_path):
    ended = invoke("run", study, "--out", tmp_path / "out", "--set", "protection.mechanism={noise_multiplier=1.0}")
    assert "HR-210" in str(ended.exception)
    assert not (tmp_path / "out").exists()
    declared = ["--set", "data.ranges={age=[0,100],dose=[0,10]}", "--set", "data.columns={ill={kind='binary'}}"]
    assert (
        invoke(
            "run", study, "--out", tmp_path / "out", "--set", "protection.mechanism={noise_multiplier=1.0}", *declared
        ).exit_code
        == 0
    )


def test_what_unused_columns_lack_does_not_matter(study, tmp_path):
    rows = study.with_suffix(".csv").read_text().splitlines()
    sparse = [rows[0] + ",ward,note"] + [f"{row},{i % 3},{'' if i % 2 else 'x'}" for i, row in enumerate(rows[1:])]
    study.with_suffix(".csv").write_text("\n".join(sparse) + "\n")
    refused = invoke("run", study, "--out", tmp_path / "out")
    assert "note" in str(refused.exception)
    more = ["--set", "data.features=['age','dose']", "--set", "partition={by='by_column', column='ward'}"]
    ended = invoke("run", study, "--out", tmp_path / "out", *more)
    assert ended.exit_code == 0, ended.exception
    assert '"parties",\n   3' in (tmp_path / "out" / "result.json").read_text()


def test_the_version():
    assert invoke("--version").output.startswith("hedgerow 0.")


def test_an_answer_that_never_came_is_reported(study, tmp_path):
    ended = invoke("run", study, "--out", tmp_path / "out", "--set", "engine.dropped=['party 2']")
    assert ended.exit_code == 0
    assert "answers never came" in (tmp_path / "out" / "report.html").read_text()


def test_weights_below_zero_are_refused(study, tmp_path):
    rows = study.with_suffix(".csv").read_text().splitlines()
    weighted = [rows[0] + ",w"] + [f"{row},{-1 if i == 3 else 1}" for i, row in enumerate(rows[1:])]
    study.with_suffix(".csv").write_text("\n".join(weighted) + "\n")
    ended = invoke("run", study, "--out", tmp_path / "out", "--set", "program.weights=w")
    assert "below zero" in str(ended.exception)


def test_a_resumed_run_refuses_changed_records(study, tmp_path):
    invoke("run", study, "--out", tmp_path / "out")
    path = study.with_suffix(".csv")
    path.write_text(path.read_text().replace("20,0,0", "21,0,0", 1))
    ended = invoke("run", study, "--out", tmp_path / "out", "--resume")
    assert "other records" in str(ended.exception)


@pytest.mark.slow
def test_the_command_prints_the_message_and_fails(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "hedgerow", "run", "nothing"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ended.returncode == 1
    assert "UnknownStudy [HR-102]" in ended.stderr
    assert "Traceback" not in ended.stderr
