"""The whole life of a study at a coordinator, with real envelopes, hosts and programs, and stations that misbehave."""

import errno
import json
import os

import numpy as np
import pandas as pd
import pytest
from made_up_stations import STUDY, Killed, World, pooled_fit

from hedgerow.core.ledger import Entry
from hedgerow.crypto.keys import verify
from hedgerow.crypto.messages import digest
from hedgerow.store import LedgerFile, read_chain
from hedgerow.wire.boarding import submission_digest


def coefficients(world, id):
    return pd.read_csv(world.folder / "runs" / id / "coefficients.csv")["coef"].to_numpy()


def refuse_once_more(code, stations):
    for station in stations:
        station.refuses.append(code)


def test_a_study_that_finished_is_the_pooled_fit(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    assert world.go(id).reason == "its program ended"
    np.testing.assert_allclose(coefficients(world, id), pooled_fit(world.tables.values()), atol=1e-8)
    assert {path.name for path in (tmp_path / "runs" / id).iterdir()} >= {"report.html", "ledger.jsonl", "result.json"}
    assert all(station.end == "finished" for station in world.stations.values())
    assert world.store.verify()[0] == len(world.store.history())


def test_what_stations_signed_lies_with_the_results(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    world.go(id)
    found = json.loads((tmp_path / "runs" / id / "approvals.json").read_text())
    digest_described = submission_digest(found["told"]["text"].encode(), bytes.fromhex(found["told"]["about"]))
    assert found["told"]["digest"] == digest_described.hex()
    for one in found["stations"]:
        statement = digest("submission decision", digest_described, one["status"].encode())
        verify(world.stations[one["station"]].key_material.public_identity.identity, bytes.fromhex(one["signature"]), statement)


def test_a_twin_that_does_not_begin_new_lives_is_caught(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    world.store.new_life = lambda id: 1
    with pytest.raises(AssertionError, match="went out twice"):
        world.go(id)


def test_the_store_says_how_far_a_study_is(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    kept = world.go(id)
    assert kept.round == 6
    assert [one.station for one in kept.boarded] == ["alpha", "beta", "gamma"]
    assert any("ask" in words and "came alpha" in words for words in world.words(id))


def test_letters_hold_nothing_that_a_tap_could_read(tmp_path):
    world = World(tmp_path)
    world.go(world.submit())
    assert world.rail.sent
    assert not any(b"age" in body or b"logistic" in body for _, body in world.rail.sent)


def test_a_station_that_is_away_for_a_while_is_waited_for(tmp_path):
    world = World(tmp_path, {"least_answers": 3})
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    world.rail.leave("beta")
    kept = world.go(id, 300)
    assert kept.state == "waiting"
    assert "beta" in kept.reason
    world.rail.join("beta")
    assert world.go(id).state == "finished"
    np.testing.assert_allclose(coefficients(world, id), pooled_fit(world.tables.values()), atol=1e-8)


def test_a_study_goes_on_as_soon_as_the_station_is_back_whatever_the_pause(tmp_path):
    world = World(tmp_path, {"least_answers": 3, "retry_seconds": 5000, "retry_most_seconds": 5000})
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    world.rail.leave("beta")
    world.go(id, 60, until=lambda kept: kept.state == "waiting")
    world.rail.join("beta")
    assert world.go(id, 100).state == "finished"


@pytest.mark.slow
def test_pauses_grow_while_stations_say_nothing(tmp_path):
    world = World(tmp_path, {"question_seconds": 1, "retry_seconds": 2, "waiting_hours": 1})
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    for station in world.stations.values():
        station.refuses.extend(["HR-104"] * 6)
    assert world.go(id).state == "finished"
    times = [entry.at for entry in world.store.history(id) if entry.sentence.startswith("waiting")]
    gaps = np.diff(times)
    assert len(gaps) == 5
    assert (gaps[1:] >= 1.8 * gaps[:-1]).all()


@pytest.mark.slow
def test_waiting_for_ever_is_a_failure_with_a_reason(tmp_path):
    world = World(tmp_path, {"least_answers": 3, "waiting_hours": 1})
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    world.rail.leave("beta")
    kept = world.go(id, 2 * 3600, until=lambda kept: kept.ended)
    assert kept.state == "failed"
    assert "1 hours" in kept.reason
    assert "beta" in kept.reason


def test_what_all_guards_refuse_is_refused_in_words(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    refuse_once_more("HR-603", world.stations.values())
    kept = world.go(id)
    assert kept.state == "refused"
    assert "beta refused: HR-603 ColumnForbidden: its guard does not allow a column to be used" in kept.reason


def test_one_guard_that_refuses_leaves_a_fit_of_the_others(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    world.stations["beta"].refuses = ["HR-609"] * 50
    assert world.go(id).state == "finished"
    others = [world.tables["alpha"], world.tables["gamma"]]
    np.testing.assert_allclose(coefficients(world, id), pooled_fit(others), atol=1e-8)
    assert any("beta refused: HR-609" in words for words in world.words(id))


def test_a_budget_that_is_spent_before_the_first_round_is_a_refusal(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    refuse_once_more("HR-213", world.stations.values())
    kept = world.go(id)
    assert kept.state == "refused"
    assert "budget" in kept.reason


@pytest.mark.parametrize("code", ["HR-104", "HR-610", "HR-611"])
def test_opening_hours_rates_and_full_disks_are_waited_for(tmp_path, code):
    world = World(tmp_path)
    id = world.submit()
    refuse_once_more(code, world.stations.values())
    waited = world.go(id, until=lambda kept: kept.state == "waiting")
    assert code in waited.reason
    assert world.go(id).state == "finished"


def test_a_code_of_a_broken_station_fails_and_is_no_refusal(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    refuse_once_more("HR-615", world.stations.values())
    assert world.go(id).state == "failed"


def test_a_cancelled_study_ends_before_its_next_question(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    asked = world.stations["alpha"].host.answer
    seen = []

    def answer(*parts):
        seen.append(1)
        world.store.cancel(id)
        return asked(*parts)

    world.stations["alpha"].host.answer = answer
    kept = world.go(id)
    assert (kept.state, len(seen)) == ("cancelled", 1)
    assert world.stations["beta"].end == "cancelled"


def test_a_study_is_cancelled_while_it_waits(tmp_path):
    world = World(tmp_path, {"least_answers": 3})
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    world.rail.leave("beta")
    world.go(id, 60, until=lambda kept: kept.state == "waiting")
    assert world.store.cancel(id)
    kept = world.go(id, 60)
    assert kept.state == "cancelled"
    assert kept.untold == ("beta",)
    world.rail.join("beta")
    assert world.go(id, 3600).untold == ()
    assert world.stations["beta"].end == "cancelled"


def test_a_stopped_coordinator_leaves_studies_that_go_on(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    world.coordinator.stopping.set()
    world.coordinator.advance(id)
    assert world.store.study(id).state == "waiting"
    world.store.close()
    world.start()
    assert world.go(id).state == "finished"


def test_a_full_disk_leaves_a_study_that_goes_on(tmp_path, monkeypatch):
    world = World(tmp_path)
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    written, full = LedgerFile.write, [2]

    def write(self, entry: Entry):
        full[0] -= 1
        if full[0] == 0:
            raise_full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(raise_full))
        return written(self, entry)

    with monkeypatch.context() as patched:
        patched.setattr(LedgerFile, "write", write)
        world.coordinator.advance(id)
        monkeypatch.undo()
    kept = world.store.study(id)
    assert kept.state == "waiting"
    assert "HR-104" in kept.reason
    assert world.go(id).state == "finished"
    np.testing.assert_allclose(coefficients(world, id), pooled_fit(world.tables.values()), atol=1e-8)


def killed_and_started_again(folder, step):
    """Kill the coordinator at a step, start another one, and let it finish; None where it ended before."""
    world = World(folder, names=("alpha", "beta"))
    id = world.submit()
    world.rail.killed_at = step
    try:
        world.go(id)
    except Killed:
        world.store.close()
        world.start()
        assert world.go(id).state == "finished"
        return world, id
    return None


@pytest.mark.slow
def test_a_coordinator_killed_at_any_step_finishes_with_the_same_result(tmp_path):
    step, expected = 1, None
    while (found := killed_and_started_again(tmp_path / str(step), step)) is not None:
        world, id = found
        expected = pooled_fit(world.tables.values()) if expected is None else expected
        np.testing.assert_allclose(coefficients(world, id), expected, atol=1e-8)
        assert world.store.verify()[0] > 10
        assert read_chain(tmp_path / str(step) / "runs" / id).entries
        step += 1
    assert step > 15


def test_two_studies_run_side_by_side_on_one_post(tmp_path):
    world = World(tmp_path)
    one, two = world.submit(), world.submit(name="other", program=STUDY["program"] | {"formula": "ill ~ age"})
    assert world.go(one).state == world.go(two).state == "finished"
    assert len(coefficients(world, two)) == 2


def test_a_coordinator_killed_after_the_last_answer_finishes_with_the_same_result(tmp_path):
    world = World(tmp_path)
    id = world.submit()
    move = world.store.move

    def killed(id, state, *reason, **changes):
        if state == "finished":
            raise Killed
        return move(id, state, *reason, **changes)

    world.store.move = killed
    with pytest.raises(Killed):
        world.go(id)
    world.store.close()
    world.start()
    assert world.go(id).state == "finished"
    np.testing.assert_allclose(coefficients(world, id), pooled_fit(world.tables.values()), atol=1e-8)


def test_a_coordinator_that_starts_again_gives_all_its_stations_time_to_dial(tmp_path):
    world = World(tmp_path, {"gather_seconds": 20})
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    world.store.close()
    for name in world.stations:
        world.rail.leave(name)
    world.start()
    world.rail.join("alpha")
    world.rail.join("beta")
    kept = world.go(id, 10)
    assert (kept.state, kept.reason) == ("waiting", "gamma away")
    assert "ask" not in world.stations["alpha"].seen
    world.rail.join("gamma")
    assert world.go(id, 5).state == "finished"


def test_a_station_that_stays_away_is_left_out_where_the_others_are_enough(tmp_path):
    world = World(tmp_path, {"gather_seconds": 20})
    id = world.submit()
    world.go(id, until=lambda kept: kept.state == "running")
    world.rail.leave("gamma")
    assert world.go(id, 15).state == "waiting"
    kept = world.go(id, 60)
    assert kept.reason == "its program ended; at its last question without gamma"
    others = [world.tables["alpha"], world.tables["beta"]]
    np.testing.assert_allclose(coefficients(world, id), pooled_fit(others), atol=1e-8)
