"""What parties keep between questions outlives their station's process, whatever moment that ended in, and not the study."""

import numpy as np
import pytest

from hedgerow.engines import party_states
from hedgerow.engines.party_states import Numbers, PartyStates, StateFiles, keeping
from hedgerow.errors import CannotWrite, ContributionInvalid, HedgerowError, StateLost
from station_house import LOGISTIC, STUDY, House

SCAFFOLD = LOGISTIC.split("[program]")[0] + "[program]\nname = 'scaffold'\nmodel = 'linear'\nrounds = 4\nbatch_size = 0\n"
RULES = {"approval": "automatic", "programs": [{"name": "scaffold"}]}


def trained(folder, restarts):
    """Weights after each round, where all stations are started anew after some of them."""
    house = House(folder, {"alpha": {}, "beta": {}}, **RULES)
    house.board(SCAFFOLD)
    built, found = house.built(SCAFFOLD), []
    for state in built.listing.program(built.settings)(built.federation):
        found.append({name: value.copy() for name, value in state.weights.items()})
        for name in house.stations if state.round in restarts else ():
            house.start(name)
    return house, found


@pytest.mark.slow
def test_training_goes_on_after_restarts_as_if_there_were_none(tmp_path):
    _, quiet = trained(tmp_path / "quiet", ())
    _, restarted = trained(tmp_path / "restarted", (1, 2, 3))
    assert len(quiet) == 4
    for one, other in zip(quiet, restarted, strict=True):
        for name in one:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-7)  # records are shuffled anew
    assert any(np.abs(quiet[0][name] - quiet[3][name]).max() > 1e-3 for name in quiet[0])
    files = {path.name.partition(".")[0] for path in (tmp_path / "restarted" / "alpha" / "states").iterdir()}
    assert files == {STUDY.hex()}


@pytest.mark.slow
def test_what_parties_keep_is_deleted_when_the_study_ends(tmp_path):
    house, _ = trained(tmp_path, (2,))
    folders = {name: tmp_path / name / "states" for name in house.stations}
    assert all(any(folder.iterdir()) for folder in folders.values())
    house.number = 1 << 40
    house.ask("end", [b""], ["alpha"])
    assert not list(folders["alpha"].iterdir())
    assert list(folders["beta"].iterdir())


def test_a_station_that_lost_what_its_parties_kept_says_so_and_computes_nothing(tmp_path):
    house = House(tmp_path, {"alpha": {}}, **RULES)
    house.board(SCAFFOLD)
    built = house.built(SCAFFOLD)
    states = iter(built.listing.program(built.settings)(built.federation))
    next(states)
    next(states)
    house.stations["alpha"].close()
    for path in (tmp_path / "alpha" / "states").iterdir():
        path.unlink()
    for _ in range(2):  # also when it was started once more in between
        house.start("alpha")
    with pytest.raises(HedgerowError):
        next(states)
    assert house.codes("alpha")[-1] == ("ask", "HR-615")


# ---- the file -------------------------------------------------------------------------------------------------------
def question(states, number, counted, **kept):
    """One question to some parties; returns what they went on from."""
    with keeping(states):
        found = {id: states.settle(id, counted) for id in kept}
        for id, value in kept.items():
            states.propose(id, {"v": np.array(value) if type(value) is float else value}, number)
    return {id: state["v"].item() if state else None for id, state in found.items()}


def test_a_party_goes_on_from_either_state_also_after_a_restart(tmp_path):
    path = tmp_path / "s.sqlite"
    states = PartyStates(path)
    assert question(states, 1, {}, a=10.0, b=11.0) == {"a": None, "b": None}
    assert question(states, 2, {"a": 1, "b": 1}, a=20.0, b=21.0) == {"a": 10.0, "b": 11.0}
    for again in (1, 2):  # the answer to 2 was counted, or was not
        states.close()
        states = PartyStates(path, begun=True)
        assert states.numbers() == {"a": Numbers(1, 2), "b": Numbers(1, 2)}
        assert states.settle("a", {"a": again})["v"] == 10.0 * again
        with pytest.raises(StateLost):
            states.settle("a", {"a": 3})
        states.drop()
    assert question(states, 3, {"a": 2, "b": 1}, a=30.0, b=31.0) == {"a": 20.0, "b": 11.0}
    states.close()
    states = PartyStates(path, begun=True)
    assert states.numbers() == {"a": Numbers(2, 3), "b": Numbers(1, 3)}
    assert states.settle("b", {"b": 1})["v"] == 11.0


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_file_that_is_gone_or_empty_is_a_loss_and_no_beginning(tmp_path, how):
    path = tmp_path / "s.sqlite"
    states = PartyStates(path)
    question(states, 1, {}, a=10.0)
    states.close()
    for part in tmp_path.glob("s.sqlite*"):
        part.unlink()
    if how == "emptied":
        path.write_bytes(b"")
    states = PartyStates(path, begun=True)
    assert states.lost
    with pytest.raises(StateLost):
        states.settle("a", {"a": 1})
    states.close()
    with pytest.raises(StateLost):
        PartyStates(path, begun=True).settle("a", {"a": 1})


def test_a_question_that_fails_changes_nothing(tmp_path):
    states = PartyStates(tmp_path / "s.sqlite")
    question(states, 1, {}, a=10.0)
    with pytest.raises(ContributionInvalid):
        question(states, 2, {"a": 1}, a=99.0, b=object())  # a has proposed when b fails
    assert states.numbers() == {"a": Numbers(None, 1)}
    assert states.settle("a", {}) == {}
    assert states.settle("a", {"a": 1})["v"] == 10.0


def test_a_full_disk_keeps_nothing_of_the_question_and_lets_the_next_one_be_kept(tmp_path, monkeypatch):
    states = PartyStates(tmp_path / "s.sqlite")
    question(states, 1, {}, a=10.0, b=11.0)

    def full(self, connection, id):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(PartyStates, "_stored", full)
        with pytest.raises(CannotWrite):
            question(states, 2, {"a": 1, "b": 1}, a=20.0, b=21.0)
    assert states.numbers() == {"a": Numbers(None, 1), "b": Numbers(None, 1)}
    assert question(states, 3, {"a": 1, "b": 1}, a=30.0, b=31.0) == {"a": 10.0, "b": 11.0}


def test_two_processes_that_write_one_file_do_not_mix(tmp_path):
    first, second = PartyStates(tmp_path / "s.sqlite"), PartyStates(tmp_path / "s.sqlite")
    question(first, 1, {}, a=10.0)
    with pytest.raises(CannotWrite, match="another process"):
        question(second, 1, {}, a=20.0)
    assert second.numbers() == {"a": Numbers(None, 1)}  # as before every question
    assert question(second, 2, {"a": 1}, a=20.0) == {"a": 10.0}
    assert PartyStates(tmp_path / "s.sqlite").settle("a", {"a": 2})["v"] == 20.0


def test_numbers_are_told_to_another_process_as_they_are_now(tmp_path):
    states, beside = PartyStates(tmp_path / "s.sqlite"), PartyStates(tmp_path / "s.sqlite")
    for number in (1, 2, 3):
        question(states, number, {"a": number - 1} if number > 1 else {}, a=float(number))
        assert beside.numbers() == states.numbers() == {"a": Numbers(number - 1 or None, number)}


def test_a_state_that_a_party_changes_in_place_is_not_the_one_that_it_went_on_from(tmp_path):
    states = PartyStates(tmp_path / "s.sqlite")
    question(states, 1, {}, a=10.0)
    states.settle("a", {"a": 1})["v"] += 5
    states.drop()
    assert states.settle("a", {"a": 1})["v"] == 10.0


def test_a_state_comes_back_with_every_bit(tmp_path):
    kept = {
        "f": np.array([np.nan, -0.0, 1e-310]),
        "i": np.arange(6, dtype=np.int16).reshape(2, 3),
        "e": np.zeros((0, 3), np.float32),
        "t": np.array(True),
        "n": 7,
    }
    states = PartyStates(tmp_path / "s.sqlite")
    with keeping(states):
        states.settle("a", {})
        states.propose("a", kept, 1)
    states.close()
    found = PartyStates(tmp_path / "s.sqlite").settle("a", {"a": 1})
    assert list(found) == list(kept)
    for name, value in kept.items():
        assert np.asarray(found[name]).dtype == np.asarray(value).dtype
        assert np.asarray(found[name]).tobytes() == np.asarray(value).tobytes()


@pytest.mark.parametrize("odd", [object(), question, np.array([object()])], ids=["an object", "a function", "objects"])
def test_what_is_neither_number_nor_array_is_not_kept(tmp_path, odd):
    states = PartyStates(tmp_path / "s.sqlite")
    with pytest.raises(ContributionInvalid):
        question(states, 1, {}, a=odd)
    assert states.numbers() == {}


def test_a_file_grows_with_its_parties_and_not_with_questions(tmp_path):
    states, value = PartyStates(tmp_path / "s.sqlite"), np.arange(1000.0)
    for number in range(1, 41):
        with keeping(states):
            states.settle("a", {"a": number - 1} if number > 1 else {})
            states.propose("a", {"v": value + number}, number)
        [(n,)] = states._database.rows("SELECT count(*) FROM states")
        assert n <= 2
    states.close()
    assert (tmp_path / "s.sqlite").stat().st_size < 8 * value.nbytes


def test_a_state_that_did_not_change_is_not_written_again(tmp_path):
    states = PartyStates(tmp_path / "s.sqlite")
    question(states, 1, {}, a=1.0)
    question(states, 2, {"a": 1}, a=1.0)
    question(states, 3, {"a": 2}, a=1.0)
    assert states._database.rows("SELECT count(*) FROM states") == [(1,)]
    assert question(PartyStates(tmp_path / "s.sqlite"), 4, {"a": 3}, a=2.0) == {"a": 1.0}


def test_states_of_ended_studies_are_swept(tmp_path):
    files = StateFiles(tmp_path / "states")
    for study in ("aa", "bb"):
        question(files.of(study), 1, {}, a=1.0)
    files.sweep(["bb"])
    assert {path.name.split(".")[0] for path in (tmp_path / "states").iterdir()} == {"bb"}
    assert StateFiles(None).of("cc").path is None
    assert party_states.SUFFIX == ".sqlite"
