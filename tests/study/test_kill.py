"""`kill -9` in the middle of a run, then `--resume`: the end is bit-identical, the ledger has no gap and no double entry."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow.errors import CannotWrite, CheckpointMismatch
from hedgerow.study import load, run_study
from hedgerow.study.runner import Result
from patience import until

CHANGES = {"baselines": False, "budget.accountant": "rdp", "evaluation.every": 1000}


def command(folder: Path, *more: str) -> list[str]:
    """What the process does that is killed."""
    changes = [f"--set={key}={json.dumps(value)}" for key, value in CHANGES.items()]
    return [sys.executable, "-m", "hedgerow", "run", "digits-fedavg", *changes, "--out", str(folder), *more]


def here(folder: Path, *, resume: bool = False, **more: object) -> Result:
    """The same in this process, which no kill has met."""
    return run_study(load("digits-fedavg", CHANGES | more), folder, resume=resume)


def lines(folder: Path) -> list[dict]:
    path = folder / "ledger.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.slow
def test_a_killed_run_resumes_bit_identically(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    here(whole)
    for target in (7, 23):  # kill twice, at different depths
        process = subprocess.Popen(
            command(cut, *(["--resume"] if cut.exists() else [])), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda: len(lines(cut)) >= target, moved=lambda: len(lines(cut)), ended=lambda: process.poll() is not None)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert target <= len(lines(cut)) < len(lines(whole))
    here(cut, resume=True)
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert (cut / "ledger.jsonl").read_bytes() == (whole / "ledger.jsonl").read_bytes()
    assert [line["round"] for line in lines(cut)] == list(range(1, len(lines(whole)) + 1))


@pytest.mark.slow
def test_another_study_cannot_resume_the_folder(tmp_path):
    here(tmp_path / "run", **{"program.rounds": 2})
    with pytest.raises(CheckpointMismatch, match=r"HR-103.*: program.rounds was 2 and is 3\.") as caught:
        here(tmp_path / "run", resume=True, **{"program.rounds": 3})
    assert f"hedgerow run {tmp_path / 'run' / 'study.toml'} --resume --out {tmp_path / 'run'}\n" in caught.value.remedy
    with pytest.raises(CannotWrite, match="already holds a run"):
        here(tmp_path / "run", **{"program.rounds": 2})
