"""With whom, as a study: weights and prefixes of the four ways, forecasts beside trainings, on made-up and on real rows."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.compare import cells
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.queries import Inputs, QueryLoss
from hedgerow.market import equal_excess, weighted_excess
from hedgerow.papers.wu.coalition_trials import WAYS, Known, coalition_trials, ways_of
from hedgerow.report import render
from hedgerow.study import load, run_study
from hedgerow.study.study import parse

DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
KNOWN = Known(sampling=0.69, amplification=0.46, bias=4e-6, least=0.068, nobody=0.044)
N, A = np.array([40_000.0, 1000.0, 1000.0]), np.array([3e7, 3e9, 3e9])


def test_four_ways_and_what_is_expected_of_them():
    weights, forecast = ways_of(N, A, KNOWN, 100_000)
    given = (N, A, KNOWN.sampling, KNOWN.amplification, KNOWN.bias)
    assert weights[0].tolist() == [1, 1, 1]
    assert weights[1].tolist() == weights[2].tolist() == [1, 0, 0]
    assert weights[3, 0] == 1 > 0.01 > weights[3, 1] == weights[3, 2] > 0
    expected = np.array([equal_excess(*given), weighted_excess(*given)]) - KNOWN.sampling / 100_000
    np.testing.assert_allclose(forecast[[0, 3]], expected / KNOWN.least)
    assert forecast[3] < forecast[2] <= forecast[0]


def made(folder, in_order=False, **more):
    """A study of 12 000 records of a linear law; in the order of a t, owners differ in the coefficient of a."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(-1, 1, (12_000, 3)), columns=["a", "b", "c"])
    table["t"] = (table @ [0.5, -0.3, 0.2] + rng.normal(scale=0.2, size=len(table))).clip(-1.5, 1.5)
    table = table.loc[(table["a"] * table["t"]).sort_values().index] if in_order else table
    table.to_csv(folder / "made.csv", index=False)
    settings = {"model": "linear", "held": [6000, 2000, 2000], "epsilon": 15.0, "openness": 0.1}
    return parse(
        {
            "data": {"path": str(folder / "made.csv"), "target": "t", "ranges": dict.fromkeys("abct", (-1.5, 1.5))},
            "partition": {"by": "of_sizes", "sizes": [6000, 2000, 2000], "shuffled": not in_order},
            "program": {"name": "coalition_trials", **settings, "horizon": 40, "repeats": 200, "step": 3.0} | more,
            "evaluation": {"on": "none", "holdout": 0.15},
            "baselines": False,
        }
    )


@pytest.mark.slow
def test_forecasts_are_what_trainings_achieve_and_the_best_weights_are_best(tmp_path):
    result = run_study(made(tmp_path), tmp_path / "run")
    arrays = result.outcome.arrays
    runs, forecast, weights, ends = (arrays[name] for name in ("relative fitness", "forecast", "weights", "interval"))
    mean, error = runs.mean(-1), runs.std(-1, ddof=1) / 200**0.5
    assert runs.shape == (1, len(WAYS), 200)
    np.testing.assert_allclose(forecast, mean, atol=0, rtol=0.2)
    assert (mean[:, 3] <= mean[:, 2] + 2 * np.hypot(error[:, 3], error[:, 2])).all()
    inside = ((runs > ends[..., :1]) & (runs < ends[..., 1:])).mean(-1)
    assert (np.abs(inside - 0.9) < 0.07).all()  # three standard errors of 200 runs
    assert (mean[:, 0] > 10 * mean[:, 3]).all()
    assert (weights[:, 2] == [1, 0, 0]).all()
    assert result.outcome.metrics["everybody equally over best weights"] == pytest.approx(mean[0, 0] / mean[0, 3])
    page = render(result.report)
    assert "Relative fitness, achieved and forecast" in page
    assert "forecast: best weights" in page
    assert "What each owner is worth" in page


def test_conservative_owners_do_harm_with_equal_weights_and_none_with_the_best():
    worth = replace(KNOWN, nobody=10.0).worth(N, A)
    share, missing, shapley, missing_equal, shapley_equal = worth.T
    assert share.sum() == pytest.approx(1)
    assert (missing > 0).all()
    assert (shapley > 0).all()
    assert (missing_equal[1:] < 0).all()
    assert shapley_equal.sum() < shapley.sum()
    assert worth[1] == pytest.approx(worth[2])


@pytest.mark.slow
def test_no_forecast_sees_that_owners_differ(tmp_path):
    arrays = run_study(made(tmp_path, True, horizon=15, repeats=20), tmp_path / "run").outcome.arrays
    assert arrays["relative fitness"][0, 1].mean() > 5 * arrays["forecast"][0, 1]


def test_who_has_no_weight_is_not_asked():
    table = hr.data.load("hie").select(["mdvis", "lncoins", "idp"]).take(range(300))
    fed = hr.simulate(table, hr.data.of_sizes([200, 50, 50]), seed=0)
    spec, settings = Inputs.scaled(fed.schema), {"held": [200, 50, 50], "epsilon": 50.0, "openness": 1e-3, "horizon": 1}
    states = [*coalition_trials(fed, loss=QueryLoss("squared"), spec=spec, **settings, repeats=2)]
    assert (states[-1].weights[0] > 0).tolist() == [[True] * 3, [True, False, False], [True, False, False], [True] * 3]
    asked = [entry.parties for entry in fed.ledger.entries]
    assert asked == [3, 1, 1, 3]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"held": [200, 100]}, "held="),
        ({"firsts": [1.5]}, "firsts="),
        ({"others": 0.0}, "others="),
        ({"pilot": [1.0, 2.0]}, "pilot="),
        ({"repeats": 0}, "repeats=0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    table = hr.data.load("hie").select(["mdvis", "lncoins", "idp"]).take(range(300))
    fed = hr.simulate(table, hr.data.of_sizes([200, 50, 50]), seed=0)
    given = {"held": [200, 50, 50], "epsilon": 50.0} | settings
    with pytest.raises(SettingsInvalid, match=says):
        next(coalition_trials(fed, loss=QueryLoss("squared"), spec=Inputs.scaled(fed.schema), **given))


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="set HEDGEROW_DATA to the folder of public data sets")
def test_on_lending_rows_two_small_conservative_owners_spoil_equal_weights_and_not_the_best_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    cell = next(c for c in cells(load("wu-coalitions"), quick=True) if c.row == "lending, linear regression")
    assert cell.column == "i small, conservative"
    result = run_study(cell.study, tmp_path / "run")
    everybody, _, _, best = result.outcome.arrays["relative fitness"].mean(-1)[0]
    assert everybody > 20 * best
    assert best < result.outcome.arrays["interval"][0, 2, 1]  # where 95 of 100 runs of the best prefix end
    forecast = result.outcome.arrays["forecast"][0]
    assert forecast[0] > 50 * forecast[3]
