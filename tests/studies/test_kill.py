"""`kill -9` in the middle of a run, then `--resume`: the end is bit-identical, the ledger has no gap and no double entry."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patience import until

STUDY = ["digits-fedavg", "--set", "baselines=false", "--set", "budget.accountant=rdp", "--set", "evaluation.every=1000"]


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "hedgerow", "run", *STUDY, "--out", str(folder), *more]


def lines(folder: Path) -> list[dict]:
    path = folder / "ledger.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.slow
def test_a_killed_run_resumes_bit_identically(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command(whole), check=True, capture_output=True)
    for target in (7, 23):  # kill twice, at different depths
        process = subprocess.Popen(
            command(cut, *(["--resume"] if cut.exists() else [])), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda: len(lines(cut)) >= target, moved=lambda: len(lines(cut)), ended=lambda: process.poll() is not None)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert target <= len(lines(cut)) < len(lines(whole))
    subprocess.run(command(cut, "--resume"), check=True, capture_output=True)
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert (cut / "ledger.jsonl").read_bytes() == (whole / "ledger.jsonl").read_bytes()
    assert [line["round"] for line in lines(cut)] == list(range(1, len(lines(whole)) + 1))


@pytest.mark.slow
def test_another_study_cannot_resume_the_folder(tmp_path):
    subprocess.run(command(tmp_path / "run", "--set", "program.rounds=2"), check=True, capture_output=True)
    ended = subprocess.run(
        command(tmp_path / "run", "--resume", "--set", "program.rounds=3"), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "HR-103" in ended.stderr
    afresh = command(tmp_path / "run", "--set", "program.rounds=2")
    again = subprocess.run(afresh, capture_output=True, text=True, check=False)
    assert "already holds a run" in again.stderr
