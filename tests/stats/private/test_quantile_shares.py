"""A private quantile has the share of targets below it that was asked for."""

import math
from itertools import pairwise, product

import numpy as np
import pandas
import pytest
import statsmodels.api as sm
from scipy.integrate import quad
from scipy.optimize import brentq

import hedgerow as hr
from hedgerow.stats import private
from hedgerow.stats.linear.losses import loss_of
from hedgerow.stats.private.bounded_sums import BoundedSums

FORMULA = "cost ~ age + sex"
BUDGET = {"epsilon": 1.0, "delta": 1e-5}


def costs(n):
    rng = np.random.default_rng(0)
    age, sex = rng.uniform(18, 90, n), rng.choice(["f", "m"], n)
    cost = np.clip(1000 + 40 * age + 300 * (sex == "m") + rng.normal(0, 500, n), 0, 10_000)
    declared = {"age": {"range": [18, 90]}, "cost": {"range": [0, 10_000]}, "sex": {"levels": ["f", "m"]}}
    return hr.data.Table.from_frame(pandas.DataFrame({"age": age, "sex": sex, "cost": cost}), target="cost", declared=declared)


def dealt(table):
    return hr.simulate(table, hr.data.iid(parties=3), seed=1)


def below(table, fit):
    return float((table["cost"] < fit.predict(table)).mean())


@pytest.mark.parametrize("share", [*(pytest.param(share, marks=pytest.mark.slow) for share in (0.1, 0.5)), 0.9])
def test_without_noise_as_many_targets_are_below_as_of_statsmodels_line(share):
    table = costs(1000)
    fit = private.quantile(dealt(table), FORMULA, share=share, rows="fixed", penalty=1e-3, tol=1e-5)
    rows = fit.rows
    X, y = rows.rows(table.columns, len(table)), rows.targets(table.columns)
    known = sm.QuantReg(y, X).fit(q=share).params
    assert below(table, fit) == pytest.approx(np.mean(y < X @ known), abs=0.01)


@pytest.mark.parametrize("method", ["majorised", pytest.param("gradient", marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", [pytest.param(0.1, marks=pytest.mark.slow), 0.9])
def test_behind_noise_the_share_is_near_too(share, method):
    table = costs(5000)
    fit = private.quantile(dealt(table), FORMULA, share=share, method=method, **BUDGET)
    assert below(table, fit) == pytest.approx(share, abs=0.03)


# ---- the loss -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("share", [0.05, 0.5, 0.8])
def test_the_smoothed_loss_is_the_check_loss_convolved_with_a_uniform_kernel(share):
    loss, h = loss_of("smoothed check", share), 0.3
    for r in (-1.0, -0.3, -0.1, 0.0, 0.2, 0.3, 2.0):
        ends = sorted((r - h, min(max(0.0, r - h), r + h), r + h))
        known = sum(quad(lambda u: u * (share - (u < 0)), a, b)[0] for a, b in pairwise(ends)) / (2 * h)
        assert float(loss.part("smooth", np.array([r]), np.zeros(1), 2 * h)[0]) == pytest.approx(known, abs=1e-10)


def test_a_rounded_corner_is_caught():
    """At a tenth of the targets' range the line of a kernel has the share, and the rounded corner's has not."""
    y = np.random.default_rng(0).normal(0, 0.1, 20_000)

    def line(name):
        return brentq(lambda at: loss_of(name, 0.9).part("slope", y, np.full_like(y, at), 0.1).sum(), -3, 3)

    assert np.mean(y < line("smoothed check")) == pytest.approx(0.9, abs=0.012)
    assert np.mean(y < line("check")) < 0.87


@pytest.mark.parametrize("share", [0.05, 0.5, 0.8])
def test_every_steps_bound_is_reached_and_never_exceeded(share):
    loss, steps = private.BoundedLoss("quantile", 0.1, share), 40
    sums = BoundedSums({"score": dealt(costs(30))}, private.UnitRows.of(FORMULA, costs(30).schema), loss)
    for step in range(steps + 1):
        one = loss.at(step, steps)
        found = [
            abs(float(one.loss.part("slope", np.array([y]), np.array([eta]), one.width)[0]))
            for y, eta in product((-1.0, 0.0, 1.0), (-math.inf, -1e4, -1.0, 0.0, 1.0, 1e4, math.inf))
        ]
        assert max(found) == one.slope == sums.bound_of(one).radius <= max(share, 1 - share)


def test_corners_become_narrower_down_to_the_one_asked_for():
    steps = [private.BoundedLoss("quantile", 0.1, 0.9).at(k, 40) for k in range(40)]
    widths = [one.width for one in steps]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(0.1)
    assert [one.share for one in steps] == [0.5] * 3 + [0.9] * 37
    assert private.BoundedLoss("quantile", 0.1, 0.9).at(0, 1) == private.BoundedLoss("quantile", 0.2, 0.9)


# ---- what is said ---------------------------------------------------------------------------------------------------
def test_a_summary_names_share_and_corner_and_steps_that_are_too_few():
    table = costs(2000)
    said = " ".join(private.quantile(dealt(table), FORMULA, share=0.9, corner=400.0, epsilon=8.0, delta=1e-5).summary().split())
    assert "share 0.9 of targets below the line" in said
    assert "a corner of 400" in said
    assert "too few" not in said
    few = private.quantile(dealt(table), FORMULA, share=0.9, corner=100.0, rounds=3, **BUDGET)
    assert "steps are too few for this corner" in " ".join(few.summary().split())
