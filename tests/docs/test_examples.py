"""Every example of the documentation runs, and prints what the page shows.

To renew what a page shows: run `make_patients.py` and the example in an empty folder; keep its output beside it, as NAME.txt.
"""

import io
import re
import runpy
from pathlib import Path

import pytest
from rich.console import Console

from hedgerow.cli.show import show_rehearsal
from hedgerow.study import load, rehearse, run_study

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SLOW = {
    "pate",
    "robust_rules",
    "membership",
    "synthetic",
    "own_bert",
    "own_network",
    "own_one_line",
    "export_run",
    "synthetic_workflow",
    "fine_tuning",
    "tree_noise",
    "compressed",
    "ledger",
    "patients_private",
    "private_fedavg",
    "private_models",
    "resume",
    "training",
    "guards",
    "ledger_commands",
    "shared_ledger",
    "record_level",
    "one_record",
    "local_reports",
    "sulq",
    "client_level",
    "one_record_stores",
    "secure_regression",
    "federation",
    "forecasts",
    "plan_owners",
    "games",
    "from_flower",
    "from_opacus",
    "from_datashield",
}
BY_MACHINE = {"pate": 0.011, "plan_owners": 1e-9, "robust_rules": 15.0}
"""Scripts whose last digits, or the digests of them, follow from the processor, and by how much numbers may differ.

A vote near its threshold, and a training that liars drive astray, turn a last bit into more than a last digit.
"""
DIGEST = re.compile(r"\b[0-9a-f]{16}\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
WORDS = re.compile(rf"{DIGEST.pattern}|{NUMBER.pattern}| +")
SCRIPTS = sorted(file.stem for file in EXAMPLES.glob("*.py") if not file.stem.startswith("test_"))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SCRIPTS])
def test_a_script_runs_and_prints_what_the_page_shows(name, beside_patients, capsys):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    shown = EXAMPLES / f"{name}.txt"
    if shown.exists():
        found, wanted = capsys.readouterr().out, shown.read_text(encoding="utf-8")
        if name not in BY_MACHINE:
            assert found == wanted
            return
        assert WORDS.sub("#", found) == WORDS.sub("#", wanted)
        numbers = [[float(one) for one in NUMBER.findall(DIGEST.sub("", text))] for text in (found, wanted)]
        assert numbers[0] == pytest.approx(numbers[1], abs=BY_MACHINE[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["patients", "patients_private"])
def test_a_study_runs_as_rehearsed(name, beside_patients):
    study = load(beside_patients / f"{name}.toml")
    expected = rehearse(study)
    result = run_study(study, beside_patients / "run")
    assert result.report.privacy_ok == (name == "patients_private")
    assert {entry.query for entry in expected.entries} == {"hedgerow.stats.linear.sums:linear_sums"}
    if result.report.privacy_ok:  # otherwise the number of rounds depends on the records
        assert result.report.privacy.startswith(expected.statement.sentence)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["breast-cancer-glm", "patients_private.toml"])
def test_the_tutorial_shows_the_rehearsal(name, beside_patients):
    page = (EXAMPLES.parent / "tutorial.md").read_text(encoding="utf-8")
    terminal = io.StringIO()
    show_rehearsal(rehearse(load(name)), Console(width=120, file=terminal))
    said = [line.rstrip() for line in terminal.getvalue().splitlines()]
    first = next(i for i, line in enumerate(said) if line.startswith("questions 1 to"))
    assert "\n".join(said[first : first + 6]) in page


def test_outputs_belong_to_scripts():
    assert {file.stem for file in EXAMPLES.glob("*.txt")} <= set(SCRIPTS)
