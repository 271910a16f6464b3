"""How to write a program, done as the page says: a package with one module, one test and one entry point."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import MissingColumn, SettingsInvalid, StudyInvalid, UnboundedSum
from hedgerow.study import PROGRAMS, load, rehearse, run_study
from scratch import installed

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
POINTS = tomllib.loads((EXAMPLES / "share_package.toml").read_text())["project"]["entry-points"]["hedgerow.programs"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the page's package is installed."""
    folder = tmp_path_factory.mktemp("site")
    modules = {name: (EXAMPLES / f"{name}.py").read_text(encoding="utf-8") for name in ("share", "fedexp")}
    points = POINTS | {"fedexp": "my_lab.fedexp:fedexp"}
    with pytest.MonkeyPatch.context() as patch, installed(folder, "my_lab", modules, points, patch):
        yield folder


@pytest.fixture
def share(site):
    return import_module("my_lab.share").share


@pytest.fixture(scope="module")
def passed(site, tmp_path_factory):
    """What pytest says of the tests of the page, each with its outcome."""
    folder, names = tmp_path_factory.mktemp("page"), ("test_share.py", "test_fedexp.py")
    for name in names:
        (folder / name).write_bytes((EXAMPLES / name).read_bytes())
    path = os.pathsep.join(map(str, (site, Path(hr.__file__).parents[1])))
    command = [sys.executable, "-W", "error", "-m", "pytest", "-v", "-p", "no:cacheprovider", *names]
    ended = subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [line.partition("::")[0] for line in ended.stdout.splitlines() if "::" in line and " PASSED" in line]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n"), [("test_share.py", 10), ("test_fedexp.py", 9)])
def test_the_tests_of_the_page_pass(name, n, passed):
    assert passed.count(name) == n


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


def test_a_program_on_the_local_solver_is_fedavg_with_a_longer_step(site):
    fedexp = import_module("my_lab.fedexp").fedexp
    digits = hr.data.load("digits").take(range(300))
    model = hr.learn.linear(64, 10)
    parties = hr.simulate(digits, hr.data.shards(parties=10), seed=0)
    before = np.concatenate([value.ravel() for value in model.state_dict().values()])

    def moved(program):
        state = hr.last(program(hr.engines.on(parties, hr.InProcess()), model, rounds=1))
        return np.concatenate([value.ravel() for value in state.weights.values()]) - before

    longer, plain = moved(fedexp), moved(hr.learn.fedavg)
    step = (longer @ plain) / (plain @ plain)
    assert step > 1.2
    np.testing.assert_allclose(longer, step * plain, atol=1e-6)
    states = list(fedexp(hr.engines.on(parties, hr.InProcess()), model, rounds=2))
    assert [state.round for state in states] == [1, 2]
    with pytest.raises(SettingsInvalid, match="damping is 0"):
        hr.last(fedexp(parties, model, rounds=1, damping=0.0))


def test_a_case_may_be_made_up():
    schema = hr.data.Schema((hr.data.Column("x", "number", low=0, high=1),))
    table = hr.data.Table(schema.admit({"x": [0.25, 0.5]}), schema)
    assert hr.Case(table, {"column": "x", "threshold": 0.3}).table is table


def test_the_page_names_every_promise_and_every_argument():
    from dataclasses import fields

    from hedgerow.core import Declaration
    from hedgerow.testing import PROMISES

    page = (EXAMPLES.parent / "program.md").read_text(encoding="utf-8")
    assert [name for name in PROMISES if f"`{name}`" not in page] == []
    given = {field.name for field in fields(Declaration)} - {"function", "sentence"}
    assert [name for name in given if f"`{name}`" not in page] == []
