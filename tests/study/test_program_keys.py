"""Wrong keys of a program are refused together, and a full disk is said in words."""

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.study import PROGRAMS
from hedgerow.study.keys import settings_of


def test_all_problems_of_a_program_are_said_at_once():
    with pytest.raises(StudyInvalid) as caught:
        settings_of(PROGRAMS["fedavg"], {"round": 3, "epochs": "many"})
    assert "3 problem(s)" in str(caught.value)
    for words in ("rounds: Field required", "epochs", "Did you mean 'rounds'"):
        assert words in str(caught.value)


def test_a_full_disk_while_metrics_are_written_is_said_in_words(tmp_path, monkeypatch):
    from hedgerow.errors import CannotWrite
    from hedgerow.study import load, run_study
    from hedgerow.study.runner import Rounds

    def full(self, *arguments, **settings):
        raise OSError(28, "No space left on device")

    started = Rounds.__init__

    def start_then_fill(self, built, path, kept, on_progress):
        started(self, built, path, kept, on_progress)
        self.path = type("Full", (), {"open": full, "__str__": lambda self: str(path)})()

    monkeypatch.setattr(Rounds, "__init__", start_then_fill)
    with pytest.raises(CannotWrite, match=r"HR-104[\s\S]*No space left[\s\S]*Parties had been asked"):
        run_study(load("breast-cancer-glm"), tmp_path / "run")
    assert len((tmp_path / "run" / "ledger.jsonl").read_text().splitlines()) == 1
