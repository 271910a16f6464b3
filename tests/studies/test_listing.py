"""The catalogue: every key of every program has a type and a meaning, and wrong ones are refused together."""

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.studies import PROGRAMS
from hedgerow.studies.keys import keys_of, settings_of


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_key_says_what_it_means(name):
    keys = keys_of(PROGRAMS[name]).model_fields
    assert {key for key, field in keys.items() if not field.description} == set()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_names_the_state_it_yields(name):
    state = PROGRAMS[name].state
    assert "round" in state.__dataclass_fields__ or isinstance(state.round, property)


def test_all_problems_of_a_program_are_said_at_once():
    with pytest.raises(StudyInvalid) as caught:
        settings_of(PROGRAMS["fedavg"], {"round": 3, "epochs": "many"})
    assert "3 problem(s)" in str(caught.value)
    for words in ("rounds: Field required", "epochs", "Did you mean 'rounds'"):
        assert words in str(caught.value)


def test_a_full_disk_while_metrics_are_written_is_said_in_words(tmp_path, monkeypatch):
    from hedgerow.errors import CannotWrite
    from hedgerow.studies import load, run_study
    from hedgerow.studies.runner import Rounds

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
