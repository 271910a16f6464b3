"""Studies on disk: transitions, lives, the lock, the journal, and a disk that is full."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from hedgerow.errors import CannotWrite, LedgerDamaged, UnknownStudy, catalogue
from hedgerow.network.coordinator.journal import refusal
from hedgerow.network.coordinator.states import ENDS, NEXT, STATES, Boarded
from hedgerow.network.coordinator.store import Store


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "state", lambda: 7.0)
    yield made
    made.close()


def reopened(store):
    store.close()
    return Store(store.folder, store.now)


def test_a_study_is_as_it_was_after_reopening(store):
    id = store.submit("births 2020", 'name = "x"', ("alpha", "beta"))
    store.board(id, [Boarded("alpha", "approved", "", ("a", "b"), b"t" * 32, b"s" * 64, 3.0)])
    store.move(id, "boarding", "asked", due=5.0, agreed=b"\x00\xff")
    before = store.study(id)
    assert id == "births-2020-001"
    assert (before.state, before.asked, before.due, before.agreed) == ("boarding", ("alpha", "beta"), 5.0, b"\x00\xff")
    again = reopened(store)
    assert again.study(id) == before
    again.close()


def test_ids_and_keys_are_never_given_twice(store):
    ids = [store.submit("s", "") for _ in range(3)]
    assert ids == ["s-001", "s-002", "s-003"]
    assert len({store.study(id).key for id in ids}) == 3


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_only_lawful_transitions_happen(store, before, after):
    paths = {"submitted": [], "boarding": ["boarding"], "running": ["boarding", "running"]}
    paths["waiting"] = [*paths["running"], "waiting"]
    paths |= {end: [*paths["running"], end] for end in ENDS}
    id = store.submit("s", "")
    for state in paths[before]:
        store.move(id, state)
    if after in NEXT[before]:
        assert store.move(id, after, "because").state == after
        assert store.history(id)[-1].sentence == f"{after}: because"
    else:
        n = len(store.history(id))
        with pytest.raises(CannotWrite, match=f"is {before}"):
            store.move(id, after)
        assert (store.study(id).state, len(store.history(id))) == (before, n)


def test_every_life_is_larger_than_the_last_even_after_a_restart(store):
    id = store.submit("s", "")
    assert [store.new_life(id) for _ in range(3)] == [1, 2, 3]
    again = reopened(store)
    assert again.new_life(id) == 4
    again.close()


@pytest.mark.slow
def test_the_second_coordinator_on_a_state_folder_is_refused(store):
    store.lock()
    script = (
        "import sys; from pathlib import Path; from hedgerow.network.coordinator.store import Store\n"
        "from hedgerow.errors import CannotWrite\n"
        "store = Store(Path(sys.argv[1])); store.submit('s', '')\n"
        "try: store.lock()\n"
        "except CannotWrite as error: print(error.reason)"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(store.folder)], capture_output=True, text=True, check=True)
    assert "runs already" in ran.stdout
    assert [kept.id for kept in store.studies()] == ["s-001"]  # but it may submit


def test_the_lock_is_free_again_after_the_end(store):
    store.lock()
    again = reopened(store)
    again.lock()
    again.close()


def test_an_unknown_study_is_refused_with_a_near_name(store):
    store.submit("births", "")
    with pytest.raises(UnknownStudy, match="births-002") as caught:
        store.study("births-002")
    assert "births-001" in caught.value.remedy


def test_a_full_disk_changes_nothing_and_is_said(store):
    id = store.submit("s", "")
    pages = store._database.rows("PRAGMA page_count")[0][0]
    store._database.rows(f"PRAGMA max_page_count = {pages}")
    before = store.study(id), store.history(id)
    with pytest.raises(CannotWrite, match="full"):
        store.move(id, "boarding", "x" * 100_000)
    assert (store.study(id), store.history(id)) == before
    store._database.rows("PRAGMA max_page_count = 100000")
    assert store.move(id, "boarding", "x" * 100_000).state == "boarding"


def test_a_journal_that_was_edited_is_found(store):
    id = store.submit("s", "")
    store.enter(id, "asked", {"kind": "ask", "number": 5, "bytes": {"alpha": 12}})
    store.move(id, "boarding", "asked")
    assert store.verify() == (3, store.history()[-1].hash)
    store.close()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("DROP TRIGGER journal_never_changed")
        connection.execute("UPDATE journal SET entry = replace(entry, '12', '13') WHERE number = 2")
        connection.commit()
    again = Store(store.folder)
    with pytest.raises(LedgerDamaged, match="entry 2"):
        again.verify()
    again.close()


def test_the_journal_refuses_to_be_edited(store):
    store.submit("s", "")
    for statement in ("UPDATE journal SET entry = ''", "DELETE FROM journal"):
        with pytest.raises(LedgerDamaged, match="never edited"):
            store._database.rows(statement)


def test_letters_are_told_in_words(store):
    id = store.submit("s", "")
    number = (3 << 32) + 4
    store.enter(id, "asked", {"kind": "ask", "number": number, "bytes": {"alpha": 1200, "beta": 900, "gamma": 1}})
    came = {"bytes": {"alpha": 40}, "codes": {"beta": "HR-603"}, "silent": ["gamma"]}
    store.enter(id, "came", {"kind": "ask", "number": number} | came)
    asked, answered = (entry.sentence for entry in store.history(id)[1:])
    assert asked == "ask 3.4: asked alpha 1,200 bytes, beta 900 bytes, gamma 1 bytes"
    assert answered == (
        "ask 3.4: came alpha 40 bytes; beta refused: HR-603 ColumnForbidden: its guard does not allow a column to be used; "
        "nothing from gamma"
    )


def test_every_code_has_words():
    for code, kind in catalogue().items():
        assert refusal("beta", code).startswith(f"beta refused: {code} {kind.__name__}: ")
    assert "does not know" in refusal("beta", "HR-999")


def test_another_database_is_not_taken_for_a_state(tmp_path):
    with closing(sqlite3.connect(tmp_path / "coordinator.sqlite")) as connection:
        connection.execute("CREATE TABLE something (a)")
        connection.commit()
    with pytest.raises(LedgerDamaged, match="not a database of a coordinator"):
        Store(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        Store(tmp_path / "file" / "state")


def test_only_open_studies_are_open(store):
    ids = [store.submit("s", "") for _ in range(3)]
    store.move(ids[0], "cancelled")
    store.move(ids[1], "cancelled", untold=("alpha",))
    assert [kept.id for kept in store.open()] == ids[1:]
