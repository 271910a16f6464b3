"""A ledger that runs share: what others spent is charged, cohorts of two runs stay apart, nothing is edited."""

import json
import sqlite3
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest
from entries import entry

from hedgerow import Budget, Gaussian, l2
from hedgerow.core import Ledger
from hedgerow.core.events import Event, Sampling
from hedgerow.core.question import ASIDE
from hedgerow.errors import BudgetExhausted, CannotWrite, CheckpointMismatch, LedgerDamaged, MixedUnits, UnknownStudy
from hedgerow.store import LedgerBase, LedgerFile, LedgerPair, read_chain, record_of
from helpers import federation, norm_of_x

POISSON = Sampling("poisson", 0.1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shared.sqlite"


@pytest.fixture
def filled(path):
    for run in ("a", "b"):
        ledger = Ledger(record=LedgerBase(path, run))
        for number in (1, 2):
            ledger.debit(entry(number))
    return path


def changed(path, *statements):
    """Edit the file as somebody with a tool of SQLite would, without the triggers."""
    with closing(sqlite3.connect(path)) as connection:
        triggers = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for statement in [*(f"DROP TRIGGER {name}" for name in triggers), *statements]:
            connection.execute(statement)
        connection.commit()


def test_a_run_finds_its_own_entries_again(filled):
    ledger = Ledger(record=LedgerBase(filled, "a"))
    assert ledger.entries == [entry(1), entry(2)]
    assert [(one.run, one.round) for one in ledger.others] == [("b", 1), ("b", 2)]


def test_what_other_runs_released_counts(path):
    budget = Budget(0.35, 1e-6, unit="record", accountant="basic")
    one, other = Ledger(budget, LedgerBase(path)), Ledger(budget, LedgerBase(path))
    for ledger, number in ((one, 1), (other, 1), (one, 2)):
        ledger.debit(entry(number, event=Event("laplace", 10.0)))
    with pytest.raises(BudgetExhausted, match="HR-213"):
        other.debit(entry(2, event=Event("laplace", 10.0)))
    assert len(read_chain(path).entries) == 3
    late = Ledger(budget, LedgerBase(path))
    assert budget.spent(late.charges("record")) == pytest.approx(0.3)


def test_cohorts_of_two_runs_are_two_sampling_events(path):
    one, other = Ledger(record=LedgerBase(path)), Ledger(record=LedgerBase(path))
    for ledger in (one, other):
        for number in (1, 2):
            ledger.debit(entry(number, cohort=1, sampling=POISSON))
    one.catch_up()
    assert [len(events) for _, events in one.charges("record")] == [2, 2]
    assert [len(events) for _, events in read_chain(path).ledger().charges("record")] == [2, 2]


def test_a_measurement_aside_is_no_cohort():
    ledger = Ledger()
    ledger.debit(entry(2, branch=ASIDE))
    ledger.debit(entry(3, cohort=2))
    ledger.debit(entry(2))
    assert len(ledger.charges("record")) == 3


def test_one_ledger_has_one_unit(path):
    Ledger(record=LedgerBase(path)).debit(entry(1, unit="party"))
    ledger = Ledger(Budget(1.0, 1e-6, unit="record"), LedgerBase(path))
    with pytest.raises(MixedUnits, match="HR-215"):
        ledger.debit(entry(1))


def test_a_resumed_run_is_not_charged_twice_and_others_stay_charged(filled):
    ledger = Ledger(record=LedgerBase(filled, "a"))
    ledger.rewind(0, replay=True)
    ledger.debit(entry(1))
    with pytest.raises(CheckpointMismatch):
        ledger.debit(entry(2, mechanism="another"))
    ledger.debit(entry(2))
    ledger.debit(entry(3))
    assert len(read_chain(filled).entries) == 5


def test_two_processes_cannot_continue_one_run(filled):
    one, other = Ledger(record=LedgerBase(filled, "a")), Ledger(record=LedgerBase(filled, "a"))
    one.debit(entry(3))
    with pytest.raises(CannotWrite, match=r"did not write[\s\S]*No party was asked"):
        other.debit(entry(3))
    assert len(other) == 2


def test_a_file_of_lines_belongs_to_one_process_too(tmp_path):
    one, other = (Ledger(record=LedgerFile(tmp_path / "ledger.jsonl")) for _ in range(2))
    one.debit(entry(1))
    with pytest.raises(CannotWrite, match="another process"):
        other.debit(entry(1))
    assert len(read_chain(tmp_path).entries) == 1


@pytest.mark.parametrize(
    "statement", ["UPDATE entries SET run = 'c'", "DELETE FROM entries", "REPLACE INTO entries VALUES (2, '', '', '')"]
)
def test_rows_cannot_be_changed(filled, statement):
    with closing(sqlite3.connect(filled)) as connection, pytest.raises(sqlite3.IntegrityError, match=r"edited|out of order"):
        connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("UPDATE entries SET entry = replace(entry, '2.0', '9.0') WHERE number = 2", 2),
        ("UPDATE entries SET run = 'c' WHERE number = 3", 3),
        ("DELETE FROM entries WHERE number = 2", 2),
        ("DELETE FROM entries WHERE number = 0", 0),
        ("UPDATE entries SET number = 9 WHERE number = 4", 4),
        ("UPDATE entries SET entry = x'fffe' WHERE number = 1", 1),
        ("DELETE FROM entries", 0),
    ],
)
def test_an_edited_row_is_found(filled, statement, line):
    changed(filled, statement)
    with pytest.raises(LedgerDamaged, match=f"entry {line} of"):
        read_chain(filled)
    with pytest.raises(LedgerDamaged):
        Ledger(record=LedgerBase(filled, "a"))


def test_rows_that_are_edited_under_a_running_process_are_found(filled):
    ledger = Ledger(record=LedgerBase(filled, "a"))
    changed(filled, "DELETE FROM entries WHERE number > 2")
    with pytest.raises(LedgerDamaged, match="HR-231"):
        ledger.debit(entry(3))


@pytest.mark.parametrize("suffix", ["jsonl", "sqlite"])
def test_only_the_head_tells_that_the_end_is_missing(tmp_path, suffix):
    path = tmp_path / f"ledger.{suffix}"
    record = LedgerFile(path) if suffix == "jsonl" else LedgerBase(path, "a")
    ledger = Ledger(record=record)
    heads = []
    for number in (1, 2, 3):
        ledger.debit(entry(number))
        heads.append(record.head)
    assert read_chain(path).head == heads[-1]
    assert read_chain(path).since(heads[0]) == 2
    if suffix == "jsonl":
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    else:
        changed(path, "DELETE FROM entries WHERE number = 3")
    found = read_chain(path)
    assert found.since(heads[1]) == 0
    with pytest.raises(LedgerDamaged, match="removed"):
        found.since(heads[2])


def test_no_other_file_is_taken_for_a_ledger(tmp_path):
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection:
        connection.execute("CREATE TABLE entries (number)")
    for name in ("text.sqlite", "other.sqlite"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(LedgerDamaged, match="HR-231"):
            LedgerBase(tmp_path / name).read()
        with pytest.raises(LedgerDamaged, match="HR-231"):
            read_chain(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(UnknownStudy, match="HR-102"):
        read_chain(tmp_path)
    with pytest.raises(UnknownStudy, match="HR-102"):
        read_chain(tmp_path / "missing.sqlite")
    assert not (tmp_path / "missing.sqlite").exists()


def test_who_waits_too_long_for_a_transaction_is_told(path):
    held, waiting = Ledger(record=LedgerBase(path)), Ledger(record=LedgerBase(path, patience=0.01))
    with held.record.transaction(), pytest.raises(CannotWrite, match=r"locked[\s\S]*No party was asked"):
        waiting.debit(entry(1))
    waiting.debit(entry(1))


def test_a_folder_that_is_missing_is_told(tmp_path):
    with pytest.raises(CannotWrite, match="HR-104"):
        LedgerBase(tmp_path / "none" / "ledger.sqlite").read()


def test_an_entry_outside_a_transaction_is_refused(path):
    record = LedgerBase(path)
    record.read()
    with pytest.raises(CannotWrite, match="outside a transaction"):
        record.write(entry(1))


def test_a_run_folder_keeps_its_own_lines_beside_a_shared_ledger(tmp_path, path):
    folder = tmp_path / "run"
    folder.mkdir()
    record = record_of(folder, path)
    assert isinstance(record, LedgerPair)
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    fed.recorded(record)
    for _ in range(3):
        fed.sum(norm_of_x)
    assert list(read_chain(folder).entries) == fed.ledger.entries
    lines = (folder / "ledger.jsonl").read_text().splitlines(keepends=True)
    assert all("run" not in json.loads(line) for line in lines)
    (folder / "ledger.jsonl").write_text(lines[0])  # killed between the two debits
    again = Ledger(record=record_of(folder, path))
    assert again.entries == fed.ledger.entries
    assert (folder / "ledger.jsonl").read_text() == "".join(lines)
    (folder / "run").write_text("another")
    with pytest.raises(LedgerDamaged, match="has not"):
        Ledger(record=record_of(folder, path))


def test_a_debit_whose_copy_fails_stays_charged(tmp_path, path, monkeypatch):
    budget = Budget(0.15, 1e-6, unit="record", accountant="basic")
    ledger = Ledger(budget, LedgerPair(LedgerBase(path), LedgerFile(tmp_path / "ledger.jsonl")))
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(CannotWrite):
            ledger.debit(entry(1, event=Event("laplace", 10.0)))
    with pytest.raises(BudgetExhausted):
        ledger.debit(entry(1, event=Event("laplace", 10.0)))


def full(descriptor):
    raise OSError(28, "No space left on device")


def test_reading_a_chain_changes_nothing(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(record=LedgerFile(path))
    ledger.debit(entry(1))
    path.write_bytes(path.read_bytes() + b'{"previous": "ab')
    before = path.read_bytes()
    assert read_chain(path).torn
    assert len(read_chain(path).entries) == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_edited_line_is_named_the_last_one_too(tmp_path, number):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(record=LedgerFile(path))
    for round in (1, 2, 3):
        ledger.debit(entry(round))
    lines = path.read_text().splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace('"parties": 3', '"parties": 4')
    path.write_text("".join(lines))
    with pytest.raises(LedgerDamaged, match=f"entry {number} of"):
        read_chain(path)


def test_a_file_that_another_process_is_making_is_not_taken_for_a_foreign_one(path, monkeypatch):
    """Its mark was read before the other process wrote it, and its tables are counted afterwards."""

    class Interrupted(sqlite3.Connection):
        def execute(self, statement, *values):
            found = super().execute(statement, *values).fetchall()
            if statement == "PRAGMA application_id" and not made:
                made.append(True)
                with suppress(CannotWrite):  # it waits for this reader, or is quicker
                    Ledger(record=LedgerBase(path, "other", patience=0.01))
            return iter_over(found)

    made, connect = [], sqlite3.connect
    first = [Interrupted]
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, **({"factory": first.pop()} if first else {})))
    ledger = Ledger(record=LedgerBase(path, "this"))
    ledger.debit(entry(1))
    assert made
    assert len(ledger) == 1


def iter_over(rows):
    """What `execute` gives, of rows that are there already."""
    given = SimpleNamespace(fetchall=lambda: rows, fetchone=lambda: rows[0] if rows else None)
    return given
