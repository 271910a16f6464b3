"""Gradient queries as studies: slopes, figures on log axes, owners' epsilons, and the constants of the bundled study."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.compare import cells
from hedgerow.errors import StudyInvalid
from hedgerow.learn.queries import Inputs
from hedgerow.privacy.accounting import epsilon
from hedgerow.report import render
from hedgerow.study import load, rehearse, run_study
from hedgerow.study.study import parse

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
VISITS = {
    "data": {"name": "hie", "features": ["lncoins", "idp", "physlm", "disea"]},
    "partition": {"by": "iid", "parties": 3},
    "evaluation": {"on": "none"},
    "baselines": False,
}
MODEL = {"model": "linear", "ridge": 1.0, "n_records": 20190, "box": 1.0, "step": 0.5}


def trials(**settings):
    return parse(VISITS | {"program": {"name": "query_trials", **MODEL, "repeats": 40, "horizons": [30], **settings}})


@pytest.fixture(scope="module")
def by_epsilon(tmp_path_factory):
    return run_study(trials(epsilons=[0.25, 0.5, 1.0, 2.0]), tmp_path_factory.mktemp("by epsilon") / "run")


@pytest.mark.slow
def test_fitness_falls_with_the_square_of_epsilon(by_epsilon):
    assert by_epsilon.outcome.metrics["slope"] == pytest.approx(-2, abs=0.2)
    table = by_epsilon.outcome.coefficients.set_index(["noise", "epsilon"])
    assert (table["mean"] > 0).all()
    assert table.loc[("server", 0.25), "mean"] < table.loc[("gaussian", 0.25), "mean"] < table.loc[("laplace", 0.25), "mean"]


@pytest.mark.slow
def test_fitness_falls_with_the_square_of_the_records(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(-1, 1, (20_000, 3)), columns=["a", "b", "c"])
    table["t"] = (table @ [0.5, -0.3, 0.2] + rng.normal(scale=0.2, size=len(table))).clip(-1.5, 1.5)
    table.to_csv(tmp_path / "made.csv", index=False)
    ranges = dict.fromkeys("abct", (-1.5, 1.5))
    data = {"path": str(tmp_path / "made.csv"), "target": "t", "ranges": ranges}
    study = trials(epsilons=[16.0], shares=[0.125, 0.25, 0.5, 1.0], horizons=[100], noises=["laplace"])
    result = run_study(parse(study.model_dump(exclude_unset=True) | {"data": data}), tmp_path / "run")
    assert result.outcome.metrics["slope"] == pytest.approx(-2, abs=0.2)


@pytest.mark.slow
def test_the_report_draws_log_axes_and_says_the_gain_in_one_line(by_epsilon):
    page = render(by_epsilon.report)
    assert [curve.log for curve in by_epsilon.report.curves] == ["xy", "xy"]
    assert "Relative fitness by epsilon" in page
    line = dict(by_epsilon.report.text)["What exact composition gains"].splitlines()[0]
    gain = by_epsilon.outcome.metrics["gain"]
    assert line.startswith("at epsilon 1, n 20190, T 30: excess loss ")
    assert f": {gain:.0f} x (" in line
    assert gain > 2


@pytest.mark.slow
def test_every_training_of_a_study_is_charged():
    study = trials(epsilons=[100.0, 200.0], noises=["laplace"], neighbours="add-remove")
    rehearsed = rehearse(study)
    charges = rehearsed.ledger.charges("record")
    assert epsilon(charges, delta=1e-6, adjacency="add-remove", accountant="basic") == pytest.approx(40 * 300)


@pytest.mark.slow
def test_owners_have_epsilons_of_their_own(tmp_path):
    settings = {
        "name": "gradient_queries",
        **MODEL,
        "rounds": 20,
        "epsilons": {"party 1": 50.0, "party 2": 100.0, "party 3": 200.0},
    }
    measured = {"program": settings, "evaluation": {"on": "test", "holdout": 0.1}}
    result = run_study(parse(VISITS | measured), tmp_path / "run")
    owners = result.outcome.tables["Epsilon by owner"]
    assert owners["agreed epsilon"].tolist() == [50.0, 100.0, 200.0]
    np.testing.assert_allclose(owners["spent, replace-one"], [50.0, 100.0, 200.0])
    assert result.report.privacy_ok
    assert 0.2 < dict(result.report.metrics)["test loss"] < 0.5


def test_a_wrong_key_is_refused_with_the_nearest_one(tmp_path):
    with pytest.raises(StudyInvalid, match="HR-101"):
        run_study(trials(epsilon=[1.0]), tmp_path / "run")


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
@pytest.mark.parametrize(("name", "components"), [("lending, linear regression", 10), ("fraud, support vector machine", None)])
def test_constants_of_the_bundled_study_are_those_of_the_servers_records(name, components):
    study = next(cell.study for cell in cells(load("wu-queries")) if cell.row == name)
    table, given = hr.data.load(study.data.name, data_dir=DATA), study.program.model_extra
    table = table.with_roles(features=study.data.features) if study.data.features else table
    public, kept = table.split(study.evaluation.holdout, 0)
    made = Inputs.projected(public, components, digits=4)
    assert given["n_records"] == len(kept)
    for key in ("centre", "spread", "radius", "projection", "target_centre", "target_spread"):
        np.testing.assert_allclose(given[key], getattr(made, key), err_msg=key, rtol=2e-3, atol=1e-9)
