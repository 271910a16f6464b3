"""What an epsilon costs a study: forecasts of gradient queries are those of the market room; others say that there is none."""

import tomllib

import numpy as np
import pytest

from hedgerow.market.epsilon.posterior import advantage
from hedgerow.market.forecasts.forecast import forecast
from hedgerow.market.forecasts.owner_noise import mean_variance
from hedgerow.study import load, parse
from hedgerow.study.accuracy import accuracy_cost, agreed, protected

QUERIES = """
title = "Tumours"
[data]
name = "breast_cancer"
features = ["mean_radius", "mean_texture"]
[partition]
by = "iid"
parties = 2
[program]
name = "gradient_queries"
model = "logistic"
n_records = 400
rounds = 20
step = 2.0
epsilons = {{ "party 1" = 1.0, "party 2" = {second} }}
neighbours = "add-remove"
{noise}
[evaluation]
on = "none"
holdout = {holdout}
"""
NOISY = """
[data]
name = "breast_cancer"
[partition]
by = "iid"
parties = 3
[program]
name = "logistic_regression"
formula = "malignant ~ mean_radius"
rounds = 2
[protection]
mechanism = { law = "gaussian", noise_multiplier = 2.0 }
[budget]
epsilon = 4.0
delta = 1e-5
unit = "record"
"""


def queries(second="1.0", noise="", holdout="0.3"):
    return parse({"name": "tumours"} | tomllib.loads(QUERIES.format(second=second, noise=noise, holdout=holdout)))


@pytest.fixture(autouse=True)
def few_points(monkeypatch):
    monkeypatch.setattr("hedgerow.study.accuracy.POINTS", 3)


def numbers(grid):
    return {row[0]: [float(str(x).replace("\N{MINUS SIGN}", "-")) for x in row[1:] if "×" not in str(x)] for row in grid.rows}


def test_forecasts_of_queries_fall_with_epsilon():
    cost = accuracy_cost(queries(noise='noise = "gaussian"'), [0.5, 5.0, 50.0], 1e-6, "add-remove")
    (grid,), (curve,) = cost.grids, cost.curves
    band = curve.series[0]
    assert [row[0] for row in grid.rows][1:] == ["5", "50"]
    assert all(np.diff(band.y) < 0)
    assert all(low < y < high for low, y, high in zip(band.low, band.y, band.high, strict=True))
    assert "171 records of the server" in cost.sentence
    assert "Heterogeneity of owners is not seen" in cost.sentence
    guessed = [float(row[-1]) for row in grid.rows]
    assert 50 < guessed[0] < guessed[1] < guessed[2] <= 100
    assert guessed[1] < 50 * (1 + advantage(5.0)) - 15  # Gaussian noise tells less than its epsilon allows
    assert numbers(grid)["50"][0] == pytest.approx(band.y[band.x.index(50.0)], rel=5e-3)


@pytest.mark.slow
def test_neighbours_and_laws_are_those_asked_for(monkeypatch):
    seen = []

    def spy(estimate, steps, horizon, noise, records, *rest, **how):
        seen.append((noise.law, noise.neighbours, noise.delta, mean_variance(noise, np.asarray(records)), tuple(records)))
        return forecast(estimate, steps, horizon, noise, records, *rest, **how)

    monkeypatch.setattr("hedgerow.study.accuracy.forecast", spy)
    for neighbours in ("add-remove", "replace-one"):
        accuracy_cost(queries(noise='noise = "gaussian"'), [2.0], 1e-7, neighbours)
    accuracy_cost(queries(), [2.0], 1e-7, "add-remove")
    accuracy_cost(queries(noise='noise = "gaussian"'), [2.0], 0.0, "add-remove")
    firsts = [one for i, one in enumerate(seen) if i == 0 or one[:3] != seen[i - 1][:3]]
    assert [one[:3] for one in firsts] == [
        ("gaussian", "add-remove", 1e-7),
        ("gaussian", "replace-one", 1e-7),
        ("laplace", "add-remove", 0.0),
        ("gaussian", "add-remove", 1e-6),  # the study's own delta
    ]
    assert firsts[1][3] == pytest.approx(4 * firsts[0][3])
    assert {one[4] for one in seen} == {(200.0, 200.0)}


def test_owners_that_differ_have_a_line_of_their_own():
    study = queries(second="0.25")
    assert agreed(study) == ((0.25, 1.0), 0.0, "add-remove")
    (grid,) = accuracy_cost(study, [1.0], 0.0, "add-remove").grids
    assert [row[0].partition(",")[0] for row in grid.rows] == ["1", "as agreed"]


def test_without_records_of_the_server_there_is_no_forecast():
    cost = accuracy_cost(queries(holdout="0.0"), [1.0], 0.0, "add-remove")
    assert cost.sentence.startswith("No forecast: nothing is known of the records.")
    assert not cost.grids


@pytest.mark.slow
def test_other_programs_have_their_noise_and_no_forecast():
    study = parse({"name": "noisy"} | tomllib.loads(NOISY))
    assert agreed(study) == ((4.0,), 1e-5, "add-remove")
    assert (protected(study), protected(queries()), protected(load("digits-fedavg"))) == ("record", "record", "party")
    cost = accuracy_cost(study, [1.0, 4.0], 0.0, "add-remove")
    assert cost.sentence.startswith("No forecast: nothing is known of the records. With evaluation.holdout")
    (grid,) = cost.grids
    (_, strict, little), (_, loose, more) = grid.rows
    assert strict > 3 * loose > 0
    assert 50 < float(little) < float(more) < 50 * (1 + advantage(4.0, 1e-5))
    assert study.protection.mechanism.noise_multiplier == 2.0


def test_comparisons_and_studies_without_noise_say_so():
    assert "compares several runs" in accuracy_cost(load("wu-queries"), [1.0], 0.0, "add-remove").sentence
    cost = accuracy_cost(load("breast-cancer-glm"), [1.0], 0.0, "add-remove")
    assert cost.sentence.startswith("No forecast: nothing is known of the records.")
    assert not cost.grids
    cost = accuracy_cost(load("digits-fedavg"), [], 0.0, "add-remove")
    assert cost.sentence == "No forecast of accuracy exists for the program fedavg."
    assert agreed(load("breast-cancer-glm")) == ((), 0.0, "add-remove")


def test_weights_and_records_of_owners_are_those_of_the_study():
    text = QUERIES.format(second="1.0", noise='weights = { "party 1" = 1.0, "party 2" = 0.1 }', holdout="0.3")
    found = tomllib.loads(text.replace("n_records = 400", 'n_records = { "party 1" = 390, "party 2" = 10 }'))
    equal = tomllib.loads(
        text.replace("n_records = 400", 'n_records = { "party 1" = 390, "party 2" = 10 }').replace("= 0.1", "= 1.0")
    )
    weighted, plain = (
        accuracy_cost(parse({"name": "tumours"} | one), [1.0], 0.0, "add-remove").curves[0].series[0] for one in (found, equal)
    )
    assert weighted.y[0] < 0.6 * plain.y[0]  # a small owner's noise counts for less


@pytest.mark.slow
def test_a_regression_says_how_much_larger_its_standard_errors_are():
    text = NOISY.replace("breast_cancer", "hie").replace("malignant ~ mean_radius", "I(mdvis > 0) ~ lncoins + disea")
    given = parse({"name": "visits"} | tomllib.loads(text + '[evaluation]\non = "none"\nholdout = 0.3\n'))
    cost = accuracy_cost(given, [0.01, 8.0], 0.0, "add-remove")
    (_, _, _, hidden), (_, _, _, seen) = cost.grids[0].rows
    assert hidden == "saturated"
    low, high = map(float, seen.split(" to "))
    assert 1 <= low <= high < 3
    assert "Known from 6\u202f057 records of the server" in cost.sentence
    alone = accuracy_cost(given, [8.0], 0.0, "add-remove").sentence
    assert f"noise makes its standard errors {seen} times as large" in alone


def test_a_budget_that_no_noise_keeps_is_told():
    given = parse({"name": "noisy"} | tomllib.loads(NOISY.replace("delta = 1e-5", "delta = 0.0")))
    assert (
        "At epsilon 4 and delta 0: a budget of delta 0 is not kept" in accuracy_cost(given, [4.0], 0.0, "add-remove").sentence
    )
