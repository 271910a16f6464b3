import json

import pytest

import hedgerow as hr
from hedgerow import Gaussian, l2
from hedgerow.core import Federation, Ledger
from hedgerow.core.randomness import Streams
from hedgerow.errors import BudgetInvalid, CannotWrite, CheckpointMismatch, LedgerDamaged
from hedgerow.store import LedgerBase, LedgerFile
from helpers import federation, norm_of_x, run_of, totals


@pytest.fixture
def kept(tmp_path):
    fed = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    fed.recorded(LedgerFile(tmp_path / "ledger.jsonl"))
    for _ in range(3):
        fed.sum(norm_of_x)
    return fed


def test_entries_survive_the_file(kept):
    assert Ledger(record=LedgerFile(run_of(kept).ledger.record.path)).entries == kept.ledger.entries


def test_queries_of_one_cohort_compose_inside_one_sampling_event():
    fed = federation(n_parties=40).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    cohort = fed.sample(rate=0.5)
    cohort.sum(norm_of_x)
    cohort.sum(totals)
    fed.sample(rate=0.5).sum(norm_of_x)
    charges = fed.ledger.charges("party")
    assert [len(events) for _, events in charges] == [2, 1]
    assert {sampling.kind for sampling, _ in charges} == {"poisson"}


def test_a_ledger_is_that_of_one_federation():
    """Two federations would number their cohorts alike, and two samples would cost what one does."""
    one = federation(n_parties=40)
    ledger = run_of(one).ledger
    other = run_of(federation(n_parties=40))
    with pytest.raises(BudgetInvalid, match="another federation"):
        Federation(other.engine, other.schema, Streams(2), ledger=ledger)
    with pytest.raises(BudgetInvalid, match="another federation"):
        other.afresh(ledger=ledger)


@pytest.mark.parametrize("make", [LedgerFile, LedgerBase], ids=["file", "shared"])
def test_a_record_keeps_one_ledger(tmp_path, make):
    record = make(tmp_path / "ledger.sqlite")
    federation().recorded(record)
    with pytest.raises(BudgetInvalid, match="keeps another ledger"):
        federation().recorded(record)


def test_cohorts_of_two_runs_with_one_budget_are_two_samples(tmp_path):
    runs = [federation(n_parties=40).protect(clip=l2(1.0), mechanism=Gaussian(1.0)) for _ in range(2)]
    for fed in runs:
        fed.recorded(LedgerBase(tmp_path / "ledger.sqlite"))
    for cohort in [fed.sample(rate=0.5) for fed in runs]:
        cohort.sum(norm_of_x)
    assert [len(events) for _, events in runs[1].ledger.charges("party")] == [1, 1]


def test_two_processes_cannot_continue_one_run(tmp_path):
    runs = [federation(n_parties=40).protect(clip=l2(1.0), mechanism=Gaussian(1.0)) for _ in range(2)]
    for fed in runs:
        fed.recorded(LedgerBase(tmp_path / "ledger.sqlite", "one"))
    first, second = [fed.sample(rate=0.5) for fed in runs]
    first.sum(norm_of_x)
    with pytest.raises(CannotWrite, match="did not write"):
        second.sum(norm_of_x)


def test_noise_at_the_party_is_not_amplified_by_sampling():
    fed = federation(n_parties=40).protect(clip=l2(1.0), mechanism=Gaussian(1.0, at="party"))
    fed.sample(rate=0.5).sum(norm_of_x)
    [(sampling, (event,))] = fed.ledger.charges("party")
    assert sampling.kind == "all"
    assert event.noise_multiplier == 0.5  # any two contributions of a party, twice the radius apart


@pytest.mark.parametrize("damage", ["edit", "remove", "duplicate"])
def test_a_changed_line_is_found(kept, damage):
    lines = run_of(kept).ledger.record.path.read_text().splitlines()
    if damage == "edit":
        lines[1] = lines[1].replace('"parties": 6', '"parties": 5')
    elif damage == "remove":
        del lines[1]
    else:
        lines.insert(1, lines[1])
    run_of(kept).ledger.record.path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerDamaged, match="HR-231"):
        Ledger(record=LedgerFile(run_of(kept).ledger.record.path))


def test_a_line_cut_short_by_a_crash_was_never_asked(kept):
    text = run_of(kept).ledger.record.path.read_text()
    run_of(kept).ledger.record.path.write_text(text[:-40])
    assert len(Ledger(record=LedgerFile(run_of(kept).ledger.record.path))) == 2
    assert len(run_of(kept).ledger.record.path.read_text().splitlines()) == 2


def test_a_resumed_run_expects_what_was_debited(kept):
    again = federation().protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    again.recorded(LedgerFile(run_of(kept).ledger.record.path))
    run_of(again).ledger.rewind(0, replay=True)
    for _ in range(4):
        again.sum(norm_of_x)
    rounds = [json.loads(line)["round"] for line in run_of(kept).ledger.record.path.read_text().splitlines()]
    assert rounds == [1, 2, 3, 4]


def test_a_resumed_run_that_asks_something_else_is_refused(kept):
    again = federation().protect(clip=l2(1.0), mechanism=Gaussian(2.0))
    again.recorded(LedgerFile(run_of(kept).ledger.record.path))
    run_of(again).ledger.rewind(0, replay=True)
    with pytest.raises(CheckpointMismatch, match="HR-103"):
        again.sum(norm_of_x)


def test_without_a_seed_a_repeated_question_is_charged_twice(kept):
    again = federation(seed=None).protect(clip=l2(1.0), mechanism=Gaussian(1.0))
    again.recorded(LedgerFile(run_of(kept).ledger.record.path))
    run_of(again).ledger.rewind(1, replay=False)
    again.sum(norm_of_x)
    assert len(again.ledger) == 4


def test_a_full_disk_refuses_the_question(tmp_path, monkeypatch):
    fed = federation(recording=True)
    fed.recorded(LedgerFile(tmp_path / "ledger.jsonl"))
    monkeypatch.setattr("os.fsync", _full)
    with pytest.raises(CannotWrite, match=r"No space left[\s\S]*No party was asked"):
        fed.sum(norm_of_x)
    assert hr.engines.view(fed, "server") == []


def _full(descriptor):
    raise OSError(28, "No space left on device")


def test_a_write_that_failed_leaves_no_trace(kept, monkeypatch):
    before = run_of(kept).ledger.record.path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", _full)
        with pytest.raises(CannotWrite):
            kept.sum(norm_of_x)
    assert run_of(kept).ledger.record.path.read_bytes() == before
    kept.sum(norm_of_x)
    assert len(Ledger(record=LedgerFile(run_of(kept).ledger.record.path))) == 4
