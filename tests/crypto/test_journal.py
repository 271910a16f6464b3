"""The journal: one answer to each question, also after a crash."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from hedgerow.crypto.journal import Journal
from hedgerow.errors import MessageRefused

A, B = b"a" * 32, b"b" * 32


@pytest.fixture(params=["file", "memory"])
def journal(request, tmp_path):
    with Journal(tmp_path / "journal" if request.param == "file" else None) as opened:
        yield opened


def reopened(path):
    with Journal(path) as journal:
        return {key: journal.seen(key) for key in ("round 1", "round 2", "round 3") if journal.seen(key)}


def test_what_was_written_is_seen(journal):
    assert journal.seen("round 1") is None
    journal.write("round 1", A)
    assert journal.seen("round 1") == A
    assert journal.seen("round 2") is None
    assert len(journal) == 1


def test_a_second_answer_to_another_question_is_refused(journal):
    journal.write("round 1", A)
    with pytest.raises(MessageRefused, match="answered before"):
        journal.write("round 1", B)
    assert journal.seen("round 1") == A


def test_the_same_entry_twice_is_one_entry(journal):
    journal.write("round 1", A)
    journal.write("round 1", A)
    assert len(journal) == 1


def test_several_entries_are_written_together_or_not_at_all(journal):
    journal.write_all({"round 1": A, "round 2": B})
    with pytest.raises(MessageRefused, match="answered before"):
        journal.write_all({"round 3": A, "round 2": A})
    assert journal.seen("round 3") is None
    assert len(journal) == 2


def test_a_closed_journal_writes_nothing(journal):
    journal.close()
    with pytest.raises(MessageRefused, match="closed"):
        journal.write("round 1", A)


def test_T6_a_restarted_party_remembers_its_answers(tmp_path):
    with Journal(tmp_path / "journal") as journal:
        journal.write("round 1", A)
        journal.write('a key\nwith two lines, "quotes" and é', B)
    with Journal(tmp_path / "journal") as journal:
        assert journal.seen("round 1") == A
        assert journal.seen('a key\nwith two lines, "quotes" and é') == B
        with pytest.raises(MessageRefused, match="answered before"):
            journal.write("round 1", B)


def test_T6_a_party_without_a_file_forgets():
    Journal(None).write("round 1", A)
    Journal(None).write("round 1", B)  # the twin of the test above: a restart would answer twice


@pytest.mark.slow
def test_T6_an_answer_is_on_disk_even_if_the_process_is_killed_next(tmp_path):
    code = f"""
import os, signal
from hedgerow.crypto.journal import Journal
Journal({str(tmp_path / "journal")!r}).write("round 1", b"a" * 32)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert reopened(tmp_path / "journal") == {"round 1": A}


def test_each_entry_is_flushed_before_write_returns(tmp_path, monkeypatch):
    with Journal(tmp_path / "journal") as journal:
        flushed = []
        monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append((tmp_path / "journal").read_bytes()))
        journal.write("round 1", A)
        assert A.hex().encode() in flushed[-1]
        journal.write_all({f"round {i}": A for i in range(2, 50)})
        assert len(flushed) == 2


@pytest.mark.slow
def test_a_torn_last_line_is_dropped_wherever_it_is_torn(tmp_path):
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.write("round 1", A)
        whole = path.read_bytes()
        journal.write("round 2", B)
    both = path.read_bytes()
    for length in range(len(whole), len(both)):
        path.write_bytes(both[:length])
        assert reopened(path) == {"round 1": A}
        assert path.read_bytes() == whole
    with Journal(path) as journal:
        journal.write("round 3", B)
    assert reopened(path) == {"round 1": A, "round 3": B}


@pytest.mark.slow
def test_damage_elsewhere_is_refused_wherever_it_is(tmp_path):
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.write("round 1", A)
        length = len(path.read_bytes())
        journal.write("round 2", B)
    both = path.read_bytes()
    for place in range(length - 1):
        path.write_bytes(both[:place] + bytes([both[place] ^ 1]) + both[place + 1 :])
        with pytest.raises(MessageRefused, match="line 1"):
            Journal(path)
    path.write_bytes(both + both[:length])
    with pytest.raises(MessageRefused, match=r"line 3 .* repeated"):
        Journal(path)


def test_two_journals_cannot_share_a_file(tmp_path):
    with Journal(tmp_path / "journal"), pytest.raises(MessageRefused, match="open elsewhere"):
        Journal(tmp_path / "journal")
    assert reopened(tmp_path / "journal") == {}


def test_a_forked_process_may_not_write(tmp_path, monkeypatch):
    with Journal(tmp_path / "journal") as journal:
        own = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: own + 1)
        with pytest.raises(MessageRefused, match="another process"):
            journal.write("round 1", A)


def test_a_full_disk_leaves_no_half_entry_and_no_memory_of_it(tmp_path, monkeypatch):
    path, write = tmp_path / "journal", os.write
    with Journal(path) as journal:
        journal.write("round 1", A)

        def half(descriptor, raw):
            if len(raw) < 60:
                raise OSError(errno.ENOSPC, "no space left")
            return write(descriptor, raw[: len(raw) // 2])

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(MessageRefused, match="no space left"):
            journal.write("round 2", B)
        assert journal.seen("round 2") is None
        monkeypatch.setattr(os, "write", write)
        journal.write("round 3", B)
    assert reopened(path) == {"round 1": A, "round 3": B}


def test_a_disk_that_cannot_even_take_back_ends_the_journal(tmp_path, monkeypatch):
    with Journal(tmp_path / "journal") as journal:

        def broken(*_):
            raise OSError(errno.EIO, "input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", broken)
            with pytest.raises(MessageRefused, match="input/output"):
                journal.write("round 1", A)
        with pytest.raises(MessageRefused, match="could not be written"):
            journal.write("round 1", A)


def test_the_file_is_its_owners_alone(tmp_path):
    with Journal(tmp_path / "journal"):
        assert (tmp_path / "journal").stat().st_mode & 0o077 == 0
