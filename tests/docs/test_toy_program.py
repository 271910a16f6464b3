"""The toy statistic of "How to write a program": one module, one test, one catalogue line."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from test_share import *  # noqa: F403  the page's own tests run here

import hedgerow as hr
from hedgerow.errors import MissingColumn, UnboundedSum
from hedgerow.store import load_checkpoint
from hedgerow.studies import PROGRAMS, Listing, load, rehearse, run_study

PAGE = (Path(__file__).parents[2] / "docs" / "program.md").read_text(encoding="utf-8")


@pytest.fixture
def listed(monkeypatch):
    """The catalogue with the line of the page."""
    line = re.search(r'"share": (Listing\(.*\)),', PAGE)[1].replace("hedgerow.stats.share", "share")
    monkeypatch.setitem(PROGRAMS, "share", eval(line, {"Listing": Listing}))


def test_with_one_catalogue_line_a_study_can_name_it(listed, beside_patients):
    result = run_study(load("share.toml"), beside_patients / "run")
    frame = hr.data.load("breast_cancer").to_pandas()
    assert result.run.state.share == (frame["mean_radius"] > 15).mean()
    found = json.loads((beside_patients / "run" / "result.json").read_text())
    assert found["left"]["rows"][0][:2] == ["share:above", 1]
    assert ["share", str(result.run.state.share)] in found["tables"][0]["rows"]


def test_it_can_be_rehearsed_and_protected(listed, beside_patients):
    noisy = {"protection.mechanism": {"noise_multiplier": 2.0}, "budget": {"epsilon": 4.0, "delta": 1e-5, "unit": "record"}}
    expected = rehearse(load("share.toml", noisy))
    assert len(expected.entries) == 1
    assert expected.statement.private


def test_it_resumes_after_its_only_round(beside_patients):
    from share import ShareState, share

    hospitals, file = (
        hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=5)),
        beside_patients / "checkpoint.safetensors",
    )

    def program(federation, start):
        return share(federation, column="mean_radius", threshold=15.0, start=start)

    ended = hr.drive(program, hospitals, checkpoint=file)
    assert hr.drive(program, hospitals, start=load_checkpoint(file, ShareState, "")).state == ended.state
    assert len(hospitals.ledger) == 1


def test_it_refuses_before_asking():
    from share import share

    hospitals = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=5))
    with pytest.raises(MissingColumn, match="Did you mean 'mean_radius'"):
        hr.last(share(hospitals, column="mean_radios", threshold=15.0))
    assert len(hospitals.ledger) == 0


def test_weights_without_a_range_have_no_bound():
    from share import share

    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "weight": [1.0, 5.0, 2.0]})
    table = hr.data.Table.from_pandas(frame).with_roles(weight="weight")
    stores = hr.simulate(table, hr.data.stores())
    assert hr.last(share(stores, column="x", threshold=1.5)).share == 7 / 8
    with pytest.raises(UnboundedSum):
        hr.last(share(stores.protect(mechanism=hr.Gaussian(1.0)), column="x", threshold=1.5))
