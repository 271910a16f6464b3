"""A journal in a database: its chain, its transactions, who may write at the same time, and what is refused."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from hedgerow.errors import CannotWrite, LedgerDamaged
from hedgerow.store import Database, Journal, JournalTable, Lines, journal, write_bytes

TABLE = JournalTable("notes", {"study": "TEXT", "size": "INTEGER"}, indices=("study",))
VALUES = "CREATE TABLE kept (value INTEGER)"


def opened(path, **how):
    return Database(path, [TABLE, VALUES], b"test", "a file of tests", **how)


@pytest.fixture
def notes(tmp_path):
    with closing(opened(tmp_path / "notes.sqlite")) as database:
        yield Journal(database, TABLE)


def note(study="a", size=1, text='{"x": 1}'):
    return (study, size), text


def test_entries_come_back_in_order_with_their_columns_and_are_counted_by_sql(notes):
    last = notes.append(*(note("ab"[n % 2], n, f'{{"n": {n}}}') for n in range(5)))
    assert [link.columns for link in notes.links()] == [("a", 0), ("b", 1), ("a", 2), ("b", 3), ("a", 4)]
    assert [link.number for link in notes.links("study = ?", ("a",), after=1)] == [3, 5]
    assert [link.number for link in notes.links(last=2)] == [4, 5]
    assert notes.database.rows("SELECT study, sum(size) FROM notes WHERE number GROUP BY study") == [("a", 6), ("b", 4)]
    assert notes.verify() == (5, last.hash)


def test_two_journals_of_equal_entries_have_other_heads(tmp_path):
    heads = set()
    for name in "ab":
        with closing(opened(tmp_path / name)) as database:
            heads.add(Journal(database, TABLE).append(note()).hash)
    assert len(heads) == 2


def test_the_chain_is_checked_from_an_entry_that_is_known(notes):
    links = [notes.append(note(size=n)) for n in range(4)]
    assert notes.checked(links[1].number, links[1].hash) == links[1:]
    assert notes.checked(links[3].number, links[3].hash) == links[3:]
    for number, hash in ((2, links[0].hash), (9, links[0].hash)):
        with pytest.raises(LedgerDamaged, match=f"entry {number} of"):
            notes.checked(number, hash)


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE notes SET entry = '{\"x\": 2}' WHERE number = 3", 3),
        ("UPDATE notes SET study = 'b' WHERE number = 4", 4),
        ("UPDATE notes SET size = 9 WHERE number = 1", 1),
        ("UPDATE notes SET study = 'a' || char(10) || '1', size = '' WHERE number = 2", 2),
        ("UPDATE notes SET entry = CAST(x'7bff7d' AS TEXT) WHERE number = 2", "decode"),
        ("DELETE FROM notes WHERE number = 4", 4),
        ("DELETE FROM notes WHERE number = 0", 0),
        ("DELETE FROM notes", 0),
    ],
)
def test_what_was_edited_by_force_is_named_on_whatever_page_it_is(notes, monkeypatch, statement, number):
    monkeypatch.setattr(journal, "PAGE", 2)
    last = notes.append(*(note() for _ in range(5)))
    assert notes.verify() == (5, last.hash)
    with closing(sqlite3.connect(notes.database.path)) as other:
        with pytest.raises(sqlite3.IntegrityError, match="never edited"):
            other.execute(statement)
        for [name] in other.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            other.execute(f"DROP TRIGGER {name}")
        other.execute(statement)
        other.commit()
    with pytest.raises(LedgerDamaged, match=str(number) if number == "decode" else f"entry {number} of"):
        notes.verify()


def test_a_row_is_added_at_the_end_alone(notes):
    with pytest.raises(LedgerDamaged, match="out of order"):
        notes.database.rows("INSERT INTO notes VALUES (7, 'a', 1, '{}', '')")


def test_a_column_with_a_line_break_is_refused(notes):
    with pytest.raises(ValueError, match="line break"):
        notes.append(note(), note(study="a\nb"))
    assert notes.verify()[0] == 0


# ---- transactions ---------------------------------------------------------------------------------------------------
def test_what_is_written_within_a_transaction_is_there_together_or_not_at_all(notes):
    class Stop(Exception):
        pass

    def write(fails):
        with notes.database.transaction() as connection:
            connection.execute("INSERT INTO kept VALUES (1)")
            notes.append(note())
            if fails:
                raise Stop

    with pytest.raises(Stop):
        write(fails=True)
    assert (notes.database.rows("SELECT * FROM kept"), notes.verify()[0]) == ([], 0)
    write(fails=False)
    assert (notes.database.rows("SELECT * FROM kept"), notes.verify()[0]) == ([(1,)], 1)


def test_what_must_not_be_lost_is_not_written_within_what_may_be(notes):
    with pytest.raises(AssertionError), notes.database.transaction(lightly=True):
        notes.append(note())
    notes.append(note(), lightly=True)
    notes.append(note())
    assert notes.verify()[0] == 2


def test_who_reads_does_not_wait_and_sees_what_was_committed(notes, tmp_path):
    notes.append(note())
    with closing(opened(notes.database.path, patience=0.01)) as other, notes.database.transaction():
        notes.append(note())
        assert Journal(other, TABLE).verify()[0] == 1
        with pytest.raises(CannotWrite, match="locked"):
            Journal(other, TABLE).append(note())


def test_threads_take_turns(notes):
    def write():
        for _ in range(10):
            notes.append(note())

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert notes.verify()[0] == 40


def test_a_disk_that_is_full_keeps_nothing_of_the_step(notes):
    notes.append(note())
    notes.database.rows("PRAGMA max_page_count = 8")
    with pytest.raises(CannotWrite, match="full"):
        notes.append(note(), note(text="x" * 100_000))
    assert notes.verify()[0] == 1


# ---- files ----------------------------------------------------------------------------------------------------------
def test_a_closed_file_is_one_file_and_a_copy_of_an_open_one_is_two(tmp_path):
    path, copy = tmp_path / "notes.sqlite", tmp_path / "copy"
    with closing(opened(path)) as database:
        Journal(database, TABLE).append(note())
        assert path.with_name("notes.sqlite-wal").stat().st_size > 0
        copy.mkdir()
        for name in ("notes.sqlite", "notes.sqlite-wal"):
            (copy / name).write_bytes((tmp_path / name).read_bytes())
    assert [each.name for each in tmp_path.glob("notes*")] == ["notes.sqlite"]
    for one in (path, copy / "notes.sqlite"):
        with closing(opened(one, made=False)) as database:
            assert Journal(database, TABLE).verify()[0] == 1


def test_a_file_in_a_folder_that_cannot_be_written_is_read(tmp_path, monkeypatch):
    with closing(opened(tmp_path / "notes.sqlite")) as database:
        Journal(database, TABLE).append(note())
    before = (tmp_path / "notes.sqlite").read_bytes()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with closing(opened(tmp_path / "notes.sqlite", made=False)) as database:
        assert Journal(database, TABLE).verify()[0] == 1
        assert [each.name for each in tmp_path.iterdir()] == ["notes.sqlite"]
        with pytest.raises(CannotWrite, match="readonly"):
            Journal(database, TABLE).append(note())
    assert (tmp_path / "notes.sqlite").read_bytes() == before


def test_another_file_is_refused_and_not_touched(tmp_path):
    (tmp_path / "text").write_text("no database " * 100)
    with closing(sqlite3.connect(tmp_path / "other")) as connection:
        connection.execute("CREATE TABLE notes (number)")
    with closing(Database(tmp_path / "ours", [TABLE], b"hdgr", "a ledger")):
        pass
    for name in ("text", "other", "ours"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(LedgerDamaged, match="HR-231"):
            opened(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


def test_a_file_that_is_only_read_is_not_made(tmp_path):
    with pytest.raises(CannotWrite):
        opened(tmp_path / "missing", made=False)
    (tmp_path / "empty").touch()
    with pytest.raises(LedgerDamaged, match="empty"):
        opened(tmp_path / "empty", made=False)
    assert not (tmp_path / "missing").exists()


def test_private_files_are_their_owner_s_alone(tmp_path):
    with closing(opened(tmp_path / "state" / "notes.sqlite")):
        assert (tmp_path / "state").stat().st_mode & 0o77 == 0
        assert all(each.stat().st_mode & 0o77 == 0 for each in (tmp_path / "state").iterdir())
    write_bytes(tmp_path / "secret", b"1", private=True)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_closed_file_writes_nothing(notes):
    notes.database.close()
    with pytest.raises(CannotWrite, match="closed"):
        notes.append(note())


def test_lines_that_cannot_be_read_are_said_so(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(CannotWrite, match="HR-104"):
        Lines(tmp_path / "folder").read()


# ---- processes ------------------------------------------------------------------------------------------------------
FORKED = """
import os, sys
sys.path.insert(0, {folder!r})
from test_journal import Journal, TABLE, Lines, CannotWrite, note, opened
from pathlib import Path
path = Path({path!r})

def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except CannotWrite as error:
            print(error.reason, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)

# a connection of before the fork
notes = Journal(opened(path), TABLE)
notes.append(note())
child(lambda: [notes.append(note()) for _ in range(5)])
notes.append(note())
print(notes.verify()[0], flush=True)
with notes.database.transaction():
    child(lambda: notes.append(note()))
# lines
lines = Lines(path.with_name("lines"))
lines.append('{{"x": 1}}')
child(lambda: lines.append('{{"x": 2}}'))
# many at once, the file being made
other = path.with_name("other")
pids = []
for _ in range(6):
    pids.append(os.fork())
    if pids[-1] == 0:
        made = Journal(opened(other), TABLE)
        for _ in range(5):
            made.append(note())
        os._exit(0)
print([os.waitpid(pid, 0)[1] for pid in pids], Journal(opened(other), TABLE).verify()[0], flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_harms_nobody_and_many_processes_make_one_file(tmp_path):
    script = FORKED.format(folder=os.path.dirname(__file__), path=str(tmp_path / "notes.sqlite"))
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not ran.stderr, ran.stderr
    grown, within, lines, at_once = ran.stdout.splitlines()
    assert grown == "7"
    assert "in a transaction when this process was forked" in within
    assert "belongs to another process" in lines
    assert at_once == "[0, 0, 0, 0, 0, 0] 30"


def test_a_log_that_another_process_is_making_is_waited_for(tmp_path):
    class Busy:
        """A connection that SQLite refuses twice, whatever its patience."""

        refusals = 2

        def execute(self, query):
            if self.refusals:
                self.refusals -= 1
                raise sqlite3.OperationalError("database is locked")
            return self

        def fetchone(self):
            return ("wal",)

    kept = opened(tmp_path / "notes.sqlite")
    assert kept._mode(Busy()) == "wal"
    kept.close()
