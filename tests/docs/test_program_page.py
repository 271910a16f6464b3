"""How to write a program, done as the page says: a package with one module, one test and one entry point."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import MissingColumn, StudyInvalid, UnboundedSum
from hedgerow.study import PROGRAMS, load, rehearse, run_study
from scratch import installed

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
POINTS = tomllib.loads((EXAMPLES / "share_package.toml").read_text())["project"]["entry-points"]["hedgerow.programs"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the page's package is installed."""
    folder = tmp_path_factory.mktemp("site")
    module = (EXAMPLES / "share.py").read_text(encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, installed(folder, "my_lab", {"share": module}, POINTS, patch):
        yield folder


@pytest.fixture
def share(site):
    return import_module("my_lab.share").share


@pytest.mark.slow
def test_the_tests_of_the_page_pass(site, tmp_path):
    (tmp_path / "test_share.py").write_bytes((EXAMPLES / "test_share.py").read_bytes())
    source = Path(hr.__file__).parents[1]
    path = os.pathsep.join(map(str, (site, source)))
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_share.py"]
    ended = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "10 passed" in ended.stdout


def test_a_study_can_name_it(share, beside_patients):
    result = run_study(load("share.toml"), beside_patients / "run")
    frame = hr.data.load("breast_cancer").to_pandas()
    assert result.run.state.share == (frame["mean_radius"] > 15).mean()
    found = json.loads((beside_patients / "run" / "result.json").read_text())
    assert found["left"]["rows"][0][:2] == ["my_lab.share:above", 1]
    assert ["share", str(result.run.state.share)] in found["tables"][0]["rows"]


def test_it_is_listed_beside_ours(share):
    assert PROGRAMS.sentences()["share"] == "Which part of the records lies above a threshold."


def test_a_key_that_it_does_not_have_is_refused(share, beside_patients):
    with pytest.raises(StudyInvalid, match="Did you mean 'threshold'"):
        run_study(load("share.toml", {"program.treshold": 15.0}), beside_patients / "run")


def test_it_can_be_rehearsed_and_protected(share, beside_patients):
    noisy = {"protection.mechanism": {"noise_multiplier": 2.0}, "budget": {"epsilon": 4.0, "delta": 1e-5, "unit": "record"}}
    expected = rehearse(load("share.toml", noisy))
    assert len(expected.entries) == 1
    assert expected.statement.private


def test_it_refuses_before_asking(share):
    hospitals = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=5))
    with pytest.raises(MissingColumn, match="Did you mean 'mean_radius'"):
        hr.last(share(hospitals, column="mean_radios", threshold=15.0))
    assert len(hospitals.ledger) == 0


def test_weights_without_a_range_have_no_bound(share):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "weight": [1.0, 5.0, 2.0]})
    table = hr.data.Table.from_pandas(frame).with_roles(weight="weight")
    stores = hr.simulate(table, hr.data.stores())
    assert hr.last(share(stores, column="x", threshold=1.5)).share == 7 / 8
    with pytest.raises(UnboundedSum):
        hr.last(share(stores.protect(mechanism=hr.Gaussian(1.0)), column="x", threshold=1.5))


def test_the_page_names_every_promise_and_every_argument():
    from dataclasses import fields

    from hedgerow.core import Declaration
    from hedgerow.testing import PROMISES

    page = (EXAMPLES.parent / "program.md").read_text(encoding="utf-8")
    assert [name for name in PROMISES if f"`{name}`" not in page] == []
    given = {field.name for field in fields(Declaration)} - {"function", "sentence"}
    assert [name for name in given if f"`{name}`" not in page] == []
