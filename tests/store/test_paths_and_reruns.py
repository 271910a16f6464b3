"""Files are named by texts as by paths, and a run that begins anew does not write over the checkpoint of another."""

import csv
import math
from functools import partial

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import CannotWrite
from hedgerow.learn import ModelState
from hedgerow.store import LedgerFile, drive, load_checkpoint, read_arrays, record_of, rows, save_checkpoint, write_arrays
from hedgerow.study import load, read_report, run_study
from hedgerow.study.runner import write_study

TRAIN = partial(hr.learn.fedavg, module=hr.learn.linear(64, 10), learning_rate=0.1)


def parties(ledger=None):
    made = hr.simulate(hr.data.load("digits").take(range(60)), hr.data.iid(parties=3), seed=0)
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


@pytest.mark.slow
def test_a_run_folder_is_named_by_a_text(tmp_path):
    folder = str(tmp_path / "run")
    result = run_study(load("breast-cancer-glm"), folder)
    assert result.folder == tmp_path / "run"
    assert read_report(folder).report.study == result.report.study
    write_study(load("breast-cancer-glm"), f"{folder}/again.toml")
    assert load(f"{folder}/again.toml").program.name == load("breast-cancer-glm").program.name


def test_epsilon_of_a_resumed_run_is_that_of_one_that_did_not_stop(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_SHARE", math.inf)
    budget = hr.Budget(epsilon=9, delta=1e-3, accountant="rdp")

    def noisy(name):
        made = parties(tmp_path / name).protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(2.0))
        return made.within(budget)

    def kill(state):
        if state.round == 4:
            raise KeyboardInterrupt

    whole = drive(partial(TRAIN, rounds=5), noisy("whole.jsonl"), log=hr.loggers.CSV(tmp_path / "whole.csv")).rounds
    path = tmp_path / "c"
    drive(partial(TRAIN, rounds=2), noisy("cut.jsonl"), checkpoint=path)
    start = load_checkpoint(path, ModelState, "")
    with pytest.raises(KeyboardInterrupt):
        drive(partial(TRAIN, rounds=5), noisy("cut.jsonl"), start=start, watch=kill)
    log = hr.loggers.CSV(tmp_path / "c.csv")
    again = drive(partial(TRAIN, rounds=5), noisy("cut.jsonl"), start=start, log=log).rounds
    assert [row["epsilon"] for row in again] == [row["epsilon"] for row in whole[2:]]
    assert len({row["epsilon"] for row in again}) == 3


def test_the_last_line_of_a_log_has_epsilon(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_SHARE", -1.0)
    fed = parties().protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(2.0))
    fed = fed.within(hr.Budget(epsilon=9, delta=1e-3, accountant="rdp"))
    drive(partial(TRAIN, rounds=2), fed, log=hr.loggers.CSV(tmp_path / "c.csv"))
    first, last = csv.DictReader((tmp_path / "c.csv").read_text().splitlines())
    assert (first["epsilon"], float(last["epsilon"])) == ("", pytest.approx(fed.ledger.epsilon()))


def test_other_files_are_named_by_texts(tmp_path):
    write_arrays(f"{tmp_path}/a", {"w": np.ones(2)}, {"study": "s"})
    assert read_arrays(f"{tmp_path}/a")[1] == {"study": "s"}
    (tmp_path / "run").mkdir()
    record = record_of(f"{tmp_path}/run", f"{tmp_path}/shared.sqlite")
    assert record.read() == []
    assert (tmp_path / "shared.sqlite").exists()
