"""A station's journal: whole, or it says where it is not."""

import os
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from hedgerow.errors import CannotWrite, LedgerDamaged
from hedgerow.network.station.base import Base
from hedgerow.network.station.journal import PartyCharge, StationEntry, StationJournal, pack_parties, unpack_parties


@pytest.fixture
def journal(tmp_path):
    base = Base(tmp_path / "state" / "station.sqlite")
    yield StationJournal(base)
    base.close()


def entry(letter=1, code="asked", **about):
    return StationEntry("2026-03-02T12:00:00.000+00:00", "ask", "aa" * 16, letter, code, **about)


def test_entries_come_back_in_order_and_the_chain_holds(journal):
    written = [
        entry(1, charges=(PartyCharge("all", {"round": 1}, "x"),)),
        entry(1, "answered", epsilon=0.5),
        entry(2, "HR-603"),
    ]
    journal.write(*written[:2])
    journal.write(written[2])
    assert journal.entries() == written
    assert [one.number for one in journal.entries(last=2)] == [2, 3]
    assert journal.entries(study="bb" * 16) == []
    assert journal.verify() == (3, journal.entries()[-1].hash)
    assert journal.last_numbers() == {"aa" * 16: 2}
    assert [(study, charge.account) for study, charge in journal.charges()] == [("aa" * 16, "all")]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE journal SET entry = replace(entry, 'HR-603', 'answered') WHERE number = 2",
        "UPDATE journal SET letter = 9 WHERE number = 2",
        "DELETE FROM journal WHERE number = 2",
    ],
    ids=["changed", "number", "removed"],
)
def test_a_change_is_refused_and_where_it_was_forced_it_is_found(journal, change):
    journal.write(entry(1), entry(2, "HR-603"), entry(3))
    with closing(sqlite3.connect(journal.base.path)) as other:
        with pytest.raises(sqlite3.IntegrityError, match="never edited"):
            other.execute(change)
        other.execute("DROP TRIGGER journal_never_changed")
        other.execute("DROP TRIGGER journal_never_deleted")
        other.execute(change)
        other.commit()
    with pytest.raises(LedgerDamaged, match="entry 2"):
        journal.verify()


def test_entries_of_one_transaction_are_written_together_or_not_at_all(journal):
    journal.write(entry(1))
    journal.base.rows("PRAGMA max_page_count = 12")
    with pytest.raises(CannotWrite, match="HR-104"):
        journal.write(entry(2), entry(3, reason="x" * 100_000))
    assert len(journal.entries()) == 1


def test_parties_are_named_as_long_as_they_are_there():
    ids = tuple(f"gate/{i}" for i in range(100))
    position = {id: i for i, id in enumerate(ids)}
    assert pack_parties(np.arange(100), ids) == ""
    packed = pack_parties(np.array([3, 50]), ids)
    assert unpack_parties(packed, position).tolist() == [3, 50]
    assert unpack_parties(packed, {"gate/50": 0}).tolist() == [0]
    assert unpack_parties("", position).tolist() == list(range(100))


def test_the_database_is_its_owner_s_alone(journal):
    assert os.stat(journal.base.path).st_mode & 0o77 == 0


def test_another_file_is_not_taken_for_a_station_s(tmp_path):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE a (b)")
    with pytest.raises(LedgerDamaged):
        Base(path)
    path.write_text("no database at all, but text")
    with pytest.raises(LedgerDamaged):
        Base(path)


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        Base(tmp_path / "file" / "station.sqlite")
