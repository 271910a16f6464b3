"""`hedgerow dictionary`: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dictionaries import FAULTS, LOCAL, TEXT, local_file
from hedgerow.cli.main import app
from hedgerow.core.toml import to_toml
from hedgerow.data import Dictionary
from hedgerow.errors import CannotWrite, SchemaInvalid


def call(*words, code=0):
    result = CliRunner().invoke(app, ["dictionary", *map(str, words)], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dictionary.toml").write_text(TEXT)
    (tmp_path / "station.toml").write_text(to_toml(LOCAL | {"path": "local.csv", "source": "csv"}))
    local_file(tmp_path / "local.csv", FAULTS)
    return tmp_path


def test_check_says_every_fault_to_the_owner_and_rounded_counts_to_a_study(folder):
    dictionary, mapping = folder / "dictionary.toml", folder / "station.toml"
    said = call("check", dictionary, folder / "local.csv", "--mapping", mapping, code=1)
    assert said.splitlines()[0].split() == [
        *("age", "not", "a", "number", "1", "line", "8"),
        *["mend", "the", "records,", "or", "name", "the", "mark", "in", "na_values"],
    ]
    assert said.splitlines()[-1].startswith("5 values are refused")
    public = call("check", dictionary, "--mapping", mapping, "--public", code=1)
    assert public.splitlines()[-1] == "Complete about 280 of about 300, left out about 20."
    told = json.loads(call("check", dictionary, "--mapping", mapping, "--public", "--json", code=1))
    assert told["closed"]
    assert told["missing"] == {"ejection_fraction": 5, "serum_creatinine": 10}
    whole = json.loads(call("check", dictionary, "--mapping", mapping, "--json", code=1))
    assert whole["findings"][0] | {"column": "age", "line": 8, "count": 1} == whole["findings"][0]
    local_file(folder / "local.csv")
    assert call("check", dictionary, "--mapping", mapping) == "The table is open: 299 records, 299 of them complete.\n"


def test_a_draft_is_written_once_and_refused_until_it_is_finished(folder):
    out = folder / "draft.toml"
    assert "8 columns, 8 with a todo" in call("draft", folder / "local.csv", "--out", out)
    with pytest.raises(CannotWrite):
        call("draft", folder / "local.csv", "--out", out)
    with pytest.raises(SchemaInvalid, match="8 columns have a todo"):
        call("check", out, folder / "local.csv")
    assert call("draft", folder / "local.csv") == out.read_text()


def test_export_and_import_are_inverse(folder):
    schema, again = folder / "schema.json", folder / "again.toml"
    call("export", folder / "dictionary.toml", "--to", "tableschema", "--out", schema)
    call("import", schema, "--from", "tableschema", "--out", again)
    known = Dictionary.read(folder / "dictionary.toml")
    assert Dictionary.read(again).digest == known.digest
    assert Dictionary.from_toml(call("export", again, "--to", "toml")) == known
