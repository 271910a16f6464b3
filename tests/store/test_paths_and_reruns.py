"""Files are named by texts as by paths, and a run that begins anew does not write over the checkpoint of another."""

from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import CannotWrite
from hedgerow.learn import ModelState
from hedgerow.store import LedgerFile, drive, load_checkpoint, read_arrays, record_of, save_checkpoint, write_arrays
from hedgerow.study import load, read_report, run_study
from hedgerow.study.runner import write_study

TRAIN = partial(hr.learn.fedavg, module=hr.learn.linear(64, 10), learning_rate=0.1)


def parties(ledger=None):
    made = hr.simulate(hr.data.load("digits"), hr.data.iid(parties=3), seed=0)
    return made if ledger is None else made.recorded(LedgerFile(ledger))


def test_a_run_that_begins_anew_refuses_the_checkpoint_of_another(tmp_path):
    path, rounds = tmp_path / "c.safetensors", []
    drive(partial(TRAIN, rounds=2), parties(tmp_path / "l.jsonl"), checkpoint=path, study="s")
    before = path.read_bytes()
    with pytest.raises(CannotWrite, match=r"HR-104[\s\S]*begin anew[\s\S]*start=[\s\S]*load_checkpoint") as refusal:
        drive(partial(TRAIN, rounds=3), parties(), checkpoint=path, study="s", watch=rounds.append)
    assert (rounds, refusal.value.asked, path.read_bytes()) == ([], False, before)
    start = load_checkpoint(path, ModelState, "s")
    again = parties(tmp_path / "l.jsonl")
    assert drive(partial(TRAIN, rounds=3), again, checkpoint=path, study="s", start=start).state.round == 3
    assert load_checkpoint(path, ModelState, "s").state.round == 3


def test_a_checkpoint_is_named_by_a_text(tmp_path):
    name = str(tmp_path / "c.safetensors")
    ended = drive(partial(TRAIN, rounds=1), parties(), checkpoint=name, study="s", watch=lambda s: {"a": 1.0}, keep="best")
    assert ended.stopped == "finished"
    assert (tmp_path / "best-c.safetensors").exists()
    assert load_checkpoint(name, ModelState, "s").state.round == 1
    save_checkpoint(name, ended.state, parties(), "t")
    assert load_checkpoint(name, ModelState, "t").state.round == 1


def test_a_run_folder_is_named_by_a_text(tmp_path):
    folder = str(tmp_path / "run")
    result = run_study(load("breast-cancer-glm"), folder)
    assert result.folder == tmp_path / "run"
    assert read_report(folder).report.study == result.report.study
    write_study(load("breast-cancer-glm"), f"{folder}/again.toml")
    assert load(f"{folder}/again.toml").program.name == load("breast-cancer-glm").program.name


def test_other_files_are_named_by_texts(tmp_path):
    write_arrays(f"{tmp_path}/a", {"w": np.ones(2)}, {"study": "s"})
    assert read_arrays(f"{tmp_path}/a")[1] == {"study": "s"}
    (tmp_path / "run").mkdir()
    record = record_of(f"{tmp_path}/run", f"{tmp_path}/shared.sqlite")
    assert record.read() == []
    assert (tmp_path / "shared.sqlite").exists()
