"""Noise that a budget decides: enough for all rounds, and no more than needed."""

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.privacy.accounting.calibration import calibrate
from hedgerow.study import load, rehearse, run_study
from hedgerow.study.planned import with_noise

ROUNDS = 12
FREE = {"protection.mechanism": {"law": "gaussian"}, "program.rounds": ROUNDS, "budget.epsilon": 1.0, "baselines": False}


def multiplier(study):
    return with_noise(study).protection.mechanism.noise_multiplier


@pytest.mark.slow
def test_the_noise_is_that_of_the_accountant():
    study = load("digits-fedavg", FREE)
    expected = calibrate(study.budget.epsilon, study.budget.delta, rounds=ROUNDS, rate=study.program.model_extra["rate"])
    assert multiplier(study) == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["rdp", "zcdp", "pld"])
def test_it_is_taken_from_the_budget_s_accountant(accountant):
    study = load("digits-fedavg", FREE | {"budget.accountant": accountant})
    rehearsed = rehearse(study)
    assert 0.995 * study.budget.epsilon < rehearsed.statement.epsilon <= study.budget.epsilon
    assert len(rehearsed.entries) == ROUNDS


def test_noise_that_was_given_stays():
    assert multiplier(load("digits-fedavg")) == load("digits-fedavg").protection.mechanism.noise_multiplier


@pytest.mark.slow
def test_a_program_without_rounds_is_rehearsed_to_its_end():
    changes = {"protection.mechanism": {"law": "laplace"}, "budget": {"epsilon": 2.0, "delta": 1e-6, "unit": "record"}}
    study = load("diabetes-tree", changes)
    assert 1.98 < rehearse(study).statement.epsilon <= 2.0


@pytest.mark.slow
def test_discrete_noise_is_planned_within_the_budget():
    study = load(
        "digits-fedavg",
        {"protection.mechanism": {"law": "discrete gaussian"}, "protection.clip.radius": 9.0, "program.rounds": 3},
    )
    assert 0.98 * study.budget.epsilon < rehearse(study).statement.epsilon <= study.budget.epsilon


@pytest.mark.slow
def test_the_run_ends_with_its_budget(tmp_path):
    result = run_study(load("digits-fedavg", FREE), tmp_path)
    assert result.run.state.round == ROUNDS
    assert "of a budget of 1 at" in result.report.privacy


def test_without_a_budget_nothing_decides_it():
    with pytest.raises(StudyInvalid, match="no budget"):
        with_noise(load("digits-fedavg", FREE).model_copy(update={"budget": None}))


@pytest.mark.parametrize(
    "section", [{"law": "tree"}, {"law": "gaussian", "rounds": 3}, {"law": "tree", "rounds": 3, "at": "party"}]
)
def test_a_tree_and_only_a_tree_has_rounds(section):
    with pytest.raises(StudyInvalid, match="rounds"):
        load("digits-fedavg", {"protection.mechanism": section})


@pytest.mark.slow
def test_a_tree_is_a_mechanism_of_a_study(tmp_path):
    changes = FREE | {
        "protection.mechanism": {"law": "tree", "rounds": ROUNDS, "every": 4},
        "program.rate": None,
        "program.every": 4,
    }
    result = run_study(load("digits-fedavg", changes), tmp_path)
    assert result.run.state.round == ROUNDS
    assert "Tree" in (tmp_path / "ledger.jsonl").read_text()


@pytest.mark.slow
def test_a_tree_that_ends_before_the_program_is_planned_with_the_next_one():
    mechanism = {"protection.mechanism": {"law": "tree", "rounds": 6}, "program.rate": None}
    assert len(rehearse(load("digits-fedavg", FREE | mechanism)).entries) == ROUNDS
