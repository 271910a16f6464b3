import json

import pytest

from hedgerow import Gaussian, l2
from hedgerow.core import Ledger
from hedgerow.errors import CannotWrite, CheckpointMismatch, LedgerDamaged
from hedgerow.store import LedgerFile
from helpers import federation, norm_of_x, totals


@pytest.fixture
def kept(tmp_path):
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    fed.ledger.attach(LedgerFile(tmp_path / "ledger.jsonl"))
    for _ in range(3):
        fed.sum(norm_of_x)
    return fed


def test_entries_survive_the_file(kept):
    assert Ledger(record=LedgerFile(kept.ledger.record.path)).entries == kept.ledger.entries


def test_queries_of_one_cohort_compose_inside_one_sampling_event():
    fed = federation(n_parties=40).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    cohort = fed.sample(rate=0.5)
    cohort.sum(norm_of_x)
    cohort.sum(totals)
    fed.sample(rate=0.5).sum(norm_of_x)
    charges = fed.ledger.charges("party")
    assert [len(events) for _, events in charges] == [2, 1]
    assert {sampling.kind for sampling, _ in charges} == {"poisson"}


def test_noise_at_the_party_is_not_amplified_by_sampling():
    fed = federation(n_parties=40).protect(clip=l2(1.0), mechanism=Gaussian(1.0, at="party"))
    fed.sample(rate=0.5).sum(norm_of_x)
    [(sampling, (event,))] = fed.ledger.charges("party")
    assert sampling.kind == "all"
    assert event.noise_multiplier == 0.5  # any two contributions of a party, twice the radius apart


@pytest.mark.parametrize("damage", ["edit", "remove", "duplicate"])
def test_a_changed_line_is_found(kept, damage):
    lines = kept.ledger.record.path.read_text().splitlines()
    if damage == "edit":
        lines[1] = lines[1].replace('"parties": 6', '"parties": 5')
    elif damage == "remove":
        del lines[1]
    else:
        lines.insert(1, lines[1])
    kept.ledger.record.path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerDamaged, match="HR-231"):
        Ledger(record=LedgerFile(kept.ledger.record.path))


def test_a_line_cut_short_by_a_crash_was_never_asked(kept):
    text = kept.ledger.record.path.read_text()
    kept.ledger.record.path.write_text(text[:-40])
    assert len(Ledger(record=LedgerFile(kept.ledger.record.path))) == 2
    assert len(kept.ledger.record.path.read_text().splitlines()) == 2


def test_a_resumed_run_expects_what_was_debited(kept):
    again = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    again.ledger.attach(LedgerFile(kept.ledger.record.path))
    again.ledger.rewind(0, replay=True)
    for _ in range(4):
        again.sum(norm_of_x)
    rounds = [json.loads(line)["round"] for line in kept.ledger.record.path.read_text().splitlines()]
    assert rounds == [1, 2, 3, 4]


def test_a_resumed_run_that_asks_something_else_is_refused(kept):
    again = federation().protect(clip=l2(1.0), mechanism=Gaussian(2.0))
    again.ledger.attach(LedgerFile(kept.ledger.record.path))
    again.ledger.rewind(0, replay=True)
    with pytest.raises(CheckpointMismatch, match="HR-103"):
        again.sum(norm_of_x)


def test_without_a_seed_a_repeated_question_is_charged_twice(kept):
    again = federation(seed=None).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    again.ledger.attach(LedgerFile(kept.ledger.record.path))
    again.ledger.rewind(1, replay=False)
    again.sum(norm_of_x)
    assert len(again.ledger) == 4


def test_a_full_disk_refuses_the_question(tmp_path, monkeypatch):
    fed = federation(recording=True)
    fed.ledger.attach(LedgerFile(tmp_path / "ledger.jsonl"))
    monkeypatch.setattr("os.fsync", _full)
    with pytest.raises(CannotWrite, match=r"No space left[\s\S]*No party was asked"):
        fed.sum(norm_of_x)
    assert fed.view("server") == []


def _full(descriptor):
    raise OSError(28, "No space left on device")


def test_a_write_that_failed_leaves_no_trace(kept, monkeypatch):
    before = kept.ledger.record.path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", _full)
        with pytest.raises(CannotWrite):
            kept.sum(norm_of_x)
    assert kept.ledger.record.path.read_bytes() == before
    kept.sum(norm_of_x)
    assert len(Ledger(record=LedgerFile(kept.ledger.record.path))) == 4
