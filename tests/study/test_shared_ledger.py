"""Two studies that share a budget: the second has what the first left."""

import pytest

from hedgerow.errors import BudgetExhausted
from hedgerow.store import read_chain
from hedgerow.study import load, rehearse, run_study

ROUNDS = 6


def study(tmp_path, **changes):
    path = tmp_path / "shared.sqlite"
    base = {"program.rounds": ROUNDS, "budget.ledger": str(path), "budget.epsilon": 2.5, "baselines": False}
    return load("digits-fedavg", base | changes)


@pytest.mark.slow
def test_runs_share_a_budget(tmp_path):
    first = run_study(study(tmp_path), tmp_path / "first")
    assert first.run.state.round == ROUNDS
    assert f"{ROUNDS} releases" in first.report.privacy
    expected = rehearse(study(tmp_path))
    second = run_study(study(tmp_path), tmp_path / "second")
    assert second.run.stopped == "budget"
    assert 0 < second.run.state.round < ROUNDS
    assert len(expected.entries) == second.run.state.round
    assert "by other runs that share the ledger" in second.report.privacy
    with pytest.raises(BudgetExhausted):
        run_study(study(tmp_path), tmp_path / "third")
    assert len(read_chain(tmp_path / "shared.sqlite").entries) == ROUNDS + second.run.state.round
    assert not (tmp_path / "third" / "result.json").exists()


@pytest.mark.slow
def test_a_run_that_is_resumed_is_not_charged_twice(tmp_path):
    whole = run_study(study(tmp_path), tmp_path / "run")
    again = run_study(study(tmp_path), tmp_path / "run", resume=True)
    assert again.run.state.round == whole.run.state.round
    assert len(read_chain(tmp_path / "shared.sqlite").entries) == ROUNDS


def test_the_report_shows_the_head_of_the_ledger(tmp_path):
    result = run_study(study(tmp_path, **{"program.rounds": 1}), tmp_path / "run")
    assert dict(result.report.facts)["head of the ledger"] == read_chain(tmp_path / "shared.sqlite").head
