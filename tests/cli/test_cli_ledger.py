"""`hedgerow ledger show|verify|budget` on both formats."""

import json
import re
import sqlite3
from contextlib import closing

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hedgerow import Budget, Gaussian, l2
from hedgerow.cli.main import app
from hedgerow.errors import HedgerowError
from hedgerow.store import LedgerBase, LedgerFile, read_chain
from helpers import federation, norm_of_x, totals


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal that breaks no line."""
    monkeypatch.setattr("hedgerow.cli.ledger.console", Console(width=160))


def invoke(*arguments):
    return CliRunner().invoke(app, ["ledger", *(str(argument) for argument in arguments)])


def asked(record, n=3, z=2.0):
    fed = federation(n_parties=20).protect(clip=l2(1.0), mechanism=Gaussian(z))
    fed.recorded(record)
    for _ in range(n):
        fed.sample(rate=0.5).sum(norm_of_x)
    return fed.ledger


@pytest.fixture(params=["jsonl", "sqlite"])
def ledger(request, tmp_path):
    """A ledger of three questions, its path, and how to edit it."""
    path = tmp_path / f"ledger.{request.param}"
    asked(LedgerFile(path) if request.param == "jsonl" else LedgerBase(path, "a"))
    return path


def edited(path, old, new):
    """Change a word in the second entry."""
    if path.suffix == ".jsonl":
        lines = path.read_text().splitlines(keepends=True)
        assert old in lines[1]
        path.write_text("".join([lines[0], lines[1].replace(old, new), *lines[2:]]))
        return
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER entries_never_changed")
        connection.execute("UPDATE entries SET entry = replace(entry, ?, ?) WHERE number = 2", (old, new))
        connection.commit()


def test_show_lists_equal_questions_in_a_row(ledger):
    shown = invoke("show", ledger)
    assert shown.exit_code == 0
    for words in ("1 to 3", "sum of norm_of_x", "Gaussian(2) at the server", "Poisson rate 0.5", "randomness seeded"):
        assert words in shown.output
    assert read_chain(ledger).head in shown.output


def test_show_gives_everything_as_json(ledger):
    shown = json.loads(invoke("show", ledger, "--json", "--last", "2").output)
    assert shown["head"] == read_chain(ledger).head == shown["entries"][-1]["hash"]
    assert [entry["number"] for entry in shown["entries"]] == [2, 3]
    assert shown["entries"][0]["event"] == {"kind": "gaussian", "noise_multiplier": 2.0}


def test_a_run_folder_names_its_ledger(tmp_path):
    asked(LedgerFile(tmp_path / "ledger.jsonl"))
    assert "3 entries" in invoke("verify", tmp_path).output


def test_verify_says_that_a_chain_is_whole(ledger):
    head = re.search("head ([0-9a-f]{32})", invoke("verify", ledger).output)[1]
    record = LedgerFile(ledger) if ledger.suffix == ".jsonl" else LedgerBase(ledger, "b")
    record.read()
    with record.transaction():
        record.write(read_chain(ledger).entries[0])
    told = invoke("verify", ledger, "--head", head)
    assert told.exit_code == 0
    assert "and 1 entries since" in told.output


def test_verify_names_the_first_damaged_entry_and_fails(ledger):
    edited(ledger, "2.0", "9.0")
    told = invoke("verify", ledger)
    assert told.exit_code == 1
    assert re.search("damaged: (line|entry) 2 of", told.output)
    shown = invoke("show", ledger)
    assert shown.exit_code == 1
    assert isinstance(shown.exception, HedgerowError)


def test_verify_misses_a_head_that_was_cut_off(ledger):
    told = invoke("verify", ledger, "--head", "0" * 32)
    assert told.exit_code == 1
    assert "never had the head" in told.output


@pytest.mark.slow
def test_budget_tells_what_further_rounds_fit(ledger):
    told = invoke("budget", ledger, "--epsilon", 3, "--delta", 1e-5)
    assert told.exit_code == 0
    n = int(re.search(r"(\d+) further rounds like the last: gaussian\(2\), Poisson rate 0.5", told.output)[1])
    limit = Budget(3.0, 1e-5)
    [charge, *_] = charges = read_chain(ledger).ledger().charges("party")
    assert f"spent      {limit.spent(charges):.4g}" in told.output
    assert limit.admits([*charges, *[charge] * n])
    assert not limit.admits([*charges, *[charge] * (n + 1)])


def test_budget_tells_what_was_spent_too_much(ledger):
    told = invoke("budget", ledger, "--epsilon", 0.1, "--delta", 1e-5)
    assert "too much" in told.output
    assert " 0 further rounds" in told.output


def test_budget_of_an_open_or_empty_ledger(tmp_path):
    LedgerBase(tmp_path / "empty.sqlite").read()
    told = invoke("budget", tmp_path / "empty.sqlite", "--epsilon", 1, "--delta", 1e-5)
    assert "nothing was charged yet" in told.output
    fed = federation()
    fed.recorded(LedgerFile(tmp_path / "open.jsonl"))
    fed.sum(totals)
    told = invoke("budget", tmp_path / "open.jsonl", "--epsilon", 1, "--delta", 1e-5)
    assert "everything: 1 of 1 questions were answered without noise" in told.output


def test_budget_of_a_unit_that_the_entries_are_not_bounded_by(ledger):
    told = invoke("budget", ledger, "--epsilon", 1, "--delta", 1e-5, "--unit", "record")
    assert told.exit_code == 1
    assert "HR-215" in str(told.exception)


@pytest.mark.slow
def test_runs_of_a_shared_ledger_are_told_apart(tmp_path):
    for run in ("first", "second"):
        asked(LedgerBase(tmp_path / "shared.sqlite", run))
    shown = invoke("show", tmp_path / "shared.sqlite")
    assert "first" in shown.output
    assert "6 entries of 2 runs" in shown.output
    assert (
        "6 charged releases of 2 runs" in invoke("budget", tmp_path / "shared.sqlite", "--epsilon", 9, "--delta", 1e-5).output
    )


def test_a_torn_line_is_told_and_left(tmp_path):
    path = tmp_path / "ledger.jsonl"
    asked(LedgerFile(path))
    path.write_bytes(path.read_bytes()[:-9])
    before = path.read_bytes()
    assert "was cut short" in invoke("verify", path).output
    assert path.read_bytes() == before


def test_no_ledger_is_told(tmp_path):
    told = invoke("show", tmp_path)
    assert told.exit_code == 1
    assert "HR-102" in str(told.exception)
