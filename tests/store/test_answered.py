"""What was answered: one answer to each question, also after a crash."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from unittest import mock

import pytest

from hedgerow.errors import MessageRefused
from hedgerow.store import Answered

A, B = b"a" * 32, b"b" * 32


@pytest.fixture(params=["file", "memory"])
def journal(request, tmp_path):
    with Answered(tmp_path / "journal" if request.param == "file" else None) as opened:
        yield opened


def reopened(path):
    with Answered(path) as journal:
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
    with Answered(tmp_path / "journal") as journal:
        journal.write("round 1", A)
        journal.write('a key\nwith two lines, "quotes" and é', B)
    with Answered(tmp_path / "journal") as journal:
        assert journal.seen("round 1") == A
        assert journal.seen('a key\nwith two lines, "quotes" and é') == B
        with pytest.raises(MessageRefused, match="answered before"):
            journal.write("round 1", B)


def test_T6_a_party_without_a_file_forgets():
    Answered(None).write("round 1", A)
    Answered(None).write("round 1", B)  # the twin of the test above: a restart would answer twice


@pytest.mark.slow
def test_T6_an_answer_is_on_disk_even_if_the_process_is_killed_next(tmp_path):
    code = f"""
import os, signal
from hedgerow.store import Answered
Answered({str(tmp_path / "journal")!r}).write("round 1", b"a" * 32)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert reopened(tmp_path / "journal") == {"round 1": A}


def test_each_entry_is_flushed_before_write_returns(tmp_path, monkeypatch):
    with Answered(tmp_path / "journal") as journal:
        flushed = []
        monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append((tmp_path / "journal").read_bytes()))
        journal.write("round 1", A)
        assert A.hex().encode() in flushed[-1]
        journal.write_all({f"round {i}": A for i in range(2, 50)})
        assert len(flushed) == 2


@pytest.mark.slow
def test_a_torn_last_line_is_dropped_wherever_it_is_torn(tmp_path):
    path = tmp_path / "journal"
    with Answered(path) as journal:
        journal.write("round 1", A)
        whole = path.read_bytes()
        journal.write("round 2", B)
    both = path.read_bytes()
    for length in range(len(whole), len(both)):
        path.write_bytes(both[:length])
        assert reopened(path) == {"round 1": A}
        assert path.read_bytes() == whole
    with Answered(path) as journal:
        journal.write("round 3", B)
    assert reopened(path) == {"round 1": A, "round 3": B}


@pytest.mark.slow
def test_damage_elsewhere_is_refused_wherever_it_is(tmp_path):
    path = tmp_path / "journal"
    with Answered(path) as journal:
        journal.write("round 1", A)
        length = len(path.read_bytes())
        journal.write("round 2", B)
    both = path.read_bytes()
    for place in range(length - 1):
        path.write_bytes(both[:place] + bytes([both[place] ^ 1]) + both[place + 1 :])
        with pytest.raises(MessageRefused, match="entry 1 of"):
            Answered(path)
    path.write_bytes(both + both[:length])
    with pytest.raises(MessageRefused, match="entry 3 of"):
        Answered(path)


def test_two_lists_cannot_share_a_file(tmp_path):
    with Answered(tmp_path / "journal"), pytest.raises(MessageRefused, match="open elsewhere"):
        Answered(tmp_path / "journal")
    assert reopened(tmp_path / "journal") == {}


def test_a_forked_process_may_not_write(tmp_path, monkeypatch):
    with Answered(tmp_path / "journal") as journal:
        own = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: own + 1)
        with pytest.raises(MessageRefused, match="another process"):
            journal.write("round 1", A)


def test_a_full_disk_leaves_no_half_entry_and_no_memory_of_it(tmp_path, monkeypatch):
    path, write = tmp_path / "journal", os.write
    with Answered(path) as journal:
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


def test_what_a_broken_disk_could_not_take_back_is_dropped_when_it_works_again(tmp_path):
    path = tmp_path / "journal"

    def broken(*_):
        raise OSError(errno.EIO, "input/output error")

    with Answered(path) as journal:
        full = mock.patch.object(os, "fsync", broken), mock.patch.object(os, "ftruncate", broken)
        with full[0], full[1], pytest.raises(MessageRefused, match="input/output"):
            journal.write("round 1", A)
        assert A.hex().encode() in path.read_bytes()
        assert journal.seen("round 1") is None
        journal.write("round 2", B)
    assert reopened(path) == {"round 2": B}


def test_the_file_is_its_owners_alone(tmp_path):
    with Answered(tmp_path / "journal"):
        assert (tmp_path / "journal").stat().st_mode & 0o077 == 0
